"""JSON-lines documents: every bad line reported, the good ones kept; prompts made without interpreting the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collector.contract.errors import Refused
from collector.contract.protocol import DocumentLine, Example, FieldRule, Task
from collector.documents import read_documents, render_prompt

GOOD = {"id": "a", "role": "validation", "text": "Hóa đơn", "expected": {"date": "2026-04-03"}}


def line(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}, ensure_ascii=False).encode()


def without(key: str) -> bytes:
    return json.dumps({name: value for name, value in GOOD.items() if name != key}).encode()


@pytest.mark.parametrize(
    ("raw", "rule", "said"),
    [
        (b'{"id": "a"', "not-json", "column"),
        (b"id,role,text", "not-json", "column"),
        (line() + b" " + line(), "not-json", "Extra data"),
        (b"[1]", "wrong-type", "[1]"),
        (b'{"id": "a", "id": "b"}', "duplicate-key", '"id"'),
        (b'{"expected": {"d": "1", "d": "2"}}', "duplicate-key", '"d"'),
        (b'{"id": NaN}', "not-json", "NaN"),
        (b"[" * 100_000, "not-json", "nested"),
        (without("text"), "missing-field", "`text`"),
        (without("role"), "missing-field", "`role`"),
        (line(role="validaton"), "wrong-type", '"validaton"'),
        (line(id=7), "wrong-type", "found 7"),
        (line(id=""), "wrong-type", '""'),
        (line(text=""), "wrong-type", '""'),
        (line(expected={"date": 20260403}), "wrong-type", "20260403"),
        (line(subset=["x"]), "unknown-field", "`subset`"),
        (line(is_hard="yes"), "wrong-type", '"yes"'),
        (line(length_class="huge"), "wrong-type", '"huge"'),
        (b"\xef\xbb\xbf" + line(), "encoding", "byte-order mark"),
        (line().decode().encode("utf-16"), "encoding", "UTF-16"),
        (b'{"id": "caf\xe9"}', "encoding", "0xe9"),
        (b'{"id": "a", "role": "validation", "text": "\\ud83d", "expected": {}}', "encoding", "other half"),
    ],
)
def test_a_bad_line_is_reported_and_the_good_ones_are_kept(tmp_path: Path, raw: bytes, rule: str, said: str) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_bytes(b"\n" + line(id="first") + b"\r\n" + raw + b"\n" + line(id="last"))
    found = read_documents(path)
    assert [(entry.line, entry.document.id) for entry in found.entries][:1] == [(2, "first")]
    assert found.entries[-1].document.id == "last"
    assert {(finding.file, finding.line, finding.rule) for finding in found.findings} == {(path, 3, rule)}
    assert said in "".join(finding.message for finding in found.findings)
    assert all(finding.next_step for finding in found.findings)


def test_a_whole_file_in_utf16_is_one_finding(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_bytes((line() + b"\n" + line(id="b") + b"\n").decode().encode("utf-16"))
    assert [finding.rule for finding in read_documents(path).findings] == ["encoding"]


def test_a_misspelt_key_suggests_the_right_one(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_bytes(line(langage="vi"))
    (finding,) = read_documents(path).findings
    assert "did you mean `language`" in finding.next_step


def test_an_escaped_pair_of_halves_is_one_character(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_bytes(b'{"id": "a", "role": "test", "text": "\\ud83d\\ude00", "expected": {}}')
    assert read_documents(path).entries[0].document.text == "😀"


def test_a_byte_order_mark_before_the_first_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line())
    found = read_documents(path)
    assert (found.findings, [entry.document.id for entry in found.entries]) == ([], ["a"])


@pytest.mark.parametrize("name", ["documents.xlsx", "documents.tsv"])
def test_a_spreadsheets_own_file_is_refused_with_the_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(Refused, match="save it as CSV in UTF-8"):
        read_documents(tmp_path / name)


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no such file"):
        read_documents(tmp_path / "absent.jsonl")


@pytest.mark.parametrize("text", ["{document}", "{0} {x} {{", '{"a": 1}', "%s \\1 $x"])
def test_a_documents_text_goes_into_the_prompt_as_it_is(text: str) -> None:
    task = Task(
        kind="extraction",
        prompt='Fill {"date": ...}: {document}!',
        system="s",
        fields=[FieldRule(name="d", type="date")],
    )
    prompt = render_prompt(task, DocumentLine(id="a", role="test", text=text, expected={}))
    assert (prompt.document_id, prompt.system, prompt.user) == ("a", "s", 'Fill {"date": ...}: ' + text + "!")


def test_a_worked_example_is_put_through_the_same_prompt_as_a_document() -> None:
    task = Task(kind="answers", prompt="Q: {document}", examples=[Example(document="1+1? {document}", answer="2")])
    prompt = render_prompt(task, DocumentLine(id="a", role="test", text="2+2?", answers=["4"]))
    assert prompt.user == "Q: 2+2?"
    assert [(turn.user, turn.answer) for turn in prompt.examples] == [("Q: 1+1? {document}", "2")]
