"""Records about the run as a whole: its header, documents, decisions, warnings, failures and seal."""

from __future__ import annotations

from typing import Literal

from .base import (
    Count,
    FailureCause,
    Hmac,
    Label,
    LengthClass,
    Nanoseconds,
    Phase,
    Positive,
    Record,
    Role,
    Sha256,
    ShortId,
    Signed,
    Stage,
    UtcStamp,
)

FailureScope = Literal["run", "variant", "pass", "request"]
DecisionKind = Literal[
    "stopped", "resumed", "tail_cut", "batch_reduced", "restarted", "skipped", "override", "choice_confirmed",
    "test_set_looked_at",
]  # fmt: skip


class Header(Record, frozen=True, kw_only=True, tag="header"):
    """One per file, its first line: what was frozen, for which money, by which collector."""

    format: Positive
    stage: Stage
    protocol_json: str
    """The lock: fields, rules, gates, subsets, generation, plan; every text only as its HMAC."""
    protocol_id: Sha256
    plan_id: Sha256
    rental_id: Label | None = None
    objective_digest: Sha256 | None = None
    """Digest of the campaign's objective, so that 'declared before the first run' can be checked."""
    collector_version: str
    collector_commit: str | None = None
    wall_at: UtcStamp
    """Wall clock read together with `monotonic_ns`: one pair, to place monotonic stamps in calendar time."""
    monotonic_ns: Nanoseconds
    source_head_digest: Sha256 | None = None
    """Set in a file of re-judged scores: head digest of the run that was scored again."""


class Document(Record, frozen=True, kw_only=True, tag="document"):
    """One per document of the run's stage."""

    document_id: Label
    role: Role
    length_class: LengthClass
    is_hard: bool
    subsets: list[str]
    cluster: Label
    """Documents made from one template or source share a cluster: they are not independent."""
    language: str | None = None
    text_hmac: Hmac
    expected_hmac: Hmac


class Warning(Record, frozen=True, kw_only=True, tag="warning"):
    """A library or environment message worth keeping; its text is in the texts file."""

    pass_id: ShortId | None = None
    phase: Phase | None = None
    warning_class: Label
    message_hmac: Hmac | None = None
    repeat_count: Count = 1


class Failure(Record, frozen=True, kw_only=True, tag="failure"):
    """A failure of a run, variant, pass or request. Failures are results; none is deleted."""

    failure_scope: FailureScope
    failure_cause: FailureCause
    pass_id: ShortId | None = None
    variant_id: ShortId | None = None
    document_id: Label | None = None
    phase: Phase | None = None
    exception_class: str | None = None
    exit_code: Signed | None = None
    """Exit code of the worker; negative for a signal, as the operating system reports it."""
    message_hmac: Hmac | None = None


class Decision(Record, frozen=True, kw_only=True, tag="decision"):
    """Something a person or the collector decided while running: kept, never silent."""

    decision: DecisionKind
    decided_by: Label
    """`collector`, or the name of the person."""
    pass_id: ShortId | None = None
    detail: dict[str, str] = {}


class Seal(Record, frozen=True, kw_only=True, tag="seal"):
    """The last line of a finished run. A file without it is open: its tail is unprotected."""

    record_counts: dict[str, Count]
    """Kind -> number of records before this line."""
    head_digest: Sha256
    """sha256 of this very line with this value replaced by 64 zeros: the digest that names the file."""
