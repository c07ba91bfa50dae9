"""What a run file says before its first pass: what was frozen, the machine, the engines, and who else is busy there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

import collector
from collector.clock import Clock
from collector.contention import BusyReport
from collector.contract.digests import text_hmac
from collector.contract.protocol import DocumentLine, Lock, LockedDocument
from collector.contract.records import Decision, Document, Engine, Header, PassBegin, Warning
from collector.contract.records.base import Stage
from collector.contract.texts import Text
from collector.environment import Detected
from collector.freeze import FrozenProtocol
from collector.journal import Journal
from collector.lock import expected_text
from collector.missing import explained
from collector.plan import PlannedPass, stage_documents
from collector.resume import Progress
from collector.watcher import Watcher


def header(
    frozen: FrozenProtocol, *, stage: Stage, rental_id: str | None, commit: str | None, clock: Clock
) -> Header:  # fmt: skip
    """Return the first line of a new file. The documents follow as records of their own, so that it stays short."""
    lock = frozen.lock
    return Header(
        format=1, stage=stage, protocol_json=frozen.lock_json, protocol_id=lock.protocol_id,
        plan_id=lock.plan_id, rental_id=rental_id, objective_digest=lock.objective_digest,
        collector_version=collector.__version__,
        collector_commit=commit, wall_at=clock.utc(), monotonic_ns=clock.monotonic_ns(),
    )  # fmt: skip


def pass_begin(planned: PlannedPass, attempt: int, clock: Clock) -> PassBegin:
    """Return the line with which an attempt begins."""
    record = PassBegin(
        pass_id=planned.key.pass_id(attempt), attempt=attempt, variant_name=planned.variant.name,
        arrival_seed=None if planned.load.arrivals == "closed" else planned.load.seed, cache_state=planned.cache_state,
        purpose=planned.purpose, series=planned.series, factor=planned.factor,
        document_order=planned.document_order, expected_document_count=len(planned.document_order),
        began_at=clock.utc(), **msgspec.structs.asdict(planned.key),
    )  # fmt: skip
    optional = ("rate_per_s", "context_tokens", "arrival_seed", "cache_state")
    return explained(record, dict.fromkeys(optional, "not_applicable"))


def describe(
    journal: Journal,
    progress: Progress,
    frozen: FrozenProtocol,
    detected: Detected,
    engines: Iterable[Engine],
    *,
    stage: Stage,
    decisions: Iterable[Decision],
) -> None:
    """Write documents, environment, devices and engines that the file does not know yet, and then the decisions."""
    documents = {document.id: document for document in frozen.documents}
    measured = set(stage_documents(frozen.lock, stage))
    for locked in frozen.lock.documents:
        if locked.document_id in progress.document_ids:
            continue
        if locked.document_id in measured:
            _keep_texts(journal, locked, documents[locked.document_id])
        journal.append(Document(**{name: getattr(locked, name) for name in locked.__struct_fields__}))
    if detected.environment.environment_id not in progress.environment_ids:
        for record in (detected.environment, *detected.devices):
            journal.append(record)
    for engine in {engine.engine_id: engine for engine in engines}.values():
        if engine.engine_id not in progress.engine_ids:
            journal.append(engine)
    for decision in decisions:
        journal.append(decision)
    journal.flush()


def left_out(lock: Lock, only: Sequence[str], only_series: Sequence[str]) -> Iterator[Decision]:
    """Yield what a run of a part of its plan leaves out, by --variant and by --series."""
    skipped = [variant.name for variant in lock.plan.variants if only and variant.name not in only]
    if skipped:
        detail = {"variants": ", ".join(skipped), "reason": "left out with --variant"}
        yield Decision(decision="skipped", decided_by="collector", detail=detail)
    if only_series:
        detail = {"only_series": ", ".join(only_series), "reason": "the others are left out with --series"}
        yield Decision(decision="skipped", decided_by="collector", detail=detail)


def change_of_rental(before: str | None, now: str | None, watcher: Watcher) -> list[Decision]:
    """Return that a resumed file goes on under another rental: a header never changes, so it is a decision."""
    if now is None or now == before:
        return []
    watcher.notice(
        f"this file was begun under {f'rental {before}' if before else 'no rental'} and goes on under {now}: its "
        "header stays, and a decision records the change"
    )
    return [Decision(decision="resumed", decided_by="collector", detail={"rental_id": now})]


def warn_of_others(journal: Journal, report: BusyReport, watcher: Watcher, *, salt: bytes) -> None:
    """Tell the user who else uses the machine, and record that it was busy, without names."""
    if not report.is_busy:
        return
    whom = f" Stop before measuring: {'; '.join(report.culprits)}." if report.culprits else ""
    watcher.notice(f"this machine is busy: {report.summary}.{whom}")
    hmac = text_hmac(salt, report.summary)
    journal.text(Text(hmac=hmac, text_kind="message", text=report.summary))
    journal.append(Warning(warning_class="machine_busy", message_hmac=hmac))


def _keep_texts(journal: Journal, locked: LockedDocument, document: DocumentLine) -> None:
    for kind, hmac, text in (
        ("document", locked.text_hmac, document.text),
        ("expected", locked.expected_hmac, expected_text(document)),
    ):
        journal.text(Text(hmac=hmac, text_kind=kind, text=text, document_id=document.id))
