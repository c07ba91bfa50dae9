"""Durations that a response itself carries, by the engine's own clock; `server_kinds` says from where to where.

Nothing here is subtracted from or added to a stamp of the client: the engine's clock is another one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from collector.contract.protocol import ServerKind
from collector.contract.server_kinds import KINDS

NS_PER_MS = 1_000_000
MAX_MS = 1e10
"""Longer than any request: what exceeds it (some four months) is no duration."""


class EngineTimings(NamedTuple):
    """Nanoseconds of one request by the engine's clock; null where the response tells none."""

    queue_ns: int | None = None
    prefill_ns: int | None = None
    decode_ns: int | None = None


def engine_timings(kind: ServerKind, told: object) -> EngineTimings:
    """Return what a response's timings object says; `told` is that object, or the whole chunk that holds it."""
    timings = KINDS[kind].timings
    if timings is None or not isinstance(told, Mapping):
        return EngineTimings()
    inner = told.get(timings.object_name, told)
    if not isinstance(inner, Mapping):
        return EngineTimings()
    found = {phase: _nanoseconds(inner.get(field)) for phase, field in timings.fields_ms.items()}
    return EngineTimings(found.get("queue"), found.get("prefill"), found.get("decode"))


def _nanoseconds(value_ms: object) -> int | None:
    """Return whole nanoseconds; null for what is no finite duration."""
    if isinstance(value_ms, bool) or not isinstance(value_ms, int | float):
        return None
    if not math.isfinite(value_ms) or not 0 <= value_ms < MAX_MS:
        return None
    return round(value_ms * NS_PER_MS)
