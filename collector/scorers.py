"""The user's own scorer: asked in a process of its own, once per pass, when nothing is measured any more.

It reads one JSON object per line on stdin, one per document: document_id, text, expected (what the documents file says
of it), answer (null where there was none), finish_reason. It writes one verdict per line on stdout, in any order:
document_id, is_accepted, and optionally graded_value (0 to 1), is_readable (false: no answer could be told),
fields_right and fields_wrong (names), or instead of them `error` with the reason why this document cannot be judged.
Before a run measures, it is called once without documents, and must end with exit code 0.

A Python entry point `module:function` is called with such an object as a dict and returns a bool or a dict of the same
keys; `scorer_child` puts it behind the same lines.

What has no verdict has no score: a crash, an exit code other than 0, a timeout, a missing, repeated or malformed
verdict is a failure of the document and never a zero.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from collector.contract.digests import JsonValue
from collector.contract.errors import DossierError
from collector.contract.judging import Given, Verdict
from collector.contract.judging.verdict import unanswered, unread
from collector.contract.protocol import DocumentLine, Scorer
from collector.contract.records import Request
from collector.lock import scorer_digest
from collector.processes import CommandEnd, run_command

RunCommand = Callable[..., CommandEnd]
_SHOWN = 2_000


class VerdictLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a scorer's output."""

    document_id: str
    is_accepted: bool | None = None
    graded_value: Annotated[float, Meta(ge=0, le=1)] | None = None
    is_readable: bool = True
    fields_right: list[str] = []
    fields_wrong: list[str] = []
    error: str | None = None


class Asked(NamedTuple):
    """One request to judge, and its answer's text."""

    request: Request
    answer: str | None


class Judged(NamedTuple):
    """What a scorer said. verdicts and faults together hold every document asked for, each once.

    faults: document id -> why it has no verdict. stray: lines that are about no document asked for.
    """

    verdicts: dict[str, Verdict]
    faults: dict[str, str]
    exit_code: int | None
    stray: list[str]


class UserScorer:
    """Calls the scorer of a protocol; `files_sha256` is what its files were frozen as."""

    def __init__(
        self, scorer: Scorer, *, files_sha256: str, base_dir: Path, run_command: RunCommand = run_command
    ) -> None:
        self._scorer, self._files_sha256, self._base_dir, self._run = scorer, files_sha256, base_dir, run_command

    def require_working(self) -> None:
        """Call it without documents. Raises DossierError where it cannot be started or does not end well."""
        if (fault := self._call([]).fault) is not None:
            raise DossierError(
                f"the scorer does not work, and nothing was measured: {fault}",
                next_step=f"run it by hand in {self._base_dir} with empty input until it ends with exit code 0: "
                f"{shlex.join(self._command())}",
            )

    def judge(self, asked: Sequence[Asked], documents: Mapping[str, DocumentLine]) -> Judged:
        """Return a verdict or a fault for every request, whatever the scorer does.

        A request that never got an answer (failed, too long) is not put to it: that outcome stands already.
        """
        verdicts: dict[str, Verdict] = {}
        open_requests: dict[str, Asked] = {}
        for one in asked:
            outcome = unanswered(_given(one))
            if outcome in ("failed", "too_long"):
                verdicts[one.request.document_id] = unread(outcome)
            else:
                open_requests[one.request.document_id] = one
        if not open_requests:
            return Judged(verdicts, {}, None, [])
        called = self._call([_line(one, documents[name]) for name, one in open_requests.items()])
        if called.fault is not None:
            return Judged(verdicts, dict.fromkeys(open_requests, called.fault), called.exit_code, [])
        said = _read(called.lines, open_requests)
        return said._replace(verdicts=verdicts | said.verdicts)

    def _call(self, lines: list[dict[str, JsonValue]]) -> _Called:
        try:
            if scorer_digest(self._base_dir, self._scorer.files) != self._files_sha256:
                return _Called([], None, "the scorer's files are no longer those that were frozen")
        except OSError as error:
            return _Called([], None, f"{error.filename} cannot be read: {error.strerror}")
        sent = "".join(json.dumps(line) + "\n" for line in lines).encode("ascii")
        try:
            end = self._run(self._command(), cwd=self._base_dir, sent=sent, timeout_s=self._scorer.timeout_s)
        except OSError as error:
            return _Called([], None, f"{self._command()[0]} cannot be started: {error.strerror}")
        if end.exit_code is None:
            return _Called([], None, f"no end within {self._scorer.timeout_s:g} s\n{_tail(end.errors)}")
        if end.exit_code != 0:
            return _Called([], end.exit_code, f"exit code {end.exit_code}\n{_tail(end.errors)}")
        return _Called(end.output.split(b"\n"), 0, None)

    def _command(self) -> list[str]:
        if self._scorer.entry_point is None:
            return self._scorer.command
        return [sys.executable, "-P", "-m", "collector.scorer_child", self._scorer.entry_point]


class _Called(NamedTuple):
    lines: list[bytes]
    exit_code: int | None
    fault: str | None


def _line(one: Asked, document: DocumentLine) -> dict[str, JsonValue]:
    return {
        "document_id": document.id, "text": document.text, "expected": expected_of(document), "answer": one.answer,
        "finish_reason": one.request.finish_reason,
    }  # fmt: skip


def expected_of(document: DocumentLine) -> dict[str, JsonValue]:
    """Return what a documents file says is expected of a document, in its own words for the kind."""
    if document.candidates:
        return {"candidates": {**document.candidates}, "relevance": {**document.relevance}}
    if document.answers:
        return {"answers": [*document.answers], "tolerance": document.tolerance}
    return {**document.expected}


def _given(one: Asked) -> Given:
    return Given(one.answer, one.request.finish_reason, one.request.request_outcome)


def _read(lines: Sequence[bytes], asked: Mapping[str, Asked]) -> Judged:
    found: dict[str, list[VerdictLine | str]] = {}
    stray: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        document_id, said = _decoded(line)
        if document_id in asked:
            found.setdefault(document_id, []).append(said)
        else:
            shown = line[:200].decode("utf-8", "backslashreplace")
            stray.append(f"line {number} of the scorer's output is about no document that was asked for: {shown}")
    verdicts: dict[str, Verdict] = {}
    faults: dict[str, str] = {}
    for name, one in asked.items():
        fault, verdict = _one(found.get(name, []), _given(one))
        if verdict is not None:
            verdicts[name] = verdict
        else:
            faults[name] = f"{fault}\n{stray[0]}" if stray and name not in found else fault
    return Judged(verdicts, faults, 0, stray)


def _decoded(line: bytes) -> tuple[str, VerdictLine | str]:
    """Return the document a line is about (empty where it does not say) and its verdict, or what is wrong with it."""
    try:
        verdict = msgspec.json.decode(line, type=VerdictLine)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return _document_of(line), f"the scorer's verdict is malformed: {error}"
    return verdict.document_id, verdict


def _document_of(line: bytes) -> str:
    try:
        value: Any = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    name = value.get("document_id") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""


def _one(said: list[VerdictLine | str], given: Given) -> tuple[str, Verdict | None]:
    if not said:
        return "the scorer gave no verdict", None
    if len(said) > 1:
        return f"the scorer gave {len(said)} verdicts", None
    (verdict,) = said
    if isinstance(verdict, str):
        return verdict, None
    if verdict.error is not None:
        return f"the scorer could not judge it: {verdict.error}", None
    if verdict.is_accepted is None:
        return "the scorer's verdict does not say is_accepted", None
    if verdict.is_accepted and not verdict.is_readable:
        return "the scorer accepts an answer that it calls not readable", None
    return "", _verdict(verdict, given)


def _verdict(said: VerdictLine, given: Given) -> Verdict:
    """An answer that is not accepted keeps the cause that stands before its content: nothing there, or cut off."""
    read = Verdict(
        "right" if said.is_accepted else "wrong", bool(said.is_accepted), said.is_readable, said.fields_right,
        said.fields_wrong, 0, 0, said.graded_value,
    )  # fmt: skip
    if said.is_accepted:
        return read
    if unanswered(given) == "empty":
        return read._replace(score_outcome="empty", is_well_formed=False)
    if not said.is_readable:
        return read._replace(score_outcome="truncated" if given.is_cut else "unparseable")
    return read


def _tail(errors: bytes) -> str:
    return errors[-_SHOWN:].decode("utf-8", "backslashreplace").strip()
