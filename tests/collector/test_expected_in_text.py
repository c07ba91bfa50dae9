"""Notices about expected values: what a document holds in no form, and what reads twice; and no false alarms."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from collector.contract.protocol import DocumentLine, FieldRule, Protocol, Task
from collector.documents import NumberedDocument, read_documents
from collector.expected_in_text import MOST_NOTICES_PER_FIELD, expected_notices
from collector.starter import starter_text

FIELDS = [
    FieldRule(name="date", type="date"),
    FieldRule(name="amount", type="money"),
    FieldRule(name="number", type="text"),
    FieldRule(name="category", type="label", labels=["travel", "food"]),
]
TASK = Task(kind="extraction", prompt="{document}", fields=FIELDS)
PATH = Path("documents.csv")


def entry(text: str, *, at: int = 4, **expected: str | None) -> NumberedDocument:
    return NumberedDocument(at, DocumentLine(id="b", role="validation", text=text, expected=expected))


def rules(text: str, **expected: str | None) -> list[str]:
    document = DocumentLine(id="b", role="validation", text=text, expected=expected)
    return [notice.rule for notice in expected_notices(PATH, [NumberedDocument(4, document)], TASK)]


@pytest.mark.parametrize(
    "text",
    [
        "Date: 03/04/2026", "04/03/26", "03.04.2026.", "(2026-04-03)", "2026-04-03T12:00", "dated 20260403",
        "3. April 2026", "Friday, April 3rd, 2026, noon", "3 de abril de 2026", "ngày 3 tháng 4 năm 2026",
        "3 Nisan 2026", "日付2026年4月3日",
        "\uff13/\uff14/\uff12\uff10\uff12\uff16",
        "3 kwietnia 2026 r.", "2026. április 3.", "due 1.2.2026, paid 3.4.2026",
    ],
)  # fmt: skip
def test_a_date_is_found_however_the_document_writes_it(text: str) -> None:
    assert rules(text, date="2026-04-03") == []


@pytest.mark.parametrize(
    "text",
    [
        "Date: 03/05/2026",
        "2026-04-04",
        "4 April 2026",
        "April 2026, page 4",
        "none",
        "Bill 3\nDate: 3 May 2026\nTotal: 3.00",
        "2026 Total 3",
    ],
)
def test_a_date_that_the_document_does_not_hold_is_noticed(text: str) -> None:
    assert rules(text, date="2026-04-03") == ["expected-not-in-text"]


@pytest.mark.parametrize(
    "text",
    [
        "Total 1.234,50 EUR", "EUR1,234.50", "1 234,50", "1'234.50 CHF", "Sum........1234.5", "$1,234.50", "-1234.50",
        "7 1234.50", "Qty 2 1 234.50", "1\u202f234,50 €", "Total:1234,50", "No.1234.50",
    ],
)  # fmt: skip
def test_an_amount_is_found_however_the_document_writes_it(text: str) -> None:
    assert rules(text, amount="1234.50") == []


@pytest.mark.parametrize("text", ["Total 1.243,50 EUR", "Total 12345.0", "Total 1234", "nothing"])
def test_an_amount_that_the_document_does_not_hold_is_noticed(text: str) -> None:
    assert rules(text, amount="1234.50") == ["expected-not-in-text"]


def test_a_text_is_looked_for_without_case_and_kinds_of_blanks_and_a_label_never() -> None:
    assert rules("Invoice\nab - 12", number="AB\u00a0- 12", category="food") == []
    assert rules("Invoice AB-13", number="AB-12", category="food", date=None) == ["expected-not-in-text"]


def test_a_notice_names_document_field_and_value_with_its_line_and_in_a_sheet_the_column() -> None:
    lines = [entry("Total 12.00", amount="12.50")]
    (of_lines,) = expected_notices(PATH, lines, TASK)
    (of_sheet,) = expected_notices(PATH, lines, TASK, is_sheet=True)
    assert (of_lines.file, of_lines.line) == (PATH, 4)
    assert of_lines.message.startswith("document 'b': the expected 'amount' is \"12.50\", which does not occur")
    assert of_sheet.message.startswith("document 'b', column `expected.amount`: the cell is \"12.50\", which does not")
    assert "no model can be right" in of_lines.next_step


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1.200", "1200 or 1.2? It is read as 1200"),
        ("1,200", "1200 or 1.2? It is read as 1200"),
        ("0.500", None), ("1.20", None), ("1200", None), ("1.200,00", None), ("1.200 EUR", None), ("1.200 KWD", None),
        ("1.200.000", None), ("1 200", None),
    ],
)  # fmt: skip
def test_an_amount_that_reads_twice_is_named_with_the_way_it_is_read(value: str, said: str | None) -> None:
    notices = expected_notices(PATH, [entry(f"Total {value}", amount=value)], TASK)
    assert [notice.rule for notice in notices] == (["expected-ambiguous"] if said else [])
    if said:
        assert said in notices[0].message
        assert "'1200' or '1.20'" in notices[0].next_step


def test_of_one_field_ten_notices_and_a_count_are_told() -> None:
    many = [entry("none", at=line, amount="5.00") for line in range(2, 40)]
    notices = expected_notices(PATH, many, TASK)
    assert len(notices) == MOST_NOTICES_PER_FIELD + 1
    assert "in 28 more document(s)" in notices[-1].message


@pytest.mark.parametrize("kind", ["extraction", "answers"])
def test_the_starters_documents_raise_no_notice(tmp_path: Path, kind: str) -> None:
    task = msgspec.convert(tomllib.loads(starter_text("protocol.toml", kind)), Protocol).task
    path = tmp_path / "documents.jsonl"
    path.write_text(starter_text("documents.jsonl", kind), encoding="utf-8")
    documents = read_documents(path)
    assert len(documents.entries) > 20
    assert expected_notices(path, documents.entries, task) == []
