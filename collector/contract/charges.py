"""Origin charges: what was really paid for the campaign, for which rental, and by which convention it is split."""

from __future__ import annotations

import datetime as dt
from typing import Literal, get_args

from msgspec import field

from .offers import Amount, Currency, Table
from .records.base import Label

Convention = Literal[
    "direct", "even", "proportional_usage", "proportional_direct", "fixed", "accepted_output", "unallocated"
]
"""How a shared origin charge becomes allocated charges; each keeps the total to the minor unit."""

CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
IdleMode = Literal["separate", "even", "weighted"]
ChargeCategory = Literal["usage", "purchase", "tax", "credit", "adjustment"]
"""FOCUS ChargeCategory."""


class Rental(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One machine rented from one moment to another, under one offer.

    Runs name their rental themselves; `runs` names the run ids of those that do not.
    """

    id: Label
    offer: Label
    start: dt.datetime = field(name="from")
    end: dt.datetime = field(name="to")
    runs: list[Label] = []


class Charge(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One invoice line, as it was paid: the amount of that line alone; tax is a line of its own.

    rental: the rental it pays for. candidate: the one candidate it is for. Neither: shared by the whole campaign.
    """

    id: Label
    invoice: Label
    issuer: Label
    line: Label
    on: dt.date
    amount: Amount
    currency: Currency
    category: ChargeCategory = "usage"
    description: Label
    rental: Label | None = None
    candidate: Label | None = None
    basis: Literal["quoted", "example"] = "quoted"
    """`quoted` means: as the invoice says."""


class Allocation(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The convention by which shared charges are split among candidates. It never changes the total paid.

    weights: candidate id -> share, for `fixed`; exact decimals or fractions such as "1/3" that sum to 1 exactly.
    reason: which criterion the choice follows: cause and effect, benefits received, ability to bear, fairness ...
    """

    convention: Convention = "proportional_usage"
    idle: IdleMode = "separate"
    weights: dict[str, str] = {}
    reason: Label | None = None
