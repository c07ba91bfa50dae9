"""Which rental a run belongs to: the one that is named, else the one that alone covers this moment on this device."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from campaign_files import HEAD, TEST_CPU, offer
from click.testing import CliRunner

from collector.cli import main
from collector.clock import FakeClock, SystemClock
from collector.contract.errors import DossierError
from collector.contract.records import Decision, Device, Header, Record
from collector.machine import ThisMachine
from collector.rental import find_rental
from collector.run_options import RunOptions
from collector.workers import InProcessWorkerFactory

NOW = "2026-03-02T12:00:00.000000Z"
HERE = [Device(environment_id="e" * 16, device_id="cpu", device_kind="cpu", device_name=TEST_CPU)]
SCRIPT = {"load_ms": 20, "defaults": {"first_token_ms": 4, "gap_ms": 1, "output_tokens": 4}}
PRICES = 'price_3_days = "72.00"\nprice_7_days = "140.00"'
RENTAL = '[[rental]]\nid = "{id}"\noffer = "{offer}"\nfrom = {start}\nto = {end}\n'
DAYS = {"start": "2026-03-01T00:00:00Z", "end": "2026-03-04T00:00:00Z"}


@pytest.fixture
def campaign(tmp_path: Path) -> Callable[..., Path]:
    """Write protocol.toml's neighbour campaign.toml with these rentals; returns where the protocol would lie."""

    def write(*rentals: dict[str, str], device: str = HERE[0].device_name, folder: Path = tmp_path) -> Path:
        offers = offer("here", prices=PRICES, device=device) + offer("elsewhere", prices=PRICES, device="Another CPU")
        listed = "".join(RENTAL.format(**{"offer": "here", **DAYS, **rental}) for rental in rentals)
        (folder / "campaign.toml").write_text(HEAD.format(deadline=100) + offers + listed)
        return folder / "protocol.toml"

    return write


def test_the_one_rental_that_covers_now_on_this_device_is_taken(campaign: Callable[..., Path]) -> None:
    before = {"id": "before", "start": "2026-02-20T00:00:00Z", "end": "2026-03-01T00:00:00Z"}
    protocol = campaign(before, {"id": "now"}, {"id": "other", "offer": "elsewhere"})
    found = find_rental(protocol, None, None, HERE, NOW)
    assert (found.rental_id, found.notice) == ("now", None)
    assert found.left(NOW) == 36
    assert found.left("2026-03-03T23:59:59.500000Z") == Fraction(1, 7200)
    assert found.left("2026-03-09T00:00:00.000000Z") == 0


def test_a_rental_begins_at_its_first_moment_and_is_over_at_its_last(campaign: Callable[..., Path]) -> None:
    """Times with an offset name the same instants: 01:00+01:00 is midnight UTC."""
    protocol = campaign({"id": "r", "start": "2026-03-01T01:00:00+01:00", "end": "2026-03-04T00:00:00Z"})
    stamps = ["2026-02-28T23:59:59.999999Z", "2026-03-01T00:00:00.000000Z", "2026-03-03T23:59:59.999999Z",
              "2026-03-04T00:00:00.000000Z"]  # fmt: skip
    assert [find_rental(protocol, None, None, HERE, stamp).rental_id for stamp in stamps] == [None, "r", "r", None]


def test_none_and_several_rentals_are_said_and_none_is_guessed(campaign: Callable[..., Path]) -> None:
    several = find_rental(campaign({"id": "a"}, {"id": "b"}), None, None, HERE, NOW)
    assert several.rental_id is None
    assert "rentals a, b of" in str(several.notice)
    assert "--rental ID" in str(several.notice)
    none = find_rental(campaign({"id": "a", "offer": "elsewhere"}), None, None, HERE, NOW)
    assert none.rental_id is None
    assert "no rental of" in str(none.notice)
    assert find_rental(campaign(), None, None, HERE, NOW) == (None, None), "a campaign without rentals says nothing"


def test_a_named_rental_is_taken_and_what_speaks_against_it_is_said(campaign: Callable[..., Path]) -> None:
    protocol = campaign({"id": "a"}, {"id": "b"}, {"id": "c", "offer": "elsewhere", "end": "2026-03-02T00:00:00Z"})
    assert find_rental(protocol, None, "b", HERE, NOW)[0].id == "b"  # type: ignore[union-attr]
    found = find_rental(protocol, None, "c", HERE, NOW)
    assert found.rental_id == "c"
    assert "and now it is 2026-03-02T12:00:00Z" in str(found.notice)
    assert "offer elsewhere is for Another CPU, and this is Test CPU (1 core)" in str(found.notice)


def test_a_rental_that_the_campaign_does_not_have_is_refused(campaign: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(DossierError, match="has no rental 'x'") as refused:
        find_rental(campaign({"id": "a"}, {"id": "b"}), None, "x", HERE, NOW)
    assert refused.value.next_step == "name one of: a, b"
    with pytest.raises(DossierError, match="there is no campaign file"):
        find_rental(tmp_path / "elsewhere" / "protocol.toml", None, "x", HERE, NOW)


def test_a_resumed_file_keeps_its_header_and_records_under_which_rental_it_goes_on(
    make_trial: Callable[..., Any], fixed_meter: Any, fixed_machine: Any, records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(SCRIPT)

    def start(**options: Any) -> Any:
        clock = FakeClock()
        factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
        chosen = RunOptions(device="cpu", **options)
        return trial.run(chosen, clock=clock, factory=factory, machine=fixed_machine)

    first = start(rental_id="march", only=["fp32"])
    again = start(rental_id="april", is_resuming=True)
    records = records_of(again.path)
    assert again.path == first.path
    assert isinstance(records[0], Header)
    assert records[0].rental_id == "march"
    changes = [r.detail for r in records if isinstance(r, Decision) and "rental_id" in r.detail]
    assert changes == [{"rental_id": "april"}]
    assert "begun under rental march and goes on under april" in " ".join(trial.watcher.notices)


def test_a_run_names_its_rental_in_the_header_and_says_what_is_left_of_it(
    make_trial: Callable[..., Any], campaign: Callable[..., Path], records_of: Callable[[Path], list[Record]]
) -> None:
    """The first run cannot say how long it takes; the second knows from the first."""
    trial = make_trial(SCRIPT, documents=2)
    device = ThisMachine().detect("cpu", threads=None).devices[0].device_name
    year = SystemClock().utc()[:4]
    whole_year = {"start": f"{year}-01-01T00:00:00Z", "end": f"{int(year) + 1}-01-01T00:00:01Z"}
    campaign({"id": "r1", **whole_year}, device=device, folder=trial.folder)
    command = ["run", str(trial.protocol), "--out", str(trial.out), "--device", "cpu"]
    first = CliRunner().invoke(main, command)
    assert first.exit_code == 0, first.output
    assert "rental r1: " in first.stderr
    assert "is not known before it was measured" in first.stderr
    second = CliRunner().invoke(main, command)
    assert "by earlier passes the run takes" in second.stderr
    assert "it fits" in second.stderr
    headers = [records_of(Path(result.stdout.splitlines()[0]))[0] for result in (first, second)]
    assert [header.rental_id for header in headers if isinstance(header, Header)] == ["r1", "r1"]
    unknown = CliRunner().invoke(main, [*command, "--rental", "r2"])
    assert (unknown.exit_code, "name one of: r1" in unknown.stderr) == (2, True)
