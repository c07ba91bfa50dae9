"""Read protocol.toml and its documents, with the line of everything that a message may point at."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.contract.errors import Finding, Refused
from collector.contract.protocol import DocumentLine, Protocol
from collector.contract.server_kinds import KINDS
from collector.contract.shape import nearest
from collector.contract.toml_lines import TomlText, read_toml
from collector.documents import DocumentsFile, read_documents

_WHY_MISSING = {
    "review": (
        "missing-review",
        'add review = "...": how the expected values were reviewed, by whom or what, and when',
    ),
    "permission": (
        "missing-permission",
        'add permission = "...": who permits this use of the documents, written where',
    ),
    "reference": ("missing-reference", 'add reference = "...": the name of the variant the others are compared with'),
}


_PLACE_OF_KEYS = re.compile(
    r"`(server(\[\d+\])?|engine\.server)(`|\.(key_env|headers|header_env|start|environment|url|body)\b)"
)
"""A server's table, and what may hold a key in it by mistake."""


class LoadedProtocol(NamedTuple):
    """A protocol of the right shape. `documents` are in the file's order; `document_lines` are their line numbers."""

    path: Path
    protocol: Protocol
    documents: list[DocumentLine]
    line_of: Callable[[str], int | None]
    documents_path: Path
    document_lines: list[int]


class ProtocolParts(NamedTuple):
    """As much of a protocol as could be read, and the findings about the rest."""

    path: Path
    text: TomlText | None
    protocol: Protocol | None
    documents: DocumentsFile | None
    findings: list[Finding]

    def loaded(self) -> LoadedProtocol:
        """Return the whole protocol. Raises Refused with every finding where there are any."""
        if self.findings or self.text is None or self.protocol is None or self.documents is None:
            raise Refused(self.findings)
        entries = self.documents.entries
        return LoadedProtocol(
            path=self.path,
            protocol=self.protocol,
            documents=[entry.document for entry in entries],
            line_of=self.text.line_of,
            documents_path=self.documents.path,
            document_lines=[entry.line for entry in entries],
        )


def load_protocol(path: Path) -> LoadedProtocol:
    """Return protocol.toml and its documents. Raises Refused with every finding about their shape."""
    return read_parts(path).loaded()


def read_parts(path: Path) -> ProtocolParts:
    """Return what can be read of a protocol: a fault in one file does not hide the faults of the other."""
    try:
        text = read_toml(path)
    except Refused as refused:
        return ProtocolParts(path, None, None, None, refused.findings)
    findings = [_explained(finding) for finding in text.findings(Protocol)]
    protocol = None if findings else msgspec.convert(text.data, Protocol)
    documents: DocumentsFile | None = None
    workload = text.data.get("workload")
    name = workload.get("documents") if isinstance(workload, dict) else None
    if isinstance(name, str) and name:
        try:
            documents = read_documents(path.parent / name, protocol.task if protocol is not None else None)
            findings += documents.findings
            if documents.is_sheet and protocol is not None and protocol.task.kind == "ranking":
                message = f"`workload.documents` is {name!r}, and a ranking's documents cannot be written in a CSV file"
                step = "write them as JSON-lines, with candidates and relevance"
                findings.append(Finding(path, text.line_of("workload.documents"), "ranking-format", message, step))
        except Refused as refused:
            line = text.line_of("workload.documents")
            findings += [
                finding._replace(file=path, line=line, message=f"{finding.file}: {finding.message}")
                for finding in refused.findings
            ]
    return ProtocolParts(path, text, protocol, documents, findings)


def _explained(finding: Finding) -> Finding:
    """Say why the three statements without which nothing may run are asked for, and what a server's words mean here."""
    if finding.rule == "wrong-type" and (next_step := _meant(finding.message)) is not None:
        return finding._replace(next_step=next_step)
    if finding.rule == "wrong-type" and _PLACE_OF_KEYS.match(finding.message):
        message = finding.message.partition(", found ")[0]
        return finding._replace(message=f"{message}; what was found is not repeated, since it may hold a key")
    for name, (rule, next_step) in _WHY_MISSING.items():
        is_absent = finding.rule == "missing-field" and finding.message.endswith(f" has no `{name}`")
        is_empty = finding.rule == "wrong-type" and f".{name}`: " in finding.message and finding.message.endswith('""')
        if is_absent or is_empty:
            return finding._replace(rule=rule, next_step=next_step)
    return finding


def _meant(message: str) -> str | None:
    """Return the next step where a word of servers stands in another place than it belongs; null elsewhere."""
    place, _, found = message.partition("`: ")
    word = found.rpartition("found ")[2].strip('"').lower()
    kind = nearest(re.sub(r"[ ._-]", "", word), list(KINDS))
    if place == "`engine.name" and kind not in (None, "transformers", "other"):
        return f'write name = "openai" and, under [engine.server], kind = "{kind}" with its start or url'
    if place.endswith(".kind") and place.startswith(("`server", "`engine.server")) and kind is None:
        return f'write one of {", ".join(KINDS)}; "other" is any gateway or server with an OpenAI interface'
    if place.startswith(("`plan.concurrencies[", "`plan.batches[")) and found.endswith(("found 1", "found 0")):
        return "leave it out: every variant is measured one at a time anyway; write what is to be measured beside that"
    return None
