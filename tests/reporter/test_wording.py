"""Every sentence that code can say exists, with exactly its parameters, and none is left unsaid."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import reporter
from collector.contract import matching
from collector.contract.campaign import Preference
from collector.contract.judging.gates import GateRule
from collector.contract.records.base import FailureCause, Phase, Role
from collector.contract.records.passes import MemoryScope
from reporter.wording import SENTENCES, WORDS, placeholders, sentence

SOURCES = sorted(Path(str(reporter.__file__)).parent.glob("*.py"))


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call of `sentence(...)` with the place it stands at."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sentence":
                yield f"{path.name}:{node.lineno}", node


def literal_keys(node: ast.expr) -> list[str]:
    """The keys an argument can be where it is written out; none for a computed one."""
    if isinstance(node, ast.IfExp):
        return [*literal_keys(node.body), *literal_keys(node.orelse)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def wanted(key: str) -> set[str]:
    wording = SENTENCES[key]
    return placeholders(wording.message) | (placeholders(wording.plural) if wording.plural else set())


def test_every_sentence_said_exists_and_gets_exactly_its_parameters() -> None:
    seen = 0
    for place, call in calls():
        given = {keyword.arg for keyword in call.keywords}
        for key in literal_keys(call.args[0]):
            seen += 1
            assert key in SENTENCES, f"{place}: {key}"
            if None not in given:
                assert given == wanted(key), f"{place}: {key}"
    assert seen > 80


def test_no_sentence_is_left_unsaid() -> None:
    constants = {
        node.value
        for path in [*SOURCES, Path(matching.__file__)]  # why an offer is for another machine is told in the contract
        if path.name != "wording.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    stems = {"verdict_reference_", "verdict_", "notice_mismatch_", "subtitle_frozen_"}
    assert stems <= constants
    unsaid = [
        key
        for key in SENTENCES
        if key not in constants
        and not any(key.startswith(stem) and key.removeprefix(stem) in constants for stem in stems)
        and key.removesuffix("_plain") not in constants
    ]
    assert unsaid == []


@pytest.mark.parametrize("key", list(SENTENCES))
def test_a_plural_has_the_placeholders_of_its_message_and_is_decided_by_one_of_them(key: str) -> None:
    wording = SENTENCES[key]
    if wording.plural is None:
        assert wording.by is None
    else:
        assert wording.by in wanted(key)
        assert placeholders(wording.message) <= placeholders(wording.plural)


def test_a_sentence_with_missing_or_foreign_parameters_is_an_error() -> None:
    assert sentence("verdict_rejected_lost", lost="6", allowed="2").parameters == {"lost": "6", "allowed": "2"}
    with pytest.raises(ValueError, match="wants"):
        sentence("verdict_rejected_lost", lost="6")
    with pytest.raises(ValueError, match="wants"):
        sentence("verdict_recommended", extra="1")
    with pytest.raises(KeyError):
        sentence("no_such_key")


@pytest.mark.parametrize("vocabulary", [Preference, FailureCause, Phase, Role, MemoryScope])
def test_every_word_of_a_vocabulary_that_a_sentence_may_print_is_worded(vocabulary: object) -> None:
    assert set(get_args(vocabulary)) <= set(WORDS)


def test_rules_without_a_subset_are_worded() -> None:
    assert {rule for rule in get_args(GateRule) if not rule.startswith("subset")} <= set(WORDS)


def test_messages_hold_no_digit_and_no_percent_sign_that_should_come_from_a_figure() -> None:
    zero = {"cost_not_defined", "cost_not_defined_incomplete", "cost_not_defined_not_judged"}
    allowed = {*zero, "limit_one_request"}
    for key, wording in SENTENCES.items():
        text = wording.message + (wording.plural or "")
        assert "%" not in text, key
        assert key in allowed or not any(character.isdigit() for character in text), key
