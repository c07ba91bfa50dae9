"""Finding the answer in what a model wrote."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from collector.contract.judging import parse_answer
from collector.contract.judging.parse import JsonNumber, split_reasoning


@pytest.mark.parametrize(
    ("text", "expected", "count"),
    [
        ('{"a": "1"}', {"a": "1"}, 1),
        ('Sure! Here it is:\n```json\n{"a": "1"}\n```\nAnything else?', {"a": "1"}, 1),
        ('{"a": "1"} or rather {"a": "2"}', {"a": "2"}, 2),
        ('[{"a": "1"}, {"a": "2"}]', {"a": "2"}, 2),
        ('{"a": {"b": {"c": "1"}}}', {"a": {"b": {"c": "1"}}}, 1),
        ('{"a": "brace } and { in a string, quote \\" too"}', {"a": 'brace } and { in a string, quote " too'}, 1),
        ('a set {x, y} first, then {"a": "1"}', {"a": "1"}, 1),
        ('{{"a": "1"}}', {"a": "1"}, 1),
        ('an open quote {"a: {"a": "1"} and the rest', {"a": "1"}, 1),
        ('{"a": "1"} and then {"a": "2', {"a": "1"}, 1),
        ('{"outer": {"a": "1"}, }', {"a": "1"}, 1),
        ("{}", {}, 1),
    ],
)
def test_the_last_complete_object_counts_wherever_it_stands(text: str, expected: object, count: int) -> None:
    parsed = parse_answer(text)
    assert (parsed.object, parsed.candidate_count) == (expected, count)


@pytest.mark.parametrize(
    "text",
    [
        "no object at all",
        '{"a": "1"',
        '{"invoice": {"date": "2026-01-01"}, "amo',  # what is complete inside was not the answer yet
        '{"a": [{"b": "1"}, ',
        "{'a': '1'}",
        '{"a": 1,}',
        '{"a": NaN}',
        '{"a": 01}',
        '{"a": "line\nbreak"}',
        "{" * 5000,
        '{"a":' * 5000,
        '{"x' * 5000,
    ],
)
def test_what_is_no_complete_strict_json_object_is_none(text: str) -> None:
    assert parse_answer(text).object is None


@pytest.mark.parametrize(
    "text",
    [
        '<think>{"a": "12"}</think>{"a": "40"}',
        '<THINK>maybe {"a": "12"}?</Think>\n{"a": "40"}',
        '<thinking>{"a": "12"}</thinking>{"a": "40"}',
        '<reasoning>{"a": "12"}</reasoning>{"a": "40"}',
        '[THINK]{"a": "12"}[/THINK]{"a": "40"}',
        '◁think▷{"a": "12"}◁/think▷{"a": "40"}',
        '<|channel|>analysis<|message|>{"a": "12"}<|end|><|start|>assistant<|channel|>final<|message|>{"a": "40"}',
        'the template opened it: {"a": "12"}</think>{"a": "40"}',
        '<think>one <think>two</think> {"a": "12"} </think>{"a": "40"}',
        '{"a": "40"}<think>was that right? {"a": "12"}</think>',
        '{"a": "40"}<think>was that right? {"a": "12"}',
    ],
)
def test_c09_objects_quoted_while_reasoning_are_counted_and_never_taken(text: str) -> None:
    parsed = parse_answer(text)
    assert parsed.object == {"a": "40"}
    assert parsed.candidate_count == 2
    assert parsed.had_reasoning


def test_c09_reasoning_that_is_never_closed_reaches_to_the_end() -> None:
    parsed = parse_answer('<think>perhaps {"a": "12"}, and so on')
    assert parsed.object is None
    assert not parsed.has_text


def test_what_stood_on_both_sides_of_reasoning_does_not_become_one_object() -> None:
    assert parse_answer('{"a": 1<think>hm</think>2}').object is None


def test_of_a_key_given_twice_the_last_value_stands() -> None:
    assert parse_answer('{"a": "1", "b": "x", "a": "2"}').object == {"a": "2", "b": "x"}


def test_numbers_keep_their_literal_and_say_that_they_were_numbers() -> None:
    found = parse_answer('{"a": 42.10, "b": 123456789012345678901234567890, "c": 1e999999, "d": "7"}').object
    assert found == {"a": "42.10", "b": "123456789012345678901234567890", "c": "1e999999", "d": "7"}
    assert [isinstance(value, JsonNumber) for value in found.values()] == [True, True, True, False]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), _JSON, max_size=4), st.booleans())
def test_any_object_is_found_again_behind_any_harmless_text(value: dict[str, object], is_ascii: bool) -> None:
    text = f"Answer {{draft}}: {json.dumps(value, ensure_ascii=is_ascii)} done"
    outside, reasoning = split_reasoning(text)
    assume(outside == text and not reasoning)  # a mark of reasoning counts wherever it stands, also in a string
    found = parse_answer(text).object
    assert json.dumps(found, default=str) == json.dumps(_numbers_as_text(value))


@given(st.dictionaries(st.text(), _JSON, min_size=1, max_size=4), st.data())
def test_no_proper_beginning_of_an_object_holds_a_candidate(value: dict[str, object], data: st.DataObject) -> None:
    whole = json.dumps(value)
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert parse_answer(whole[:cut]).candidate_count == 0


@given(st.text(alphabet='{}[]":,ab1\\ \n<think>/'))
def test_nothing_a_model_writes_raises(text: str) -> None:
    parse_answer(text)


@pytest.mark.parametrize("unit", ["{", '{"a":', '{"x', '{"a":{"b":1},', '{"a":[', "<think>", "</think>", '{"a":"{'])
def test_long_nonsense_is_read_in_a_moment(unit: str) -> None:
    began = time.perf_counter()
    parse_answer(unit * (20_000 // len(unit)))
    assert time.perf_counter() - began < 5


def _numbers_as_text(value: object) -> object:
    if isinstance(value, dict):
        return {key: _numbers_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers_as_text(item) for item in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
