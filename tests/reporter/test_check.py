"""`reporter check`: a clean campaign passes, and each thing that can be wrong is found with its file and line."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.contract.errors import ExitCode, Finding
from collector.contract.texts import texts_path
from reporter.check import CheckReport, check

Kit = Any
Line = dict[str, Any]


def rechained(kit: Kit, path: Path, edit: Callable[[int, Line], Line | None]) -> None:
    """Change the content as a writer with a fault would: contract, chain and seal are in order."""
    path.write_bytes(b"".join(line + b"\n" for line in kit.rechain(path.read_bytes().splitlines(), edit)))


def line_of(path: Path, wanted: Callable[[Line], bool], nth: int = 0) -> int:
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    return [number for number, line in enumerate(lines, start=1) if wanted(line)][nth]


def rules(found: list[Finding]) -> set[str]:
    return {finding.rule for finding in found}


def places(report: CheckReport, rule: str) -> list[tuple[str, int | None]]:
    return [(f.file.name, f.line) for f in (*report.findings, *report.flags) if f.rule == rule]


def is_measured(line: Line) -> bool:
    return line["kind"] == "request" and line["phase"] == "measure"


def test_a_clean_sealed_campaign_has_no_finding_and_no_flag(tmp_path: Path, campaign_records: Kit) -> None:
    kit = campaign_records
    variant = kit.variant(name="bf16", dtype="bfloat16", outcomes={1: "failed", 2: "too_long"}, killed_attempts=1)
    kit(tmp_path / "runs", variants=(kit.fp32, variant), has_texts=True, repetitions=2)
    kit(tmp_path / "runs", device=kit.device(name="Example GPU", kind="cuda", host="b"), variants=(kit.fp32, variant),
        has_texts=True, repetitions=2)  # fmt: skip
    report = check([tmp_path])
    assert (report.findings, report.flags, report.open_files) == ([], [], [])
    assert report.exit_code is ExitCode.FINE
    assert len(report.files) == 2


def test_an_open_file_is_called_open_and_is_no_finding(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    lines = written.path.read_bytes().splitlines(keepends=True)
    written.path.write_bytes(b"".join(lines[:-3]) + lines[-3][:10])
    report = check([written.path])
    assert report.open_files == [written.path]
    assert rules(report.flags) == {"torn-tail"}
    assert report.exit_code is ExitCode.FINE


def test_an_edited_line_is_found_by_the_chain(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    place = line_of(written.path, lambda line: line["kind"] == "score" and not line["is_accepted"])
    lines = written.path.read_bytes().splitlines(keepends=True)
    lines[place - 1] = lines[place - 1].replace(b'"is_accepted":false', b'"is_accepted":true')
    written.path.write_bytes(b"".join(lines))
    report = check([written.path])
    assert ("chain", place + 1) in {(finding.rule, finding.line) for finding in report.findings}
    assert report.exit_code is ExitCode.FINDINGS


def test_any_changed_byte_of_a_sealed_file_is_found_without_a_traceback(tmp_path: Path, campaign_records: Kit) -> None:
    """A sample through the whole command, twenty changes at once; the chain's own tests try every byte."""
    written = campaign_records(tmp_path / "clean", documents=2, critical=1)
    whole, draws = written.path.read_bytes(), random.Random(11)
    for number in range(20):
        place = draws.randrange(len(whole))
        changed = bytearray(whole)
        changed[place] ^= 1 << draws.randrange(8)
        copy = tmp_path / "changed" / f"{number:03d}" / written.path.name
        copy.parent.mkdir(parents=True)
        copy.write_bytes(changed)
    report = check([tmp_path / "changed"])
    assert len(report.files) == 20
    assert {finding.file for finding in report.findings} == {each.path for each in report.files}


def test_findings_name_file_line_and_next_step(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    rechained(
        campaign_records, written.path, lambda i, o: None if is_measured(o) and o["document_id"] == "doc-002" else o
    )
    report = check([written.path])
    assert rules(report.findings) == {"incomplete-pass", "unknown-request", "pass-counts"}
    assert all(f.file == written.path and f.line and f.message and f.next_step for f in report.findings)
    ends = [line_of(written.path, lambda line: line["kind"] == "pass_end", nth) for nth in range(3)]
    assert places(report, "incomplete-pass") == [(written.path.name, place) for place in ends]
    assert "doc-002" in next(f.message for f in report.findings if f.rule == "incomplete-pass")
    assert report.findings == sorted(report.findings, key=lambda f: (str(f.file), f.line or 0, f.rule, f.message))


def _with(field: str, value: Any, wanted: Callable[[Line], bool]) -> Callable[[int, Line], Line]:
    def edit(index: int, line: Line) -> Line:
        return line | {field: value} if wanted(line) else line

    return edit


def _is(kind: str, **fields: Any) -> Callable[[Line], bool]:
    return lambda line: line["kind"] == kind and all(line.get(name) == value for name, value in fields.items())


CASES: list[tuple[str, Callable[[int, Line], Line | None], Callable[[Line], bool]]] = [
    (
        "document-order-differs",
        lambda i, o: (
            o | {"document_order": o["document_order"][1:], "expected_document_count": 23}
            if o["kind"] == "pass_begin" and o["repetition"] == 2
            else o
        ),
        _is("pass_begin", repetition=2),
    ),
    ("unknown-pass", _with("pass_id", "f" * 16, _is("warning")), _is("warning")),
    ("unknown-setup", _with("engine_id", "e" * 16, _is("pass_begin")), _is("pass_begin")),
    ("unscored-request", lambda i, o: None if _is("score", document_id="doc-001")(o) else o, is_measured),
    ("pass-counts", _with("output_token_count", 7, _is("pass_end")), _is("pass_end")),
    (
        "pass-of-another-protocol",
        _with("stage", "pilot", _is("pass_begin", repetition=2)),
        _is("pass_begin", repetition=2),
    ),
    (
        "allocated-over-reserved",
        _with("value_bytes", 9**11, _is("reading", memory_scope="allocated", statistic="peak")),
        _is("reading", memory_scope="allocated", statistic="peak"),
    ),
    (
        "peak-below-reading",
        _with("value_bytes", 5, _is("reading", memory_scope="host", statistic="peak")),
        _is("reading", memory_scope="host", statistic="peak"),
    ),
    (
        "peak-over-memory",
        _with("value_bytes", 9**11, _is("reading", memory_scope="host", statistic="peak")),
        _is("reading", memory_scope="host", statistic="peak"),
    ),
    (
        "scope-order",
        _with("value_bytes", 15 * 2**30, _is("reading", memory_scope="process", statistic="peak")),
        _is("reading", memory_scope="device", statistic="peak"),
    ),
    ("unended-pass", lambda i, o: None if o["kind"] == "pass_end" else o, _is("pass_begin")),
    ("other-rules", _with("rule_digest", "9" * 64, _is("score")), _is("score")),
    ("documents-digest", _with("is_hard", True, _is("document")), _is("header")),
    ("documents-digest", lambda i, o: None if _is("document", document_id="doc-003")(o) else o, _is("header")),
    ("protocol-digest", _with("plan_id", "a" * 64, _is("header")), _is("header")),
    ("protocol-json", _with("protocol_json", "{}", _is("header")), _is("header")),
    (
        "different-prompt",
        # the first pass ends before line 160
        lambda i, o: (
            o | {"prompt_hmac": "b" * 64} if i > 160 and is_measured(o) and o["document_id"] == "doc-001" else o
        ),
        lambda o: is_measured(o) and o.get("prompt_hmac") == "b" * 64,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "edit", "where"), CASES, ids=[case[0] for case in CASES])
def test_a_writers_fault_is_found_where_it_stands(
    tmp_path: Path,
    campaign_records: Kit,
    rule: str,
    edit: Callable[[int, Line], Line | None],
    where: Callable[[Line], bool],
) -> None:
    """Each fault passes contract and chain; only comparing records finds it, at the line of the record to blame."""
    written = campaign_records(tmp_path / "runs", device=campaign_records.device(name="Example GPU", kind="cuda"))
    rechained(campaign_records, written.path, edit)
    report = check([written.path])
    found = places(report, rule)
    assert found, rules([*report.findings, *report.flags])
    assert found[0] == (written.path.name, line_of(written.path, where))
    is_flag = rule == "scope-order"
    assert (rule in rules(report.flags)) is is_flag
    assert report.exit_code is (ExitCode.FINE if is_flag else ExitCode.FINDINGS)


def test_a_second_final_try_and_a_document_out_of_order_are_found(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    lines = [msgspec.json.decode(line) for line in written.path.read_bytes().splitlines()]
    request = next(line for line in lines if is_measured(line))
    extra = [request | {"try_index": 1}, request | {"document_id": "doc-999"}]
    place = lines.index(request) + 2
    lines[place:place] = extra
    raw = campaign_records.rechain([msgspec.json.encode(line) for line in lines], lambda i, o: o)
    written.path.write_bytes(b"\n".join(raw) + b"\n")
    report = check([written.path])
    assert places(report, "several-final-tries") == [(written.path.name, place + 1)]
    assert places(report, "unexpected-document") == [(written.path.name, place + 2)]


def test_a_completed_pass_that_was_run_again_is_flagged(tmp_path: Path, campaign_records: Kit) -> None:
    campaign_records(tmp_path / "runs")
    again = campaign_records(tmp_path / "runs", start="2026-01-09T09:00:00", seed=2)
    report = check([tmp_path])
    assert report.findings == []
    assert {file for file, _ in places(report, "repeated-pass")} == {again.path.name}
    assert len(places(report, "repeated-pass")) == 3


def test_runs_of_two_protocols_are_listed(tmp_path: Path, campaign_records: Kit) -> None:
    campaign_records(tmp_path / "runs")
    other = campaign_records(tmp_path / "runs", documents=25, start="2026-01-09T09:00:00")
    report = check([tmp_path])
    assert places(report, "mixed-protocols") == [(other.path.name, 1)]
    assert rules(report.findings) == {"mixed-protocols"}


def test_d19_duplicates_are_counted_by_kind(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    lines = written.path.read_bytes().splitlines()
    copied = [line for line in lines if line.startswith(b'{"kind":"score"')][:20]
    written.path.write_bytes(b"\n".join([*lines, *copied]) + b"\n")
    report = check([written.path])
    (flag,) = [flag for flag in report.flags if flag.rule == "duplicate-records"]
    assert "20 score" in flag.message
    assert "chain" in rules(report.findings)


def test_d21_a_newer_file_is_a_finding_that_says_upgrade(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    rechained(campaign_records, written.path, _with("format", 99, _is("header")))
    report = check([written.path])
    (finding,) = report.findings
    assert (finding.rule, finding.line) == ("newer-format", 1)
    assert "upgrade" in finding.next_step
    assert report.exit_code is ExitCode.FINDINGS


def test_the_same_file_twice_is_flagged(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    (written.runs / "copy.jsonl").write_bytes(written.path.read_bytes())
    report = check([tmp_path])
    assert places(report, "same-file") == [("copy.jsonl", None)]


# texts


def test_texts_that_are_what_their_hmacs_name_pass_and_a_deleted_texts_file_too(
    tmp_path: Path, campaign_records: Kit
) -> None:
    written = campaign_records(tmp_path / "runs", has_texts=True)
    assert check([written.path]).flags == []
    texts_path(written.path).unlink()
    report = check([written.path])
    assert (report.findings, report.flags) == ([], [])


@pytest.mark.parametrize(
    ("rule", "edit"),
    [
        ("text-differs", lambda lines: [*lines[:3], lines[3].replace(b'"text":"', b'"text":"?'), *lines[4:]]),
        ("texts-line", lambda lines: [*lines[:3], b"{}", *lines[4:]]),
    ],
)
def test_a_changed_text_is_found_at_its_line(
    tmp_path: Path, campaign_records: Kit, rule: str, edit: Callable[[list[bytes]], list[bytes]]
) -> None:
    written = campaign_records(tmp_path / "runs", has_texts=True)
    texts = texts_path(written.path)
    texts.write_bytes(b"\n".join(edit(texts.read_bytes().splitlines())) + b"\n")
    report = check([written.path])
    assert places(report, rule) == [(texts.name, 4)]
    assert rules(report.findings) == {rule}


def test_texts_of_another_run_or_salt_are_found(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", has_texts=True)
    texts = texts_path(written.path)
    lines = texts.read_bytes().splitlines()
    header = msgspec.json.decode(lines[0])
    other = [msgspec.json.encode(header | {"run_id": "0" * 32}), *lines[1:]]
    texts.write_bytes(b"\n".join(other) + b"\n")
    assert places(check([written.path]), "texts-of-another-run") == [(texts.name, 1)]
    other = [msgspec.json.encode(header | {"salt_hex": "ff" * 32}), *lines[1:]]
    texts.write_bytes(b"\n".join(other) + b"\n")
    report = check([written.path])
    assert len(places(report, "text-differs")) == len(lines) - 1


def test_cited_texts_that_are_gone_are_flagged(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", has_texts=True)
    texts = texts_path(written.path)
    lines = texts.read_bytes().splitlines()
    kept = [line for line in lines if b'"answer 4 ' not in line]
    assert len(kept) == len(lines) - 1
    texts.write_bytes(b"\n".join(kept) + b"\n")
    report = check([written.path])
    (flag,) = report.flags
    assert (flag.rule, report.findings) == ("text-missing", [])
    assert flag.message.startswith("3 cited text(s)")
