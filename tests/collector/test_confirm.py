"""`collector confirm`: what a choice must be, on which machine, and how looks at the test documents are counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.clock import FakeClock
from collector.confirm import REFERENCE_RUNS, Look, prepare_look, read_choice, warning_before
from collector.contract.digests import json_digest
from collector.contract.errors import DossierError
from collector.contract.records import Decision, PassBegin, Record, Seal
from collector.freeze import freeze, read_frozen
from collector.run_options import RunOptions
from collector.workers import InProcessWorkerFactory


@pytest.fixture
def trial(make_trial: Callable[..., Any]) -> Any:
    """Four validation and three test documents, two variants, batches of two."""
    made = make_trial({"defaults": {"first_token_ms": 1, "gap_ms": 0, "output_tokens": 2}})
    documents = made.folder / "documents.jsonl"
    lines = [
        {"id": f"t{i}", "role": "test", "text": f"Test bill {i}", "expected": {"date": None, "amount": f"{i}.00"}}
        for i in range(3)
    ]
    with documents.open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    text = made.protocol.read_text().replace("warmup_requests = 1", "warmup_requests = 1\nbatches = [2]")
    made.protocol.write_text(text)
    freeze(made.protocol, campaign=None, clock=FakeClock())
    made.frozen = read_frozen(made.protocol)
    return made


def written(trial: Any, *, signed: bool = True, chosen: dict[str, Any] | None = None, **changes: Any) -> Path:
    """Write a choice file for the trial; `signed` with the digest of its content."""
    lock = trial.frozen.lock
    content = {
        "choice_format": 1, "dossier_id": "SD-1", "as_of": "2026-01-31", "protocol_id": lock.protocol_id,
        "plan_ids": [lock.plan_id], "records_digest": "a" * 64,
        "chosen": {
            "label": "CPU bf16", "configuration_key": "bf16~test-cpu-1-core~b1~c1", "variant": "bf16",
            "device": "Test CPU (1 core)", "batch": 1, "concurrency": 1, "environment_id": "e" * 16,
        } | (chosen or {}),
    } | changes  # fmt: skip
    content["content_digest"] = json_digest(content) if signed else "b" * 64
    path: Path = trial.folder / "choice.json"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def prepare(trial: Any, fixed_machine: Any) -> Callable[..., Look]:
    def make(path: Path, *, is_resuming: bool = False) -> Look:
        detected = fixed_machine.detect("cpu", threads=None)
        return prepare_look(read_choice(path), trial.frozen.lock, detected, trial.out, is_resuming=is_resuming)

    return make


@pytest.fixture
def confirm(trial: Any, prepare: Callable[..., Look], fixed_machine: Any, fixed_meter: Any) -> Callable[..., Any]:
    """Confirm a choice in process, as the command does."""
    clock = FakeClock()

    def run(path: Path, *, is_resuming: bool = False, **more: Any) -> Any:
        look = prepare(path, is_resuming=is_resuming)
        options = RunOptions(
            stage="test", device="cpu", configurations=look.configurations, reference_runs=REFERENCE_RUNS,
            opening=look.opening, is_resuming=is_resuming, **more,
        )  # fmt: skip
        clock.advance_ns(10**9)
        factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
        return trial.run(options, clock=clock, factory=factory, machine=fixed_machine)

    return run


def decisions(records: list[Record]) -> dict[str, dict[str, str]]:
    return {r.decision: r.detail for r in records if isinstance(r, Decision)}


@pytest.mark.parametrize(
    ("chosen", "passes"),
    [
        ({}, [("fp32", 1, "reference"), ("bf16", 1, "variant")]),
        ({"variant": "fp32"}, [("fp32", 1, "reference")]),
        ({"variant": "fp32", "batch": 2}, [("fp32", 1, "reference"), ("fp32", 2, "series")]),
    ],
)
def test_the_reference_runs_once_and_then_what_was_chosen_on_test_documents_alone(
    trial: Any, confirm: Callable[..., Any], records_of: Any, chosen: dict[str, Any], passes: list[Any]
) -> None:
    path = written(trial, chosen=chosen)
    records = records_of(confirm(path).path)
    begun = [r for r in records if isinstance(r, PassBegin)]
    assert [(r.variant_name, r.batch, r.purpose) for r in begun] == passes
    assert {(r.stage, tuple(sorted(r.document_order))) for r in begun} == {("test", ("t0", "t1", "t2"))}
    assert isinstance(records[-1], Seal)
    found = decisions(records)
    assert found["test_set_looked_at"] == {"look": "1"}
    assert found["choice_confirmed"]["choice_digest"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["choice_confirmed"]["records_digest"] == "a" * 64
    first_pass = records.index(begun[0])
    assert all(records.index(r) < first_pass for r in records if isinstance(r, Decision))


def test_each_start_is_one_more_look_that_names_the_ones_before_and_is_warned_of(
    trial: Any, confirm: Callable[..., Any], prepare: Callable[..., Look], records_of: Any
) -> None:
    path = written(trial)
    assert warning_before(prepare(path)) is None
    first = confirm(path)
    look = prepare(path)
    assert f"this is look 2 at the test documents (before: {first.run_id[:8]})" in (warning_before(look) or "")
    second = confirm(path)
    expected = {"look": "2", "earlier_runs": first.run_id}
    assert decisions(records_of(second.path))["test_set_looked_at"] == expected
    assert prepare(path).earlier == [first.run_id, second.run_id]


def test_an_open_look_is_continued_and_not_counted_again(
    trial: Any, confirm: Callable[..., Any], prepare: Callable[..., Look], records_of: Any
) -> None:
    path = written(trial)
    stopped = confirm(path, stop_after_s=0.0)
    assert stopped.head_digest is None
    with pytest.raises(DossierError, match="continue it with --resume"):
        prepare(path)
    resumed = confirm(path, is_resuming=True)
    assert resumed.path == stopped.path
    assert resumed.head_digest is not None
    records = records_of(resumed.path)
    looked = [r for r in records if isinstance(r, Decision) and r.decision == "test_set_looked_at"]
    assert [r.detail for r in looked] == [{"look": "1"}]


def test_an_open_look_of_another_choice_is_finished_first(
    trial: Any, confirm: Callable[..., Any], prepare: Callable[..., Look]
) -> None:
    confirm(written(trial), stop_after_s=0.0)
    other = written(trial, chosen={"variant": "fp32"})
    for is_resuming in (True, False):
        with pytest.raises(DossierError, match="for another choice"):
            prepare(other, is_resuming=is_resuming)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"signed": False}, "was edited after it was written"),
        (
            {"chosen": {"variant": "int4"}},
            "chooses int4 with batch 1 and concurrency 1; the plan has: fp32 with batch 1",
        ),
        ({"chosen": {"batch": 2}}, "chooses bf16 with batch 2"),
        ({"chosen": {"concurrency": 4}}, "concurrency 4; the plan has"),
        ({"chosen": {"device": "Other GPU"}}, 'chooses the device "Other GPU"; here is "Test CPU'),
        ({"chosen": {"environment_id": "f" * 16}}, "was validated in environment ffff"),
        ({"protocol_id": "0" * 64}, "was made under protocol 000000000000…"),
        ({"plan_ids": ["1" * 64]}, "was made from runs of other plans: 111111111111…"),
        ({"choice_format": 2}, "choice_format 2 is newer than 1"),
        ({"dossier_id": 7}, "is no choice file"),
    ],
)
def test_a_choice_that_is_not_of_this_trial_and_machine_is_refused_before_anything_is_written(
    trial: Any, prepare: Callable[..., Look], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DossierError) as refused:
        prepare(written(trial, **changes))
    assert message in str(refused.value)
    assert "next: " in str(refused.value)
    assert not trial.out.exists()


def test_a_choice_of_nothing_is_refused(trial: Any) -> None:
    lock = trial.frozen.lock
    content: dict[str, Any] = {
        "choice_format": 1, "dossier_id": "SD-1", "as_of": "2026-01-31", "protocol_id": lock.protocol_id,
        "plan_ids": [lock.plan_id], "records_digest": "a" * 64, "chosen": None,
    }  # fmt: skip
    path = trial.folder / "choice.json"
    path.write_text(json.dumps(content | {"content_digest": json_digest(content)}))
    with pytest.raises(DossierError, match="recommends no configuration"):
        read_choice(path)
    with pytest.raises(DossierError, match="cannot be read"):
        read_choice(trial.folder / "absent.json")
    path.write_text("no json")
    with pytest.raises(DossierError, match="is no choice file"):
        read_choice(path)


def test_a_protocol_without_test_documents_is_refused(make_trial: Callable[..., Any], fixed_machine: Any) -> None:
    bare = make_trial()
    detected = fixed_machine.detect("cpu", threads=None)
    with pytest.raises(DossierError, match="keeps back no documents with role test"):
        prepare_look(read_choice(written(bare)), bare.frozen.lock, detected, bare.out, is_resuming=False)


def test_a_look_that_is_open_on_another_machine_is_counted_and_cannot_be_resumed_here(
    trial: Any, confirm: Callable[..., Any], prepare: Callable[..., Look], fixed_machine: Any
) -> None:
    detect = type(fixed_machine).detect

    def elsewhere(device: str, *, threads: int | None) -> Any:
        found = detect(fixed_machine, device, threads=threads)
        environment = msgspec.structs.replace(found.environment, environment_id="f" * 16, kernel_version="2")
        devices = [msgspec.structs.replace(each, environment_id="f" * 16) for each in found.devices]
        return found._replace(environment=environment, devices=devices)

    path = written(trial, chosen={"environment_id": None})
    fixed_machine.detect = elsewhere
    other = confirm(path, stop_after_s=0.0)
    del fixed_machine.detect
    look = prepare(path)
    assert (look.number, look.earlier) == (2, [other.run_id])
    with pytest.raises(DossierError, match="kernel_version"):
        prepare(path, is_resuming=True)


def test_a_choice_of_a_person_is_journalled_with_name_day_and_reason(
    trial: Any, confirm: Callable[..., Any], records_of: Any
) -> None:
    override = {"by": "J. Buyer", "on": "2026-01-30", "because": "the card is in stock", "instead_of": "CPU fp32"}
    records = records_of(confirm(written(trial, override=override)).path)
    found = [record for record in records if isinstance(record, Decision) and record.decision == "override"]
    assert [(record.decided_by, record.detail) for record in found] == [
        (
            "J. Buyer",
            {
                "label": "CPU bf16",
                "on": "2026-01-30",
                "because": "the card is in stock",
                "instead_of": "CPU fp32",
            },
        )
    ]
    kinds = [record.decision for record in records if isinstance(record, Decision)]
    assert kinds[:3] == ["choice_confirmed", "test_set_looked_at", "override"]


def test_a_choice_of_another_model_of_the_protocol_is_refused(trial: Any, prepare: Callable[..., Look]) -> None:
    with pytest.raises(DossierError, match="of the model other"):
        prepare(written(trial, chosen={"model": "other"}))
