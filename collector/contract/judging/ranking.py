"""Judge one ranking: the order in the answer, its value by the protocol's measure, accepted from the threshold on.

Every item of the answer takes a place. One that is no candidate, or that stands there already, has grade 0 on it: a
result shown in vain is no relevant one. Candidates that the answer leaves out are never dropped: they follow after all
named ones, the least relevant first, so that leaving out gains nothing; between equal grades their order changes no
value. There are no ties in an answer: it is a list.

Told apart: failed, too_long, empty, truncated and unparseable (no order that names a candidate), wrong, right. Only the
last two have a value; the others have none, which is not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..protocol import RankingRule
from ..records.requests import ScoreOutcome
from .measures import is_reached, value_of
from .orders import find_order
from .verdict import Given, Verdict, unanswered, unread


def judge_ranking(
    *, rule: RankingRule, candidates: Iterable[str], relevance: Mapping[str, int], given: Given
) -> Verdict:
    """Return the verdict on one ranking. Never raises for anything a model can write.

    candidates: ids. relevance: id -> grade; a candidate that is not named has grade 0.
    """
    if (outcome := unanswered(given)) is not None:
        return unread(outcome)
    ids = list(candidates)
    order = find_order(given.answer or "", ids, is_cut=given.is_cut)
    if not order.items:
        return unread("truncated" if given.is_cut else "unparseable" if order.has_text else "empty", order.order_count)
    grades, is_whole = _grades(order.items, ids, relevance)
    value = value_of(rule, grades, all_grades=[relevance.get(name, 0) for name in ids])
    is_accepted = is_reached(value, rule.accept_from)
    judged: ScoreOutcome = "right" if is_accepted else "wrong"
    return Verdict(judged, is_accepted, is_whole, [], [], order.order_count, 0, float(value))


def _grades(items: list[str | None], ids: list[str], relevance: Mapping[str, int]) -> tuple[list[int], bool]:
    """Return the grade of each place, and whether the answer named candidates only, none of them twice."""
    named: set[str] = set()
    grades: list[int] = []
    for item in items:
        is_new = item is not None and item not in named
        grades.append(relevance.get(item, 0) if item is not None and is_new else 0)
        named.update([item] if item is not None else [])
    left_out = sorted(relevance.get(name, 0) for name in ids if name not in named)
    return grades + left_out, len(named) == len(items)
