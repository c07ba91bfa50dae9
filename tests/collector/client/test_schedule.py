"""The schedule of an open loop is a pure function of count, rate, arrivals and seed."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys

import pytest

from collector.client.schedule import due_offsets_ns


def test_a_seed_gives_these_arrivals_in_every_process_and_version() -> None:
    """Written down, so that a run can be repeated with the arrivals that its record names by their seed."""
    expected = [0, 39131484, 55483330, 160732892, 168252271]
    assert due_offsets_ns(5, rate_per_s=10, arrivals="poisson", seed=7) == expected
    code = (
        "from collector.client.schedule import due_offsets_ns;"
        "print(due_offsets_ns(5, rate_per_s=10, arrivals='poisson', seed=7))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(expected)


def test_drawn_gaps_have_the_mean_and_the_spread_of_a_poisson_process() -> None:
    offsets_ns = due_offsets_ns(20_001, rate_per_s=50, arrivals="poisson", seed=1)
    gaps_s = [(later - earlier) / 1e9 for earlier, later in itertools.pairwise(offsets_ns)]
    assert statistics.fmean(gaps_s) == pytest.approx(1 / 50, rel=0.02)
    assert statistics.stdev(gaps_s) / statistics.fmean(gaps_s) == pytest.approx(1, abs=0.03)
    assert sum(gap < 0.02 * 0.6931 for gap in gaps_s) / len(gaps_s) == pytest.approx(0.5, abs=0.02)


def test_arrivals_never_fall_begin_at_once_and_a_longer_schedule_goes_on_where_a_shorter_one_ended() -> None:
    long = due_offsets_ns(500, rate_per_s=3, arrivals="poisson", seed=2)
    assert long[0] == 0
    assert all(earlier <= later for earlier, later in itertools.pairwise(long))
    assert due_offsets_ns(20, rate_per_s=3, arrivals="poisson", seed=2) == long[:20]
    assert due_offsets_ns(20, rate_per_s=3, arrivals="poisson", seed=3) != long[:20]


def test_constant_arrivals_do_not_drift() -> None:
    """Each is counted from the first, so that rounding one gap does not move all that follow."""
    offsets_ns = due_offsets_ns(3001, rate_per_s=3, arrivals="constant", seed=0)
    assert offsets_ns[:4] == [0, 333_333_333, 666_666_667, 1_000_000_000]
    assert offsets_ns[3000] == 1_000_000_000_000
    assert due_offsets_ns(0, rate_per_s=3, arrivals="constant", seed=0) == []


def test_a_closed_loop_and_a_loop_without_a_rate_have_no_schedule() -> None:
    with pytest.raises(ValueError, match="closed loop"):
        due_offsets_ns(5, rate_per_s=10, arrivals="closed", seed=7)
    with pytest.raises(ValueError, match="above 0"):
        due_offsets_ns(5, rate_per_s=0, arrivals="poisson", seed=7)
