"""The dossier as data: figures, tables of figures and sentences, in no language. Pages are made from this alone."""

from __future__ import annotations

from typing import Literal

import msgspec

from collector.contract.protocol import AnswersBy, TaskKind

Basis = Literal["measured", "quoted", "assumed", "claimed", "example"]
"""Strongest first (mission A3)."""

BASES: tuple[Basis, ...] = ("measured", "quoted", "assumed", "claimed", "example")

Unit = Literal[
    "documents", "requests", "records", "tokens", "passes", "packages", "corpora", "bytes", "nanoseconds", "seconds",
    "hours", "days", "percent", "percentage_points", "points", "probability", "tokens_per_second",
    "documents_per_hour", "requests_per_second", "bits", "ratio", "rows", "minor_units", "amount", "millijoules",
    "count", "text",
]  # fmt: skip

Value = int | float | str | None


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """An interval of a figure, in the figure's unit."""

    low: float
    high: float
    level_percent: float
    method: str
    """`wilson`, `order_statistics` ..."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One printed number and everything needed to re-check it.

    figure_id: `<sql file>/<row key>/<column>`, e.g. `quality/cpu~fp32~1~1/accepted_documents`.
    value: raw and unrounded, in `unit`; null with `missing_reason`. Money is an integer of minor units in `currency`;
    a quotient of money is an `amount` of its major unit.
    basis: the weakest basis of its inputs; `is_derived` says whether a formula stands between.
    sources: `run_id:seq` of the records, up to 20; `record_count` counts all of them.
    """

    figure_id: str
    value: Value
    unit: Unit
    basis: Basis
    is_derived: bool = False
    bases: list[Basis] = []
    """Every basis that entered a derived figure, the weakest first; empty where there is only `basis`."""
    formula: str | None = None
    n: int | None = None
    interval: Interval | None = None
    currency: str | None = None
    missing_reason: str | None = None
    query_digest: str | None = None
    """sha256 of the SQL text that computed it."""
    record_count: int = 0
    file_digests: list[str] = []
    """Head digest (sealed) or sha256 (open) of each run file that contributed."""
    sources: list[str] = []


def number(figure: Figure | None) -> float | None:
    """Return a figure's value as a number; null where there is no figure, no value, or a text."""
    return float(figure.value) if figure is not None and isinstance(figure.value, int | float) else None


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence in no language: a key of `wording.SENTENCES` and its parameters.

    A parameter that starts with `#` is a figure id and is printed as that figure, with `@` a word of
    `wording.WORDS`, with `~` an ISO date; any other is printed as it is.
    """

    key: str
    parameters: dict[str, str] = {}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row: labels are texts (names, ids, vocabulary), cells are figure ids."""

    key: str
    labels: dict[str, str] = {}
    cells: dict[str, str] = {}
    sentences: list[Sentence] = []


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One table of the dossier, named after its SQL file (or after selection's step for money)."""

    name: str
    grain: str
    """`one row per ...`, as the SQL file's first line says."""
    rows: list[Row]


Status = Literal[
    "recommended", "equivalent", "feasible", "reference", "not_priced", "excluded", "undecided", "rejected", "failed",
    "not_measured",
]  # fmt: skip
"""In the order of the decision page's table."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Page one: the answer, its reasons, what would change it, what it does not show."""

    has_winner: bool
    recommendation: Sentence
    reasons: list[Sentence]
    headline: list[str]
    """Up to four figure ids, each with a caption sentence of the same index."""
    headline_captions: list[Sentence]
    chart_finding: Sentence
    would_change: list[Sentence]
    does_not_show: list[Sentence]
    prices_valid_until: str | None
    """ISO date, or null where no price was given."""
    has_preferred: bool = False
    """Nobody wins, and of the equivalents one is preferred since it was reloaded and can be explained."""
    override: list[Sentence] = []
    """What a person decided, with name, day and reason; the recommendation stays what the rules say."""


ConfirmationStatus = Literal[
    "confirmed", "not_confirmed", "not_finished", "other_choice", "looked_at_again", "judged_again",
    "nothing_recommended", "not_looked_at", "no_test_documents",
]  # fmt: skip


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """What the test documents say of the recommendation. They never change it: validation alone chooses."""

    status: ConfirmationStatus
    verdict: Sentence | None
    """One sentence for page one; null where there is nothing to say."""
    look_count: int
    remarks: list[Sentence] = []
    """What the verdict must be read with, beside it on page one."""


class Dossier(msgspec.Struct, frozen=True, kw_only=True):
    """dossier.json: the whole document as data. Same input, same bytes."""

    dossier_format: int = 1
    dossier_id: str
    revision: int
    supersedes: str | None
    question: str
    issuer: str | None
    prepared_for: str | None
    issued: str
    as_of: str
    """The date every validity is judged at; no clock is read."""
    protocol_id: str
    protocol_name: str
    task_kind: TaskKind = "extraction"
    answers_by: AnswersBy = "generation"
    plan_ids: list[str]
    stages: list[str]
    frozen_at: str
    first_run_at: str | None
    objective_declared_before: bool | None
    objective_digest: str | None = None
    """Digest of the campaign's objective; null without a campaign."""
    records_digest: str
    """sha256 over the sorted head digests of all run files."""
    has_example_prices: bool
    subtitle: list[Sentence]
    decision: Decision
    confirmation: Confirmation | None = None
    """Null where the judged stage is the test stage itself."""
    figures: dict[str, Figure]
    tables: dict[str, Table]
    not_tested: list[Sentence]
    notices: list[Sentence]
    """What a reader must know: lines set aside, open files, newer files, unsteady gates."""
    gates: list[Sentence]
    """The acceptance rules in words."""


def dossier_json(dossier: Dossier) -> bytes:
    """Return dossier.json: one line, keys in a fixed order; same dossier, same bytes."""
    return msgspec.json.encode(dossier, order="deterministic") + b"\n"
