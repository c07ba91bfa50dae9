"""The clock: calendar stamps are UTC whatever the zone of the machine; durations never come from them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from collector.clock import FakeClock, SystemClock
from collector.contract.times import instant_ns


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    os.environ.setdefault("TZ", "UTC")
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_d23_the_zone_of_the_machine_is_in_no_stamp() -> None:
    clock = SystemClock()
    before, stamp, after = time.time_ns() // 1000, clock.utc(), time.time_ns() // 1000
    assert before <= instant_ns(stamp) // 1000 <= after


def test_d23_a_run_across_the_change_of_the_clocks_lasts_as_long_as_it_did() -> None:
    clock = FakeClock(start_utc="2026-10-25T00:30:00.000000Z")
    begin_ns, began = clock.monotonic_ns(), clock.utc()
    clock.advance_ns(3600 * 10**9)
    assert clock.monotonic_ns() - begin_ns == 3600 * 10**9
    assert (began, clock.utc()) == ("2026-10-25T00:30:00.000000Z", "2026-10-25T01:30:00.000000Z")


def test_the_system_clock_sleeps_until_the_deadline_and_never_goes_back() -> None:
    clock = SystemClock()
    deadline_ns = clock.monotonic_ns() + 5_000_000
    clock.sleep_until_ns(deadline_ns)
    assert clock.monotonic_ns() >= deadline_ns
