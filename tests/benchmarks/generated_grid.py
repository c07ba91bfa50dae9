"""The grid of a generated campaign: cards, variants, cells, and how each differs from the recorded machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

GIB = 2**30
MODEL_SCALE = 30
"""Bytes and elements of the recorded small model are multiplied by this, so that a card's memory can run out."""


class Card(NamedTuple):
    """One machine with one card. speed: its time per token against the recorded machine's."""

    name: str
    memory_gib: int
    speed: float

    @property
    def slug(self) -> str:
        return self.name.lower().replace(" ", "-")


class VariantKind(NamedTuple):
    """One variant. like: the recorded variant whose set-up records it takes.

    time: against the reference. accepts: how hard a document it still answers right, in standard deviations.
    """

    name: str
    like: str
    dtype: str
    quantization: str
    time: float
    accepts: float


class Cell(NamedTuple):
    batch: int
    concurrency: int


CARDS = (
    Card("Generated GPU A 24 GiB", 24, 0.20),
    Card("Generated GPU B 48 GiB", 48, 0.11),
    Card("Generated GPU C 80 GiB", 80, 0.06),
    Card("Generated GPU D 80 GiB", 80, 0.05),
    Card("Generated GPU E 141 GiB", 141, 0.035),
)
VARIANTS = (
    VariantKind("fp32", "fp32", "float32", "none", 1.0, 1.00),
    VariantKind("bf16", "bf16", "bfloat16", "none", 0.55, 0.99),
    VariantKind("fp16", "bf16", "float16", "none", 0.54, 0.99),
    VariantKind("int8", "int8", "float32", "torchao_int8", 0.80, 0.92),
    VariantKind("nf4", "nf4", "float32", "bnb_nf4", 0.70, 0.60),
    VariantKind("bf16-nf4", "nf4", "bfloat16", "bnb_nf4", 0.48, 0.55),
)
CELLS = (Cell(1, 1), Cell(2, 1), Cell(4, 1), Cell(8, 1))


@dataclass(frozen=True)
class Grid:
    """What is generated. The first variant in the first cell is the reference of every card.

    has_failures: memory runs out where the card is too small, one attempt is killed, one repetition never ran, one
    document is too long for everyone and one request fails now and then.
    """

    cards: tuple[Card, ...] = CARDS
    variants: tuple[VariantKind, ...] = VARIANTS
    cells: tuple[Cell, ...] = CELLS
    repetitions: int = 5
    documents: int = 300
    warmup_requests: int = 5
    seed: int = 1
    has_failures: bool = True
    has_texts: bool = False

    @classmethod
    def first(cls, cards: int, variants: int, cells: int, repetitions: int, documents: int, *, seed: int = 1) -> Grid:
        """Return the grid of the first so many of each."""
        return cls(CARDS[:cards], VARIANTS[:variants], CELLS[:cells], repetitions, documents, seed=seed)

    def is_killed_once(self, card: int, variant: int, cell: int, repetition: int) -> bool:
        return self.has_failures and (card, variant, cell, repetition) == (0, 1, 0, 2)

    def never_ran(self, card: int, variant: int, cell: int, repetition: int) -> bool:
        return self.has_failures and repetition == self.repetitions > 1 and (card, variant, cell) == (
            len(self.cards) - 1, len(self.variants) - 1, 0,
        )  # fmt: skip
