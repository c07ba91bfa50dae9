"""Rankings: the order is found, its value agrees with the definition, the threshold is compared exactly."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import unicodedata
from fractions import Fraction

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from collector.contract.judging import SCORER_DIGESTS, Given, Verdict
from collector.contract.judging.measures import is_reached, value_of
from collector.contract.judging.orders import find_order
from collector.contract.judging.ranking import judge_ranking
from collector.contract.protocol import RankingRule
from collector.contract.records.requests import FinishReason

IDS = ["A", "B", "C", "D"]
GRADES = {"B": 3, "C": 1}
NDCG = RankingRule(metric="ndcg", k=3, accept_from="0.9")


def verdict(
    answer: str | None, rule: RankingRule = NDCG, *, finish_reason: FinishReason = "end_token", ids: list[str] = IDS
) -> Verdict:
    given = Given(answer, finish_reason, "completed")
    return judge_ranking(rule=rule, candidates=ids, relevance=GRADES, given=given)


def order(answer: str, ids: list[str] = IDS, *, is_cut: bool = False) -> list[str | None]:
    return find_order(answer, ids, is_cut=is_cut).items


@pytest.mark.parametrize(
    "answer",
    [
        '["B","C","A"]', 'The order: ["B", "C", "A"].', '{"ranking": ["b", "c", "a"]}', "B, C, A", "B > C > A",
        "[B, C, A]",
        "Best first: B, C, A.", "B C A", "B\nC\nA", "1. B\n2. C\n3. A", "- B: its text\n- C: its text\n- A: its text",
        "1) **B**\n\n2) **C**\n\n3) **A**", "The best are these.\nB\nBecause it answers the question.\nC\nA",
        "A, B, C\nNo, rather:\nB, C, A", '["A"] or rather ["B", "C", "A"]',
        "<think>A: x\nB, A, C</think>B; C; A",
    ],
)  # fmt: skip
def test_c10_an_order_is_found_in_the_layouts_that_engines_and_models_write(answer: str) -> None:
    assert order(answer) == ["B", "C", "A"]


@pytest.mark.parametrize(
    "answer", ["A return label is needed.", "Both, I would say, help", "[]", "none", "[1, 2]", "X, Y"]
)
def test_c10_a_text_that_names_no_candidate_is_unparseable_and_has_no_value(answer: str) -> None:
    assert verdict(answer) == Verdict("unparseable", False, False, [], [], 0, 0, None)


def test_numbers_are_ids_too_and_the_numbering_of_a_list_is_none() -> None:
    ids = ["1", "2", "10"]
    assert order("[10, 2, 1]", ids) == ["10", "2", "1"]
    assert order("1. 10\n2. 2\n3. 1", ids) == ["10", "2", "1"]
    assert order("10, 2, 1", ids) == ["10", "2", "1"]


def test_ids_that_differ_in_case_alone_are_compared_with_case() -> None:
    assert order("b, B", ["b", "B"]) == ["b", "B"]
    assert order("b", ["B", "C"]) == ["B"]


def test_an_unknown_or_repeated_id_wastes_its_place() -> None:
    first = RankingRule(metric="mrr", k=3, accept_from="0.5")
    assert verdict('["B"]', first).graded_value == 1.0
    unknown, repeated = verdict('["X", "B"]', first), verdict('["A", "A", "B"]', first)
    assert (unknown.graded_value, unknown.is_well_formed) == (0.5, False)
    assert (repeated.graded_value, repeated.is_well_formed) == (float(Fraction(1, 3)), False)
    assert order("A, X, B") == ["A", None, "B"]


def test_candidates_that_are_left_out_follow_the_least_relevant_first() -> None:
    whole = RankingRule(metric="ndcg", k=10, accept_from="0.5")
    assert verdict('["A"]', whole).graded_value == verdict('["A","D","C","B"]', whole).graded_value
    assert verdict('["B"]', whole).graded_value == verdict('["B","A","D","C"]', whole).graded_value
    assert verdict('["B"]', whole).is_well_formed


def plain_ndcg(grades: list[int], k: int) -> float:
    """The definition over every order of the candidates: the best value that any of them reaches is the ideal."""

    def gained(places: list[int]) -> float:
        return sum(places[index] * math.log(2) / math.log(index + 2) for index in range(min(k, len(places))))

    return gained(grades) / max(gained(list(one)) for one in itertools.permutations(grades))


@for_all(st.lists(st.integers(0, 5), min_size=2, max_size=6).filter(any), st.integers(1, 8))
def test_ndcg_agrees_with_its_definition_over_every_order(grades: list[int], k: int) -> None:
    rule = RankingRule(metric="ndcg", k=k, accept_from="0")
    value = value_of(rule, grades, all_grades=sorted(grades))
    assert math.isclose(value, plain_ndcg(grades, k), rel_tol=1e-12, abs_tol=1e-15)
    assert 0 <= value <= 1
    assert value_of(rule, sorted(grades, reverse=True), all_grades=grades) == 1.0


def test_ndcg_agrees_with_cases_computed_by_hand() -> None:
    rule = RankingRule(metric="ndcg", k=3, accept_from="0")
    assert value_of(rule, [0, 0, 1], all_grades=[1, 0, 0]) == 0.5  # 1 / log2(4)
    # (3 + 2 / log2(3) + 0) / (3 + 2 / log2(3) + 1 / 2), log2(3) = 1.5849625007
    assert value_of(rule, [3, 2, 0, 1], all_grades=[0, 1, 2, 3]) == pytest.approx(4.2618595071 / 4.7618595071, rel=1e-9)
    # grades 1 and 3 swapped: (1 + 3 x 0.6309297536) / (3 + 0.6309297536)
    assert value_of(rule, [1, 3], all_grades=[1, 3]) == pytest.approx(2.8927892607 / 3.6309297536, rel=1e-9)
    assert value_of(rule, [0, 0, 0, 3], all_grades=[3, 0, 0, 0]) == 0.0


def test_reciprocal_rank_and_recall_look_at_the_first_k_places_only() -> None:
    mrr, recall = (RankingRule(metric=metric, k=2, accept_from="0") for metric in ("mrr", "recall"))  # type: ignore[arg-type]
    assert value_of(mrr, [0, 2, 1], all_grades=[0, 1, 2]) == Fraction(1, 2)
    assert value_of(mrr, [0, 0, 2], all_grades=[0, 0, 2]) == 0
    assert value_of(recall, [1, 0, 2, 1], all_grades=[1, 0, 2, 1]) == Fraction(1, 3)
    assert value_of(recall, [1, 2, 1], all_grades=[1, 2, 1]) == Fraction(2, 3)


def test_a_threshold_that_is_met_exactly_is_met() -> None:
    """3/10 as a double is below 0.3, and 0.1 + 0.2 above it: mrr and recall are compared as fractions."""
    rule = RankingRule(metric="recall", k=3, accept_from="0.3")
    value = value_of(rule, [1, 1, 1], all_grades=[1] * 10)
    assert is_reached(value, "0.3")
    assert not is_reached(value, "0.3000000001")
    assert is_reached(1.0, "1")
    assert is_reached(0.5, "0.5")


def test_a_ranking_is_accepted_from_its_threshold_on() -> None:
    right, wrong = verdict('["B","C","A","D"]'), verdict('["C","B","A","D"]')
    assert right == Verdict("right", True, True, [], [], 1, 0, 1.0)
    assert (wrong.score_outcome, wrong.is_accepted, wrong.is_well_formed) == ("wrong", False, True)
    assert wrong.graded_value == pytest.approx(2.8927892607 / 3.6309297536, rel=1e-9)


def test_c09_the_last_order_outside_the_reasoning_wins_and_several_are_counted() -> None:
    found = verdict('<think>maybe ["A","B"]</think>["A","B"] no: ["B","C"]')
    assert (found.score_outcome, found.candidate_count) == ("right", 3)
    assert verdict("A, B\nB, C").candidate_count == 2


def test_c11_the_output_limit_is_named_where_no_whole_order_is_left() -> None:
    for cut in ('["B","C"', "B, C, A", "The best", "<think>B, C"):
        assert verdict(cut, finish_reason="length").score_outcome == "truncated"
    assert verdict('["B","C"] because', finish_reason="length").score_outcome == "right"
    assert verdict("B, C\nbecause", finish_reason="length").score_outcome == "right"


@pytest.mark.parametrize("answer", [None, "", "\n", "<think>B, C</think>"])
def test_c12_nothing_to_read_is_an_empty_answer(answer: str | None) -> None:
    assert verdict(answer) == Verdict("empty", False, False, [], [], 0, 0, None)


def test_c19_ids_are_compared_in_one_unicode_form() -> None:
    ids = [unicodedata.normalize("NFC", "đơn-1"), unicodedata.normalize("NFD", "hóa-2")]
    assert order(json.dumps([unicodedata.normalize("NFC", "hóa-2"), unicodedata.normalize("NFD", "đơn-1")]), ids) == [
        ids[1],
        ids[0],
    ]


@for_all(st.text() | st.text(alphabet='[]"\\,ABCD123.:>-\n '))
def test_nothing_a_model_writes_raises(answer: str) -> None:
    for finish_reason in ("end_token", "length"):
        found = verdict(answer, finish_reason=finish_reason)  # type: ignore[arg-type]
        assert (found.graded_value is None) == (found.score_outcome not in ("right", "wrong"))


def test_a_long_answer_is_judged_in_no_time() -> None:
    for piece in ("\n", "[", '["', "A, ", "A: ", "1. ", '["A",', "-"):
        verdict(piece * 20_000)


def test_the_scorer_digest_of_rankings_names_the_version_of_these_verdicts() -> None:
    """Fails when a change alters a verdict: raise the version in kinds.py, then write the new digests here."""
    texts = ['["B","C"]', "B, C", "C\nB", "B: text", "", "x", '["X","B"]', "A, A, B", "<think>B", "A\nB, C"]
    rules = [RankingRule(metric=metric, k=2, accept_from="0.5") for metric in ("ndcg", "mrr", "recall")]  # type: ignore[arg-type]
    found = [
        [*verdict(text, rule, finish_reason=reason)[:7], round((verdict(text, rule).graded_value or 0) * 10**9)]
        for text in texts
        for rule in rules
        for reason in ("end_token", "length")
    ]  # type: ignore[misc]
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] == "20d193bf3249b67d"
    assert SCORER_DIGESTS["ranking"] == hashlib.sha256(b"gpu-dossier judging of rankings 1").hexdigest()
