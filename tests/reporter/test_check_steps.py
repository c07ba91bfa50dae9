"""`reporter check` compares a steps file with what the records cite; a missing one is a note, never a finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.contract.steps import Steps, encode_steps, steps_digest, steps_path
from reporter.check import CheckReport, check

Kit = Any
Line = dict[str, Any]


@pytest.fixture
def captured(tmp_path: Path, campaign_records: Kit) -> Path:
    """A run whose requests all cite a line of its steps file."""
    written = campaign_records(tmp_path / "runs")
    held: list[str] = []

    def cite(_: int, line: Line) -> Line:
        if line["kind"] != "request" or line.get("first_token_ns") is None:
            return line
        key = {name: line[name] for name in ("pass_id", "phase", "document_id")}
        steps = Steps(**key, try_index=line.get("try_index", 0), unit="token", first_us=7, deltas_us=[2, 3])
        held.append(encode_steps(steps))
        return line | {"steps_sha256": steps_digest(held[-1])}

    written.path.write_bytes(
        b"".join(line + b"\n" for line in campaign_records.rechain(written.path.read_bytes().splitlines(), cite))
    )
    steps_path(written.path).write_text("".join(line + "\n" for line in held))
    assert len(held) > 4
    return Path(written.path)


def edit(run: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path = steps_path(run)
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))


def found(report: CheckReport, rule: str) -> list[tuple[str, int | None]]:
    return [(each.file.name, each.line) for each in (*report.findings, *report.flags) if each.rule == rule]


def test_steps_that_are_what_the_records_cite_pass(captured: Path) -> None:
    report = check([captured])
    assert (report.findings, report.flags) == ([], [])


def test_a_changed_line_is_found_at_its_line(captured: Path) -> None:
    edit(captured, lambda lines: [*lines[:2], lines[2].replace(b"[2,3]", b"[2,4]"), *lines[3:]])
    report = check([captured])
    assert found(report, "steps-differ") == [(steps_path(captured).name, 3)]
    assert len(report.findings) == 1
    assert report.flags == []


def test_a_line_that_cannot_be_read_is_found_and_its_request_told(captured: Path) -> None:
    edit(captured, lambda lines: [*lines[:2], b"{}", *lines[3:]])
    report = check([captured])
    assert found(report, "steps-line") == [(steps_path(captured).name, 3)]
    assert [flag.rule for flag in report.flags] == ["steps-missing"]


def test_a_deleted_file_is_a_note_and_the_chain_stands(captured: Path) -> None:
    steps_path(captured).unlink()
    report = check([captured])
    assert report.findings == []
    ((name, line),) = found(report, "steps-missing")
    assert (name, line) == (captured.name, None)


def test_lines_that_are_gone_are_counted(captured: Path) -> None:
    edit(captured, lambda lines: lines[:-2])
    (flag,) = check([captured]).flags
    assert flag.rule == "steps-missing"
    assert "2 request(s)" in flag.message
    assert b'"kind":"request"' in captured.read_bytes().splitlines()[(flag.line or 0) - 1]


def test_a_line_written_before_a_crash_for_a_record_that_never_was_is_no_fault(captured: Path) -> None:
    uncited = Steps(pass_id="f" * 16, phase="measure", document_id="d1", try_index=0, unit="token", first_us=1,
                    deltas_us=[])  # fmt: skip
    edit(captured, lambda lines: [*lines, encode_steps(uncited).encode()])
    report = check([captured])
    assert (report.findings, report.flags) == ([], [])
