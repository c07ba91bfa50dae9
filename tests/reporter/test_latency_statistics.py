"""Intervals of repetitions agree with scipy, and are null where a spread between processes cannot be seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reporter.latency_statistics import FEWEST_REPETITIONS, mean_interval, ratio, ratio_interval

MEDIANS = st.lists(st.floats(0.01, 100), min_size=3, max_size=12).filter(lambda found: max(found) / min(found) > 1.001)


@given(MEDIANS)
def test_the_interval_of_a_mean_agrees_with_scipys_t(medians: list[float]) -> None:
    bounds = mean_interval(medians)
    expected = stats.t.interval(0.95, len(medians) - 1, np.mean(medians), stats.sem(medians))
    assert bounds is not None
    assert list(bounds) == pytest.approx(expected)


@pytest.mark.parametrize(("count", "factor"), [(3, 2.48), (5, 1.24), (10, 0.72), (20, 0.47), (30, 0.37)])
def test_the_half_width_is_the_published_multiple_of_the_standard_deviation(count: int, factor: float) -> None:
    medians = [10 + (-1) ** i * (1 + i / 100) for i in range(count)]
    bounds = mean_interval(medians)
    assert bounds is not None
    assert (bounds.high - bounds.low) / 2 / np.std(medians, ddof=1) == pytest.approx(factor, abs=0.005)


@given(MEDIANS, MEDIANS)
def test_the_interval_of_a_ratio_agrees_with_scipys_welch_test_on_logarithms(
    own: list[float], reference: list[float]
) -> None:
    bounds = ratio_interval(own, reference)
    found = stats.ttest_ind(np.log(own), np.log(reference), equal_var=False).confidence_interval(0.95)
    assert bounds is not None
    assert list(bounds) == pytest.approx([math.exp(found.low), math.exp(found.high)])
    assert bounds.low <= ratio(own, reference) <= bounds.high


def test_fewer_than_three_repetitions_and_repetitions_without_spread_have_no_interval() -> None:
    assert mean_interval([1.0, 1.1]) is None
    assert mean_interval([1.0, 1.0, 1.0]) is None
    assert ratio_interval([1.0, 1.1], [1.0, 1.1, 1.2]) is None
    assert ratio_interval([1.0] * 3, [2.0] * 3) is None
    assert ratio_interval([1.0] * 3, [2.0, 2.1, 2.2]) is not None
    assert FEWEST_REPETITIONS == 3


def test_a_ratio_of_zero_times_has_no_interval() -> None:
    assert ratio_interval([0.0, 1.0, 2.0], [1.0, 1.1, 1.2]) is None
