"""The campaign: candidates, offers, charges, calendar and objective. Structs of campaign.toml."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from msgspec import Meta, field

from .charges import Allocation, Charge, Rental
from .digests import json_digest
from .offers import (
    Currency,
    EnergyPrice,
    ExchangeRate,
    Hours,
    Offer,
    Purchase,
    StaffHours,
    Table,
)
from .protocol import Percent, as_json
from .records.base import Label

Basis = Literal["measured", "quoted", "assumed", "claimed", "example"]
"""Strongest first. A derived figure names the weakest of its inputs."""

Volume = Annotated[int, Meta(ge=1, le=10**9)]
Preference = Literal["cheapest", "most_headroom", "fastest_corpus", "most_corpora"]
Seconds = Annotated[
    str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$", description="seconds, exact decimal, as a string, below 10^9")
]


class Objective(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is preferred among the configurations that pass every gate, and what each must keep to beside quality."""

    prefer: Preference
    tie_percent: Percent = "0"
    """Candidates within this width of the best are equivalent."""
    min_headroom_percent: Percent | None = None
    """Of the offered card's memory, free at the highest peak."""
    max_first_token_s: Seconds | None = None
    max_answer_s: Seconds | None = None
    """Time limits of one request, from sending to the first token and to the whole answer, at `time_percentile`."""
    time_percentile: Literal[50, 90, 95, 99] | None = None


class Candidate(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A configuration by its labels, and the offers it could be rented under."""

    id: Label
    label: Label
    variant: Label
    device: Label
    """Device name as the collector detects it."""
    batch: Annotated[int, Meta(ge=1)] = 1
    concurrency: Annotated[int, Meta(ge=1)] = 1
    configuration: Label | None = None
    """The configuration's key, where several were measured under these labels, as on two machines of one device."""
    offers: list[Label] = []


class Duration(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hours of one calendar phase and where they come from; an assumption names the person."""

    hours: Hours
    basis: Literal["measured", "quoted", "assumed", "example"]
    by: Label | None = None


class Calendar(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hours beside processing, which is measured. What is absent counts as not foreseen and is printed as such."""

    preparation: Duration | None = None
    calibration: Duration | None = None
    quantization: Duration | None = None
    evaluation: Duration | None = None
    rejected_trials: Duration | None = None
    restarts: Duration | None = None
    reload: Duration | None = None
    export: Duration | None = None


class Override(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person chose another candidate than the rules: printed on page one with name, day and reason."""

    candidate: Label
    by: Label
    on: dt.date
    because: Label


class Sensitivity(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By how much each input may be wrong, up or down. What is not declared is not varied, and is printed as such."""

    by: Label
    """Who answers for these ranges."""
    price_percent: Percent | None = None
    accepted_points: Percent | None = None
    """Percentage points of the documents accepted."""
    restarts_h: Hours | None = None
    utilisation_percent: Percent | None = None
    """Of the processing time: slower or faster by this much."""
    volume_percent: Percent | None = None


class Campaign(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """campaign.toml, whole."""

    format: Literal[1]
    question: Label
    dossier_id: Label
    revision: Annotated[int, Meta(ge=1)] = 1
    supersedes: Label | None = None
    prepared_for: Label | None = None
    issuer: Label | None = None
    as_of: dt.date
    issued: dt.date
    corpora_wanted: Volume = 1
    documents_per_corpus: Volume
    deadline_h: Hours | None = None
    currency: Currency | None = None
    """The currency everything is compared in; that of the first offer where not given."""
    objective: Objective
    candidates: list[Candidate] = field(name="candidate", default_factory=list)
    offers: list[Offer] = field(name="offer", default_factory=list)
    calendar: Calendar = Calendar()
    exchange_rates: list[ExchangeRate] = field(name="exchange_rate", default_factory=list)
    rentals: list[Rental] = field(name="rental", default_factory=list)
    charges: list[Charge] = field(name="charge", default_factory=list)
    allocation: Allocation = Allocation()
    purchase: Purchase | None = None
    energy: EnergyPrice | None = None
    staff: list[StaffHours] = []
    sensitivity: Sensitivity | None = None
    override: Override | None = None


def objective_digest(objective: Objective) -> str:
    """Return the digest that a run's header cites, so 'declared before the first run' can be checked."""
    plain = as_json(objective)
    assert isinstance(plain, dict)
    # A requirement that is not made is left out, so that objectives declared before it could be made keep their digest.
    return json_digest({name: value for name, value in plain.items() if value is not None})
