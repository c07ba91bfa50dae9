"""One answer, one verdict: outcomes kept apart, required fields decide."""

from __future__ import annotations

import hashlib
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.judging import SCORER_DIGEST, SCORER_VERSION, Verdict, judge
from collector.contract.protocol import FieldRule
from collector.contract.records.requests import FinishReason, RequestOutcome

FIELDS = [
    FieldRule(name="date", type="date"),
    FieldRule(name="amount", type="money"),
    FieldRule(name="category", type="label", labels=["travel", "meals"]),
    FieldRule(name="note", type="text", is_required=False),
]
EXPECTED: dict[str, str | None] = {"date": "2026-04-03", "amount": "42.10", "category": "travel", "note": "Hóa đơn"}
RIGHT = '{"date": "3 April 2026", "amount": 42.1, "category": "Travel", "note": "Hóa đơn"}'


def verdict(
    answer: str | None,
    *,
    expected: dict[str, str | None] = EXPECTED,
    finish_reason: FinishReason = "end_token",
    request_outcome: RequestOutcome = "completed",
) -> Verdict:
    return judge(
        fields=FIELDS, expected=expected, answer=answer, finish_reason=finish_reason, request_outcome=request_outcome
    )


def test_a_right_answer_is_accepted_with_every_field_named() -> None:
    assert verdict(RIGHT) == Verdict("right", True, True, ["date", "amount", "category", "note"], [], 1, 0)


def test_one_wrong_required_field_is_enough_to_refuse() -> None:
    found = verdict(RIGHT.replace("42.1", "43"))
    assert (found.score_outcome, found.is_accepted, found.is_well_formed) == ("wrong", False, True)
    assert found.fields_wrong == ["amount"]


def test_a_field_that_is_not_required_is_reported_and_decides_nothing() -> None:
    found = verdict(RIGHT.replace("Hóa đơn", "receipt"))
    assert found.is_accepted
    assert found.fields_wrong == ["note"]


def test_further_keys_are_ignored() -> None:
    assert verdict(RIGHT.replace("}", ', "vendor": {"name": "x"}, "list": [1]}')).is_accepted


@pytest.mark.parametrize("written", ['"date": null,', '"date": "",', '"date": "  ",', ""])
def test_a_missing_value_is_right_as_null_blank_or_absent(written: str) -> None:
    answer = "{" + written + ' "amount": "42.10", "category": "travel"}'
    found = verdict(answer, expected={**EXPECTED, "date": None, "note": None})
    assert found.is_accepted
    assert found.is_well_formed


@pytest.mark.parametrize("written", ["null", '""', '"n/a"', '"2026-04-03"'])
def test_a_value_where_none_is_expected_and_none_where_one_is_are_wrong(written: str) -> None:
    answer = f'{{"date": {written}, "amount": "42.10", "category": "travel"}}'
    is_missing = written in ("null", '""')
    assert verdict(answer).is_accepted is (written == '"2026-04-03"')
    assert verdict(answer, expected={**EXPECTED, "date": None, "note": None}).is_accepted is is_missing


@pytest.mark.parametrize("value", ["[1]", "{}", "true", '["travel"]'])
def test_a_value_that_is_no_text_or_number_is_wrong_and_not_well_formed(value: str) -> None:
    found = verdict(RIGHT.replace('"Travel"', value))
    assert (found.score_outcome, found.is_well_formed, found.fields_wrong) == ("wrong", False, ["category"])


def test_an_object_without_the_required_fields_is_wrong_and_not_well_formed() -> None:
    found = verdict('{"answer": ' + RIGHT + "}")
    assert (found.score_outcome, found.is_well_formed) == ("wrong", False)


def test_c09_the_answer_after_the_reasoning_is_judged_and_the_document_has_several_candidates() -> None:
    found = verdict('<think>the example says {"date": "2020-01-01"}</think>' + RIGHT)
    assert found.is_accepted
    assert found.candidate_count > 1


@pytest.mark.parametrize("answer", ["The amount is 42.10.", "\\boxed{42.10}", '{"date": "2026-04-03", }'])
def test_c10_an_unknown_layout_is_unparseable_and_not_wrong(answer: str) -> None:
    assert verdict(answer) == Verdict("unparseable", False, False, [], [], 0, 0)


@pytest.mark.parametrize(
    "answer", ['{"invoice": "A-1', "prose without an end", '{"a": {"date": "2026-04-03"}, "b', "<think>still thinking"]
)
def test_c11_the_output_limit_outranks_the_parse_error(answer: str) -> None:
    assert verdict(answer, finish_reason="length").score_outcome == "truncated"
    assert verdict(answer).score_outcome in ("unparseable", "empty")


@pytest.mark.parametrize("tail", ["", "\nHere is why: the", "\n" + RIGHT[:20], '{"date": "2020-01-01", "amount'])
def test_c11_a_complete_object_is_judged_also_when_the_limit_came_later(tail: str) -> None:
    assert verdict(RIGHT + tail, finish_reason="length").score_outcome == "right"


def test_c11_a_wrong_complete_object_stays_wrong_when_the_limit_came_later() -> None:
    assert verdict('{"date": null}\n' + RIGHT[:30], finish_reason="length").score_outcome == "wrong"


@pytest.mark.parametrize("answer", [None, "", " \n\t", "\u00a0"])
@pytest.mark.parametrize("finish_reason", ["end_token", "length"])
def test_c12_null_or_blank_content_is_an_empty_answer(answer: str | None, finish_reason: FinishReason) -> None:
    assert verdict(answer, finish_reason=finish_reason) == Verdict("empty", False, False, [], [], 0, 0)


def test_c12_nothing_after_the_reasoning_is_an_empty_answer() -> None:
    assert verdict("<think>all was said here</think>\n").score_outcome == "empty"


def test_requests_that_got_no_answer_keep_their_own_outcome() -> None:
    assert verdict(RIGHT, request_outcome="too_long").score_outcome == "too_long"
    assert verdict(RIGHT, request_outcome="failed").score_outcome == "failed"
    assert verdict(None, request_outcome="failed", finish_reason="error").score_outcome == "failed"
    assert verdict(RIGHT, finish_reason="timeout").score_outcome == "failed"


def test_c19_comparisons_made_equal_by_normalisation_are_counted() -> None:
    found = verdict(unicodedata.normalize("NFD", RIGHT))
    assert found.is_accepted
    assert found.normalisation_count == 1


def test_c19_keys_are_normalised_too() -> None:
    rule = FieldRule(name="ngày", type="date")
    answer = unicodedata.normalize("NFD", '{"ngày": "2026-04-03"}')
    found = judge(
        fields=[rule], expected={"ngày": "2026-04-03"}, answer=answer, finish_reason="end_token",
        request_outcome="completed",
    )  # fmt: skip
    assert found.is_accepted


@given(st.text() | st.text(alphabet='{}":,[]date amount0123456789-\\u'))
def test_nothing_a_model_writes_raises(answer: str) -> None:
    verdict(answer)
    verdict('{"date": ' + json.dumps(answer) + ', "amount": ' + json.dumps(answer) + ', "category": "\\ud800"}')


def test_the_scorer_digest_names_the_version_and_the_version_these_verdicts() -> None:
    """Fails when a change alters a verdict: raise SCORER_VERSION, then write the new digest here."""
    answers = [
        RIGHT, RIGHT + RIGHT[:30], "<think>" + RIGHT, "", "x",
        '{"date": "03/04/26", "amount": "42,10 €", "category": "TRAVEL"}',
        '{"date": "04/03/2026", "amount": "1.234", "category": "meals"}',
        '{"date": "April 3rd, 2026", "amount": "(42.10)"}',
        '{"date": "2026-04-03", "date": null}', '{"a": ' + RIGHT + ",}", "[" + RIGHT + ', {"date": 1}]',
    ]  # fmt: skip
    verdicts = [verdict(answer, finish_reason=reason)[:7] for answer in answers for reason in ("end_token", "length")]
    digest = hashlib.sha256(json.dumps(verdicts).encode()).hexdigest()
    assert hashlib.sha256(SCORER_VERSION.encode()).hexdigest() == SCORER_DIGEST
    assert (SCORER_VERSION, digest[:16]) == ("gpu-dossier judging 1", "e2da3ea6aa07f057")
