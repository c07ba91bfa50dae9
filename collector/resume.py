"""What a run file already holds, so that a resumed run neither repeats nor skips anything."""

from __future__ import annotations

from pathlib import Path

from collector.contract import chain
from collector.contract.records import Document, Engine, Environment, PassBegin, PassEnd
from collector.plan import PlannedPass


class Progress:
    """The attempts that a run file knows, and what it has described."""

    def __init__(self) -> None:
        self.begun: set[str] = set()
        self.ended: set[str] = set()
        self.document_ids: set[str] = set()
        self.environment_ids: set[str] = set()
        self.engine_ids: set[str] = set()

    @classmethod
    def of_file(cls, path: Path) -> Progress:
        """Return the progress recorded in a run file."""
        progress = cls()
        for line in chain.scan(path):
            match line.record:
                case PassBegin(pass_id=pass_id):
                    progress.begun.add(pass_id)
                case PassEnd(pass_id=pass_id, pass_outcome=outcome) if outcome != "interrupted":
                    progress.ended.add(pass_id)
                case Document(document_id=document_id):
                    progress.document_ids.add(document_id)
                case Environment(environment_id=environment_id):
                    progress.environment_ids.add(environment_id)
                case Engine(engine_id=engine_id):
                    progress.engine_ids.add(engine_id)
                case _:
                    pass
        return progress

    def is_done(self, planned: PlannedPass) -> bool:
        """Return whether an attempt of this pass came to its end; a failed one did, its failure is the result."""
        return any(pass_id in self.ended for pass_id in self._attempts(planned))

    def next_attempt(self, planned: PlannedPass) -> int:
        """Return the number of the next attempt: one more than have begun."""
        return 1 + len(self._attempts(planned))

    def _attempts(self, planned: PlannedPass) -> list[str]:
        found: list[str] = []
        while (pass_id := planned.key.pass_id(len(found) + 1)) in self.begun:
            found.append(pass_id)
        return found
