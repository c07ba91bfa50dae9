"""Everything about a protocol that can be refused before money is spent, all findings at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from collector.campaign_draft import CAMPAIGN, mark_notices
from collector.capture_rules import capture_findings
from collector.continuous_rules import continuous_findings, model_findings
from collector.contract.errors import DossierError, Finding, Refused
from collector.contract.protocol import Protocol
from collector.corpus_statistics import summary_lines
from collector.document_rules import document_findings
from collector.embedding_rules import embedding_findings
from collector.expected_in_text import expected_notices
from collector.judging_rules import judging_findings, unreachable_findings
from collector.lock import drift_findings, lock_path
from collector.prompt_fit import prompt_lengths
from collector.protocol_file import LoadedProtocol, ProtocolParts, load_protocol, read_parts
from collector.protocol_rules import protocol_findings
from collector.server_rules import rate_findings, server_findings
from collector.variant_rules import package_findings, quantization_findings

_TOLD_OF_SHEETS = ("expected-missing", "expected-unknown-field", "candidates", "no-relevant-candidate")
"""A sheet has said already, once for a whole column or file: what is not labelled, no field, or not for a CSV file."""


class CheckReport(NamedTuple):
    """What was looked at. Token counts are null where they were not asked for or the engine does not know them."""

    findings: list[Finding]
    protocol: Protocol | None
    role_counts: dict[str, int]
    longest_prompt_tokens: int | None
    context_limit_tokens: int | None
    is_frozen: bool
    corpus: list[str]
    """What the documents are made of, a line per property."""
    notices: Sequence[Finding] = ()
    """What is refused by nothing and should be read: placeholders, and expected values that look mistyped."""

    @property
    def is_embedding(self) -> bool:
        """True where each text is embedded by itself, so that the longest text counts and not a prompt."""
        return self.protocol is not None and self.protocol.engine.answers_by == "embedding"


def check_protocol(path: Path, *, with_tokenizer: bool = True) -> list[Finding]:
    """Return every finding about a protocol, its documents, its prompts' lengths and its lock; empty if all is well."""
    return examine(path, with_tokenizer=with_tokenizer).findings


def examine(path: Path, *, with_tokenizer: bool = True, with_lock: bool = True) -> CheckReport:
    """Check a protocol and say what was found in it.

    `with_lock` compares it with its lock where there is one. Where the shape of a file is broken, the rules about the
    other file are still applied; lengths and lock are looked at only when nothing else is wrong.
    """
    parts = read_parts(path)
    findings = [*parts.findings, *_rule_findings(parts)]
    entries = parts.documents.entries if parts.documents is not None else []
    roles: Counter[str] = Counter(entry.document.role for entry in entries)
    longest = limit = None
    is_frozen = lock_path(path).exists()
    if not findings:
        loaded = parts.loaded()
        if with_tokenizer:
            longest, limit, findings = prompt_lengths(loaded)
            findings += package_findings(loaded)
            findings += model_findings(loaded, longest)
        if with_lock and is_frozen:
            findings = [*findings, *_lock_findings(loaded)]
    corpus = summary_lines([entry.document for entry in entries])
    notices = [*_expected_notices(parts), *mark_notices(path.parent / CAMPAIGN)]
    return CheckReport(findings, parts.protocol, dict(roles), longest, limit, is_frozen, corpus, notices)


def _expected_notices(parts: ProtocolParts) -> list[Finding]:
    if parts.protocol is None or parts.documents is None:
        return []
    documents = parts.documents
    return expected_notices(documents.path, documents.entries, parts.protocol.task, is_sheet=documents.is_sheet)


def _rule_findings(parts: ProtocolParts) -> list[Finding]:
    findings: list[Finding] = []
    is_sheet = parts.documents is not None and parts.documents.is_sheet
    documents = [entry.document for entry in parts.documents.entries] if parts.documents else None
    has_all_documents = parts.documents is not None and not parts.documents.findings
    if parts.protocol is not None and parts.text is not None:
        findings += protocol_findings(
            parts.path,
            parts.protocol,
            documents if has_all_documents else None,
            parts.text.line_of,
            is_sheet=is_sheet,
        )
        findings += quantization_findings(parts.path, parts.protocol, parts.text.line_of)
        findings += embedding_findings(parts.path, parts.protocol, parts.text.line_of)
        findings += server_findings(parts.path, parts.protocol, parts.text.line_of)
        if has_all_documents and documents is not None:
            findings += rate_findings(parts.path, parts.protocol, documents, parts.text.line_of)
        findings += continuous_findings(parts.path, parts.protocol, parts.text.line_of)
        findings += capture_findings(parts.path, parts.protocol, parts.text.line_of)
        findings += judging_findings(parts.path, parts.protocol.task, parts.text.line_of)
    if parts.documents is not None:
        task = parts.protocol.task if parts.protocol is not None else None
        found = document_findings(parts.documents.path, parts.documents.entries, task, is_sheet=is_sheet)
        if task is not None and task.ranking is not None and task.kind == "ranking":
            found += unreachable_findings(parts.documents.path, parts.documents.entries, task.ranking)
        told = _TOLD_OF_SHEETS if is_sheet else ()
        findings += [finding for finding in found if finding.rule not in told]
    return findings


def _lock_findings(loaded: LoadedProtocol) -> list[Finding]:
    try:
        return drift_findings(loaded)
    except Refused as refused:
        return refused.findings
    except DossierError as fault:
        return [Finding(lock_path(loaded.path), None, "lock", fault.message, fault.next_step)]


__all__ = ["CheckReport", "LoadedProtocol", "check_protocol", "examine", "load_protocol"]
