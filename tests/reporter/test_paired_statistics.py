"""Outcomes against a margin follow the interval exactly; what N documents can decide agrees with known sample sizes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.paired_statistics import (
    Pairs,
    documents_needed,
    margin_outcome,
    share_outcome,
    smallest_decidable_points,
)
from reporter.statistics import tango


@pytest.mark.parametrize(
    ("points", "pairs", "outcome"),
    [
        ("5", Pairs(180, 5, 3, 12), "accept"),  # -4.43 to 2.16 points
        ("4", Pairs(180, 5, 3, 12), "inconclusive"),
        ("1", Pairs(150, 30, 5, 15), "reject"),  # far below -1
        ("3", Pairs(20, 0, 0, 0), "inconclusive"),  # no change, but 20 documents decide no 3 points
        ("20", Pairs(20, 0, 0, 0), "accept"),
        ("0", Pairs(180, 5, 3, 12), "inconclusive"),
        ("3", Pairs(0, 0, 0, 0), "inconclusive"),
    ],
)
def test_the_interval_accepts_above_the_margin_rejects_below_it_and_leaves_the_rest_open(
    points: str, pairs: Pairs, outcome: str
) -> None:
    assert margin_outcome(points, pairs) == outcome


@given(st.tuples(*[st.integers(0, 90)] * 4).filter(any), st.integers(0, 3000))
def test_the_outcome_is_that_of_the_printed_interval(table: tuple[int, int, int, int], hundredths: int) -> None:
    points = f"{hundredths // 100}.{hundredths % 100:02d}"
    bounds = tango(*table)
    assert bounds is not None
    outcome = margin_outcome(points, Pairs(*table))
    assert (outcome == "accept") is (Fraction(bounds.low) > -Fraction(points) / 100)
    assert (outcome == "reject") is (Fraction(bounds.high) < -Fraction(points) / 100)


def test_a_share_is_accepted_only_where_its_whole_interval_reaches_what_the_rule_wants() -> None:
    assert share_outcome("90", 190, 200) == "accept"  # 91.0 to 97.3
    assert share_outcome("95", 190, 200) == "inconclusive"
    assert share_outcome("98", 190, 200) == "reject"
    assert share_outcome("95", 0, 0) == "inconclusive"


@pytest.mark.parametrize("discordant", [0, 1, 4, 10, 30])
def test_the_smallest_decidable_margin_is_where_an_evenly_changed_variant_turns_from_undecided_to_accepted(
    discordant: int,
) -> None:
    smallest = smallest_decidable_points(200, discordant)
    assert smallest is not None
    even = Pairs(200 - discordant, discordant - discordant // 2, discordant // 2, 0)
    assert margin_outcome(f"{smallest + 0.01:.4f}", even) == "accept"
    assert margin_outcome(f"{smallest - 0.01:.4f}", even) == "inconclusive"


def test_few_documents_decide_only_a_wide_margin_and_none_decide_nothing() -> None:
    # without a discordant pair the lower limit is -z^2 / (N + z^2): 56 points for three documents
    assert smallest_decidable_points(3, 0) == pytest.approx(100 * 3.8415 / (3 + 3.8415), abs=0.01)
    assert smallest_decidable_points(0, 0) is None


@pytest.mark.parametrize(
    ("points", "share", "level", "power", "wanted"),
    [
        ("1", 0.05, 90, 80, 3092),
        ("1", 0.05, 95, 90, 5254),
        ("2", 0.05, 90, 80, 773),
        ("5", 0.10, 90, 80, 248),
        ("5", 0.10, 95, 90, 421),
    ],
)
def test_documents_needed_are_those_of_the_published_sample_sizes(
    points: str, share: float, level: float, power: float, wanted: int
) -> None:
    assert documents_needed(points, share, level_percent=level, power_percent=power) == wanted


@given(st.integers(1, 2000))
def test_documents_needed_without_a_discordant_pair_are_the_fewest_that_the_interval_decides(hundredths: int) -> None:
    points = f"{hundredths // 100}.{hundredths % 100:02d}"
    fewest = documents_needed(points, 0.0)
    assert fewest is not None
    assert margin_outcome(points, Pairs(fewest, 0, 0, 0)) == "accept"
    assert fewest == 1 or margin_outcome(points, Pairs(fewest - 2, 0, 0, 0)) == "inconclusive"


def test_no_number_of_documents_decides_a_margin_of_zero() -> None:
    assert documents_needed("0", 0.05) is None
