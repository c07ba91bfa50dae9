"""Measures of a ranking over its first k places: nDCG, reciprocal rank, recall. Grades are whole numbers from 0.

nDCG@k = DCG@k / ideal DCG@k, with DCG@k = sum over the places p = 1..k of gain / log2(p + 1). The gain is the grade
itself (linear, as in Jaervelin and Kekaelaeinen 2002 and in trec_eval, so that values compare with published
retrieval results), not 2^grade - 1. The ideal order is that of all the document's candidates by falling grade.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from ..protocol import RankingRule

Value = Fraction | float


def value_of(rule: RankingRule, grades: Sequence[int], *, all_grades: Sequence[int]) -> Value:
    """Return the protocol's measure of a ranking, 0 to 1: exact for mrr and recall, a double for ndcg.

    grades: of the ranked places, best place first. all_grades: of the document's candidates in any order.
    """
    return _MEASURES[rule.metric](grades, all_grades, rule.k)


def best_value(rule: RankingRule, all_grades: Sequence[int]) -> Value:
    """Return the highest value that any order of these candidates has."""
    return value_of(rule, sorted(all_grades, reverse=True), all_grades=all_grades)


def is_reached(value: Value, accept_from: str) -> bool:
    """Return whether a value is at least the threshold.

    mrr and recall are compared as the exact fractions they are. nDCG is irrational almost everywhere, so the double
    that is recorded is compared, without any tolerance, as the binary fraction it is: who recomputes from the record
    comes to the same verdict, and a perfect order has exactly 1.
    """
    return Fraction(value) >= Fraction(accept_from)


def ndcg(grades: Sequence[int], all_grades: Sequence[int], k: int) -> float:
    """Return nDCG@k; 0 where no candidate has a grade. Sums by fsum, so equal orders have equal values."""
    ideal = _dcg(sorted(all_grades, reverse=True), k)
    return min(1.0, _dcg(grades, k) / ideal) if ideal else 0.0


def reciprocal_rank(grades: Sequence[int], all_grades: Sequence[int], k: int) -> Fraction:
    """Return 1 / place of the first relevant candidate (grade above 0) within the first k places, 0 without one."""
    return next((Fraction(1, place) for place, grade in enumerate(grades[:k], start=1) if grade), Fraction(0))


def recall(grades: Sequence[int], all_grades: Sequence[int], k: int) -> Fraction:
    """Return the share of all relevant candidates (grade above 0) that stand within the first k places."""
    relevant = sum(1 for grade in all_grades if grade)
    return Fraction(sum(1 for grade in grades[:k] if grade), relevant) if relevant else Fraction(0)


def _dcg(grades: Sequence[int], k: int) -> float:
    return math.fsum(grade / math.log2(place + 1) for place, grade in enumerate(grades[:k], start=1))


_MEASURES: Mapping[str, Callable[[Sequence[int], Sequence[int], int], Value]] = {
    "ndcg": ndcg,
    "mrr": reciprocal_rank,
    "recall": recall,
}
