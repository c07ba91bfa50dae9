"""The campaign: candidates, offers, calendar and objective. Structs of campaign.toml."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from .digests import json_digest
from .protocol import Percent, as_json
from .records.base import Label

Basis = Literal["measured", "quoted", "assumed", "claimed", "example"]
"""Strongest first. A derived figure names the weakest of its inputs."""

Amount = Annotated[
    str, Meta(pattern=r"^-?[0-9]{1,15}(\.[0-9]{1,9})?$", description="exact decimal, as a string, below 10^15")
]
Hours = Annotated[
    str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$", description="hours, exact decimal, as a string, below 10^9")
]
Volume = Annotated[int, Meta(ge=1, le=10**9)]
Currency = Annotated[str, Meta(pattern="^[A-Z]{3}$", description="ISO 4217 code")]
Preference = Literal["cheapest", "most_headroom", "fastest_corpus", "most_corpora"]
PricingClass = Literal["on_demand", "reserved", "interruptible", "quote"]
PACKAGE_DAYS = (3, 7, 30)


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of campaign.toml: unknown keys are refused."""


class Objective(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is preferred among the configurations that pass every gate."""

    prefer: Preference
    tie_percent: Percent = "0"
    """Candidates within this width of the best are equivalent."""


class Candidate(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class Offer(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One price list of one provider for one machine, whole packages. Amounts are net of tax unless said otherwise."""

    id: Label
    provider: Label
    device: Label
    device_count: Annotated[int, Meta(ge=1)] = 1
    device_memory_gib: Amount | None = None
    mig_profile: Label | None = None
    pricing_class: PricingClass
    currency: Currency
    price_3_days: Amount | None = None
    price_7_days: Amount | None = None
    price_30_days: Amount | None = None
    prices_are: Literal["net", "gross"] = "net"
    tax_percent: Percent
    basis: Literal["quoted", "assumed", "example"]
    source: Label
    retrieved: dt.date
    valid_until: dt.date


class Duration(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hours of one calendar phase and where they come from; an assumption names the person."""

    hours: Hours
    basis: Literal["measured", "quoted", "assumed", "example"]
    by: Label | None = None


class Calendar(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hours beside processing, which is measured. What is absent counts as not foreseen and is printed as such."""

    preparation: Duration | None = None
    calibration: Duration | None = None
    quantization: Duration | None = None
    evaluation: Duration | None = None
    rejected_trials: Duration | None = None
    restarts: Duration | None = None
    reload: Duration | None = None
    export: Duration | None = None


class Campaign(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    objective: Objective
    candidates: list[Candidate] = msgspec.field(name="candidate", default_factory=list)
    offers: list[Offer] = msgspec.field(name="offer", default_factory=list)
    calendar: Calendar = Calendar()


def objective_digest(objective: Objective) -> str:
    """Return the digest that a run's header cites, so 'declared before the first run' can be checked."""
    return json_digest(as_json(objective))
