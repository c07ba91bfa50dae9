"""Decode steps of a measure phase and the rows that were generating in each, from what the answers say.

The rows of a batch start together and each row still generating yields one token per step. So the steps of a batch are
the tokens of its longest row, the step of the prompt included, and the rows alive in a step are those that have more
tokens than steps went before. Rows that have ended and wait for the others are not alive. Summed over all steps the
live rows are the output tokens, those of requests that ended at their time limit included.
"""

from __future__ import annotations

import statistics
from collections import Counter

from collector.engines.base import Answer


class DecodeSteps:
    """Takes the answers of one pass in the order of completion."""

    def __init__(self, *, batch: int) -> None:
        self._is_batched = batch > 1
        self._token_counts: dict[int, list[int]] = {}
        self._longest_gaps_ns: dict[int, list[int]] = {}

    def take(self, answer: Answer) -> None:
        """Count one answer."""
        key = answer.batch_number if self._is_batched else len(self._token_counts)
        self._token_counts.setdefault(key, []).append(answer.output_tokens or 0)
        if len(answer.gaps_ns) > len(self._longest_gaps_ns.get(key, [])):
            self._longest_gaps_ns[key] = answer.gaps_ns

    def live_rows(self) -> dict[str, int]:
        """Return rows still generating -> number of steps with that many."""
        steps: Counter[int] = Counter()
        for counts in self._token_counts.values():
            steps.update(sum(count > step for count in counts) for step in range(max(counts)))
        return {str(rows): steps[rows] for rows in sorted(steps)}

    def gap_medians_ns(self) -> list[int]:
        """Return the median token gap of each request, or batch, that had one: a batch is seen by its longest row."""
        return [statistics.median_low(gaps_ns) for gaps_ns in self._longest_gaps_ns.values()]


def row_steps(live_rows: dict[str, int]) -> int:
    """Return the sum over all steps of the rows alive."""
    return sum(int(rows) * steps for rows, steps in live_rows.items())
