"""Which requests share a batch, how their rows are padded, and with which token.

Neighbours in prompt length share a batch, so that little is padded: sorted by token count, ties in the order of the
pass, then cut into batches. What does not fill a batch is cut off at the short end: the longest prompts then run in a
whole batch, which is what a limit of memory is about. The batches run in the order of the pass, each where its first
document stands there: shortest first would let memory and speed drift for a reason of its own.

Rows are padded on the left, so that the last prompt token of each row stands at the end where generation starts, and
the padding is masked and takes no position. No setting of the tokenizer can change that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from collector.contract.errors import DossierError
from collector.contract.records.passes import PadTokenSource

from .base import EncodedPrompt

BATCHING = "by-length-1"
"""Engine flag: changes when other requests would share a batch, or other tokens or stamps come of it."""


class PadToken(NamedTuple):
    """The token that stands before a shorter row's prompt."""

    token_id: int
    source: PadTokenSource


class Padded(NamedTuple):
    """Rows of one length: token ids, a mask that is 1 on the prompt's own tokens, and the position of each token."""

    token_ids: list[list[int]]
    mask: list[list[int]]
    positions: list[list[int]]


def batches_by_length(prompts: Sequence[EncodedPrompt], size: int) -> list[list[EncodedPrompt]]:
    """Return the prompts in batches of `size`, one of them smaller where the number does not divide."""
    places = sorted(range(len(prompts)), key=lambda place: (len(prompts[place].token_ids), place))
    rest = len(places) % size
    cuts = [0, *range(rest or size, len(places) + 1, size)]
    groups = [places[start:end] for start, end in pairwise(cuts)]
    return [[prompts[place] for place in group] for group in sorted(groups, key=min)]


def pad_left(rows: Sequence[Sequence[int]], pad_id: int) -> Padded:
    """Return the rows padded on the left to the longest."""
    length = max(len(row) for row in rows)
    padding = [length - len(row) for row in rows]
    return Padded(
        token_ids=[[pad_id] * count + list(row) for count, row in zip(padding, rows, strict=True)],
        mask=[[0] * count + [1] * (length - count) for count in padding],
        positions=[[0] * count + list(range(length - count)) for count in padding],
    )


def pad_right(rows: Sequence[Sequence[int]], pad_id: int) -> Padded:
    """Return the rows padded on the right to the longest: where a whole text becomes a vector, each starts at 0."""
    length = max(len(row) for row in rows)
    return Padded(
        token_ids=[[*row, *[pad_id] * (length - len(row))] for row in rows],
        mask=[[1] * len(row) + [0] * (length - len(row)) for row in rows],
        positions=[list(range(length)) for _ in rows],
    )


def pad_token(tokenizer: Any, end_ids: Sequence[int], *, model: str) -> PadToken:
    """Return the tokenizer's own pad token, else its unknown token, else the end token; masked, each is harmless.

    Raises DossierError for a model that has none of them.
    """
    own = tokenizer.pad_token_id
    if own is not None:
        return PadToken(own, "tokenizer")
    if tokenizer.unk_token_id is not None:
        return PadToken(tokenizer.unk_token_id, "unknown_token")
    end = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else sorted(end_ids)
    if end:
        return PadToken(end[0], "end_token")
    raise DossierError(
        f"{model} has no pad, unknown or end token, so its requests cannot share a batch",
        next_step="name pad_token in the model's tokenizer_config.json, or leave [plan] batches out",
    )
