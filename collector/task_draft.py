"""Draft the task of documents that are labelled already: fields, types and prompt as their expected values suggest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from collector.contract.judging import normalise
from collector.contract.protocol import DocumentLine, Example, FieldRule
from collector.documents import PLACEHOLDER

MOST_LABELS = 12
_SPARE_TOKENS = 16


class TaskDraft(NamedTuple):
    """What [task] and the output limit could say; somebody must read it before freezing."""

    system: str
    prompt: str
    fields: list[FieldRule]
    examples: list[Example]
    max_new_tokens: int


def draft_task(documents: Sequence[DocumentLine]) -> TaskDraft:
    """Return a task for the expected values of these documents, its fields in the order in which they appear."""
    names = list(dict.fromkeys(name for document in documents for name in document.expected))
    fields = [_field(name, [document.expected.get(name) for document in documents]) for name in names]
    labelled = [f"The {rule.name} is one of {', '.join(rule.labels)}." for rule in fields if rule.type == "label"]
    answer = "{" + ", ".join(f'{json.dumps(name, ensure_ascii=False)}: "..."' for name in names) + "}"
    wanted = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    longest = max(len(json.dumps(document.expected, ensure_ascii=False)) for document in documents)
    return TaskDraft(
        system=" ".join(["You reply only with JSON.", *labelled]),
        prompt=f"{PLACEHOLDER}\n\nWrite the {wanted} of this document as JSON: {answer}",
        fields=fields,
        examples=_example(documents),
        # A token is seldom shorter than two characters; `check` counts where it is.
        max_new_tokens=longest // 2 + _SPARE_TOKENS,
    )


def _example(documents: Sequence[DocumentLine]) -> list[Example]:
    """Return the shortest development document as a worked example; what is measured cannot be one."""
    development = [one for one in documents if one.role == "development" and any(one.expected.values())]
    if not development:
        return []
    shortest = min(development, key=lambda one: (len(one.text), one.id))
    return [Example(document=shortest.text, answer=json.dumps(shortest.expected, ensure_ascii=False))]


def _field(name: str, values: Sequence[str | None]) -> FieldRule:
    known = [value for value in values if value is not None and value.strip()]
    date, money = FieldRule(name=name, type="date"), FieldRule(name=name, type="money")
    if known and all(normalise(date, value) is not None for value in known):
        return date
    # A plain whole number may as well be an invoice's: as money 007 and 7 would be equal.
    if known and all(normalise(money, value) is not None for value in known) and not all(map(str.isdigit, known)):
        return money
    labels = sorted(set(known))
    if 2 <= len(labels) <= MOST_LABELS and len(known) >= 2 * len(labels):
        return FieldRule(name=name, type="label", labels=labels)
    return FieldRule(name=name, type="text")
