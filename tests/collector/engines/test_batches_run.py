"""A whole run with batches on a tiny model: its records check clean, and its answers are those of single requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from collector.clock import SystemClock
from collector.contract.records import BatchCheck, PassBegin, PassEnd, Record, Request
from collector.run_options import RunOptions
from collector.workers import InProcessWorkerFactory
from reporter.check import check


def test_c02_a_run_with_batches_checks_clean_and_answers_as_one_at_a_time(
    make_trial: Callable[..., Any],
    fixed_meter: Any,
    fixed_machine: Any,
    records_of: Callable[[Path], list[Record]],
    models_dir: Path,
) -> None:
    def edit(text: str) -> str:
        text = text.replace('name = "scripted"\nscript = "script.json"', 'name = "transformers"')
        return f"{text}\nbatches = [2, 4]\n"

    trial = make_trial(documents=9, model=str(models_dir / "llama"), edit=edit)
    clock = SystemClock()
    factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
    report = trial.run(RunOptions(device="cpu"), clock=clock, factory=factory, machine=fixed_machine)
    assert {ending.outcome for ending in report.endings.values()} == {"completed"}
    checked = check([report.path])
    assert (checked.findings, checked.flags) == ([], [])
    records = records_of(report.path)
    answers: dict[int, dict[str, tuple[str | None, int | None]]] = {}
    for begin in (r for r in records if isinstance(r, PassBegin) and r.variant_name == "fp32" and r.repetition == 1):
        own = [r for r in records if isinstance(r, Request) and (r.pass_id, r.phase) == (begin.pass_id, "measure")]
        answers[begin.batch] = {r.document_id: (r.answer_hmac, r.output_tokens) for r in own}
        assert max(r.batch_row for r in own) == begin.batch - 1
        (end,) = [r for r in records if isinstance(r, PassEnd) and r.pass_id == begin.pass_id]
        assert sum(int(rows) * steps for rows, steps in end.live_row_histogram.items()) == end.output_token_count
        assert max(map(int, end.live_row_histogram)) == begin.batch
    assert answers[1] == answers[2] == answers[4]
    checks = [record for record in records if isinstance(record, BatchCheck)]
    assert [(c.batch, len(c.checked_document_ids), c.differing_document_ids) for c in checks] == [
        (2, 8, []),
        (4, 8, []),
    ]
    assert {(c.padding_side, c.pad_token_source) for c in checks} == {("left", "tokenizer")}
