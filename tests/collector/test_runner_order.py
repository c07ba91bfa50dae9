"""The order of records, held with a fake clock and the worker in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import collector
from collector.clock import FakeClock
from collector.contention import BusyReport
from collector.contract.digests import text_hmac
from collector.contract.judging import SCORER_DIGEST
from collector.contract.protocol import rule_digest
from collector.contract.records import (
    Document,
    Engine,
    Header,
    PassBegin,
    PassEnd,
    Reading,
    Record,
    Request,
    Score,
    Telemetry,
    Variant,
    Warning,
)
from collector.run_options import RunOptions
from collector.workers import InProcessWorkerFactory

MS = 1_000_000
SCRIPT = {
    "load_ms": 10,
    "defaults": {"first_token_ms": 4, "gap_ms": 1, "output_tokens": 3},
    "passes": [{"match": "bf16/*", "documents": {"d1": {"replace": {"amount": "1"}}}}],
}


@pytest.fixture
def in_process(fixed_meter: Any, fixed_machine: Any) -> Callable[..., Any]:
    def run(trial: Any, clock: FakeClock | None = None, options: RunOptions | None = None, **more: Any) -> Any:
        clock = clock or FakeClock()
        factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
        return trial.run(options, clock=clock, factory=factory, **{"machine": fixed_machine, **more})

    return run


def word(record: Record) -> str:
    """One record in one word."""
    kind = str(type(record).__struct_config__.tag)
    match record:
        case PassBegin() | PassEnd() | Telemetry():
            return f"{kind} {getattr(record, 'purpose', getattr(record, 'pass_outcome', getattr(record, 'phase', '')))}"
        case Variant(observed_at=at):
            return f"{kind} {at}"
        case Reading(phase=phase):
            return f"{kind} {phase}"
        case Request(phase=phase, document_id=name):
            return f"{kind} {phase} {name}"
        case Score(document_id=name, score_outcome=outcome):
            return f"{kind} {name} {outcome}"
        case _:
            return kind


def of_pass(purpose: str, order: list[str], wrong: str = "") -> list[str]:
    answered = [
        line
        for name in order
        for line in (f"request measure {name}", f"score {name} {'wrong' if name == wrong else 'right'}")
    ]
    return [
        f"pass_begin {purpose}",
        "telemetry load", "reading load", "variant loaded",
        "request warmup dev", "telemetry warmup", "reading warmup", "variant after_warmup",
        *answered, "telemetry measure", "reading measure",
        "pass_end completed",
    ]  # fmt: skip


def of_reload(order: list[str]) -> list[str]:
    return [*(f"request reload {name}" for name in order), "telemetry reload", "reading reload", "reload_check"]


def test_the_records_of_a_run_stand_in_one_order(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(SCRIPT, documents=3)
    report = in_process(trial)
    records = records_of(report.path)
    orders = [record.document_order for record in records if isinstance(record, PassBegin)]
    assert orders[0] == orders[2] != orders[1]
    assert [word(record) for record in records] == [
        "header", "document", "document", "document", "document", "environment", "device", "engine",
        *of_pass("reference", orders[0]),
        *of_pass("reference_repeat", orders[1]),
        *of_pass("variant", orders[2], wrong="d1"),
        *of_reload(orders[0]),
        *of_reload(orders[2]),
        "seal",
    ]  # fmt: skip
    assert report.head_digest is not None
    assert trial.watcher.phases == [*["load", "warmup", "measure"] * 3, "reload", "reload"]


def test_a_pass_counts_its_requests_and_durations(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    script = {**SCRIPT, "documents": {"d0": {"failure_cause": "connection"}}}
    records = records_of(in_process(make_trial(script, documents=3)).path)
    end = next(record for record in records if isinstance(record, PassEnd))
    assert (end.distinct_document_count, end.try_count, end.completed_request_count) == (3, 3, 2)
    assert (end.failed_request_count, end.output_token_count, end.warmup_request_count) == (1, 6, 1)
    assert end.phase_ns == {"load": 10 * MS, "warmup": 6 * MS, "measure": 12 * MS}
    assert end.pass_ns == 28 * MS
    assert end.live_row_steps == 6
    assert end.is_steady is None
    assert end.missing == {"is_steady": "too_few_samples"}
    outcomes = {record.document_id: record.score_outcome for record in records if isinstance(record, Score)}
    assert outcomes["d0"] == "failed"


def test_the_header_holds_the_lock_and_no_text(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(SCRIPT, documents=2)
    path = in_process(trial, options=RunOptions(device="cpu", commit="c" * 40)).path
    records = records_of(path)
    header = records[0]
    assert isinstance(header, Header)
    lock = trial.frozen.lock
    assert json.loads(header.protocol_json)["plan_id"] == lock.plan_id == header.plan_id
    assert (header.stage, header.protocol_id) == ("validation", lock.protocol_id)
    assert (header.collector_version, header.collector_commit) == (collector.__version__, "c" * 40)
    assert (header.wall_at, header.monotonic_ns) == ("2026-01-01T00:00:00.000000Z", 0)
    assert b"Bill 0" not in path.read_bytes()
    score = next(record for record in records if isinstance(record, Score))
    assert (score.rule_digest, score.scorer_digest) == (rule_digest(lock.trial), SCORER_DIGEST)
    engine = next(record for record in records if isinstance(record, Engine))
    assert (engine.engine_name, engine.engine_evidence) == ("scripted", "verified")


def test_the_texts_file_explains_every_hmac_of_the_documents(
    make_trial: Callable[..., Any],
    in_process: Callable[..., Any],
    records_of: Callable[[Path], list[Record]],
    texts_of: Callable[[Path], dict[str, str]],
) -> None:
    trial = make_trial(SCRIPT, documents=2)
    path = in_process(trial).path
    texts = texts_of(path)
    for record in records_of(path):
        if isinstance(record, Document) and record.role == "validation":
            assert texts[record.text_hmac].startswith("Bill ")
            assert set(json.loads(texts[record.expected_hmac])) == {"date", "amount"}
        if isinstance(record, Request) and record.phase == "measure":
            assert texts[record.prompt_hmac or ""].startswith("Give date and amount: Bill ")
            assert "amount" in texts[record.answer_hmac or ""]
    assert all(text_hmac(trial.frozen.salt, text) == hmac for hmac, text in texts.items())


def test_c12_answers_without_content_are_empty_answers_sent_once(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    """Null content for 3 of 50: 50 records in each pass, 3 empty, no second try, nothing failed."""
    empty = {f"d{index}": {"text": None} for index in (3, 20, 44)}
    records = records_of(in_process(make_trial({"documents": empty}, documents=50)).path)
    first = next(record for record in records if isinstance(record, PassEnd))
    requests = [r for r in records if isinstance(r, Request) and r.pass_id == first.pass_id and r.phase == "measure"]
    scores = [r for r in records if isinstance(r, Score) and r.pass_id == first.pass_id]
    assert len(requests) == len({r.document_id for r in requests}) == 50
    assert {(r.try_index, r.is_final, r.request_outcome) for r in requests} == {(0, True, "completed")}
    assert sorted(r.document_id for r in scores if r.score_outcome == "empty") == ["d20", "d3", "d44"]
    assert (first.pass_outcome, first.failed_request_count) == ("completed", 0)


def test_c15_a_second_model_sends_every_request_again_into_the_same_folder(
    make_trial: Callable[..., Any],
    in_process: Callable[..., Any],
    records_of: Callable[[Path], list[Record]],
    tmp_path: Path,
) -> None:
    """Also with --resume, also where the first model's file is still open: its plan is another one."""
    out = tmp_path / "together"
    one, other = make_trial(SCRIPT, name="a", model="model-a"), make_trial(SCRIPT, name="b", model="model-b")
    in_process(one, out=out, options=RunOptions(device="cpu", only=["fp32"]))
    report = in_process(other, out=out, options=RunOptions(device="cpu", is_resuming=True))
    records = records_of(report.path)
    assert len(list(out.glob("*Z-*.jsonl"))) == 4
    assert sum(isinstance(record, Request) and record.phase == "measure" for record in records) == 3 * 4
    assert {record.model_id for record in records if isinstance(record, Variant)} == {"model-b"}


def test_d20_two_runs_started_in_the_same_second_write_two_files(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(SCRIPT, documents=2)
    paths = [in_process(trial, clock=FakeClock()).path for _ in range(2)]
    assert paths[0] != paths[1]
    assert paths[0].name[:16] == paths[1].name[:16]
    assert [len(records_of(path)) for path in paths] == [len(records_of(paths[0]))] * 2


def test_a_busy_machine_is_told_to_the_user_and_recorded_without_names(
    make_trial: Callable[..., Any],
    in_process: Callable[..., Any],
    fixed_machine: Any,
    records_of: Callable[[Path], list[Record]],
    texts_of: Callable[[Path], dict[str, str]],
) -> None:
    fixed_machine.look_around = lambda devices, ports: BusyReport(True, "others use 80%", ["miner (process 7)"])
    trial = make_trial(SCRIPT, documents=2)
    path = in_process(trial).path
    assert trial.watcher.notices == ["this machine is busy: others use 80%. Stop before measuring: miner (process 7)."]
    (warning,) = [record for record in records_of(path) if isinstance(record, Warning)]
    assert warning.warning_class == "machine_busy"
    assert texts_of(path)[warning.message_hmac or ""] == "others use 80%"
    assert "miner" not in path.read_text() + path.with_name(path.name.replace(".jsonl", ".texts.jsonl")).read_text()


def test_no_absolute_path_of_the_machine_comes_into_the_records(
    tmp_path: Path, make_trial: Callable[..., Any], in_process: Callable[..., Any],
    records_of: Callable[[Path], list[Record]],
) -> None:  # fmt: skip
    """Model and script may lie anywhere; the main file knows their last names, and the run finds both."""
    trial = make_trial(
        SCRIPT, model=f"{tmp_path}/models/tiny",
        edit=lambda text: text.replace('"script.json"', f'"{tmp_path}/trial/script.json"'),
    )  # fmt: skip
    path = in_process(trial).path
    assert str(tmp_path) not in path.read_text()
    assert str(tmp_path) not in trial.protocol.with_name("protocol.lock.json").read_text()
    assert {record.model_id for record in records_of(path) if isinstance(record, Variant)} == {"tiny"}
