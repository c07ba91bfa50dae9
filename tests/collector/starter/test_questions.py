"""The starters of the kinds answers and ranking: sums computed again from their questions, places of best passages."""

from __future__ import annotations

import itertools
import json
import math
import re
import tomllib
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

import collector
from collector.contract.judging.measures import is_reached, value_of
from collector.contract.protocol import RankingRule

STARTER = Path(collector.__file__).parent / "starter"


def lines(kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (STARTER / kind / "documents.jsonl").read_text(encoding="utf-8").splitlines()]


QUESTIONS, QUERIES = lines("answers"), lines("ranking")
COMPUTED = {"sum", "difference", "product", "quotient", "root", "percent", "unit"}
SIGNS = {"+": "+", "minus": "-", "menos": "-", "times": "*", "por": "*", "mal": "*", "divided by": "/"}
UNITS = {
    "minutes there in two and a half hours": Decimal("2.5") * 60,
    "days does a leap year have": Decimal(365 + 1),
    "gramos son tres kilos y medio": Decimal("3.5") * 1000,
    "seconds are there in an hour": Decimal(60 * 60),
    "minutos tiene un día": Decimal(24 * 60),
    "Meter sind 2,5 Kilometer": Decimal("2.5") * 1000,
}


def computed(question: str) -> Decimal | None:
    """Return the value of a question about numbers, worked out from its words; null for one that is not understood."""
    if match := re.search(r"(\d+) (\+|minus|menos|times|por|mal|divided by) (\d+)", question):
        left, right = Decimal(match[1]), Decimal(match[3])
        return {"+": left + right, "-": left - right, "*": left * right, "/": left / right}[SIGNS[match[2]]]
    if match := re.search(r"square root of (\d+)", question):
        return Decimal(math.isqrt(int(match[1])))
    if match := re.search(r"la mitad de (\d+)", question):
        return Decimal(match[1]) / 2
    if match := re.search(r"costs (\d+) euros and is reduced by (\d+) percent", question):
        return Decimal(match[1]) * (100 - int(match[2])) / 100
    if match := re.search(r"costs (\d+) dollars and the tip is (\d+) percent", question):
        return Decimal(match[1]) * (100 + int(match[2])) / 100
    plain = question.replace("are there", "there") if "two and a half" in question else question
    return next((value for words, value in UNITS.items() if words in plain), None)


@pytest.mark.parametrize(
    "question", [one for one in QUESTIONS if one["cluster"] in COMPUTED], ids=lambda one: str(one["id"])
)
def test_a_computed_answer_is_the_known_one(question: dict[str, Any]) -> None:
    value = computed(question["text"])
    assert value is not None
    assert value == Decimal(question["answers"][0])
    assert Decimal(question["tolerance"]) < 1


def test_the_questions_are_as_planned() -> None:
    assert Counter(one["role"] for one in QUESTIONS) == {"development": 8, "validation": 14, "test": 28}
    for role in ("validation", "test"):
        mine = [one for one in QUESTIONS if one["role"] == role]
        assert sum("critical" in one["subsets"] for one in mine) >= 4
        assert {one["language"] for one in mine} == {"en", "es", "de"}
        assert any(len(one["answers"]) > 1 for one in mine)
        assert any("tolerance" in one for one in mine)
    assert sum(one["cluster"] in COMPUTED for one in QUESTIONS) >= 22


def test_the_queries_are_as_planned() -> None:
    assert Counter(one["role"] for one in QUERIES) == {"development": 12, "validation": 40, "test": 40}
    assert {len(one["candidates"]) for one in QUERIES} <= {6, 7, 8}
    for one in QUERIES:
        assert sorted(one["relevance"].values())[-1] == 3
        assert list(one["relevance"].values()).count(3) == 1
    for role in ("validation", "test"):
        mine = [one for one in QUERIES if one["role"] == role]
        assert any("critical" in one["subsets"] for one in mine)
        assert {one["language"] for one in mine} == {"en"}, "the starter's model was made for English texts"
        assert any(len(one["relevance"]) > 1 for one in mine)
    clusters = Counter(one["cluster"] for one in QUERIES)
    assert len(clusters) == 23
    assert set(clusters.values()) == {4}


@pytest.mark.parametrize("query", QUERIES, ids=lambda one: str(one["id"]))
def test_a_query_is_accepted_exactly_where_its_best_passage_stands_first(query: dict[str, Any]) -> None:
    """What the starter's protocol says of its threshold, for every order of the graded passages."""
    task = tomllib.loads((STARTER / "ranking" / "protocol.toml").read_text(encoding="utf-8"))["task"]
    rule = msgspec.convert(task["ranking"], RankingRule)
    others = [grade for grade in query["relevance"].values() if grade != 3]
    assert len(others) <= 1
    grades = [3, *others, *[0] * (len(query["candidates"]) - 1 - len(others))]
    for order in set(itertools.permutations(grades)):
        is_accepted = is_reached(value_of(rule, order, all_grades=grades), rule.accept_from)
        assert is_accepted == (order[0] == 3), order


def test_the_best_passage_stands_in_no_favourite_place_and_passages_cross_no_roles() -> None:
    places = Counter(
        list(one["candidates"]).index(max(one["relevance"], key=one["relevance"].__getitem__)) for one in QUERIES
    )
    assert len(places) >= 5
    assert places.most_common(1)[0][1] <= len(QUERIES) * 0.4
    roles: dict[str, set[str]] = {}
    for one in QUERIES:
        for passage in one["candidates"].values():
            roles.setdefault(passage, set()).add(one["role"])
    assert all(len(mine) == 1 for mine in roles.values())


@pytest.mark.parametrize("documents", [QUESTIONS, QUERIES], ids=["answers", "ranking"])
def test_length_classes_follow_the_real_lengths(documents: list[dict[str, Any]]) -> None:
    sizes: dict[str, list[int]] = {}
    for one in documents:
        sizes.setdefault(one["length_class"], []).append(len(one["text"]))
    assert max(sizes["short"]) < min(sizes["usual"])
    assert max(sizes["usual"]) < min(sizes["long"])
