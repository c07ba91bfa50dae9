"""What a dossier says of the kind of work, from the lock alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from collector.contract.protocol import FieldRule, Gates, Generation, Limits, LockedScorer, LockedTrial, RankingRule
from reporter.graded_statistics import mean_of_values
from reporter.kinds import acceptance_sentence, prompt_limit_sentence, work_sentence

TRIAL = LockedTrial(
    format=1, name="n", task_kind="extraction", prompt_hmac="0" * 64, system_hmac="0" * 64,
    fields=[FieldRule(name="date", type="date"), FieldRule(name="note", type="text", is_required=False)],
    missing_value="null", permission="p", review="r", generation=Generation(max_new_tokens=1), gates=Gates(),
    limits=Limits(), reference="v", documents_digest="0" * 64,
)  # fmt: skip
SCORER = LockedScorer(entry_point="own:score", command=[], files_sha256="0" * 64, timeout_s=1.0)


def changed(**values: Any) -> LockedTrial:
    return msgspec.structs.replace(TRIAL, **values)


@pytest.mark.parametrize(
    ("trial", "key", "parameters"),
    [
        (TRIAL, "gate_required", {"fields": "date"}),
        (changed(task_kind="answers", fields=[]), "gate_answers", {}),
        *(
            (
                changed(task_kind="ranking", fields=[], ranking=RankingRule(metric=metric, k=3, accept_from="0.50")),
                f"gate_ranking_{metric}",
                {"k": "3", "value": "0.50"},
            )
            for metric in ("ndcg", "mrr", "recall")
        ),
        (changed(scorer=SCORER), "gate_scorer_function", {"scorer": "own:score"}),
        (
            changed(
                task_kind="answers", scorer=msgspec.structs.replace(SCORER, entry_point=None, command=["awk", "x"])
            ),
            "gate_scorer_command",
            {"scorer": "awk x"},
        ),
    ],
)
def test_the_rule_for_one_document_is_said_in_words(trial: LockedTrial, key: str, parameters: dict[str, str]) -> None:
    said = acceptance_sentence(trial)
    assert said.key == key
    assert dict(said.parameters) == parameters


@pytest.mark.parametrize(
    ("kind", "answers_by", "key"),
    [
        ("extraction", "generation", "subtitle_workload"), ("answers", "generation", "subtitle_answers"),
        ("ranking", "generation", "subtitle_ranking"), ("ranking", "embedding", "subtitle_embedding"),
    ],
)  # fmt: skip
def test_the_subtitle_names_the_kind_of_work(kind: Any, answers_by: Any, key: str) -> None:
    said = work_sentence(changed(task_kind=kind), "workload/all~all/document_count", role="test", answers_by=answers_by)
    assert said.key == key
    assert said.parameters["role"] == "@test"
    assert "documents" in said.parameters


def test_the_longest_tested_is_a_prompt_or_a_query_with_its_candidates() -> None:
    assert prompt_limit_sentence("generation", "x").key == "limit_prompt"
    assert prompt_limit_sentence("embedding", "x").key == "limit_embedded"


def test_the_interval_of_a_mean_of_values_stays_between_0_and_1() -> None:
    values = [1.0] * 9 + [0.6]
    bounds = mean_of_values(values)
    assert bounds is not None
    assert bounds.high == 1.0
    assert bounds.low == pytest.approx(0.96 - 2.2621571628 * 0.1264911064 / 10**0.5)
    assert mean_of_values([0.5, 0.7]) is None, "two values say nothing about their spread"
    assert mean_of_values([0.5] * 10) is None
