"""The steps file beside a run file: when each chunk or token of a request came, one line per request.

A request record holds the digest of its line, so the line is evidence while it is there, and deleting the file leaves
every chain valid. Microseconds, for a steps file is large: each is a stamp rounded by itself and then subtracted from
the one before, so that the sum of the deltas is never off by more than half a microsecond.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from .records.base import Count, Label, Phase, ShortId
from .records.requests import GapUnit
from .texts import STEPS_SUFFIX


class Steps(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: the stamps of one try of one document. Its key is that of the request record that cites it.

    tokens: tokens of each chunk, empty where the server does not count them, and where the unit is the token.
    live_rows: requests that were generating in each step, this one included; empty where the engine does not tell.
    """

    pass_id: ShortId
    phase: Phase
    document_id: Label
    try_index: Count
    unit: GapUnit
    first_us: Count
    """From the beginning of the pass, as the record's stamps."""
    deltas_us: list[Count]
    """From each stamp to the next one."""
    tokens: list[Count] = []
    live_rows: list[Count] = []

    def stamps_us(self) -> list[int]:
        """Return the stamps from the beginning of the pass."""
        return list(accumulate(self.deltas_us, initial=self.first_us))


class StepsTail(NamedTuple):
    """A steps file as found: `good_byte_count` ends after its last whole line."""

    good_byte_count: int
    byte_count: int


def microseconds(stamps_ns: Sequence[int], *, origin_ns: int = 0) -> tuple[int, list[int]]:
    """Return the first stamp and the deltas of the following ones, each of a stamp rounded half up by itself.

    A stamp before the one before it, which one clock cannot give, counts as equal to it.
    """
    rounded = ((max(0, stamp - origin_ns) + 500) // 1000 for stamp in stamps_ns)
    stamps = list(accumulate(rounded, max))
    return stamps[0], [later - earlier for earlier, later in pairwise(stamps)]


def steps_path(run_file: Path) -> Path:
    """Return the path of the run file's steps file: the same name with `.steps.jsonl`."""
    return run_file.with_name(run_file.name.removesuffix(".jsonl") + STEPS_SUFFIX)


def encode_steps(steps: Steps) -> str:
    """Return the line, without its newline: what `steps_digest` is taken of."""
    return msgspec.json.encode(steps).decode()


def decode_steps(line: bytes) -> Steps:
    """Return the steps of one line. Raises ValueError for anything else (msgspec's errors are ValueErrors)."""
    return msgspec.json.decode(line, type=Steps)


def steps_digest(line: str | bytes) -> str:
    """Return the sha256 of a line's bytes without its newline."""
    return hashlib.sha256(line.encode() if isinstance(line, str) else line).hexdigest()


def read_steps(path: Path) -> Iterator[Steps]:
    """Yield the lines of a steps file in order. A line that cannot be read is skipped: `reporter check` names it."""
    with path.open("rb") as stream:
        for line in stream:
            try:
                yield decode_steps(line)
            except ValueError:
                continue


def inspect_steps(path: Path) -> StepsTail:
    """Return where the last whole line of a steps file ends."""
    good = offset = 0
    with path.open("rb") as stream:
        for line in stream:
            offset += len(line)
            try:
                decode_steps(line)
            except ValueError:
                continue
            if line.endswith(b"\n"):
                good = offset
    return StepsTail(good, offset)


def generating_over_time(lines: Iterable[Steps]) -> list[tuple[int, int]]:
    """Return (microsecond, requests generating from then on) at each change; the last entry has none.

    A request generates from its first stamp to its last. The lines must be of one pass and phase: another pass has
    another beginning.
    """
    changes: Counter[int] = Counter()
    for line in lines:
        stamps = line.stamps_us()
        changes[stamps[0]] += 1
        changes[stamps[-1]] -= 1
    moments = sorted(moment for moment, change in changes.items() if change)
    return list(zip(moments, accumulate(changes[moment] for moment in moments), strict=True))
