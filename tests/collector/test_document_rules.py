"""Rules about documents that need many of them."""

from __future__ import annotations

from pathlib import Path

from collector.contract.protocol import DocumentLine
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
