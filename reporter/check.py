"""`reporter check`: contract, chain, completeness, invariants between records, texts, steps; breaks with file:line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.contract import chain
from collector.contract.campaign_file import read_campaign
from collector.contract.digests import text_hmac
from collector.contract.errors import ExitCode, Finding, Refused
from collector.contract.protocol import Lock, documents_digest, lock_digests, rule_digest
from collector.contract.texts import TextsHeader, decode_text, texts_path

from .check_steps import steps_findings
from .load import Store, open_records, two_contents
from .locks import stored_documents
from .rejudged import RULES as REJUDGED
from .sql_files import CHECKS, check_file

_EDITED = "restore the file from a copy; a line changed after writing is no evidence"
_WRITER = "mend the program that wrote the run"
_TEXTS = "restore the texts file from a copy, or delete it: the records stand without it"


class CheckReport(NamedTuple):
    """What is wrong with the files (findings), what a reader should know (flags), and what they are.

    open_files have no valid seal: nothing protects their last lines from being cut.
    """

    files: list[chain.FileReport]
    open_files: list[Path]
    findings: list[Finding]
    flags: list[Finding]

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.FINDINGS if self.findings else ExitCode.FINE


def check(paths: Sequence[Path], *, cache_dir: Path | None = None) -> CheckReport:
    """Check the run files of the paths and, where they lie beside them, texts and steps.

    Raises DossierError where a path does not exist, holds no run file or cannot be read.
    """
    with open_records(paths, cache_dir=cache_dir) as store:
        findings: list[Finding] = []
        flags: list[Finding] = []
        for report in store.files:
            for line, problem in report.problems:
                found = Finding(report.path, line, problem.rule, problem.message, problem.next_step)
                (flags if problem.is_notice else findings).append(found)
            if report.header is not None:
                findings += _header(store, report)
        findings += _rules(store)
        findings += _protocols(store)
        for unused in store.unused:
            found = Finding(unused.report.path, 1, unused.rule, unused.message, REJUDGED[unused.rule])
            (flags if unused.rule == "judged-again-later" else findings).append(found)
        for rule in CHECKS:
            (findings if check_file(rule).is_finding else flags).extend(_between_records(store, rule))
        findings += two_contents(store)
        flags += _duplicates(store)
        for report in store.files:
            texts = texts_path(report.path)
            if texts.exists() and report.run_id is not None:
                findings += _texts(texts, report.run_id)
                flags += _absent_texts(store, report, texts)
            wrong, gone = steps_findings(store, report)
            findings += wrong
            flags += gone
        return CheckReport(
            files=store.files, open_files=store.open_files, findings=sorted(findings, key=_place),
            flags=sorted(flags, key=_place),
        )  # fmt: skip


def check_campaign(path: Path) -> list[Finding]:
    """Return what is wrong with a campaign file, each with its line. Raises Refused where it cannot be read at all."""
    try:
        read_campaign(path)
    except Refused as refused:
        if any(finding.rule == "unreadable" for finding in refused.findings):
            raise
        return refused.findings
    return []


def _place(finding: Finding) -> tuple[str, int, str, str]:
    return (str(finding.file), finding.line or 0, finding.rule, finding.message)


def _between_records(store: Store, rule: str) -> Iterator[Finding]:
    file = check_file(rule)
    paths = {report.run_id: report.path for report in reversed(store.files)}
    for run_id, seq, message in store.con.execute(file.text).fetchall():
        # a line whose run_id was changed belongs to no file here; the chain has named it
        if run_id in paths:
            # the chain keeps seq and line together: line 1 has seq 0
            yield Finding(paths[run_id], seq + 1, rule, message, file.next_step)


def _header(store: Store, report: chain.FileReport) -> Iterator[Finding]:
    """Yield where a run contradicts the lock that its own header carries."""
    header = report.header
    assert header is not None
    try:
        lock = msgspec.json.decode(header.protocol_json, type=Lock)
    except msgspec.MsgspecError as error:
        yield Finding(report.path, 1, "protocol-json", f"the header holds no readable lock: {error}", _WRITER)
        return
    ids = tuple(lock_digests(header.protocol_json))
    if (header.protocol_id, header.plan_id) != ids or (lock.protocol_id, lock.plan_id) != ids:
        message = f"protocol_id {header.protocol_id[:12]}… or plan_id is not the digest of the lock in the header"
        yield Finding(report.path, 1, "protocol-digest", message, _EDITED)
    documents = stored_documents(store, report)
    if documents_digest(documents) != lock.trial.documents_digest:
        message = f"the run's {len(documents)} document records are not the documents that the protocol was frozen with"
        yield Finding(report.path, 1, "documents-digest", message, _EDITED)


def _rules(store: Store) -> Iterator[Finding]:
    """Yield the scores of each file, as they stand in it, that were not judged by the rules in its own header."""
    for report in store.files:
        try:
            lock = msgspec.json.decode(report.header.protocol_json if report.header else b"", type=Lock)
        except msgspec.MsgspecError:
            continue  # told already
        wanted = rule_digest(lock.trial)
        rows = store.con.execute(
            "select min(seq), rule_digest, count(*) from records where kind = 'score' and run_id = ? "
            "and rule_digest <> ? group by rule_digest order by min(seq)",
            [report.run_id, wanted],
        ).fetchall()
        for seq, digest, count in rows:
            message = f"{count} score(s) were judged by rules {digest[:12]}…, the protocol has {wanted[:12]}…"
            yield Finding(report.path, seq + 1, "other-rules", message, "judge the run by the protocol's own rules")


def _protocols(store: Store) -> Iterator[Finding]:
    """Yield every file whose protocol is not that of the earliest run: such runs are never pooled."""
    runs = [report for report in store.runs if report.header is not None]
    ordered = sorted(runs, key=lambda r: (r.header.wall_at, r.header.run_id) if r.header else ("", ""))
    first = ordered[0].header if ordered else None
    for report in ordered:
        if first and report.header and report.header.protocol_id != first.protocol_id:
            message = f"protocol {report.header.protocol_id[:12]}…, the earliest run has {first.protocol_id[:12]}…"
            step = "give the files of one protocol at a time: runs of different protocols are never pooled"
            yield Finding(report.path, 1, "mixed-protocols", message, step)


def _duplicates(store: Store) -> Iterator[Finding]:
    for copy, original in store.copies:
        yield Finding(copy, None, "same-file", f"has the bytes of {original}; it is read once", "remove one of the two")
    rows = store.con.execute(
        "select run_id, kind, count(*) from ignored_duplicates group by run_id, kind order by run_id, kind"
    ).fetchall()
    for report in store.files:
        if kinds := [f"{count} {kind}" for run_id, kind, count in rows if run_id == report.run_id]:
            message = f"duplicates ignored: {', '.join(kinds)}; an earlier record has the same natural key"
            step = "restore the file from a copy, or find out what wrote the records twice"
            yield Finding(report.path, None, "duplicate-records", message, step)


def _texts(texts: Path, run_id: str) -> Iterator[Finding]:
    """Yield each text that is not what its HMAC stands for."""
    with texts.open("rb") as stream:
        try:
            header = msgspec.json.decode(stream.readline(), type=TextsHeader)
            salt = bytes.fromhex(header.salt_hex)
        except ValueError as error:
            yield Finding(texts, 1, "texts-header", f"no readable header of texts: {error}", _TEXTS)
            return
        if header.run_id != run_id:
            yield Finding(texts, 1, "texts-of-another-run", f"the texts are of run {header.run_id}", _TEXTS)
        for number, line in enumerate(stream, start=2):
            try:
                text = decode_text(line)
            except ValueError as error:
                if line.endswith(b"\n"):
                    yield Finding(texts, number, "texts-line", f"no readable text: {error}", _TEXTS)
                continue
            if text_hmac(salt, text.text) != text.hmac:
                yield Finding(texts, number, "text-differs", f"the {text.text_kind} is not what its HMAC names", _TEXTS)


def _absent_texts(store: Store, report: chain.FileReport, texts: Path) -> Iterator[Finding]:
    """Yield one flag where answers or messages that the records cite are not in the texts file."""
    held = set()
    with texts.open("rb") as stream:
        for line in stream:
            try:
                held.add(decode_text(line).hmac)
            except ValueError:
                continue
    cited = store.con.execute(
        "select seq, coalesce(answer_hmac, message_hmac) from records where run_id = ? "
        "and (answer_hmac is not null or message_hmac is not null) order by seq",
        [report.run_id],
    ).fetchall()
    absent = [seq for seq, hmac in cited if hmac not in held]
    if absent:
        message = f"{len(absent)} cited text(s) are not in {texts.name}"
        step = "restore the texts file from a copy; answers that are gone cannot be judged again"
        yield Finding(report.path, absent[0] + 1, "text-missing", message, step)
