"""After everything is measured each artefact is loaded again in a fresh process and asked again (mission C10, E4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from collector.cli import main
from collector.clock import FakeClock
from collector.contract.protocol import Lock, PlanChoice, lock_bytes, lock_digests
from collector.contract.records import Decision, Failure, PassBegin, PassEnd, Record, ReloadCheck, Request, Variant
from collector.freeze import read_frozen
from collector.plan import Chosen
from collector.reload_check import is_same_artefact
from collector.run_options import RunOptions
from collector.workers import InProcessWorkerFactory

MS = 1_000_000
SCRIPT = {"load_ms": 20, "defaults": {"first_token_ms": 4, "gap_ms": 1, "output_tokens": 4}}
OTHERWISE = {"match": "bf16/*~reload", "documents": {"d1": {"text": "something else"}}}
BROKEN = {"match": "bf16/*~reload", "events": [{"at": "load", "do": "raise", "message": "no such file"}]}


@pytest.fixture
def in_process(fixed_meter: Any, fixed_machine: Any) -> Callable[..., Any]:
    def run(trial: Any, **more: Any) -> Any:
        clock = FakeClock()
        options = RunOptions(device="cpu", **{k: more.pop(k) for k in list(more) if k in RunOptions._fields})
        factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
        return trial.run(options, clock=clock, factory=factory, machine=fixed_machine, **more)

    return run


def checks(records: list[Record]) -> dict[str, ReloadCheck]:
    """Variant -> what its reload check found."""
    names = {record.pass_id: record.variant_name for record in records if isinstance(record, PassBegin)}
    return {names[record.pass_id]: record for record in records if isinstance(record, ReloadCheck)}


def asked_again(records: list[Record], pass_id: str) -> list[str]:
    return [
        record.document_id
        for record in records
        if isinstance(record, Request) and record.phase == "reload" and record.pass_id == pass_id
    ]


def test_each_variant_is_loaded_again_and_asked_its_first_eight_documents_again(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(SCRIPT, documents=11)
    report = in_process(trial)
    records = records_of(report.path)
    found = checks(records)
    begun = {record.pass_id: record for record in records if isinstance(record, PassBegin)}
    assert list(found) == ["fp32", "bf16"]
    for name, check in found.items():
        assert (check.checked_document_count, check.equal_answer_count, check.differing_document_ids) == (8, 8, [])
        assert (check.is_same_artefact, check.load_ns, check.answer_ns) == (True, 20 * MS, 8 * 7 * MS)
        judged = begun[check.pass_id]
        assert (judged.variant_name, judged.repetition, judged.variant_id) == (name, 1, check.variant_id)
        assert asked_again(records, check.pass_id) == judged.document_order[:8]
    assert report.reloads["bf16"] == "bf16 loaded again in a fresh process: the same artefact, 8 of 8 answers equal"
    assert (report.has_failed_reload, report.head_digest is not None) == (False, True)


def test_a_reload_check_comes_after_every_pass_and_is_no_pass_itself(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    records = records_of(in_process(make_trial(SCRIPT, documents=3)).path)
    last_pass = max(record.seq for record in records if isinstance(record, PassEnd))
    again = [record.seq for record in records if getattr(record, "phase", None) == "reload"]
    assert min(again) > last_pass
    assert sum(isinstance(record, PassBegin) for record in records) == 3
    ends = [record for record in records if isinstance(record, PassEnd)]
    assert [(end.try_count, list(end.phase_ns)) for end in ends] == [(3, ["load", "warmup", "measure"])] * 3


def test_an_answer_that_differs_after_a_reload_is_named(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    report = in_process(make_trial({**SCRIPT, "passes": [OTHERWISE]}))
    found = checks(records_of(report.path))
    assert (found["fp32"].equal_answer_count, found["bf16"].equal_answer_count) == (4, 3)
    assert (found["bf16"].checked_document_count, found["bf16"].differing_document_ids) == (4, ["d1"])
    assert report.reloads["bf16"].endswith("3 of 4 answers equal")
    assert not report.has_failed_reload


def test_a_reload_that_fails_is_a_failure_of_the_variant_and_is_not_tried_again(
    make_trial: Callable[..., Any],
    in_process: Callable[..., Any],
    records_of: Callable[[Path], list[Record]],
    texts_of: Callable[[Path], dict[str, str]],
) -> None:
    trial = make_trial({**SCRIPT, "passes": [BROKEN]})
    report = in_process(trial, only=["fp32", "bf16"])
    records = records_of(report.path)
    (failure,) = [record for record in records if isinstance(record, Failure)]
    assert (failure.failure_scope, failure.failure_cause, failure.phase) == ("variant", "load_failure", "reload")
    assert texts_of(report.path)[failure.message_hmac or ""] == "no such file"
    assert list(checks(records)) == ["fp32"]
    assert report.has_failed_reload
    assert report.reloads["bf16"] == "bf16 loaded again in a fresh process: failed (load_failure)"
    assert [r.pass_outcome for r in records if isinstance(r, PassEnd)] == ["completed"] * 3, "its pass stays complete"
    again = in_process(trial, is_resuming=True)
    assert (again.path, again.reloads, again.has_failed_reload) == (report.path, {}, False)
    assert again.head_digest is not None


def test_a_failed_reload_ends_the_command_with_exit_code_5(make_trial: Callable[..., Any]) -> None:
    """A worker that dies while it loads again is told apart from one that raises."""
    killed = {"match": "bf16/*~reload", "events": [{"at": "reload", "do": "exit", "exit_code": 7}]}
    trial = make_trial({"passes": [killed]}, documents=2)
    result = CliRunner().invoke(main, ["run", str(trial.protocol), "--out", str(trial.out), "--device", "cpu"])
    assert result.exit_code == 5, result.output
    assert "bf16 loaded again in a fresh process: failed (crashed)" in result.stdout
    assert "fp32 loaded again in a fresh process: the same artefact, 2 of 2 answers equal" in result.stdout


def test_what_could_not_be_measured_is_not_loaded_again(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    broken = {"match": "bf16/*", "events": [{"at": "load", "do": "raise"}]}
    assert list(checks(records_of(in_process(make_trial({**SCRIPT, "passes": [broken]})).path))) == ["fp32"]


def test_a_variant_that_completed_no_answer_has_nothing_to_be_asked_again(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    refusing = {"match": "bf16/*", "defaults": {"failure_cause": "connection"}}
    report = in_process(make_trial({**SCRIPT, "passes": [refusing]}))
    assert list(checks(records_of(report.path))) == ["fp32"]
    assert report.reloads["bf16"] == "bf16 completed no answer to ask for again"
    assert (report.has_failed_reload, report.head_digest is not None) == (False, True)


def test_the_protocol_can_leave_reload_checks_out(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(SCRIPT, edit=lambda text: f"{text}reload_check = false\n")
    report = in_process(trial)
    assert (report.reloads, report.head_digest is not None) == ({}, True)
    assert not any(getattr(record, "phase", None) == "reload" for record in records_of(report.path))


def test_a_run_stopped_while_loading_again_resumes_with_the_check_alone(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(SCRIPT, documents=4)
    whole = records_of(in_process(trial).path)
    measured_ns = sum(record.pass_ns for record in whole if isinstance(record, PassEnd))
    out = trial.folder / "stopped"
    report = in_process(trial, out=out, stop_after_s=(measured_ns + 30 * MS) / 1e9)
    assert report.left == ("fp32~reload", "bf16~reload")
    assert (report.head_digest, report.reloads) == (None, {})
    assert [end.pass_outcome for end in records_of(report.path) if isinstance(end, PassEnd)] == ["completed"] * 3
    again = in_process(trial, out=out, is_resuming=True)
    assert (again.endings, list(again.reloads)) == ({}, ["fp32", "bf16"])
    assert again.head_digest is not None
    found = checks(records_of(again.path))
    assert {name: check.equal_answer_count for name, check in found.items()} == {"fp32": 4, "bf16": 4}
    (stopped,) = [r for r in records_of(again.path) if isinstance(r, Decision) and r.decision == "stopped"]
    assert stopped.detail["left"] == "fp32~reload, bf16~reload"


def test_a_variant_that_ran_only_in_batches_is_asked_whole_batches_again(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    """What is together in a batch can change an answer, so the batches are those of the pass: 3 of 3, not 8 of 12."""
    trial = make_trial(SCRIPT, documents=12)
    report = in_process(trial, configurations=[Chosen("bf16", 3)], reference_runs=1)
    records = records_of(report.path)
    check = checks(records)["bf16"]
    assert (check.checked_document_count, check.equal_answer_count) == (9, 9)
    rows = [r for r in records if isinstance(r, Request) and r.pass_id == check.pass_id]
    measured = {r.document_id: (r.batch_number, r.batch_row) for r in rows if r.phase == "measure"}
    again = {r.document_id: (r.batch_number, r.batch_row) for r in rows if r.phase == "reload"}
    assert again == {name: place for name, place in measured.items() if place[0] < 3}


@pytest.mark.parametrize(
    "changes",
    [
        {"file_digests": {"model.safetensors": "b" * 64}}, {"weight_bytes": 3}, {"tokenizer_digest": "c" * 64},
        {"dtype_bytes": {"torch.float16": 4}}, {"weight_storage": "float16"}, {"model_revision": "1" * 40},
    ],
)  # fmt: skip
def test_another_file_weight_or_tokenizer_is_another_artefact(changes: dict[str, Any]) -> None:
    before = Variant(
        variant_id="a" * 16, pass_id="b" * 16, variant_name="v", observed_at="loaded", model_id="m", requested={},
        observed={"threads": "1"}, cache_kind="dynamic", weight_bytes=4, file_digests={"model.safetensors": "a" * 64},
    )  # fmt: skip
    elsewhere = msgspec.structs.replace(before, observed={"threads": "2"}, origin="converted")
    assert is_same_artefact(before, elsewhere)
    assert not is_same_artefact(before, msgspec.structs.replace(elsewhere, **changes))
    assert not is_same_artefact(None, before), "without a record of what was measured nothing is the same"


def test_a_lock_from_before_reload_checks_keeps_its_digests_and_gets_them(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(SCRIPT)
    plain = json.loads(lock_bytes(trial.frozen.lock))
    del plain["plan"]["plan"]["reload_check"]
    plain["plan_id"] = lock_digests(json.dumps(plain)).plan_id
    assert plain["plan_id"] != trial.frozen.lock.plan_id
    trial.protocol.with_name("protocol.lock.json").write_text(json.dumps(plain))
    lock: Lock = read_frozen(trial.protocol).lock
    assert lock.plan_id == plain["plan_id"]
    assert lock.plan.plan.reload_check is PlanChoice(reference="fp32").reload_check is True
