"""Reads the common ISO 8601 variants of an instant; the contract itself writes one of them only."""

from __future__ import annotations

import datetime as dt
import re

_STAMP = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})[Tt ](?P<time>\d{2}:\d{2}:\d{2})(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?P<offset>[Zz]|[+-]\d{2}(?::?\d{2})?)",
    re.ASCII,
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND = dt.timedelta(seconds=1)


def instant_ns(stamp: str) -> int:
    """Return the instant as whole nanoseconds since 1970-01-01 UTC, so that equal instants are equal integers.

    Accepts `Z`, `+00:00`, `+0700` and `+07`, no fraction or one of 1 to 9 digits, `T` or a space.

    Raises ValueError for anything else: a stamp without an offset names no instant, and an impossible date none either.
    """
    match = _STAMP.fullmatch(stamp)
    if match is None:
        raise ValueError(f"{stamp!r} is not an ISO 8601 instant with an offset (Z or +hh:mm)")
    offset = match["offset"].upper()
    if len(offset) == 5:
        offset = f"{offset[:3]}:{offset[3:]}"
    try:
        whole = dt.datetime.fromisoformat(f"{match['date']}T{match['time']}{offset}")
        seconds = (whole - _EPOCH) // _SECOND
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{stamp!r} is no possible instant: {error}") from None
    return seconds * 1_000_000_000 + int((match["fraction"] or "0").ljust(9, "0"))


def canonical_utc(stamp: str) -> str:
    """Return the stamp as the contract writes it: UTC, microseconds, `Z`; nanoseconds are cut, never rounded up.

    Raises ValueError as `instant_ns` does, and for an instant outside the years 1 to 9999 in UTC.
    """
    microseconds = instant_ns(stamp) // 1000
    try:
        moment = _EPOCH + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        raise ValueError(f"{stamp!r} lies outside the years 1 to 9999 in UTC") from None
    return utc_stamp(moment)


def utc_stamp(moment: dt.datetime) -> str:
    """Return an aware datetime as the contract writes it. Raises ValueError for a naive one: it names no instant."""
    if moment.utcoffset() is None:
        raise ValueError(f"{moment!r} has no time zone")
    return moment.astimezone(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
