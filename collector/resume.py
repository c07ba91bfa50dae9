"""What a run file already holds, so that a resumed run neither repeats nor skips anything."""

from __future__ import annotations

from pathlib import Path

from collector.batch_limits import BatchLimits
from collector.contract import chain
from collector.contract.records import (
    Decision,
    Document,
    Engine,
    Environment,
    Failure,
    Header,
    PassBegin,
    PassEnd,
    ReloadCheck,
)
from collector.contract.records.base import Phase
from collector.engines.faults import ServerLost
from collector.plan import PlannedPass
from collector.watcher import Ending

LOST_ATTEMPTS = 2
"""A pass that lost its server on the way is measured again; lost as often as this, that is its result."""


class Progress:
    """The attempts that a run file knows, and what it has described."""

    def __init__(self) -> None:
        self.begun: set[str] = set()
        self.ended: set[str] = set()
        self.completed: set[str] = set()
        self.lost: set[str] = set()
        """Attempts that failed since their server was gone or answered nothing."""
        self.unreached: set[str] = set()
        """Those of them that found no server at all: however often, that is nobody's result."""
        self.reloaded: set[str] = set()
        """Variants whose reload was checked, whatever came of it."""
        self.rental_id: str | None = None
        """The rental that the file's header names."""
        self.document_ids: set[str] = set()
        self.environment_ids: set[str] = set()
        self.engine_ids: set[str] = set()
        self.limits = BatchLimits()
        self.is_continued = False
        """Whether the file is the work of an earlier start."""

    @classmethod
    def of_file(cls, path: Path) -> Progress:
        """Return the progress recorded in a run file."""
        progress = cls()
        progress.is_continued = True
        loads: dict[str | None, tuple[str, int]] = {}
        for line in chain.scan(path):
            match line.record:
                case Header(rental_id=rental_id):
                    progress.rental_id = rental_id
                case PassBegin(pass_id=pass_id, variant_id=variant_id, batch=batch):
                    progress.begun.add(pass_id)
                    loads[pass_id] = variant_id, batch
                case PassEnd(pass_id=pass_id, pass_outcome=outcome) if outcome != "interrupted":
                    progress.ended.add(pass_id)
                    if outcome == "completed":
                        progress.completed.add(pass_id)
                    if outcome == "completed" and pass_id in loads:
                        progress.limits.completed(*loads[pass_id])
                case ReloadCheck(variant_id=variant_id):
                    progress.reloaded.add(variant_id)
                case Failure(failure_scope="variant", phase="reload", variant_id=str(variant_id)):
                    progress.reloaded.add(variant_id)
                case Failure(failure_scope="pass", pass_id=str(pass_id)) as failure if pass_id in loads:
                    cause, phase = failure.failure_cause, failure.phase
                    if failure.exception_class == ServerLost.__name__:
                        progress._lose(pass_id, phase)
                    progress.limits.failed(*loads[pass_id], pass_id=pass_id, cause=cause, phase=phase)
                case Decision() as decision:
                    progress.limits.recorded(decision)
                case Document(document_id=document_id):
                    progress.document_ids.add(document_id)
                case Environment(environment_id=environment_id):
                    progress.environment_ids.add(environment_id)
                case Engine(engine_id=engine_id):
                    progress.engine_ids.add(engine_id)
                case _:
                    pass
        return progress

    def learn(self, planned: PlannedPass, attempt: int, ending: Ending) -> None:
        """Take note of an attempt that has just ended, as its records will say."""
        pass_id, key = planned.key.pass_id(attempt), planned.key
        self.begun.add(pass_id)
        if ending.outcome == "interrupted":
            return
        self.ended.add(pass_id)
        if ending.is_lost:
            self._lose(pass_id, ending.phase)
        if ending.outcome == "completed":
            self.completed.add(pass_id)
            self.limits.completed(key.variant_id, key.batch)
        else:
            self.limits.failed(key.variant_id, key.batch, pass_id=pass_id, cause=ending.cause, phase=ending.phase)

    def is_done(self, planned: PlannedPass) -> bool:
        """Return whether an attempt of this pass came to its end; a failed one did, its failure is the result.

        One that lost its server did not, until it happens again; one that found none did not, however often.
        """
        attempts = self._attempts(planned)
        is_result = any(pass_id in self.ended - self.lost for pass_id in attempts)
        return is_result or sum(pass_id in self.lost - self.unreached for pass_id in attempts) >= LOST_ATTEMPTS

    def is_begun(self, planned: PlannedPass) -> bool:
        """Return whether any attempt of this pass has begun."""
        return bool(self._attempts(planned))

    def completed_attempt(self, planned: PlannedPass) -> int | None:
        """Return the number of the last attempt of this pass that was completed, null for none."""
        completed = [n for n, pass_id in enumerate(self._attempts(planned), start=1) if pass_id in self.completed]
        return completed[-1] if completed else None

    def next_attempt(self, planned: PlannedPass) -> int:
        """Return the number of the next attempt: one more than have begun."""
        return 1 + len(self._attempts(planned))

    def _lose(self, pass_id: str, phase: Phase | None) -> None:
        self.lost.add(pass_id)
        if phase == "load":
            self.unreached.add(pass_id)

    def _attempts(self, planned: PlannedPass) -> list[str]:
        found: list[str] = []
        while (pass_id := planned.key.pass_id(len(found) + 1)) in self.begun:
            found.append(pass_id)
        return found
