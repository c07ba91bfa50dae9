"""The reload check: an artefact loaded again in a fresh process and asked some of its documents again (mission C10).

It comes after everything else is measured, once per variant and run, and asks again what the variant's first complete
pass was asked: the first documents of that pass, with batches whole batches of it, since what is together in a batch
can change an answer. Answers are compared by HMAC; what was loaded is compared as read back right after loading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from collector import host
from collector.attempt import Attempt
from collector.contract import chain
from collector.contract.records import ReloadCheck, Request, Variant
from collector.contract.records.runs import FailureScope
from collector.events import Event, Recorded, Reloaded
from collector.plan import CHECKED, PlannedPass
from collector.resume import Progress
from collector.watcher import Ending
from collector.workers import Worker

_ARTEFACT = (
    "model_id", "model_revision", "file_digests", "tokenizer_digest", "template_digest", "quantization_method",
    "quantization_bits", "quantization_group", "weight_storage", "parameter_count", "weight_bytes", "dtype_bytes",
)  # fmt: skip
"""Facts of a variant record that say which artefact was loaded, whatever the process."""


class Judged(NamedTuple):
    """What a pass answered, in the order it answered, and what it had loaded; null where no record says."""

    requests: list[Request]
    variant: Variant | None

    def documents(self, batch: int) -> list[str]:
        """Return the documents to ask again: the first CHECKED, or as many whole batches as hold so many."""
        if batch == 1:
            return [request.document_id for request in self.requests[:CHECKED]]
        numbers = sorted({request.batch_number for request in self.requests})[: -(-CHECKED // batch)]
        return [request.document_id for request in self.requests if request.batch_number in numbers]

    @property
    def answers(self) -> dict[str, str | None]:
        return {request.document_id: request.answer_hmac for request in self.requests}


def due_reloads(passes: Sequence[PlannedPass], progress: Progress) -> list[tuple[PlannedPass, int]]:
    """Return, per variant whose passes of this plan are over, the pass to check and its attempt that was completed.

    One request at a time is preferred to a batch. What was checked before, or failed at it, is not due again.
    """
    due: dict[str, tuple[PlannedPass, int]] = {}
    for planned in sorted(passes, key=lambda one: one.key.batch):
        attempt = progress.completed_attempt(planned)
        variant_id = planned.key.variant_id
        if attempt is not None and variant_id not in progress.reloaded:
            due.setdefault(variant_id, (planned, attempt))
    order = {planned.key.variant_id: place for place, planned in reversed(list(enumerate(passes)))}
    return sorted(due.values(), key=lambda one: order[one[0].key.variant_id])


def expected_reloads(passes: Sequence[PlannedPass], progress: Progress) -> list[PlannedPass]:
    """Return a pass of each variant whose check is still to come: one of its passes is complete, or still to run."""
    first: dict[str, PlannedPass] = {}
    for planned in passes:
        is_open = not progress.is_done(planned) and not progress.limits.refuses(planned)
        is_of_use = is_open or progress.completed_attempt(planned) is not None
        if is_of_use and planned.key.variant_id not in progress.reloaded:
            first.setdefault(planned.key.variant_id, planned)
    return list(first.values())


def judged_passes(path: Path, pass_ids: Iterable[str]) -> dict[str, Judged]:
    """Return what a run file says of these passes: their completed requests and what they had loaded."""
    found = {pass_id: Judged([], None) for pass_id in pass_ids}
    for line in chain.scan(path) if found else ():
        match line.record:
            case Request(phase="measure", request_outcome="completed", pass_id=pass_id) as request if pass_id in found:
                found[pass_id].requests.append(request)
            case Variant(pass_id=pass_id, observed_at="loaded") as variant if pass_id in found:
                found[pass_id] = found[pass_id]._replace(variant=variant)
            case _:
                pass
    return found


def is_same_artefact(before: Variant | None, after: Variant) -> bool:
    """Return whether the same files, tokenizer and template gave the same weights."""
    return before is not None and all(getattr(before, name) == getattr(after, name) for name in _ARTEFACT)


class Reload(Attempt):
    """Runs one reload job and journals it: a `reload_check`, or a failure of the variant in the phase `reload`."""

    _scope: FailureScope = "variant"
    _reloaded: Reloaded | None = None

    def check(self, judged: Judged) -> tuple[Ending, ReloadCheck | None]:
        """Return how it ended and what was found; its record is on the disk. An interrupted check leaves none."""
        around = self._around
        self._phase = "reload"
        self._again: dict[str, str | None] = {}
        self._wait_for("load_s")
        outcome, fault = self._worked(host.oom_kill_count(host.Files()))
        for telemetry in around.monitor.end(self._job.pass_id):  # of a phase that did not end
            around.journal.append(telemetry)
        check = None
        if fault is not None:
            self._record_failure(fault)
        elif outcome == "completed":
            check = self._found(judged)
            around.journal.append(check)
        around.journal.flush()
        return self._ending(outcome, fault), check

    def _take(self, event: Event, worker: Worker) -> None:
        if isinstance(event, Reloaded):
            self._reloaded = event
            return
        if isinstance(event, Recorded) and isinstance(event.record, Request):
            self._again[event.record.document_id] = event.record.answer_hmac
            self._around.watcher.answered(event.record.document_id)
        super()._take(event, worker)

    def _found(self, judged: Judged) -> ReloadCheck:
        reloaded = self._reloaded
        if reloaded is None or not isinstance(reloaded.record, Variant):
            raise TypeError("a completed reload says what it loaded")
        before = judged.answers
        asked = [prompt.document_id for prompt in self._job.reload]
        differing = [name for name in asked if self._again.get(name) != before[name] or self._again[name] is None]
        return ReloadCheck(
            variant_id=self._job.variant_id, pass_id=self._job.pass_id, checked_document_count=len(asked),
            equal_answer_count=len(asked) - len(differing), differing_document_ids=differing,
            is_same_artefact=is_same_artefact(judged.variant, reloaded.record), load_ns=reloaded.load_ns,
            answer_ns=reloaded.answer_ns,
        )  # fmt: skip


def words(name: str, ending: Ending, check: ReloadCheck | None) -> str:
    """Return what is to be said of a check, whatever came of it."""
    if check is None:
        cause = f" ({ending.cause})" if ending.cause else ""
        return f"{name} loaded again in a fresh process: {ending.outcome}{cause}"
    same = "the same artefact" if check.is_same_artefact else "another artefact than was measured"
    return (
        f"{name} loaded again in a fresh process: {same}, "
        f"{check.equal_answer_count} of {check.checked_document_count} answers equal"
    )
