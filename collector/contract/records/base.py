"""The envelope that every record line carries, and the scalar types the kinds share."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

FORMAT_MAJOR = 1
"""Major of the record contract; a file with a newer major is set aside, never guessed at."""

MAX_LINE_BYTES = 1_000_000
"""A record line is shorter than this, newline excluded."""

# A pattern's `$` also matches before a last newline; the length closes that gap.
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64, description="lower-case hexadecimal sha256")]
Hmac = Annotated[
    str,
    Meta(pattern="^[0-9a-f]{64}$", max_length=64, description="HMAC-SHA256 of a text, keyed by the protocol's salt"),
]
ShortId = Annotated[
    str, Meta(pattern="^[0-9a-f]{16}$", max_length=16, description="first 16 hexadecimal digits of a sha256")
]
UtcStamp = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$",
        max_length=27,
        description="UTC, microseconds, Z",
    ),
]
Label = Annotated[str, Meta(min_length=1, max_length=200)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Signed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1, description="bytes; 1 GiB = 2^30 bytes")]
Nanoseconds = Annotated[int, Meta(ge=0, le=2**63 - 1, description="nanoseconds of a monotonic clock")]
OffsetNs = Annotated[
    int, Meta(ge=0, le=2**63 - 1, description="nanoseconds since the pass began, by the worker's clock")
]

Stage = Literal["pilot", "validation", "test"]
Phase = Literal["build", "load", "warmup", "measure", "reload"]
Role = Literal["development", "calibration", "validation", "test"]
LengthClass = Literal["short", "usual", "long"]
ObservedAt = Literal["loaded", "after_warmup"]
CacheKind = Literal["dynamic", "static", "sliding_window", "quantized", "offloaded", "engine", "none"]
FailureCause = Literal[
    "out_of_memory", "killed", "crashed", "timeout", "load_failure", "missing_operator", "missing_dependency",
    "connection", "truncation", "format", "quality", "too_long", "engine_error", "protocol", "scorer",
]  # fmt: skip
MissingReason = Literal[
    "unsupported", "not_permitted", "not_exposed_by_engine", "too_few_samples", "invalidated_by_graph",
    "not_measured", "not_applicable", "failed",
]  # fmt: skip


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """One line of a run file.

    The journal fills the envelope; producers leave it at its defaults, which `check` refuses in a file.

    run_id: 32 hexadecimal digits, drawn once per file.
    seq: 0, 1, 2 ... without a gap.
    prev: sha256 of the previous line's bytes without its newline; 64 zeros for the first line.
    written_at: wall clock at writing; durations never come from it.
    missing: field name -> why that field is null. A null is never a zero.
    """

    run_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$", max_length=32)] = ""
    seq: Count = 0
    prev: Sha256 = ""
    written_at: UtcStamp = ""
    missing: dict[str, MissingReason] = {}


ENVELOPE = ("run_id", "seq", "prev", "written_at")
