"""Outcomes against a margin follow the interval exactly; what N documents can decide agrees with known sample sizes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from reporter.paired_statistics import (
    FEWEST_CLUSTERS,
    ClusterSums,
    Pairs,
    documents_needed,
    holm,
    margin_outcome,
    share_documents_needed,
    share_outcome,
    smallest_decidable_points,
    tango_clustered,
)
from reporter.statistics import documents_for_bound, mcnemar_exact, tango, upper_bound, wilson


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


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_agrees_with_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_holm_of_no_test_is_empty_and_of_one_unchanged() -> None:
    assert holm([]) == []
    assert holm([0.04]) == [0.04]
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_agrees_with_statsmodels(lost: int, gained: int) -> None:
    if lost + gained:
        expected = mcnemar([[10, lost], [gained, 10]], exact=True).pvalue
        assert mcnemar_exact(lost, gained) == pytest.approx(expected)


def newcombe(both: int, lost: int, gained: int, neither: int) -> tuple[float, float]:
    """Newcombe's (1998) method 10, the cross-check of Tango."""
    n = both + lost + gained + neither
    own, reference = wilson(both + gained, n), wilson(both + lost, n)
    assert own is not None
    assert reference is not None
    p_own, p_reference = (both + gained) / n, (both + lost) / n
    product = (both + lost) * (gained + neither) * (both + gained) * (lost + neither)
    mixed = both * neither - lost * gained
    corrected = max(mixed - n / 2, 0.0) if mixed > 0 else mixed
    phi = corrected / product**0.5 if product else 0.0

    def reach(a: float, b: float) -> float:
        return float((a * a - 2 * phi * a * b + b * b) ** 0.5)

    difference = (gained - lost) / n
    low = difference - reach(p_own - own.low, reference.high - p_reference)
    return low, difference + reach(p_reference - reference.low, own.high - p_own)


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        ((43, 0, 1, 0), -0.05972, 0.11808),
        ((53, 8, 16, 9), -0.02010, 0.20392),
        ((180, 5, 3, 12), -0.04387, 0.02234),
        ((9900, 40, 30, 30), -0.00271, 0.00067),
    ],
)
def test_newcombes_interval_has_the_published_limits_and_tangos_lies_close(
    table: tuple[int, int, int, int], low: float, high: float
) -> None:
    assert list(newcombe(*table)) == pytest.approx([low, high], abs=1e-5)
    bounds = tango(*table)
    assert bounds is not None
    assert list(bounds) == pytest.approx([low, high], abs=0.005)


@pytest.mark.parametrize(("total", "percent"), [(59, 5), (149, 2), (299, 1), (598, 0.5), (2995, 0.1)])
def test_zero_failures_support_a_limit_from_the_published_number_of_documents_on(total: int, percent: float) -> None:
    assert documents_for_bound(0, percent) == total
    assert upper_bound(0, total) == pytest.approx(1 - 0.05 ** (1 / total))


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_one_sided_bound_agrees_with_scipys_exact_interval(case: tuple[int, int]) -> None:
    from scipy.stats import binomtest

    expected = binomtest(*case, alternative="less").proportion_ci(0.95, method="exact").high
    assert upper_bound(*case) == pytest.approx(expected, abs=1e-9)


def test_the_bound_of_nothing_is_null_and_one_failure_needs_473_documents_for_one_percent() -> None:
    assert upper_bound(0, 0) is None
    assert upper_bound(3, 3) == 1.0
    assert documents_for_bound(1, 1) == 473
    with pytest.raises(ValueError, match="no share"):
        upper_bound(2, 1)


def sums(changes: list[list[int]]) -> tuple[Pairs, ClusterSums]:
    """Clusters as lists of -1 (lost), 1 (gained) and 0."""
    flat = [change for cluster in changes for change in cluster]
    pairs = Pairs(flat.count(0), flat.count(-1), flat.count(1), 0)
    net, sizes = [sum(cluster) for cluster in changes], [len(cluster) for cluster in changes]
    return pairs, ClusterSums(
        len(changes), sum(n * n for n in net), sum(n * k for n, k in zip(net, sizes, strict=True)),
        sum(k * k for k in sizes),
    )  # fmt: skip


def test_clusters_that_fail_together_widen_the_interval_and_clusters_of_one_document_do_almost_not() -> None:
    changes = [-1] * 10 + [0] * 190
    alone = tango_clustered(*sums([[change] for change in changes]))
    together = tango_clustered(*sums([changes[i : i + 5] for i in range(0, 200, 5)]))
    plain = tango(190, 10, 0, 0)
    assert plain is not None
    assert alone is not None
    assert together is not None
    assert alone.high - alone.low == pytest.approx(plain.high - plain.low, rel=0.02)
    assert together.high - together.low > 1.5 * (plain.high - plain.low)


def test_the_clustered_interval_is_null_for_few_clusters_and_has_width_without_a_changed_document() -> None:
    assert tango_clustered(*sums([[0, 0]] * (FEWEST_CLUSTERS - 1))) is None
    bounds = tango_clustered(*sums([[0, 0]] * FEWEST_CLUSTERS))
    assert bounds is not None
    assert bounds.low < 0 < bounds.high
    assert tango_clustered(Pairs(0, 0, 0, 0), ClusterSums(20, 0, 0, 0)) is None


@pytest.mark.parametrize(
    ("percent", "accepted", "total"), [("80", 20, 24), ("90", 52, 60), ("50", 27, 50), ("95", 24, 24)]
)
def test_so_many_documents_with_the_share_observed_decide_a_share_that_is_open(
    percent: str, accepted: int, total: int
) -> None:
    assert share_outcome(percent, accepted, total) == "inconclusive"
    needed = share_documents_needed(percent, accepted, total)
    assert needed is not None
    assert needed > total
    expected = "accept" if 100 * accepted > int(percent) * total else "reject"
    assert share_outcome(percent, round(needed * accepted / total), needed) == expected


def test_the_documents_of_a_share_decide_it_as_often_as_the_power_says() -> None:
    needed = share_documents_needed("80", 168, 200)
    assert needed is not None
    counts = binom(needed, 168 / 200)
    decided = sum(counts.pmf(n) for n in range(needed + 1) if share_outcome("80", n, needed) == "accept")
    assert decided == pytest.approx(0.8, abs=0.02)


def test_a_share_that_is_exactly_the_one_wanted_is_decided_by_no_number_of_documents() -> None:
    assert share_documents_needed("80", 16, 20) is None
    assert share_documents_needed("80", 0, 0) is None
    assert share_documents_needed("100", 20, 20) is None
