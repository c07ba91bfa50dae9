"""Record files: the chain, the seal and the torn tail."""

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path

import msgspec
import pytest

from collector.contract.chain import ZERO, FileReport, line_digest, scan, seal_digest, seal_line, verify
from collector.contract.errors import DossierError
from collector.contract.records import (
    MAX_LINE_BYTES,
    Decision,
    Document,
    Header,
    Record,
    Seal,
    decode_record,
    encode_record,
)

RUN_ID = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
DIGEST = "ab" * 32
HEADER = Header(
    format=1, stage="validation", protocol_json="{}", protocol_id=DIGEST, plan_id="cd" * 32, collector_version="0.1.0",
    wall_at="2026-03-14T09:00:00.000000Z", monotonic_ns=1,
)  # fmt: skip


def document(number: int) -> Document:
    return Document(
        document_id=f"d{number}", role="validation", length_class="short", is_hard=False, subsets=[],
        cluster=f"c{number}", text_hmac=DIGEST, expected_hmac=DIGEST,
    )  # fmt: skip


RECORDS: list[Record] = [HEADER, document(1), document(2), Decision(decision="stopped", decided_by="collector")]


def chained(records: list[Record], *, run_id: str = RUN_ID, sealed: bool = True) -> list[bytes]:
    """The records' lines with their envelopes, and a seal."""
    lines: list[bytes] = []
    counts: dict[str, int] = {}
    for record in records:
        counts[str(record.__struct_config__.tag)] = counts.get(str(record.__struct_config__.tag), 0) + 1
        lines.append(encode_record(enveloped(record, lines, run_id)))
    if sealed:
        lines.append(seal_line(enveloped(Seal(record_counts=counts, head_digest=ZERO), lines, run_id)))
    return lines


def enveloped(record: Record, lines: list[bytes], run_id: str = RUN_ID) -> Record:
    prev = hashlib.sha256(lines[-1]).hexdigest() if lines else ZERO
    stamp = f"2026-03-14T09:00:01.{len(lines):06d}Z"
    return msgspec.structs.replace(record, run_id=run_id, seq=len(lines), prev=prev, written_at=stamp)


def written(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def report_of(tmp_path: Path, lines: list[bytes]) -> FileReport:
    return verify(written(tmp_path / "run.jsonl", lines))


def rules(report: FileReport) -> list[tuple[int, str]]:
    return [(line, problem.rule) for line, problem in report.problems]


def test_a_sealed_file_is_named_by_its_head_digest(tmp_path: Path) -> None:
    lines = chained(RECORDS)
    report = report_of(tmp_path, lines)
    seal = decode_record(lines[-1])
    assert isinstance(seal, Seal)
    assert report.problems == []
    assert (report.is_sealed, report.has_torn_tail, report.is_newer_format) == (True, False, False)
    assert report.head_digest == seal.head_digest
    assert report.sha256 == hashlib.sha256((tmp_path / "run.jsonl").read_bytes()).hexdigest()
    assert (report.run_id, report.record_count, report.line_count) == (RUN_ID, 5, 5)
    assert report.kind_counts == {"header": 1, "document": 2, "decision": 1, "seal": 1}
    assert report.header == decode_record(lines[0])


def test_the_head_digest_is_the_sha256_of_the_seal_line_with_64_zeros_in_its_place() -> None:
    line = chained(RECORDS)[-1]
    stated = json.loads(line)["head_digest"]
    assert line_digest(line.replace(stated.encode(), b"0" * 64)) == stated
    assert seal_digest(line) == stated
    assert seal_digest(line.replace(b"T09:", b"T10:")) is None


def test_a_file_without_a_seal_is_open_and_no_fault(tmp_path: Path) -> None:
    report = report_of(tmp_path, chained(RECORDS, sealed=False))
    assert report.problems == []
    assert (report.is_sealed, report.head_digest, report.has_torn_tail) == (False, None, False)


def test_the_scan_yields_every_line_with_its_number_bytes_and_record(tmp_path: Path) -> None:
    lines = chained(RECORDS)
    scanned = list(scan(written(tmp_path / "run.jsonl", lines)))
    assert [(line.line_number, line.raw, line.problems) for line in scanned] == [
        (number, line, ()) for number, line in enumerate(lines, start=1)
    ]
    assert [line.record for line in scanned] == [decode_record(line) for line in lines]


def unseen_changes(path: Path, masks: tuple[int, ...]) -> list[tuple[int, int]]:
    """(position, mask) of each single byte of a sealed file that can be changed without an error."""
    intact = written(path, chained([HEADER, document(1)])).read_bytes()
    assert verify(path).problems == []
    unseen = []
    for position, mask in itertools.product(range(len(intact)), masks):
        path.write_bytes(intact[:position] + bytes([intact[position] ^ mask]) + intact[position + 1 :])
        if not verify(path).errors:
            unseen.append((position, mask))
    return unseen


def test_every_single_byte_change_of_a_sealed_file_is_found(tmp_path: Path) -> None:
    """All positions, the neighbouring character at each."""
    assert unseen_changes(tmp_path / "run.jsonl", (1,)) == []


@pytest.mark.slow
def test_every_single_bit_change_of_a_sealed_file_is_found(tmp_path: Path) -> None:
    """All positions, all eight bits at each, and all bits at once."""
    assert unseen_changes(tmp_path / "run.jsonl", (1, 2, 4, 8, 16, 32, 64, 128, 255)) == []


def test_every_other_byte_in_place_of_a_line_end_is_found(tmp_path: Path) -> None:
    path = written(tmp_path / "run.jsonl", chained([HEADER]))
    intact = path.read_bytes()
    ends = [position for position, byte in enumerate(intact) if byte == 10]
    for position, other in itertools.product(ends, set(range(256)) - {10}):
        path.write_bytes(intact[:position] + bytes([other]) + intact[position + 1 :])
        assert verify(path).errors


def test_every_cut_of_a_sealed_file_leaves_it_open_or_at_fault(tmp_path: Path) -> None:
    path = written(tmp_path / "run.jsonl", chained([HEADER, document(1)]))
    intact = path.read_bytes()
    for length in range(len(intact)):
        path.write_bytes(intact[:length])
        assert not verify(path).is_sealed


def test_every_cut_of_an_open_file_keeps_all_whole_lines_and_is_no_fault(tmp_path: Path) -> None:
    lines = chained(RECORDS, sealed=False)
    path = written(tmp_path / "run.jsonl", lines)
    intact = path.read_bytes()
    for length in range(len(intact) + 1):
        path.write_bytes(intact[:length])
        report = verify(path)
        whole = intact[:length].count(b"\n")
        assert report.errors == []
        assert report.record_count == whole
        assert report.good_byte_count == intact[:length].rfind(b"\n") + 1
        assert report.has_torn_tail == (length != report.good_byte_count or length == 0)
        assert rules(report) == ([(whole + 1, "torn-tail")] if report.has_torn_tail else [])
        assert report.last_line_digest == (line_digest(lines[whole - 1]) if whole else ZERO)


def test_a_tail_of_zero_bytes_after_a_power_cut_is_torn(tmp_path: Path) -> None:
    path = written(tmp_path / "run.jsonl", chained(RECORDS, sealed=False))
    good = path.stat().st_size
    for tail in (b"\0" * 512, b"\0" * 512 + b"\n", b'{"kind":"docu\n', b"\xff\n"):
        path.write_bytes(path.read_bytes()[:good] + tail)
        report = verify(path)
        assert (report.has_torn_tail, report.errors, report.good_byte_count) == (True, [], good)


def test_the_same_damage_in_the_middle_is_a_fault(tmp_path: Path) -> None:
    lines = chained(RECORDS)
    lines[2] = lines[2][:40]
    assert rules(report_of(tmp_path, lines)) == [(3, "not-json"), (4, "chain")]


def test_a_deleted_line_is_found_where_it_is_missing(tmp_path: Path) -> None:
    for index in range(1, 4):
        lines = chained(RECORDS)
        del lines[index]
        report = report_of(tmp_path, lines)
        assert [line for line, rule in rules(report) if rule == "chain"] == [index + 1, index + 1]
        assert (len(lines), "seal") in rules(report)


def test_an_inserted_or_repeated_line_is_found(tmp_path: Path) -> None:
    lines = chained(RECORDS)
    assert (4, "chain") in rules(report_of(tmp_path, [*lines[:3], lines[2], *lines[3:]]))
    foreign = chained([HEADER, document(9), document(10)], run_id="f" * 32, sealed=False)[2]
    found = rules(report_of(tmp_path, [*lines[:2], foreign, *lines[3:]]))
    assert (3, "chain") in found
    assert (4, "chain") in found


def test_swapped_lines_are_found(tmp_path: Path) -> None:
    lines = chained(RECORDS)
    lines[1], lines[2] = lines[2], lines[1]
    found = rules(report_of(tmp_path, lines))
    assert {line for line, rule in found if rule == "chain"} == {2, 3, 4}


def test_a_line_changed_with_a_chain_made_to_fit_breaks_the_seal(tmp_path: Path) -> None:
    """Only the seal's own digest, which names the file elsewhere, protects against a rewritten rest."""
    before = report_of(tmp_path, chained(RECORDS)).head_digest
    after = report_of(tmp_path, chained([HEADER, document(7), *RECORDS[2:]]))
    assert after.problems == []
    assert after.head_digest != before


def test_a_line_after_the_seal_is_a_fault_and_the_file_no_longer_sealed(tmp_path: Path) -> None:
    lines = chained(RECORDS)
    more = encode_record(enveloped(document(3), lines))
    report = report_of(tmp_path, [*lines, more])
    assert rules(report) == [(6, "after-seal")]
    assert (report.is_sealed, report.head_digest) == (False, None)
    assert [line.record is None for line in scan(report.path)][-1]


def test_a_seal_that_miscounts_is_a_fault(tmp_path: Path) -> None:
    lines = chained(RECORDS, sealed=False)
    lines.append(seal_line(enveloped(Seal(record_counts={"header": 1, "document": 3}, head_digest=ZERO), lines)))
    assert rules(report_of(tmp_path, lines)) == [(5, "seal")]


def test_a_line_set_aside_does_not_also_contradict_the_seal(tmp_path: Path) -> None:
    lines = chained([HEADER])[:-1]
    for number in (1, 2):
        fine = encode_record(enveloped(document(number), lines))
        lines.append(fine.replace(b'"short"', b'"tiny"') if number == 1 else fine)
    lines.append(seal_line(enveloped(Seal(record_counts={"header": 1, "document": 2}, head_digest=ZERO), lines)))
    report = report_of(tmp_path, lines)
    assert rules(report) == [(2, "vocabulary")]
    assert report.is_sealed
    assert (report.record_count, report.kind_counts["document"]) == (3, 2)


def test_a_file_that_does_not_start_with_a_header_is_at_fault(tmp_path: Path) -> None:
    assert (1, "header") in rules(report_of(tmp_path, chained(RECORDS[1:])))
    assert rules(report_of(tmp_path, chained([HEADER, document(1), HEADER]))) == [(3, "header")]


def test_d21_a_newer_major_is_set_aside_whole_and_its_lines_are_counted(tmp_path: Path) -> None:
    header = json.loads(chained([HEADER])[0]) | {"format": 99, "made_of": {"other": ["things"]}}
    path = written(tmp_path / "run.jsonl", [json.dumps(header).encode(), b"line of a shape", b"unknown today"])
    scanned = scan(path)
    assert [(line.line_number, line.record) for line in scanned] == [(1, None)]
    report = scanned.report()
    assert report.is_newer_format
    assert [rule for _, rule in rules(report)] == ["newer-format"]
    assert (report.record_count, report.line_count) == (0, 3)
    assert report.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert report.problems[0][1].next_step.startswith("upgrade")


def test_an_unknown_kind_is_counted_as_skipped_and_the_chain_goes_through_it(tmp_path: Path) -> None:
    lines = chained([HEADER])[:-1]
    omen = json.loads(encode_record(enveloped(document(1), lines))) | {"kind": "omen", "birds": {"seen": [1]}}
    lines.append(json.dumps(omen, separators=(",", ":")).encode())
    lines.append(encode_record(enveloped(document(2), lines)))
    lines.append(
        seal_line(enveloped(Seal(record_counts={"header": 1, "omen": 1, "document": 1}, head_digest=ZERO), lines))
    )
    report = report_of(tmp_path, lines)
    assert rules(report) == [(2, "unknown-kind")]
    assert report.errors == []
    assert report.is_sealed
    assert (report.kind_counts["omen"], report.record_count) == (1, 3)


def test_d09_d11_bad_lines_are_set_aside_with_their_number_and_the_others_are_read(tmp_path: Path) -> None:
    lines = chained([HEADER])[:-1]
    good = encode_record(enveloped(document(1), lines))
    lines += [good + b" xyz", b'{"run_id":"a","run_id":"b"}']
    lines.append(encode_record(enveloped(document(2), lines)))
    report = report_of(tmp_path, lines)
    assert rules(report)[0] == (2, "trailing-data")
    assert (3, "duplicate-key") in rules(report)
    assert report.record_count == 2


def test_d14_a_line_of_any_length_is_refused_in_flat_memory(tmp_path: Path) -> None:
    lines = chained(RECORDS)
    lines[2] = b'{"kind":"document","cluster":"' + b"x" * (3 * MAX_LINE_BYTES) + b'"}'
    report = report_of(tmp_path, lines)
    assert rules(report)[0] == (3, "too-long")
    assert str(len(lines[2])) in report.problems[0][1].message
    assert report.sha256 == hashlib.sha256(report.path.read_bytes()).hexdigest()
    assert max(len(line.raw) for line in scan(report.path)) <= MAX_LINE_BYTES + 1


def test_carriage_returns_added_by_an_editor_are_found(tmp_path: Path) -> None:
    report = report_of(tmp_path, [line + b"\r" for line in chained(RECORDS)])
    assert report.errors


def test_an_empty_file_holds_nothing_and_is_torn(tmp_path: Path) -> None:
    report = report_of(tmp_path, [])
    assert (report.has_torn_tail, report.line_count, report.header, report.errors) == (True, 0, None, [])


def test_a_file_that_cannot_be_read_is_an_error_with_a_next_step(tmp_path: Path) -> None:
    with pytest.raises(DossierError, match="next: name a run file"):
        verify(tmp_path / "absent.jsonl")
    with pytest.raises(DossierError, match="directory"):
        verify(tmp_path)
