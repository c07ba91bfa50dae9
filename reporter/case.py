"""What a decision is written from: the evidence, what was asked of it, and who stands where."""

from __future__ import annotations

from typing import NamedTuple

from collector.contract.campaign import Campaign
from collector.contract.protocol import Lock
from collector.contract.records.base import Stage

from .book import Book
from .configurations import Configuration, accepted_id
from .dossier import Confirmation
from .selection import Selection, Standing


class Case(NamedTuple):
    """One campaign's evidence and selection; `campaign` is null where no campaign file was given."""

    book: Book
    lock: Lock
    stage: Stage
    reference: Configuration | None
    selection: Selection
    campaign: Campaign | None
    disturbed_keys: frozenset[str] = frozenset()
    """Configurations whose counted passes shared the machine with others while measuring."""
    changed_files: int = 0
    """Record files that are not as they were written."""
    has_open_files: bool = False
    confirmation: Confirmation | None = None
    choice_digest: str | None = None
    """sha256 of the choice file given with the runs."""

    @property
    def was_machine_busy(self) -> bool:
        """Others were found on the machine before it was measured, or while what is recommended was measured."""
        winner = self.selection.winner
        if winner is not None and winner.key in self.disturbed_keys:
            return True
        return any(row.labels.get("warning_class") == "machine_busy" for row in self.book.rows("warnings"))

    @property
    def look_count(self) -> int:
        """How often the test documents were looked at, beside another judged stage."""
        return self.confirmation.look_count if self.confirmation is not None else 0

    @property
    def is_refuted(self) -> bool:
        """What validation recommends does not meet the rules on the test documents."""
        return self.confirmation is not None and self.confirmation.status == "not_confirmed"

    @property
    def measured(self) -> list[Standing]:
        """Configurations of the records, without candidates that were never run."""
        return [standing for standing in self.selection.standings if standing.configuration is not None]

    @property
    def qualified(self) -> list[Standing]:
        return [standing for standing in self.measured if standing.has_qualified]

    @property
    def judged_inputs(self) -> list[str]:
        """Ids of the figures that every count of configurations is made from."""
        judged = [accepted_id(s.key) for s in self.measured if accepted_id(s.key) in self.book.figures]
        return judged or [row.cells["attempt"] for row in self.book.rows("passes") if "attempt" in row.cells]

    def counted(self, name: str, value: int, formula: str) -> str:
        """Add a count of configurations and return its id."""
        figure_id = f"selection/all/{name}"
        if not self.judged_inputs:
            return self.book.given(figure_id, value, "count", "measured")
        return self.book.derived(self.judged_inputs, figure_id=figure_id, value=value, unit="count", formula=formula)

    def missing_count(self) -> str:
        """Add how many planned passes were never begun: neither failed nor left out, just not there."""
        missing = sum(row.labels["state"] == "not_begun" for row in self.book.rows("missing_passes"))
        return self.book.given("selection/all/missing_passes", missing, "passes", "measured")

    def qualified_count(self) -> str:
        """Add how many measured configurations meet every rule."""
        return self.counted("qualified", len(self.qualified), "configurations whose rules all passed")

    def measured_count(self) -> str:
        """Add how many configurations were measured, failed ones included."""
        return self.counted("measured", len(self.measured), "configurations with at least one pass")
