"""Known answers: what was answered is found, compared exactly, and told apart from what could not be read."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from collector.contract.judging import SCORER_DIGEST, SCORER_DIGESTS, Given, Verdict
from collector.contract.judging.answers import judge_answer
from collector.contract.judging.numbers import numbers_in
from collector.contract.records.requests import FinishReason


def verdict(
    answer: str | None, *answers: str, tolerance: str | None = None, finish_reason: FinishReason = "end_token"
) -> Verdict:
    return judge_answer(
        answers=answers, tolerance=tolerance, given=Given(answer, finish_reason, "completed")
    )  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        "Tokyo", "tokyo.", " **Tokyo** ", '"Tokyo"', "The capital of Japan is Tokyo.", "Tokyo is the capital of Japan.",
        "La capital de Japón es Tokyo", "Thủ đô của Nhật Bản là Tokyo.", "Capital: Tokyo", "Answer: Tokyo",
        "Réponse : Tokyo", "**Final answer:** Tokyo", "\\boxed{Tokyo}", "\\boxed{\\text{Tokyo}}", "#### Tokyo",
        '{"answer": "Tokyo"}', "Kyoto was the capital long ago.\nToday it is Tokyo (東京).",
        "Antwort: die Hauptstadt ist Tokyo",
    ],
)  # fmt: skip
def test_c10_a_short_answer_is_found_in_the_layouts_that_people_and_models_write(answer: str) -> None:
    found = verdict(answer, "Edo", "Tokyo")
    assert (found.score_outcome, found.is_accepted, found.is_well_formed) == ("right", True, True)


@pytest.mark.parametrize(
    "answer",
    [
        "Kyoto", "Tokyo or Kyoto", "Tokyo, Kyoto, Osaka", "not Tokyo", "It is not Tokyo.", "Tokyo is not the capital.",
        "Die Hauptstadt ist nicht Tokyo", "No es Tokyo", "Answer: Kyoto, not Tokyo", "Tokyo\nKyoto", "Tokyoo", "Tōkyō",
        "Answer: Tokyo\nAnswer: Kyoto",
    ],
)  # fmt: skip
def test_an_answer_that_hedges_denies_or_names_another_is_wrong(answer: str) -> None:
    assert verdict(answer, "Tokyo").score_outcome == "wrong"


def test_case_blanks_quotes_and_punctuation_around_do_not_count_and_punctuation_inside_does() -> None:
    assert verdict("THE  INDIAN\u00a0OCEAN!", "the Indian Ocean").is_accepted
    assert verdict("STRASSE", "Straße").is_accepted
    assert verdict("İZMİR", "İzmir").is_accepted
    assert not verdict("Indian-Ocean", "Indian Ocean").is_accepted


@pytest.mark.parametrize(
    "answer",
    [
        "72", "72.", "72 eggs", "$72.00", "= 72", "6 × 12 = 72", "There are 72 eggs in 6 boxes. Answer: 72", "72,0",
        "#### 72", "\\boxed{72}", '{"eggs": 72}', "Answer: 72 eggs (6 boxes of 12)", "Answer: 6 × 12 = 72",
        "6 boxes of 12 eggs are 72 eggs.\nI hope that helps!", "７２",
    ],
)  # fmt: skip
def test_c10_a_number_is_found_in_the_layouts_that_people_and_models_write(answer: str) -> None:
    found = verdict(answer, "72", tolerance="0")
    assert (found.score_outcome, found.is_accepted, found.is_well_formed) == ("right", True, True)


@pytest.mark.parametrize("answer", ["73", "-72", "72 or 73", "7,2", "720", "72.001"])
def test_another_number_is_wrong(answer: str) -> None:
    assert verdict(answer, "72", tolerance="0").score_outcome == "wrong"


@pytest.mark.parametrize(
    ("answer", "is_right"),
    [("3.14", True), ("3,142", True), ("3.145", True), ("3.1450001", False), ("3.135", True), ("3.1349", False)],
)
def test_a_tolerance_is_kept_exactly(answer: str, is_right: bool) -> None:
    """Each is a whole decimal from the bound or beyond it: in binary floating point 3.145 - 3.14 > 0.005."""
    assert verdict(answer, "3.14", tolerance="0.005").is_accepted is is_right


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("1,440", {"1440", "1.44"}), ("1.440", {"1440", "1.44"}), ("1 440", {"1440"}), ("1\u202f440,5", {"1440.5"}),
        ("1.234.567", {"1234567"}), ("1,234.50", {"1234.5"}), ("1.234,50", {"1234.5"}), ("12'500", {"12500"}),
        ("1,23,456", {"123456"}),
        (".5", {"0.5"}), ("-,25", {"-0.25"}), ("0.333", {"0.333"}), ("−5", {"-5"}),
        ("1.5e3", {"1500"}), ("85%", {"85"}),
    ],
)  # fmt: skip
def test_numbers_are_read_in_every_usual_notation(text: str, readings: set[str]) -> None:
    assert [set(one) for one in numbers_in(text)] == [{Fraction(reading) for reading in readings}]


@for_all(st.decimals(min_value="-1e12", max_value="1e12", places=4) | st.integers(-(10**12), 10**12))
def test_every_number_as_it_is_usually_written_is_right(number: Any) -> None:
    """With a point or a comma, alone or in a sentence; thousands apart by any separator."""
    plain = f"{number:f}" if isinstance(number, Decimal) else str(number)
    grouped = f"{number:,}"
    for text in (plain, plain.replace(".", ","), grouped, grouped.replace(",", " "), grouped.replace(",", "'")):
        for answer in (text, f"It is {text} kg.", f"Answer: {text}"):
            assert verdict(answer, plain, tolerance="0").is_accepted, answer


def test_what_is_part_of_a_word_and_what_no_notation_writes_is_no_number() -> None:
    assert list(numbers_in("CO2, v1, B12")) == []
    assert list(numbers_in("version 1.2.3,4")) == []


def test_c09_reasoning_is_removed_first_then_the_last_answer_wins_and_several_are_counted() -> None:
    found = verdict("<think>the example says #### 12</think>\n#### 40", "40", tolerance="0")
    assert found == Verdict("right", True, True, [], [], 2, 0)
    assert verdict("#### 12\n#### 40", "40", tolerance="0") == Verdict("right", True, True, [], [], 2, 0)
    assert verdict("58 + 67 = 125", "125", tolerance="0").candidate_count == 3
    assert verdict("Kyoto\nTokyo", "Tokyo").candidate_count == 2
    assert verdict("Tokyo", "Tokyo").candidate_count == 1


def test_c10_an_answer_that_cannot_be_told_is_unparseable_and_not_wrong() -> None:
    long = "I would love to tell you about this great country whose history has many cities in it"
    assert verdict(long, "Tokyo") == Verdict("unparseable", False, False, [], [], 1, 0)
    assert verdict("seventy-two", "72", tolerance="0") == Verdict("unparseable", False, False, [], [], 0, 0)
    assert verdict("Answer: none", "72", tolerance="0").score_outcome == "unparseable"


@pytest.mark.parametrize("answer", ["The capital is To", "360", "<think>still thinking", "#### 7", "Answer: 7"])
def test_c11_the_output_limit_is_named_where_no_whole_line_is_left(answer: str) -> None:
    assert verdict(answer, "Tokyo", finish_reason="length").score_outcome == "truncated"
    assert verdict(answer, "3600", tolerance="0", finish_reason="length").score_outcome == "truncated"


def test_c11_whole_lines_and_closed_marks_are_judged_also_when_the_limit_came_later() -> None:
    assert verdict("Tokyo\nTokyo is a ci", "Tokyo", finish_reason="length").score_outcome == "right"
    assert verdict("\\boxed{72} because", "72", tolerance="0", finish_reason="length").score_outcome == "right"
    assert verdict('{"n": 72} since 36', "72", tolerance="0", finish_reason="length").score_outcome == "right"
    assert verdict("71\nand 72", "72", tolerance="0", finish_reason="length").score_outcome == "wrong"


@pytest.mark.parametrize("answer", [None, "", " \n\t", "<think>all was said here</think>\n"])
def test_c12_nothing_to_read_is_an_empty_answer(answer: str | None) -> None:
    assert verdict(answer, "Tokyo") == Verdict("empty", False, False, [], [], 0, 0)
    assert verdict(answer, "72", tolerance="1").score_outcome == "empty"


def test_requests_that_got_no_answer_keep_their_own_outcome() -> None:
    for given, outcome in (
        (Given("Tokyo", "not_started", "too_long"), "too_long"),
        (Given("Tokyo", "error", "failed"), "failed"),
        (Given("Tokyo", "timeout", "completed"), "failed"),
    ):
        assert judge_answer(answers=["Tokyo"], tolerance=None, given=given).score_outcome == outcome


@pytest.mark.parametrize(("known", "given"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_c19_composed_and_decomposed_letters_are_equal_and_counted(known: str, given: str) -> None:
    known_text, given_text = (unicodedata.normalize(form, "Hóa đơn") for form in (known, given))  # type: ignore[arg-type]
    found = verdict(f"Answer: {given_text}", known_text)
    assert (found.is_accepted, found.normalisation_count) == (True, 1)
    assert verdict(known_text, known_text).normalisation_count == 0


def test_c19_compatibility_forms_stay_different() -> None:
    assert not verdict("ＣＯ２", "CO2").is_accepted


@for_all(
    st.text() | st.text(alphabet='{}"\\:=#.,[]answerboxed 0123456789-\n<think>/'), st.sampled_from([None, "0", "1.5"])
)
def test_nothing_a_model_writes_raises(answer: str, tolerance: str | None) -> None:
    for finish_reason in ("end_token", "length"):
        verdict(answer, "12", tolerance=tolerance, finish_reason=finish_reason)  # type: ignore[arg-type]


def test_a_long_answer_is_judged_in_no_time() -> None:
    for piece in ("\n", "{", "\\boxed{", "is ", "1,", "Answer:", "*", '["'):
        verdict(piece * 20_000, "12", tolerance="0")
        verdict(piece * 20_000, "Tokyo")


def test_the_scorer_digest_of_answers_names_the_version_of_these_verdicts() -> None:
    """Fails when a change alters a verdict: raise the version in kinds.py, then write the new digests here."""
    texts = ["Tokyo", "It is Tokyo.", "Tokyo\n", "", "x", "Answer: 72", "72 or 73", "1.234", "<think>72", "a\nTokyo\nb"]
    found = [
        tuple(verdict(text, *known, tolerance=tolerance, finish_reason=reason))
        for text in texts
        for known, tolerance in ((["Tokyo"], None), (["72", "1234"], "0.5"))
        for reason in ("end_token", "length")
    ]  # type: ignore[misc]
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] == "7d0bc7ce0ba6646e"
    assert SCORER_DIGESTS["answers"] == hashlib.sha256(b"gpu-dossier judging of answers 1").hexdigest()
    assert SCORER_DIGESTS["extraction"] == SCORER_DIGEST
