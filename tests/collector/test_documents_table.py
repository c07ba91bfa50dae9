"""Documents from CSV and from folders: the same documents as in JSON-lines, and each fault with its record's line."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.clock import FakeClock
from collector.contract.errors import Finding, Refused
from collector.contract.protocol import FieldRule, Task
from collector.documents import DocumentsFile, read_documents
from collector.documents_table import cell_of
from collector.freeze import freeze
from collector.protocol_check import check_protocol

TASK = Task(
    kind="extraction",
    prompt="{document}",
    fields=[FieldRule(name="date", type="date"), FieldRule(name="note", type="text")],
)
HEADER = ["id", "role", "text", "expected.date", "expected.note"]
GOOD = ["a", "validation", "Hóa đơn", "2026-04-03", "paid"]

PROTOCOL = """format = 1
name = "three formats"
[task]
kind = "extraction"
prompt = "Read: {document}"
[[task.field]]
name = "date"
type = "date"
[[task.field]]
name = "note"
type = "text"
[workload]
documents = "DOCUMENTS"
permission = "written for this test"
review = "by its author"
[generation]
max_new_tokens = 10
[gates]
max_lost_points = "5"
[model]
id = "none"
[engine]
name = "scripted"
script = "script.json"
[[variant]]
name = "fp32"
[plan]
reference = "fp32"
"""

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "one", "role": "validation", "text": 'He said "due; now",\nthen left.', "is_hard": True, "language": "en",
     "expected": {"date": "2026-04-03", "note": None}, "subsets": ["critical", "prose"], "length_class": "short"},
    {"id": "two", "role": "test", "text": "Hóa đơn số 7\n\nTổng: 5", "expected": {"date": None, "note": "null"},
     "cluster": "vi-bill"},
    {"id": "three", "role": "development", "text": "Third", "expected": {"date": "2026-01-01", "note": "a, b; c"}},
]  # fmt: skip


def csv_text(rows: Sequence[Sequence[str]], delimiter: str = ",") -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def read(folder: Path, text: str | bytes, task: Task | None = TASK) -> DocumentsFile:
    path = folder / "documents.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_documents(path, task)


def fault(folder: Path, text: str | bytes, task: Task | None = TASK) -> Finding:
    found = read(folder, text, task)
    assert len(found.findings) == 1, found.findings
    assert found.findings[0].next_step
    return found.findings[0]


def row(document: dict[str, Any], body: str) -> list[str]:
    return [
        document["id"], document["role"], body, document.get("length_class", ""), str(document.get("is_hard", "")),
        ";".join(document.get("subsets", [])), document.get("cluster", ""), document.get("language", ""),
        cell_of(document["expected"]["date"]), cell_of(document["expected"]["note"]),
    ]  # fmt: skip


def rows(body_column: str) -> list[list[str]]:
    header = ["id", "role", body_column, "length_class", "is_hard", "subsets", "cluster", "language", *HEADER[3:]]
    return [header, *(row(one, one["text"] if body_column == "text" else f"{one['id']}.txt") for one in DOCUMENTS)]


def frozen(folder: Path, documents: str, salt: Path | None) -> bytes:
    """Freeze the protocol over these documents and return the lock's bytes."""
    (folder / "protocol.toml").write_text(PROTOCOL.replace("DOCUMENTS", documents))
    (folder / "script.json").write_text('{"script_format": 1}')
    if salt is not None:
        shutil.copy(salt, folder / "protocol.salt")
    freeze(folder / "protocol.toml", campaign=None, clock=FakeClock())
    return (folder / "protocol.lock.json").read_bytes()


def test_the_same_documents_freeze_to_the_same_bytes_in_every_format(tmp_path: Path) -> None:
    lines, comma, semicolon, folder = (tmp_path / name for name in ("lines", "comma", "semicolon", "folder"))
    for place in (lines, comma, semicolon, folder / "texts"):
        place.mkdir(parents=True)
    (lines / "d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in DOCUMENTS))
    (comma / "d.csv").write_text(csv_text(rows("text")))
    (semicolon / "d.csv").write_bytes(
        b"\xef\xbb\xbf" + csv_text(rows("text"), ";").replace("\n", "\r\n").encode()
    )  # as a spreadsheet writes it
    for one in DOCUMENTS:
        (folder / "texts" / f"{one['id']}.txt").write_bytes(b"\xef\xbb\xbf" + one["text"].encode() + b"\r\n")
    (folder / "texts" / "documents.csv").write_text(csv_text(rows("file")))
    first = frozen(lines, "d.jsonl", None)
    salt = lines / "protocol.salt"
    assert json.loads(first)["protocol_id"]
    assert frozen(comma, "d.csv", salt) == first
    assert frozen(semicolon, "d.csv", salt) == first
    assert frozen(folder, "texts", salt) == first


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1258", "cp1252", "utf-16-le"])
def test_h08_a_label_file_is_read_in_utf8_alone_with_or_without_its_mark(tmp_path: Path, encoding: str) -> None:
    # Vietnamese that each of the encodings has characters for.
    text = csv_text([HEADER, ["a", "validation", "đây" if encoding != "cp1252" else "café", "null", "ê"]])
    raw = text.encode(encoding)
    found = read(tmp_path, raw)
    if encoding in ("utf-8", "utf-8-sig"):
        assert found.findings == []
        assert found.entries[0].document.text == "đây"
    else:
        (finding,) = found.findings
        assert (finding.rule, finding.file, found.entries) == ("encoding", tmp_path / "documents.csv", [])
        assert finding.line is not None
        assert "iconv" in finding.next_step
        assert "CSV UTF-8" in finding.next_step


def test_an_empty_cell_is_unlabelled_and_the_word_null_is_a_label(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        csv_text([HEADER, [*GOOD[:3], "null", "paid"], ["b", "test", "x\ny", "", " "], ["c", "test", "z", "null", ""]]),
    )
    (finding,) = found.findings
    assert (finding.rule, finding.line) == ("unlabelled", 3)
    assert "3 cells are not labelled yet, in 2 of 3 documents" in finding.message
    assert "document 'b', column `expected.date`" in finding.message
    assert "null" in finding.next_step
    assert found.entries[0].document.expected == {"date": None, "note": "paid"}
    assert [entry.line for entry in found.entries] == [2, 3, 5]


@pytest.mark.parametrize("word", ["NULL", "Null"])
def test_null_in_other_letters_is_refused_for_being_readable_in_two_ways(tmp_path: Path, word: str) -> None:
    finding = fault(tmp_path, csv_text([HEADER, [*GOOD[:4], word]]))
    assert (finding.rule, finding.line) == ("ambiguous-null", 2)
    assert "`expected.note`" in finding.message
    assert word in finding.message


@given(value=st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_expected_value_comes_back_from_its_cell_as_it_was(tmp_path: Path, value: str | None) -> None:
    # A text made of blanks is nobody's expected value: `check` refuses it in JSON-lines too.
    if value is not None and (not value.strip() or value.strip('" \n').lower() == "null" != value.lower()):
        return
    found = read(tmp_path, csv_text([HEADER, [*GOOD[:4], cell_of(value)]]))
    assert found.findings == []
    assert found.entries[0].document.expected["note"] == value


MANY = "word " * 40_000

BROKEN: dict[str, tuple[list[list[str]] | str, str, int | None, list[str]]] = {
    # what: (rows or text, rule, line, what the message says)
    "a role that is none": ([HEADER, ["a", "tset", *GOOD[2:]]], "wrong-type", 2, ["`role`", '"tset"']),
    "a blank id": ([HEADER, [" ", *GOOD[1:]]], "wrong-type", 2, ["`id`"]),
    "a length class that is none": (
        [[*HEADER, "length_class"], [*GOOD, "huge"]], "wrong-type", 2, ["`length_class`", '"huge"']),
    "a mark that is neither yes nor no": ([[*HEADER, "is_hard"], [*GOOD, "maybe"]], "wrong-type", 2, ['"maybe"']),
    "a misspelt column": ([[*HEADER, "langage"], [*GOOD, "vi"]], "unknown-column", 1, ["`langage`"]),
    "an expected column of no field": (
        [[*HEADER, "expected.amout"], [*GOOD, "1"]], "unknown-column", 1, ["`expected.amout`"]),
    "a column twice": ([[*HEADER, "id"], [*GOOD, "a"]], "duplicate-column", 1, ["`id`"]),
    "no column of the field": (
        [HEADER[:4], GOOD[:4]], "missing-column", 1, ["`expected.note`"]),
    "neither text nor file column": (
        [["id", "role", *HEADER[3:]], ["a", "test", "null", "null"]], "missing-column", 1, ["`text`", "`file`"]),
    "neither text nor file in a record": ([HEADER, ["a", "test", "", "null", "x"]], "text-or-file", 2, ['"a"']),
    "a record with more cells than the header": ([HEADER, [*GOOD, "x"]], "not-csv", 2, ["6 cells", "5"]),
    "a record with fewer cells than the header": ([HEADER, GOOD[:4]], "not-csv", 2, ["4 cells"]),
    "a fault behind a record of many lines": (
        [HEADER, [*GOOD[:2], "one\ntwo\n\nfour", *GOOD[3:]], ["b", "no", *GOOD[2:]]], "wrong-type", 6, ['"no"']),
    "a fault behind a text longer than the csv module's own limit": (
        [HEADER, [*GOOD[:2], MANY, *GOOD[3:]], ["b", "no", *GOOD[2:]]], "wrong-type", 3, ['"no"']),
    "a quote never closed": (
        csv_text([HEADER, GOOD]) + 'b,test,"open\nand on\nand on', "not-csv", 3, ["begins on line 3", "never closed"]),
    "a quote not doubled": (
        csv_text([HEADER, GOOD]) + 'b,test,"one\nsaid "two" there",null,null\n', "not-csv", 4, ["line 3"]),
    "candidates of a ranking": (
        [[*HEADER, "candidates"], [*GOOD, "x"]], "unknown-column", 1, ["rankings"]),
    "tabs": ("id\trole\ttext\n", "not-csv", 1, ["tabs"]),
    "nothing": ("", "not-csv", 1, ["empty"]),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_each_fault_names_the_file_the_records_line_the_column_and_the_value(tmp_path: Path, what: str) -> None:
    content, rule, line, said = BROKEN[what]
    found = read(tmp_path, content if isinstance(content, str) else csv_text(content))
    finding = next(one for one in found.findings if one.rule == rule)
    assert (finding.file, finding.line) == (tmp_path / "documents.csv", line)
    for words in said:
        assert words in finding.message
    assert finding.next_step


def test_a_misspelt_column_suggests_the_right_one(tmp_path: Path) -> None:
    assert "did you mean `language`" in fault(tmp_path, csv_text([[*HEADER, "langage"], [*GOOD, "vi"]])).next_step


def test_semicolons_in_every_record_do_not_hide_that_the_header_has_commas(tmp_path: Path) -> None:
    found = read(tmp_path, csv_text([HEADER, ["a", "test", "one; two; three; four; five; six", "null", "x"]]))
    assert found.findings == []
    assert found.entries[0].document.text == "one; two; three; four; five; six"


def test_empty_columns_and_lines_that_a_spreadsheet_leaves_are_passed_over(tmp_path: Path) -> None:
    found = read(tmp_path, csv_text([[*HEADER, "", ""], [*GOOD, "", ""]]) + ",,,,,,\n\n")
    assert (found.findings, len(found.entries)) == ([], 1)


def test_known_answers_are_separated_by_bars_and_an_empty_cell_is_unlabelled(tmp_path: Path) -> None:
    task = Task(kind="answers", prompt="{document}")
    header = ["id", "role", "text", "answers", "tolerance"]
    found = read(
        tmp_path, csv_text([header, ["a", "test", "2 + 2?", "4 | four", "0.5"], ["b", "test", "?", "", ""]]), task
    )
    assert found.entries[0].document.answers == ["4", "four"]
    assert found.entries[0].document.tolerance == "0.5"
    assert found.entries[1].document.tolerance is None
    (finding,) = found.findings
    assert (finding.rule, finding.line) == ("unlabelled", 3)


def test_a_file_that_is_absent_absolute_blank_or_no_text_is_a_fault_of_its_record(tmp_path: Path) -> None:
    header = ["id", "role", "file", *HEADER[3:]]
    (tmp_path / "blank.txt").write_text("\n \n")
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.7\n\xff\xfe\0")
    (tmp_path / "old.txt").write_bytes("été\ncafé".encode("cp1252"))
    names = ["absent.txt", str(tmp_path / "blank.txt"), "blank.txt", "scan.pdf", "old.txt"]
    found = read(tmp_path, csv_text([header, *([name, "test", name, "null", "x"] for name in names)]))
    assert found.entries == []
    assert [(one.rule, one.file.name, one.line) for one in found.findings] == [
        ("text-file", "documents.csv", 2), ("text-file", "documents.csv", 3), ("empty-text", "documents.csv", 4),
        ("encoding", "scan.pdf", None), ("encoding", "old.txt", 1),
    ]  # fmt: skip
    assert "absolute path" in found.findings[1].message
    assert "PDF" in found.findings[3].message
    assert "documents.csv line 6" in found.findings[4].message


def test_a_ranking_in_a_csv_file_is_refused_once_and_sent_to_json_lines(tmp_path: Path) -> None:
    text = PROTOCOL.replace("DOCUMENTS", "d.csv").replace('"extraction"', '"ranking"')
    head, _, rest = text.partition("[[task.field]]")
    rule = '[task.ranking]\nmetric = "ndcg"\nk = 10\naccept_from = "0.8"\n'
    text = (head + rule + rest[rest.index("[workload]") :]).replace("{document}", "{document} {candidates}")
    (tmp_path / "protocol.toml").write_text(text)
    (tmp_path / "script.json").write_text('{"script_format": 1}')
    (tmp_path / "d.csv").write_text("id,role,text\na,validation,one\nb,test,two\n")
    (finding,) = check_protocol(tmp_path / "protocol.toml")
    assert (finding.rule, finding.file.name) == ("ranking-format", "protocol.toml")
    assert "JSON-lines" in finding.next_step


def test_a_folder_is_read_by_its_sheet_and_texts_that_it_does_not_name_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.txt", "deep/b.md", ".hidden.txt", "notes.rst"):
        (folder / name).write_text(f"text of {name}\n")
    with pytest.raises(Refused, match=r"neither documents\.csv in it nor texts\.csv beside it"):
        read_documents(folder, TASK)
    header = ["id", "role", "file", *HEADER[3:]]
    (tmp_path / "texts.csv").write_text(csv_text([header, ["a", "test", "texts/a.txt", "null", "x"]]))
    found = read_documents(folder, TASK)
    assert [entry.document.text for entry in found.entries] == ["text of a.txt"]
    (finding,) = found.findings
    assert finding.rule == "unlisted-file"
    assert "b.md" in finding.message
    (folder / "documents.csv").write_text("id\n")
    with pytest.raises(Refused, match="two sheets"):
        read_documents(folder, TASK)


def trial_of_three_texts(folder: Path) -> Path:
    """Write a trial whose sheet names three texts of a folder beside it; return its protocol."""
    (folder / "texts" / "2025").mkdir(parents=True)
    names = ["texts/a.txt", "texts/b.txt", "texts/2025/c.md"]
    for name in names:
        (folder / name).write_text(f"paid: {name}\n")
    (folder / "texts.md").write_text("what lies beside the sheet is nobody's document\n")
    header = ["id", "role", "file", "expected.date", "expected.note"]
    rows = [[name, "validation", name, "null", "paid"] for name in names]
    (folder / "documents.csv").write_text(csv_text([header, *rows]))
    (folder / "protocol.toml").write_text(PROTOCOL.replace("DOCUMENTS", "documents.csv"))
    (folder / "script.json").write_text('{"script_format": 1}')
    assert check_protocol(folder / "protocol.toml") == []
    return folder / "protocol.toml"


@pytest.mark.parametrize("name", ["texts/b.txt", "texts/2025/c.md"])
def test_a_row_deleted_while_its_text_is_there_is_named_with_the_next_step(tmp_path: Path, name: str) -> None:
    protocol = trial_of_three_texts(tmp_path)
    sheet = tmp_path / "documents.csv"
    sheet.write_text("".join(line for line in sheet.read_text().splitlines(keepends=True) if name not in line))
    (finding,) = check_protocol(protocol)
    assert (finding.rule, finding.file) == ("unlisted-file", sheet)
    assert finding.message == f"no row of the sheet names the text file {tmp_path / name}"
    assert finding.next_step.startswith("add a row for it again, or move the file away")


def test_a_text_deleted_while_its_row_is_there_is_named_with_the_next_step(tmp_path: Path) -> None:
    protocol = trial_of_three_texts(tmp_path)
    (tmp_path / "texts" / "b.txt").unlink()
    (finding,) = check_protocol(protocol)
    assert (finding.rule, finding.file, finding.line) == ("text-file", tmp_path / "documents.csv", 3)
    assert '"texts/b.txt" does not exist' in finding.message
    assert "put the file back" in finding.next_step
    assert "or remove the row" in finding.next_step


def test_advice_about_a_sheet_speaks_of_columns_and_cells(tmp_path: Path) -> None:
    """Brackets and quotes of JSON are nothing that a spreadsheet has."""
    sheet = tmp_path / "documents.csv"
    gate = '[[gates.subset]]\nsubset = "critical"\nmin_accepted_percent = "60"\n[model]'
    text = PROTOCOL.replace("DOCUMENTS", "documents.csv").replace("[model]", gate)
    (tmp_path / "script.json").write_text('{"script_format": 1}')
    (tmp_path / "protocol.toml").write_text(text)
    for row, rule, said in (
        (["a", "validation", "x", "soon", "null"], "expected-value", "column `expected.date`: the cell is"),
        (["a", "validation", "x", "3/4/2026", "null"], "expected-ambiguous", "column `expected.date`: the cell is"),
        (["a", "validation", "x", "null", "null"], "empty-subset", "write critical into the column `subsets`"),
        (["a", "test", "x", "null", "null"], "empty-subset", "write validation into the column `role`"),
    ):
        sheet.write_text(csv_text([HEADER, row]))
        findings = check_protocol(tmp_path / "protocol.toml")
        (finding,) = [one for one in findings if one.rule == rule]
        assert said in str(finding)
        assert not any(sign in one.next_step for one in findings for sign in ('": ', "{", '["'))
