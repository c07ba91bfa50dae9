"""The starter as `init` writes it: a trial that checks and freezes as it is, whole, of one tier or small."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from collector.cli import main
from collector.clock import FakeClock
from collector.contract.campaign_file import read_campaign
from collector.contract.errors import DossierError
from collector.contract.offers import PACKAGE_DAYS
from collector.freeze import freeze, read_frozen
from collector.init import FILES, detected_device, init_folder
from collector.protocol_check import check_protocol, examine, load_protocol
from collector.starter import make_documents
from collector.starter.demo_model import cached_folder

TODAY = dt.date(2026, 11, 30)
STARTER = Path(make_documents.__file__).parent


def test_init_writes_a_trial_that_checks_and_freezes(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    result = CliRunner().invoke(main, ["init", str(folder)])
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [str(folder / name) for name in FILES]
    assert check_protocol(folder / "protocol.toml", with_tokenizer=False) == []
    lock = freeze(folder / "protocol.toml", campaign=None, clock=FakeClock(), with_tokenizer=False)
    assert lock.objective_digest is not None
    assert len(read_frozen(folder / "protocol.toml").documents) == 330


@pytest.mark.parametrize(
    ("options", "roles"),
    [
        (["--small"], {"development": 12, "validation": 24, "test": 12}),
        (["--small", "--tier", "labelled"], {"development": 12, "validation": 24, "test": 12}),
        (["--tier", "labelled"], {"development": 12, "validation": 40, "test": 80}),
        (["--tier", "prose"], {"development": 8, "validation": 25, "test": 50}),
        (["--kind", "answers"], {"development": 8, "validation": 14, "test": 28}),
        (["--kind", "ranking"], {"development": 12, "validation": 40, "test": 40}),
    ],
)
def test_init_writes_a_part_or_another_kind_with_its_own_statistics(
    tmp_path: Path, options: list[str], roles: dict[str, int]
) -> None:
    folder = tmp_path / "trial"
    result = CliRunner().invoke(main, ["init", str(folder), *options])
    assert result.exit_code == 0, result.output
    assert check_protocol(folder / "protocol.toml", with_tokenizer=False) == []
    lines = [json.loads(line) for line in (folder / "documents.jsonl").read_text(encoding="utf-8").splitlines()]
    assert Counter(line["role"] for line in lines) == roles
    for role in ("validation", "test"):
        assert any("critical" in line["subsets"] for line in lines if line["role"] == role)
    counts = " | ".join(str(roles[role]) for role in ("development", "validation", "test"))
    assert f"| all | {counts} |" in (folder / "corpus.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "options",
    [
        ["--kind", "answers", "--small"],
        ["--kind", "ranking", "--tier", "prose"],
        ["--small", "--tier", "prose"],
        ["--small", "--from", "."],
        ["--tier", "prose", "--from", "."],
    ],
)
def test_what_cannot_be_chosen_together_is_said_and_nothing_is_written(tmp_path: Path, options: list[str]) -> None:
    result = CliRunner().invoke(main, ["init", str(tmp_path / "trial"), *options])
    assert result.exit_code == 2
    assert "tier" in result.stderr
    assert not (tmp_path / "trial").exists()


def test_the_campaign_names_this_machines_device_and_says_that_its_prices_are_examples(tmp_path: Path) -> None:
    init_folder(tmp_path, device='Card "X" 80 GB', today=TODAY)
    campaign = read_campaign(tmp_path / "campaign.toml").campaign
    devices = {one.device for one in campaign.candidates} | {one.device for one in campaign.offers}
    assert devices == {'Card "X" 80 GB'}
    assert [one.variant for one in campaign.candidates] == ["fp32", "bf16"]
    assert campaign.as_of == TODAY
    for offer in campaign.offers:
        assert offer.basis == "example"
        assert offer.valid_until > TODAY
        assert all(getattr(offer, f"price_{days}_days") for days in PACKAGE_DAYS)
    assert campaign.calendar.preparation is not None
    assert campaign.calendar.preparation.basis == "assumed"
    assert campaign.calendar.preparation.by
    assert campaign.documents_per_corpus > 0
    init_folder(tmp_path / "here")
    here = read_campaign(tmp_path / "here" / "campaign.toml").campaign
    assert here.candidates[0].device == detected_device()


def test_init_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    first, second = (init_folder(tmp_path / name, device="d", today=TODAY) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_model_folder_is_written_relative_to_the_protocol(tmp_path: Path) -> None:
    (tmp_path / "cache" / "model").mkdir(parents=True)
    init_folder(tmp_path / "a", model=str(tmp_path / "cache" / "model"), device="d")
    assert load_protocol(tmp_path / "a" / "protocol.toml").protocol.model.id == "../cache/model"
    init_folder(tmp_path / "b", model="other/model-1B", device="d")
    assert load_protocol(tmp_path / "b" / "protocol.toml").protocol.model.id == "other/model-1B"


@pytest.mark.parametrize("name", FILES)
def test_init_overwrites_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(DossierError, match="there already"):
        init_folder(tmp_path, device="d")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_init_where_no_folder_can_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["init", str(tmp_path / "file" / "trial")])
    assert result.exit_code == 2
    assert "next:" in result.stderr
    with pytest.raises(DossierError):
        init_folder(tmp_path / "x", kind="riddles", device="d")


@pytest.mark.slow
def test_every_prompt_of_the_starter_has_at_most_2000_tokens(tmp_path: Path) -> None:
    """Counted by the demo model's own tokenizer and template; skipped where that model is not in the cache."""
    cache = Path(os.environ.get("GPU_DOSSIER_CACHE", STARTER.parents[1] / ".cache"))
    folder = cached_folder(cache)
    if folder is None:
        pytest.skip(f"no demo model in {cache}; make it: python -m collector.starter.demo_model --cache {cache}")
    init_folder(tmp_path, model=str(folder), device="d")
    report = examine(tmp_path / "protocol.toml")
    assert report.findings == []
    assert report.longest_prompt_tokens is not None
    assert report.longest_prompt_tokens <= 2000


def test_the_starters_statements_do_not_cover_other_documents(tmp_path: Path) -> None:
    init_folder(tmp_path, device="Test CPU (1 core)")
    protocol, documents = tmp_path / "protocol.toml", tmp_path / "documents.jsonl"
    assert not check_protocol(protocol, with_tokenizer=False)
    text = documents.read_text(encoding="utf-8")
    documents.write_text(text.replace("Riverbank Bakery", "Our own supplier"), encoding="utf-8")
    findings = check_protocol(protocol, with_tokenizer=False)
    assert [(finding.rule, finding.line) for finding in findings] == [
        (
            f"missing-{name}",
            next(n for n, line in enumerate(protocol.read_text().splitlines(), 1) if line.startswith(name)),
        )
        for name in ("permission", "review")
    ]
    assert "'val-001' first" in findings[0].message


def test_every_commented_example_of_the_campaign_is_read_as_it_stands(tmp_path: Path) -> None:
    """An option of a `# key = value` line is an example of a key that the line above belongs to."""
    text = (STARTER / "campaign.toml").read_text(encoding="utf-8")
    for mark, value in (("@TODAY@", "2026-11-30"), ("@VALID_UNTIL@", "2027-02-28")):
        text = text.replace(f'"{mark}"', value)
    text = text.replace('"@DEVICE@"', '"CPU"').replace('"the name above"', '"CPU"')
    head, rest = text.split("# More that an offer can say", 1)
    examples, tail = rest.split("# Hours beside processing", 1)
    lines = [line[2:] for line in examples.splitlines()[1:] if re.match(r"# (\[|[a-z_]+ = )", line)]
    plain = "\n".join(lines).replace('prices_per = "card"', 'prices_per = "card"\ndevice_count = 8\nminimum_cards = 2')
    path = tmp_path / "campaign.toml"
    path.write_text(head + plain + "\n#" + tail, encoding="utf-8")
    campaign = read_campaign(path).campaign
    assert (campaign.offers[-1].price_hour, len(campaign.offers[-1].fees)) == ("0.30", 1)
    assert len(campaign.offers[-1].quote_lines) == len(campaign.exchange_rates) == len(campaign.staff) == 1
    assert campaign.purchase is not None
    assert campaign.energy is not None


def test_commented_objective_rental_sensitivity_and_override_of_the_campaign_are_read(tmp_path: Path) -> None:
    text = (STARTER / "campaign.toml").read_text(encoding="utf-8")
    for mark, value in (("@TODAY@", "2026-11-30"), ("@VALID_UNTIL@", "2027-02-28")):
        text = text.replace(f'"{mark}"', value)
    text = text.replace("@DEVICE@", "CPU").replace("the offer's id", "example-net")
    head, rest = text.split("# What each must keep to", 1)
    kept, rest = rest.split("# A candidate is", 1)
    middle, tail = rest.split("# What was really paid", 1)
    # the second convention stands instead of the first
    instead = tail.replace('# convention = "proportional_usage"', "# ")
    plain = {
        name: "\n".join(line[2:] for line in part.splitlines() if re.match(r"# (\[|[a-z_]+ = )", line))
        for name, part in (("kept", kept), ("tail", instead))
    }
    path = tmp_path / "campaign.toml"
    path.write_text(f"{head}{plain['kept']}\n# {middle}{plain['tail']}\n", encoding="utf-8")
    campaign = read_campaign(path).campaign
    objective, sensitivity = campaign.objective, campaign.sensitivity
    assert None not in msgspec.structs.astuple(objective)
    assert sensitivity is not None
    assert None not in msgspec.structs.astuple(sensitivity)
    assert campaign.override is not None
    assert campaign.override.candidate in [candidate.id for candidate in campaign.candidates]
    assert campaign.allocation.convention == "fixed"
    assert set(campaign.allocation.weights) == {candidate.id for candidate in campaign.candidates}
    assert len(campaign.rentals) == len(campaign.charges) == 1


@pytest.mark.parametrize("kind", ["extraction", "answers"])
def test_the_commented_server_and_loads_of_the_protocol_work_when_their_marks_are_taken_away(
    tmp_path: Path, kind: str
) -> None:
    init_folder(tmp_path, kind=kind, device="d")
    path = tmp_path / "protocol.toml"
    head, rest = path.read_text(encoding="utf-8").split("through a server that each pass starts", 1)
    skipped = ("# batches", "# reload_check")
    lines = [
        line[2:] if re.match(r"# (\[|[a-z_]+ = )", line) and not line.startswith(skipped) else line
        for line in rest.splitlines()
    ]
    path.write_text(head + "\n".join(lines), encoding="utf-8")
    assert check_protocol(path, with_tokenizer=False) == []
    protocol = load_protocol(path).protocol
    served = protocol.engine_of(protocol.variants[-1]).server
    assert served is not None
    assert (served.name, served.kind) == ("vllm", "vllm")
    assert protocol.plan.concurrencies == [4, 16]
    assert protocol.plan.rates == [2.0]
