"""Instants: the contract writes one form, the parser reads the common ones."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.times import canonical_utc, instant_ns, utc_stamp

NOON = 1_773_489_600_000_000_000
"""2026-03-14T12:00:00Z"""


@pytest.mark.parametrize(
    ("stamp", "offset_ns"),
    [
        ("2026-03-14T12:00:00.000000Z", 0),
        ("2026-03-14T12:00:00Z", 0),
        ("2026-03-14T12:00:00+00:00", 0),
        ("2026-03-14T19:00:00+07:00", 0),
        ("2026-03-14T19:00:00+0700", 0),
        ("2026-03-14T19:00:00+07", 0),
        ("2026-03-14T08:30:00.000-03:30", 0),
        ("2026-03-14 12:00:00z", 0),
        ("2026-03-14T12:00:00.000000000Z", 0),
        ("2026-03-14T12:00:00.123456789Z", 123_456_789),
        ("2026-03-14T12:00:00,5Z", 500_000_000),
        ("2026-03-14T19:00:00.25+07:00", 250_000_000),
    ],
)
def test_d07_common_iso_variants_are_read_and_equal_instants_are_equal(stamp: str, offset_ns: int) -> None:
    assert instant_ns(stamp) == NOON + offset_ns


@pytest.mark.parametrize(
    "stamp",
    ["", "2026-03-14", "2026-03-14T12:00:00", "2026-03-14T12:00:00.Z", "2026-03-14T12:00:00.1234567890Z", "now",
     "2026-02-30T12:00:00Z", "2026-03-14T24:00:00Z", "2026-03-14T12:00:60Z", "2026-03-14T12:00:00+25:00",
     "2026-03-14T12:00:00Z\n", "٢٠٢٦-03-14T12:00:00Z"],
)  # fmt: skip
def test_d07_a_stamp_without_offset_or_with_an_impossible_date_is_refused(stamp: str) -> None:
    with pytest.raises(ValueError, match="instant"):
        instant_ns(stamp)


def test_d07_nanoseconds_are_cut_to_the_contracts_microseconds() -> None:
    assert canonical_utc("2026-03-14T19:00:00.999999999+07:00") == "2026-03-14T12:00:00.999999Z"


def test_an_instant_before_the_year_1_in_utc_is_refused() -> None:
    with pytest.raises(ValueError, match="years 1 to 9999"):
        canonical_utc("0001-01-01T00:00:00+07:00")


def test_a_naive_moment_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        utc_stamp(dt.datetime(2026, 3, 14))


@given(st.datetimes(min_value=dt.datetime(2, 1, 1), max_value=dt.datetime(9998, 1, 1)), st.integers(-1439, 1439))
def test_any_moment_in_any_zone_reads_back_as_itself(moment: dt.datetime, zone_minutes: int) -> None:
    aware = moment.replace(tzinfo=dt.timezone(dt.timedelta(minutes=zone_minutes)))
    assert canonical_utc(aware.isoformat()) == utc_stamp(aware)
    assert instant_ns(utc_stamp(aware)) == instant_ns(aware.isoformat())
