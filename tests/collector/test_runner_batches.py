"""Passes with batches: order of records, rows and steps, the self-check, and out of memory as a limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.clock import FakeClock
from collector.contract.records import (
    BatchCheck,
    Decision,
    Engine,
    Failure,
    PassBegin,
    PassEnd,
    Reading,
    Record,
    Request,
)
from collector.plan import Chosen
from collector.run_options import RunOptions
from collector.workers import InProcessWorkerFactory

MS = 1_000_000
SCRIPT: dict[str, Any] = {"load_ms": 10, "defaults": {"first_token_ms": 4, "gap_ms": 1, "output_tokens": 3}}
Ran = tuple[Any, list[Record]]


def batches(*sizes: int) -> Callable[[str], str]:
    return lambda text: f"{text}\nbatches = {list(sizes)}\n"


@pytest.fixture
def run(
    make_trial: Callable[..., Any], fixed_meter: Any, fixed_machine: Any, records_of: Callable[[Path], list[Record]]
) -> Callable[..., Ran]:
    """Run a scripted trial in this process: `run(script, sizes=(2, 4), documents=6, only_series=["batch"])`."""
    made: dict[str, Any] = {}

    def start(script: Any = SCRIPT, *, sizes: tuple[int, ...] = (2, 4), documents: int = 6, **options: Any) -> Ran:
        if "trial" not in made:
            made["trial"] = make_trial(script, documents=documents, edit=batches(*sizes))
        clock = FakeClock()
        factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
        given = RunOptions(device="cpu", **options)
        report = made["trial"].run(given, clock=clock, factory=factory, machine=fixed_machine)
        return report, records_of(report.path)

    return start


def passes(records: list[Record]) -> list[PassBegin]:
    return [record for record in records if isinstance(record, PassBegin)]


def of_batch(records: list[Record], batch: int, kind: type[Record]) -> list[Any]:
    (begin,) = [record for record in passes(records) if record.batch == batch]
    return [r for r in records if isinstance(r, kind) and getattr(r, "pass_id", None) == begin.pass_id]


def decisions(records: list[Record]) -> list[tuple[str, dict[str, str]]]:
    return [(record.decision, record.detail) for record in records if isinstance(record, Decision)]


def test_batches_follow_the_variants_growing_and_differ_from_the_reference_in_the_batch_alone(
    run: Callable[..., Ran],
) -> None:
    report, records = run()
    begun = passes(records)
    assert [(p.variant_name, p.batch, p.repetition, p.purpose, p.series, p.factor) for p in begun] == [
        ("fp32", 1, 1, "reference", "reference", "none"),
        ("fp32", 1, 2, "reference_repeat", "reference", "order"),
        ("bf16", 1, 1, "variant", "weights", "weights"),
        ("fp32", 2, 1, "series", "batch", "batch"),
        ("fp32", 4, 1, "series", "batch", "batch"),
    ]
    first = begun[0]
    for begin in begun[3:]:
        same = ("environment_id", "engine_id", "variant_id", "concurrency", "cache_kind", "output_limit_tokens")
        assert all(getattr(begin, name) == getattr(first, name) for name in same)
        assert begin.document_order == first.document_order
    assert list(report.endings)[-2:] == ["fp32~b2/1/1", "fp32~b4/1/1"]
    assert report.head_digest is not None
    assert sum(isinstance(record, Engine) for record in records) == 1, "one engine for every batch"


def test_a_batched_pass_counts_rows_and_steps_and_stamps_each_row(run: Callable[..., Ran]) -> None:
    """Rows of 5, 3, 2 and 1 tokens, one step for all of them: 4 + 3 + 2 + 1 + 1 live rows in five steps."""
    lengths = {"d0": 5, "d1": 3, "d2": 2, "d3": 1}
    script = {**SCRIPT, "documents": {name: {"output_tokens": count} for name, count in lengths.items()}}
    _, records = run(script, sizes=(4,), documents=4)
    requests = [r for r in of_batch(records, 4, Request) if r.phase == "measure"]
    assert {r.document_id: r.output_tokens for r in requests} == lengths
    assert (sorted(r.batch_row for r in requests), {r.batch_number for r in requests}) == ([0, 1, 2, 3], {0})
    (sent_ns,) = {r.sent_ns for r in requests}
    assert {r.document_id: (r.first_token_ns - sent_ns, r.last_token_ns - sent_ns) for r in requests} == {
        "d0": (4 * MS, 8 * MS), "d1": (4 * MS, 6 * MS), "d2": (4 * MS, 5 * MS), "d3": (4 * MS, 4 * MS),
    }  # fmt: skip
    assert {r.done_ns - sent_ns for r in requests} == {8 * MS}, "static batching: all rows are done when the last is"
    (end,) = of_batch(records, 4, PassEnd)
    assert end.live_row_histogram == {"1": 2, "2": 1, "3": 1, "4": 1}
    assert end.live_row_steps == end.output_token_count == 11
    alone = next(record for record in records if isinstance(record, PassEnd))
    assert (alone.live_row_histogram, alone.live_row_steps) == ({"1": 11}, 11)


def test_a_row_that_fails_alone_holds_up_no_batch_and_has_no_live_row(run: Callable[..., Ran]) -> None:
    script = {**SCRIPT, "documents": {"d1": {"failure_cause": "connection"}}}
    _, records = run(script, sizes=(2,), documents=5)
    requests = [r for r in of_batch(records, 2, Request) if r.phase == "measure"]
    assert {r.document_id: r.request_outcome for r in requests}["d1"] == "failed"
    (end,) = of_batch(records, 2, PassEnd)
    assert (end.completed_request_count, end.failed_request_count, end.live_row_steps) == (4, 1, 12)
    assert end.pass_outcome == "completed"


def test_c03_the_self_check_stands_before_anything_is_measured_and_its_answers_are_warm_up(
    run: Callable[..., Ran],
) -> None:
    """The one development document, then the stage's own: eight answered alone, then in batches of the pass's size."""
    _, records = run(sizes=(4,), documents=9)
    check: BatchCheck
    (check,) = of_batch(records, 4, BatchCheck)
    assert check.checked_document_ids == ["dev", *(f"d{index}" for index in range(7))]
    assert (check.batch, check.differing_document_ids, check.emptied_document_ids) == (4, [], [])
    assert (check.padding_side, check.first_difference_tokens) == ("left", [])
    requests: list[Request] = of_batch(records, 4, Request)
    warmup = [r for r in requests if r.phase == "warmup"]
    assert records.index(warmup[-1]) < records.index(check) < records.index(requests[len(warmup)])
    assert len(warmup) == 4 + 8 + 8, "a whole batch of warm-up requests, eight alone, eight together"
    assert sorted(r.try_index for r in warmup if r.document_id == "dev") == [0, 1, 2]
    assert [r.padding_tokens is None for r in warmup] == [False] * 4 + [True] * 8 + [False] * 8
    assert {r.batch_number for r in warmup[-8:]} == {1, 2}, "numbered through the phase"
    (end,) = of_batch(records, 4, PassEnd)
    assert (end.warmup_request_count, end.try_count) == (20, 9)
    assert not [record for record in records if isinstance(record, BatchCheck) and record.batch == 1]


def test_c03_two_answers_that_the_batch_empties_stop_its_pass_and_the_next_batch_is_tried(
    run: Callable[..., Ran], texts_of: Callable[[Path], dict[str, str]]
) -> None:
    lost = {"passes": [{"match": "fp32~b2/*", "documents": {n: {"text_in_batch": ""} for n in ("d0", "d2")}}]}
    report, records = run({**SCRIPT, **lost}, documents=4)
    (check,) = of_batch(records, 2, BatchCheck)
    assert check.emptied_document_ids == check.differing_document_ids == ["d0", "d2"]
    (failure,) = [record for record in records if isinstance(record, Failure)]
    assert (failure.failure_scope, failure.failure_cause, failure.phase) == ("pass", "engine_error", "warmup")
    assert failure.exception_class == "SpoiledAnswers"
    assert (
        "2 of 5 documents have an answer alone and none in a batch of 2"
        in texts_of(report.path)[failure.message_hmac or ""]
    )
    assert [r for r in of_batch(records, 2, Request) if r.phase == "measure"] == []
    assert [ending.outcome for ending in report.endings.values()][-2:] == ["failed", "completed"]
    assert decisions(records) == []


def test_c02_answers_that_a_batch_changes_are_listed_with_their_first_differing_token(run: Callable[..., Ran]) -> None:
    """One changed answer does not stop the pass: it is measured, and its flips are counted like any others."""
    changed = {"d1": {"text": "one two three four", "text_in_batch": "one two other four"}}
    _, records = run({**SCRIPT, "documents": changed}, sizes=(2,), documents=4)
    (check,) = of_batch(records, 2, BatchCheck)
    assert (check.differing_document_ids, check.first_difference_tokens) == (["d1"], [2])
    assert [end.pass_outcome for end in of_batch(records, 2, PassEnd)] == ["completed"]


EXHAUSTED = {
    "passes": [{"match": "fp32~b4/*", "events": [{"at": "measure", "do": "raise", "exception": "MemoryError"}]}]
}


def test_out_of_memory_at_a_batch_is_a_limit_larger_ones_are_not_tried_and_the_run_is_sealed(
    run: Callable[..., Ran],
) -> None:
    report, records = run({**SCRIPT, **EXHAUSTED}, sizes=(2, 4, 8, 16))
    assert [(p.batch, report.endings[f"fp32~b{p.batch}/1/1"].outcome) for p in passes(records) if p.batch > 1] == [
        (2, "completed"), (4, "failed"),
    ]  # fmt: skip
    (failure,) = of_batch(records, 4, Failure)
    assert (failure.failure_cause, failure.phase) == ("out_of_memory", "measure")
    assert [r.phase for r in of_batch(records, 4, Reading)] == ["load", "warmup", "measure"], "the peak is a result"
    assert decisions(records) == [
        ("batch_reduced", {"variant": "fp32", "from": "4", "to": "2", "reason": "out_of_memory"}),
        ("skipped", {"variant": "fp32", "batch": "8", "reason": "out_of_memory at 4"}),
        ("skipped", {"variant": "fp32", "batch": "16", "reason": "out_of_memory at 4"}),
    ]
    (reduced,) = [r for r in records if isinstance(r, Decision) and r.decision == "batch_reduced"]
    assert reduced.pass_id == failure.pass_id
    assert report.head_digest is not None


def test_a_resumed_run_keeps_the_limit_and_says_it_once(run: Callable[..., Ran]) -> None:
    script = {**SCRIPT, **EXHAUSTED}
    report, first = run(script, sizes=(2, 4, 8), only_series=["batch"])
    assert report.head_digest is None
    assert [p.batch for p in passes(first)] == [2, 4]
    again, records = run(is_resuming=True)
    assert again.path == report.path
    assert again.head_digest is not None
    assert [p.batch for p in passes(records)] == [2, 4, 1, 1, 1]
    assert [name for name, _ in decisions(records)] == ["skipped", "batch_reduced", "skipped", "resumed"]


def test_a_run_that_died_before_saying_the_limit_says_it_when_resumed(run: Callable[..., Ran]) -> None:
    report, records = run({**SCRIPT, **EXHAUSTED}, sizes=(2, 4, 8))
    lines = report.path.read_bytes().splitlines(keepends=True)
    place = next(index for index, record in enumerate(records) if isinstance(record, Decision))
    report.path.write_bytes(b"".join(lines[:place]))
    _, resumed = run(is_resuming=True)
    assert [p.batch for p in passes(resumed)] == [1, 1, 1, 2, 4]
    assert [name for name, _ in decisions(resumed)] == ["resumed", "batch_reduced", "skipped"]


@pytest.mark.parametrize(
    ("match", "event"),
    [
        ("fp32~b2/*", {"at": "measure", "do": "raise", "exception": "OSError"}),
        ("fp32~b2/*", {"at": "load", "do": "raise", "exception": "MemoryError"}),
        ("fp32/*", {"at": "measure", "do": "raise", "exception": "MemoryError"}),
        ("bf16/*", {"at": "measure", "do": "raise", "exception": "MemoryError"}),
    ],
    ids=["another fault", "memory while loading", "memory of single requests", "memory of another variant"],
)
def test_any_other_failure_says_nothing_about_larger_batches(
    run: Callable[..., Ran], match: str, event: dict[str, Any]
) -> None:
    report, records = run({**SCRIPT, "passes": [{"match": match, "events": [event]}]})
    assert [p.batch for p in passes(records)] == [1, 1, 1, 2, 4]
    assert report.endings["fp32~b4/1/1"].outcome == "completed"
    assert decisions(records) == []


def test_one_series_alone_leaves_the_file_open_and_says_what_is_left_out(run: Callable[..., Ran]) -> None:
    report, records = run(only_series=["batch"])
    assert report.head_digest is None
    assert [p.batch for p in passes(records)] == [2, 4]
    assert decisions(records) == [
        ("skipped", {"only_series": "batch", "reason": "the others are left out with --series"})
    ]


def test_a_chosen_list_runs_instead_of_the_plans_own_and_is_sealed(run: Callable[..., Ran]) -> None:
    chosen = [Chosen("bf16", 4), Chosen("fp32", 1), Chosen("fp32", 2)]
    report, records = run(configurations=chosen, reference_runs=1)
    assert [(p.variant_name, p.batch, p.purpose, p.factor) for p in passes(records)] == [
        ("fp32", 1, "reference", "none"), ("bf16", 4, "variant", "several"), ("fp32", 2, "series", "batch"),
    ]  # fmt: skip
    assert report.head_digest is not None
