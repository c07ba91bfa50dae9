"""What is told of a run while it goes on: how each pass ended, in words, and who listens."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from collector.contract.records.base import FailureCause, Phase
from collector.contract.records.passes import PassOutcome


class Ending(NamedTuple):
    """How an attempt ended; `cause` and `phase` of a failed one."""

    outcome: PassOutcome
    cause: FailureCause | None
    phase: Phase | None = None
    is_lost: bool = False
    """Its server was lost or answered nothing, so that a resumed run measures it again."""
    message: str | None = None
    """What a failure's text says, and where it is known what to do next; of a complete pass without any answer the
    last request's."""
    answered: int = 0
    """Documents with an answer, an empty one too."""
    failed_by: dict[str, int] = {}
    """Cause -> documents without an answer."""

    @property
    def words(self) -> str:
        """The outcome and its cause; where documents failed, how many were answered and why the others were not."""
        said = f"{self.outcome}{f', {self.cause}' if self.cause else ''}"
        if not self.failed_by:
            return said
        causes = [f"{cause} {count}" if len(self.failed_by) > 1 else cause for cause, count in self.failed_by.items()]
        return f"{said}, answered {self.answered}, failed {sum(self.failed_by.values())} ({', '.join(causes)})"


class Watcher(Protocol):
    """Is told what a run does, for a progress bar; writes nothing into the records."""

    def plan(self, *, passes: int, documents: int) -> None:
        """The run begins, with this many passes and answers to expect."""
        ...

    def begin_pass(self, *, label: str, purpose: str, documents: int) -> None: ...

    def phase(self, phase: Phase) -> None: ...

    def answered(self, document_id: str, *, is_failed: bool = False) -> None:
        """A document has its row, be it an answer or a failure."""
        ...

    def end_pass(self, *, label: str, ending: Ending) -> None: ...

    def notice(self, message: str) -> None:
        """Something that the user should read now."""
        ...
