"""Rules about documents that need many of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.contract.protocol import DocumentLine, FieldRule, Task
from collector.contract.records import MAX_LINE_BYTES
from collector.document_rules import document_findings
from collector.documents import NumberedDocument


def entries(count: int, id_length: int) -> list[NumberedDocument]:
    return [
        NumberedDocument(
            index + 1,
            DocumentLine(id=f"{index:0{id_length}}", role="validation", text=f"text {index}", expected={}),
        )
        for index in range(count)
    ]


def test_ids_that_fill_a_record_are_refused_before_a_run_would_break_on_them() -> None:
    """A pass names its documents in one line of under 1 MB: 2,000 with short ids are far from it."""
    assert document_findings(Path("documents.jsonl"), entries(2_000, 20), None) == []
    (finding,) = document_findings(Path("documents.jsonl"), entries(MAX_LINE_BYTES // 200, 200), None)
    assert (finding.rule, finding.next_step) == ("too-many-documents", "use shorter ids, or several protocols")


def test_a_label_that_is_none_is_answered_with_the_likely_one_and_all_the_known_ones() -> None:
    rule = FieldRule(name="category", type="label", labels=["travel", "food", "office"])
    task = Task(kind="extraction", prompt="{document}", fields=[rule])
    for value, step in (
        ("travle", "did you mean 'travel'? the labels are travel, food, office"),
        ("7", "the labels are travel, food, office"),
    ):
        line = DocumentLine(id="d", role="validation", text="text", expected={"category": value})
        (finding,) = document_findings(Path("documents.jsonl"), [NumberedDocument(1, line)], task)
        assert (finding.rule, finding.next_step) == ("expected-label", step)


@pytest.mark.parametrize(
    ("value", "is_refused"),
    [("3/4/2026", True), ("03-04-2026", True), ("3/13/2026", False), ("3.4.2026", False), ("2026-04-03", False)],
)
def test_an_expected_date_that_reads_both_ways_is_refused_whatever_the_protocol_says(
    value: str, is_refused: bool
) -> None:
    task = Task(kind="extraction", prompt="{document}", fields=[FieldRule(name="date", type="date")])
    document = DocumentLine(id="r2", role="validation", text="a bill", expected={"date": value})
    found = document_findings(Path("d.csv"), [NumberedDocument(5, document)], task)
    assert [(f.rule, f.line) for f in found] == ([("expected-ambiguous", 5)] if is_refused else [])
