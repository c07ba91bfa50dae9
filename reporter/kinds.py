"""What a dossier says of the kind of work: what was asked for, and from when on an answer is accepted."""

from __future__ import annotations

from collections.abc import Mapping

from collector.contract.protocol import AnswersBy, LockedTrial, TaskKind

from .dossier import Sentence
from .wording import sentence

_SUBTITLES: Mapping[tuple[TaskKind, AnswersBy], str] = {
    ("answers", "generation"): "subtitle_answers",
    ("ranking", "generation"): "subtitle_ranking",
    ("ranking", "embedding"): "subtitle_embedding",
}


def work_sentence(trial: LockedTrial, documents: str, *, role: str, answers_by: AnswersBy) -> Sentence:
    """Return what was asked, of how many documents of which role; `documents` is a figure's reference."""
    key = _SUBTITLES.get((trial.task_kind, answers_by))
    if key is None:
        fields = ", ".join(field.name for field in trial.fields)
        return sentence("subtitle_workload", fields=fields, documents=documents, role="@" + role)
    return sentence(key, documents=documents, role="@" + role)


def prompt_limit_sentence(answers_by: AnswersBy, tokens: str) -> Sentence:
    """Return that nothing longer was tested; `tokens` is a figure's reference: a prompt's, or all texts' of a query."""
    return sentence("limit_embedded" if answers_by == "embedding" else "limit_prompt", tokens=tokens)


def acceptance_sentence(trial: LockedTrial) -> Sentence:
    """Return from when on an answer is accepted: required fields, known answers, a measure's threshold, or a scorer."""
    scorer = trial.scorer
    if scorer is not None and scorer.entry_point is not None:
        return sentence("gate_scorer_function", scorer=scorer.entry_point)
    if scorer is not None:
        return sentence("gate_scorer_command", scorer=" ".join(scorer.command))
    if trial.ranking is not None:
        rule = trial.ranking
        return sentence(f"gate_ranking_{rule.metric}", k=str(rule.k), value=rule.accept_from)
    if trial.task_kind == "answers":
        return sentence("gate_answers")
    return sentence("gate_required", fields=", ".join(field.name for field in trial.fields if field.is_required))
