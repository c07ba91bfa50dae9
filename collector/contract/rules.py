"""The rules of the record contract by name, with what to do where one is broken."""

from __future__ import annotations

from typing import NamedTuple

_DAMAGED = "restore the file from a copy; a line changed after writing is no evidence"
_WRITER = "mend the program that wrote this line; the reporter sets the line aside and counts it"
_UPGRADE = "upgrade gpu-dossier to read it"

RULES: dict[str, str] = {
    "not-json": _DAMAGED,
    "encoding": _DAMAGED,
    "trailing-data": _DAMAGED,
    "duplicate-key": _WRITER,
    "not-finite": _WRITER,
    "integer-range": _WRITER,
    "envelope": _WRITER,
    "missing-field": _WRITER,
    "wrong-type": _WRITER,
    "vocabulary": _WRITER,
    "pattern": _WRITER,
    "bound": _WRITER,
    "value-changed": _WRITER,
    "too-long": "store long content as texts, which have a file of their own",
    "impossible-stamp": _WRITER,
    "stamp-order": _WRITER,
    "null-without-reason": _WRITER,
    "missing-map": _WRITER,
    "gap-buckets": _WRITER,
    "failure-without-cause": _WRITER,
    "document-order": _WRITER,
    "newer-format": _UPGRADE,
    "header": "restore the first line of the file from a copy; without it nothing in the file can be interpreted",
    "chain": _DAMAGED,
    "seal": _DAMAGED,
    "after-seal": "remove nothing by hand: restore the file from a copy, or keep it out of the campaign",
    "torn-tail": "run the collector with --resume: it cuts the torn line and records that it did",
    "unknown-kind": _UPGRADE,
    "unknown-field": _UPGRADE,
    "not-canonical": "nothing to do: the line means the same, though this collector would have written it otherwise",
}
"""Rule -> next step. The names are stable: tests, pages and other people's scripts may rely on them."""

NOTICES = frozenset({"torn-tail", "unknown-kind", "unknown-field", "not-canonical"})
"""Rules that are told and counted but spoil nothing: everything else sets the line or the file aside."""


class Problem(NamedTuple):
    """One broken rule, and what was found."""

    rule: str
    message: str

    @property
    def is_notice(self) -> bool:
        """True where the record is still good evidence."""
        return self.rule in NOTICES

    @property
    def next_step(self) -> str:
        """What to do about it."""
        return RULES[self.rule]
