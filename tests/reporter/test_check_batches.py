"""`reporter check` on passes with batches: rows, steps and the self-check must fit together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reporter.check import check

Line = dict[str, Any]
BATCH = 4


def written(kit: Any, tmp_path: Path) -> Path:
    """A reference one at a time, and a variant in batches of 4 of which one document failed and one did not fit."""
    outcomes = {1: "failed", 2: "too_long"}
    variants = (kit.fp32, kit.variant(name="batched", batch=BATCH, outcomes=outcomes))
    path: Path = kit(tmp_path / "runs", variants=variants).path
    return path


def edited(kit: Any, path: Path, edit: Callable[[Line], Line | None]) -> list[Line]:
    """Change lines as a writer with a fault would, chain and seal in order; returns what the file then says."""
    raw = kit.rechain(path.read_bytes().splitlines(), lambda index, line: edit(line))
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return [msgspec.json.decode(line) for line in raw]


def rows(lines: list[Line], batch_number: int) -> list[int]:
    """Line numbers of the batched pass's measured requests in one batch."""
    batched = next(line["pass_id"] for line in lines if line["kind"] == "pass_begin" and line["batch"] == BATCH)
    return [
        number
        for number, line in enumerate(lines, start=1)
        if line["kind"] == "request" and line["phase"] == "measure" and line["pass_id"] == batched
        and line.get("batch_number", 0) == batch_number and line["sent_ns"] is not None
    ]  # fmt: skip


def is_row(line: Line, batch_number: int, batch_row: int) -> bool:
    return (
        line["kind"] == "request" and line["padding_tokens"] is not None
        and (line.get("batch_number", 0), line.get("batch_row", 0)) == (batch_number, batch_row)
    )  # fmt: skip


def found(path: Path, rule: str) -> list[tuple[int | None, str]]:
    report = check([path])
    assert {finding.rule for finding in report.findings} == {rule}
    return [(finding.line, finding.message) for finding in report.findings]


def test_a_campaign_with_batches_has_no_finding(tmp_path: Path, campaign_records: Any) -> None:
    path = written(campaign_records, tmp_path)
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    (end,) = [line for line in lines if line["kind"] == "pass_end" and line["live_row_steps"]]
    assert set(end["live_row_histogram"]) == {"1", "2", "3", "4"}
    report = check([path])
    assert (report.findings, report.flags) == ([], [])


def test_live_row_steps_other_than_their_histogram_are_found(tmp_path: Path, campaign_records: Any) -> None:
    path = written(campaign_records, tmp_path)

    def edit(line: Line) -> Line:
        histogram = line.get("live_row_histogram")
        return line | {"live_row_histogram": histogram | {"4": histogram["4"] + 1}} if histogram else line

    lines = edited(campaign_records, path, edit)
    ((place, message),) = found(path, "live-rows")
    assert lines[(place or 0) - 1]["kind"] == "pass_end"
    steps = lines[(place or 0) - 1]["live_row_steps"]
    assert f"{steps} live row steps, its histogram gives {steps + 4}" in message


def test_live_row_steps_other_than_the_output_tokens_are_found(tmp_path: Path, campaign_records: Any) -> None:
    path = written(campaign_records, tmp_path)

    def edit(line: Line) -> Line:
        histogram = line.get("live_row_histogram")
        if not histogram:
            return line
        more = {"live_row_steps": line["live_row_steps"] + 4}
        return line | more | {"live_row_histogram": histogram | {"4": histogram["4"] + 1}}

    edited(campaign_records, path, edit)
    ((_, message),) = found(path, "live-rows")
    assert "its requests have" in message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: {"sent_ns": line["sent_ns"] + 1}, "ns, the first row at"),
        (lambda line: {"batch_row": 1}, "row 1 stands there already"),
    ],
    ids=["sent alone", "row taken"],
)
def test_a_row_that_is_not_of_its_batch_is_found(
    tmp_path: Path, campaign_records: Any, change: Callable[[Line], Line], said: str
) -> None:
    path = written(campaign_records, tmp_path)
    lines = edited(campaign_records, path, lambda line: line | change(line) if is_row(line, 2, 3) else line)
    ((place, message),) = found(path, "batch-rows")
    assert place == rows(lines, 2)[3]
    assert said in message


def test_a_batch_larger_than_asked_for_is_found(tmp_path: Path, campaign_records: Any) -> None:
    path = written(campaign_records, tmp_path)
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    sent_ns = lines[rows(lines, 2)[0] - 1]["sent_ns"]
    moved = {"batch_number": 2, "batch_row": 4, "sent_ns": sent_ns, "intended_ns": sent_ns}
    lines = edited(campaign_records, path, lambda line: line | moved if is_row(line, 3, 0) else line)
    ((place, message),) = found(path, "batch-rows")
    assert place == rows(lines, 2)[4]
    assert "this is request 5, and 4 at a time were asked for" in message


def test_c03_a_pass_with_batches_and_without_its_self_check_is_found(tmp_path: Path, campaign_records: Any) -> None:
    path = written(campaign_records, tmp_path)
    lines = edited(campaign_records, path, lambda line: None if line["kind"] == "batch_check" else line)
    ((place, message),) = found(path, "batch-unchecked")
    assert (lines[(place or 0) - 1]["kind"], lines[(place or 0) - 1]["batch"]) == ("pass_begin", BATCH)
    assert "has a batch of 4 and no batch check" in message
