"""Compares answers given alone with the same answers given in a batch, before a batched pass measures anything."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from collector.contract.records import BatchCheck
from collector.engines.base import Answer, Padding

MAX_EMPTIED = 1
"""One answer that becomes empty may be chance; more mean that padding or mask are wrong (transformers issue 25790)."""


class SpoiledAnswers(RuntimeError):
    """Being batched loses or replaces answers: the pass would measure a fault of padding."""


def compared(
    alone: Mapping[str, Answer], together: Mapping[str, Answer], *, padding: Padding, batch: int
) -> BatchCheck:
    """Return the comparison of the documents that were answered alone; its ids are left for the worker to fill.

    A document that failed in the batch alone counts as emptied, with no token in common.
    """
    checked = [name for name, answer in alone.items() if answer.request_outcome == "completed"]
    differing = [name for name in checked if alone[name].token_ids != together[name].token_ids]
    return BatchCheck(
        pass_id="", variant_id="", batch=batch, checked_document_ids=checked, differing_document_ids=differing,
        emptied_document_ids=[name for name in checked if _has_text(alone[name]) and not _has_text(together[name])],
        first_difference_tokens=[_common(alone[name].token_ids, together[name].token_ids) for name in differing],
        padding_side=padding.side, pad_token_source=padding.source,
    )  # fmt: skip


def require_answers(check: BatchCheck) -> None:
    """Raise SpoiledAnswers where a batch answers something else, not the same with a late difference in rounding.

    That is where more than one answer became empty, or more than half have not even their first token in common.
    """
    checked, emptied = check.checked_document_ids, check.emptied_document_ids
    pairs = zip(check.differing_document_ids, check.first_difference_tokens, strict=True)
    other = [name for name, common in pairs if common == 0]
    if len(emptied) > MAX_EMPTIED:
        told = f"{len(emptied)} of {len(checked)} documents have an answer alone and none in a batch of {check.batch}: "
        told += ", ".join(emptied)
    elif 2 * len(other) > len(checked):
        told = f"{len(other)} of {len(checked)} documents are answered otherwise from the first token on in a batch of "
        told += f"{check.batch}: {', '.join(other)}"
    else:
        return
    raise SpoiledAnswers(
        f"{told}; padded on the {check.padding_side} with the token of source {check.pad_token_source}. This model or "
        "its attention does not keep to the mask: measure it one request at a time, or with another attention"
    )


def _has_text(answer: Answer) -> bool:
    return bool(answer.text and answer.text.strip())


def _common(one: list[int], other: list[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
