"""Intervals agree with hand-checked values, with scipy and statsmodels, and hold their level in simulation."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, quantile_test

from reporter import statistics as s


@pytest.mark.parametrize(
    ("accepted", "total", "low", "high"),
    [(190, 200, 0.9104, 0.9726), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 2, 0.0945, 0.9055)],
)
def test_wilson_agrees_with_values_worked_by_hand(accepted: int, total: int, low: float, high: float) -> None:
    bounds = s.wilson(accepted, total)
    assert bounds is not None
    assert bounds == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy_everywhere(case: tuple[int, int]) -> None:
    expected = binomtest(*case).proportion_ci(method="wilson")
    bounds = s.wilson(*case)
    assert bounds is not None
    assert bounds == (pytest.approx(expected.low, abs=1e-12), pytest.approx(expected.high, abs=1e-12))


def test_wilson_of_nothing_is_null_and_of_nonsense_refused() -> None:
    assert s.wilson(0, 0) is None
    with pytest.raises(ValueError, match="no share"):
        s.wilson(3, 2)


@pytest.mark.parametrize(("percent", "fewest"), s.MINIMUM_N.items())
def test_quantile_interval_exists_exactly_from_the_smallest_n_of_the_table(percent: int, fewest: int) -> None:
    assert None in s.quantile_interval_ranks(fewest - 1, percent)
    assert None not in s.quantile_interval_ranks(fewest, percent)
    # both limits exist iff p^n <= alpha/2 and (1-p)^n <= alpha/2
    for n in range(1, fewest + 40):
        exists = (percent / 100) ** n <= 0.025 and (1 - percent / 100) ** n <= 0.025
        assert (None not in s.quantile_interval_ranks(n, percent)) is exists


def test_quantile_interval_of_the_median_of_ten_is_the_second_and_ninth_value() -> None:
    # P(B <= 1) = 11/1024 = 0.0107 <= 0.025 < P(B <= 2) = 56/1024, and the same from above
    assert s.quantile_interval_ranks(10, 50) == (2, 9)


@pytest.mark.parametrize("percent", [50, 90, 95])
def test_quantile_interval_is_the_tightest_that_the_definition_allows(percent: int) -> None:
    from scipy.stats import binom

    for n in (*range(1, 130), 1000, 4001):
        low, high = s.quantile_interval_ranks(n, percent)
        p = percent / 100
        if low is not None:
            assert binom.cdf(low - 1, n, p) <= 0.025 < binom.cdf(low, n, p)
        else:
            assert binom.cdf(0, n, p) > 0.025
        if high is not None:
            assert binom.sf(high - 1, n, p) <= 0.025 < binom.sf(high - 2, n, p)
        else:
            assert binom.sf(n - 1, n, p) > 0.025


def test_quantile_interval_is_never_tighter_than_scipys_test_inversion() -> None:
    values = sorted(random.Random(4).lognormvariate(0, 0.5) for _ in range(100))
    for percent in (50, 90):
        low, high = s.quantile_interval_ranks(100, percent)
        assert low is not None
        assert high is not None
        theirs = quantile_test(values, p=percent / 100).confidence_interval(0.95)
        assert values[low - 1] <= theirs.low
        assert values[high - 1] >= theirs.high


def test_quantile_interval_covers_the_true_percentile_at_its_level() -> None:
    """Seeded simulation, log-normal(0, 0.5): coverage is at least the level, less the simulation's own noise."""
    from statistics import NormalDist

    draws = random.Random(20260101)
    for n, percent in ((30, 50), (100, 50), (100, 90), (400, 95)):
        truth = 2.718281828459045 ** (0.5 * NormalDist().inv_cdf(percent / 100))
        low, high = s.quantile_interval_ranks(n, percent)
        assert low is not None
        assert high is not None
        hits = 0
        for _ in range(600):
            values = sorted(draws.lognormvariate(0, 0.5) for _ in range(n))
            hits += values[low - 1] <= truth <= values[high - 1]
        assert 0.935 <= hits / 600 <= 0.999, (n, percent, hits / 600)


@given(st.integers(1, 5000), st.integers(1, 99))
def test_quantile_rank_is_the_first_value_that_reaches_the_percentile(n: int, percent: int) -> None:
    rank = s.quantile_rank(n, percent)
    assert 1 <= rank <= n
    assert 100 * rank >= percent * n
    assert rank == 1 or 100 * (rank - 1) < percent * n


@pytest.mark.parametrize(("lost", "gained", "p"), [(0, 1, 1.0), (8, 16, 0.1516), (5, 3, 0.7266), (40, 30, 0.2820)])
def test_mcnemar_gives_the_exact_p_of_the_published_tables(lost: int, gained: int, p: float) -> None:
    assert s.mcnemar_exact(lost, gained) == pytest.approx(p, abs=1e-4)


@given(st.integers(0, 200), st.integers(0, 200))
def test_mcnemar_agrees_with_scipys_binomial_test(lost: int, gained: int) -> None:
    if lost + gained:
        expected = binomtest(min(lost, gained), lost + gained, 0.5).pvalue
        assert s.mcnemar_exact(lost, gained) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_without_a_discordant_pair_is_one() -> None:
    assert s.mcnemar_exact(0, 0) == 1.0


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        ((43, 0, 1, 0), -0.05939, 0.11808),
        ((53, 8, 16, 9), -0.01966, 0.20691),
        ((180, 5, 3, 12), -0.04431, 0.02160),
        ((9900, 40, 30, 30), -0.00271, 0.00066),
    ],
)
def test_tango_gives_the_published_limits(table: tuple[int, int, int, int], low: float, high: float) -> None:
    bounds = s.tango(*table)
    assert bounds == (pytest.approx(low, abs=1e-5), pytest.approx(high, abs=1e-5))


@given(st.tuples(*[st.integers(0, 60)] * 4).filter(any))
def test_tango_contains_the_difference_stays_in_range_and_mirrors(table: tuple[int, int, int, int]) -> None:
    both, lost, gained, neither = table
    bounds, mirrored = s.tango(both, lost, gained, neither), s.tango(both, gained, lost, neither)
    assert bounds is not None
    assert mirrored is not None
    assert -1 <= bounds.low <= (gained - lost) / sum(table) <= bounds.high <= 1
    assert (bounds.low, bounds.high) == (pytest.approx(-mirrored.high), pytest.approx(-mirrored.low))


def test_tango_without_pairs_is_null_and_without_discordant_pairs_has_width() -> None:
    assert s.tango(0, 0, 0, 0) is None
    bounds = s.tango(50, 0, 0, 0)
    assert bounds is not None
    assert bounds.low < 0 < bounds.high


def test_tango_covers_the_true_difference_at_its_level() -> None:
    """Seeded simulation, N = 100, true difference -2 points: coverage .93 to .985 (published .956)."""
    draws = random.Random(7)
    hits = 0
    for _ in range(1000):
        cells = [0, 0, 0, 0]
        for u in (draws.random() for _ in range(100)):
            cells[0 if u < 0.90 else 1 if u < 0.93 else 2 if u < 0.94 else 3] += 1
        bounds = s.tango(*cells)
        assert bounds is not None
        hits += bounds.low <= -0.02 <= bounds.high
    assert 0.93 <= hits / 1000 <= 0.985, hits
