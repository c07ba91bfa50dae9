"""Out of memory at a batch is a limit of the machine: larger batches of that variant are not tried, and it is recorded.

A limit is a pass with batches that ran out of memory after its variant was loaded. Out of memory while loading says
nothing about batches, and any other failure says nothing about larger ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.contract.records import Decision
from collector.contract.records.base import FailureCause, Phase
from collector.plan import PlannedPass

REASON = "out_of_memory"


class BatchLimits:
    """What is known of each variant's batches in one run, from its file or from passes that have just ended."""

    def __init__(self) -> None:
        self._completed: dict[str, set[int]] = {}
        self._exhausted: dict[str, dict[int, str]] = {}
        self._recorded: set[tuple[str, str, str]] = set()

    def completed(self, variant_id: str, batch: int) -> None:
        """Take note of a pass that came to its end."""
        self._completed.setdefault(variant_id, set()).add(batch)

    def failed(
        self, variant_id: str, batch: int, *, pass_id: str, cause: FailureCause | None, phase: Phase | None
    ) -> None:
        """Take note of a pass that failed; only memory that ran out with more than one request at a time counts."""
        if batch > 1 and cause == "out_of_memory" and phase != "load":
            self._exhausted.setdefault(variant_id, {}).setdefault(batch, pass_id)

    def recorded(self, decision: Decision) -> None:
        """Take note of a decision that the file has already."""
        self._recorded.add(_mark(decision))

    def refuses(self, planned: PlannedPass) -> bool:
        """Return whether as large a batch of this variant has run out of memory."""
        exhausted = self._exhausted.get(planned.key.variant_id, {})
        return any(batch <= planned.key.batch for batch in exhausted)

    def decisions(self, passes: Sequence[PlannedPass], is_done: Sequence[bool]) -> Iterator[Decision]:
        """Yield what these passes make due and the file lacks: a reduced batch per limit, a skip per larger batch."""
        names = {planned.key.variant_id: planned.variant.name for planned in passes}
        due: list[Decision] = []
        for variant_id, exhausted in self._exhausted.items():
            name = names.get(variant_id)
            smallest = min(exhausted)
            if name is None:
                continue
            fitting = [batch for batch in self._completed.get(variant_id, ()) if batch < smallest]
            detail = {"variant": name, "from": str(smallest), "to": str(max(fitting, default="none")), "reason": REASON}
            due.append(
                Decision(
                    decision="batch_reduced", decided_by="collector", pass_id=exhausted[smallest], detail=detail
                )
            )  # fmt: skip
            for planned, done in zip(passes, is_done, strict=True):
                if not done and planned.key.variant_id == variant_id and self.refuses(planned):
                    detail = {"variant": name, "batch": str(planned.key.batch), "reason": f"{REASON} at {smallest}"}
                    due.append(Decision(decision="skipped", decided_by="collector", detail=detail))
        for decision in due:
            if _mark(decision) not in self._recorded:
                self.recorded(decision)
                yield decision


def _mark(decision: Decision) -> tuple[str, str, str]:
    detail = decision.detail
    return decision.decision, detail.get("variant", ""), detail.get("from", detail.get("batch", ""))
