"""Every interval of the dossier covers the truth in 93.5 to 99 % of simulated campaigns, nominally 95 %.

Seeded; documents, shares of changed documents, repetitions and clusters are of the size of real campaigns. What failed
the band was replaced: a percentile bootstrap and a plain t interval over clusters, and a bootstrap of repetitions and
requests for the ratio of medians.
"""

from __future__ import annotations

import logging
import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from reporter import statistics as s
from reporter.latency_statistics import mean_interval, ratio_interval
from reporter.paired_statistics import ClusterSums, Pairs, tango_clustered

Floats = NDArray[np.float64]
CAMPAIGNS = 2000
LEAST, MOST = 0.935, 0.99
TANGO = lru_cache(maxsize=None)(s.tango)


def assert_in_band(share: float) -> None:
    logging.getLogger(__name__).info("covers %.3f", share)  # pytest --log-level=INFO -rP shows it
    assert LEAST <= share <= MOST, share


@pytest.mark.parametrize(
    ("documents", "lost", "gained"),
    [
        (100, 0.03, 0.02), (100, 0.06, 0.04), (100, 0.10, 0.10), (200, 0.03, 0.02), (200, 0.07, 0.03),
        (200, 0.12, 0.08), (300, 0.025, 0.025), (300, 0.06, 0.04), (300, 0.15, 0.05),
    ],
)  # fmt: skip
def test_tango_covers_the_paired_difference_where_5_to_20_percent_of_documents_change(
    documents: int, lost: float, gained: float
) -> None:
    draws = np.random.default_rng(documents + round(1000 * lost))
    tables = draws.multinomial(documents, [0.7 - lost, lost, gained, 0.3 - gained], CAMPAIGNS)
    bounds = [TANGO(*map(int, table)) for table in tables]
    hits = [b is not None and b.low <= gained - lost <= b.high for b in bounds]
    assert_in_band(float(np.mean(hits)))


@pytest.mark.parametrize("documents", [100, 200, 300])
@pytest.mark.parametrize("percent", [70, 80, 90, 95])
def test_wilson_covers_the_share_accepted(documents: int, percent: int) -> None:
    """Each campaign has a true share of its own within two points: at a single share the lattice of counts decides."""
    draws = np.random.default_rng(documents + percent)
    truths = percent / 100 + draws.uniform(-0.02, 0.02, CAMPAIGNS)
    found = [s.wilson(int(k), documents) for k in draws.binomial(documents, truths)]
    hits = [b is not None and b.low <= truth <= b.high for b, truth in zip(found, truths, strict=True)]
    assert_in_band(float(np.mean(hits)))


@pytest.mark.parametrize("documents", [100, 150, 200, 300])
def test_wilson_computed_exactly_falls_below_the_band_at_hardly_any_share_and_never_below_93_percent(
    documents: int,
) -> None:
    counts = np.arange(documents + 1)
    bounds = np.array([s.wilson(int(k), documents) for k in counts])
    shares = np.arange(0.5, 0.981, 0.002)
    covers = (bounds[:, 0] <= shares[:, None]) & (shares[:, None] <= bounds[:, 1])
    coverage = (binom.pmf(counts, documents, shares[:, None]) * covers).sum(axis=1)
    assert LEAST <= coverage.mean() <= MOST
    assert coverage.min() >= 0.93
    assert np.mean(coverage < LEAST) <= 0.005


@pytest.mark.parametrize(("requests", "percent"), [(30, 50), (100, 50), (300, 50), (100, 90), (300, 90), (300, 95)])
def test_order_statistics_cover_the_percentile_within_one_repetition(requests: int, percent: int) -> None:
    draws = np.random.default_rng(requests + percent)
    low, high = s.quantile_interval_ranks(requests, percent)
    assert low is not None
    assert high is not None
    truth = math.exp(0.5 * NormalDist().inv_cdf(percent / 100))
    values = np.sort(draws.lognormal(0, 0.5, (CAMPAIGNS, requests)), axis=1)
    hits = (values[:, low - 1] <= truth) & (truth <= values[:, high - 1])
    assert_in_band(float(hits.mean()))


@pytest.mark.parametrize(("documents", "share"), [(60, 0.05), (100, 0.05), (100, 0.1), (200, 0.05), (300, 0.03)])
def test_the_exact_one_sided_bound_covers_the_share_of_new_failures(documents: int, share: float) -> None:
    draws = np.random.default_rng(documents)
    bounds = [s.upper_bound(int(k), documents) for k in draws.binomial(documents, share, CAMPAIGNS)]
    assert_in_band(float(np.mean([b is not None and share <= b for b in bounds])))


def test_the_exact_one_sided_bound_never_covers_less_than_it_says() -> None:
    for documents in (60, 100, 200, 300):
        bounds = np.array([s.upper_bound(k, documents) for k in range(documents + 1)])
        for share in np.arange(0.01, 0.3, 0.007):
            assert binom.pmf(np.flatnonzero(bounds >= share), documents, share).sum() >= 0.95


def lower_median(values: Floats) -> Floats:
    """The smallest value that half of the last axis does not exceed."""
    ordered: Floats = np.sort(values, axis=-1)[..., -(-values.shape[-1] // 2) - 1]
    return ordered


def repetition_medians(
    draws: np.random.Generator, documents: Floats, *, campaigns: int, repetitions: int, between: float, speed: float
) -> Floats:
    """Medians (campaign, repetition): the same documents in each, a process's own speed, and noise of each request."""
    medians = np.empty((campaigns, repetitions))
    for place in range(campaigns):
        processes = speed * np.exp(draws.normal(0, between, (repetitions, 1)))
        noise = draws.lognormal(0, 0.05, (repetitions, len(documents)))
        medians[place] = lower_median(documents * processes * noise)
    return medians


REPEATED = [(3, 100, 0.03), (5, 100, 0.01), (5, 300, 0.03), (5, 300, 0.1), (10, 100, 0.03), (10, 300, 0.1)]


@pytest.mark.slow
@pytest.mark.parametrize(("repetitions", "documents", "between"), REPEATED)
def test_the_t_interval_covers_the_expected_median_of_repetitions(
    repetitions: int, documents: int, between: float
) -> None:
    draws = np.random.default_rng(100 * repetitions + documents + round(1000 * between))
    workload = draws.lognormal(0, 0.5, documents)
    truth = repetition_medians(draws, workload, campaigns=1, repetitions=20_000, between=between, speed=1.0).mean()
    medians = repetition_medians(
        draws, workload, campaigns=CAMPAIGNS, repetitions=repetitions, between=between, speed=1.0
    )
    bounds = [mean_interval(list(found)) for found in medians]
    assert_in_band(float(np.mean([b is not None and b.low <= truth <= b.high for b in bounds])))


@pytest.mark.slow
@pytest.mark.parametrize(("repetitions", "documents", "between"), REPEATED)
def test_the_interval_of_a_ratio_of_medians_covers_the_true_speed(
    repetitions: int, documents: int, between: float
) -> None:
    draws = np.random.default_rng(200 * repetitions + documents + round(1000 * between))
    workload, speed = draws.lognormal(0, 0.5, documents), 0.7
    both = [
        repetition_medians(draws, workload, campaigns=CAMPAIGNS, repetitions=repetitions, between=spread, speed=factor)
        for spread, factor in ((between, 1.0), (between / 2, speed))
    ]
    bounds = [ratio_interval(list(own), list(reference)) for reference, own in zip(*both, strict=True)]
    assert_in_band(float(np.mean([b is not None and b.low <= speed <= b.high for b in bounds])))


class Hits(NamedTuple):
    """Shares of campaigns whose interval holds the true difference."""

    clustered: float
    plain: float


def clustered_hits(*, seed: int, clusters: int, documents: int, changed: float, correlation: float) -> Hits:
    """Simulate a true difference of -2 points in clusters of unequal size, at least one document each.

    In each cluster the shares of lost and gained documents are drawn around the mean, so that its documents correlate.
    """
    draws = np.random.default_rng(seed)
    truth, clustered, plain = -0.02, 0, 0
    lost, gained = (changed - truth) / 2, (changed + truth) / 2
    spread = (1 - correlation) / correlation
    for _ in range(CAMPAIGNS):
        weights = draws.lognormal(0, 0.6, clusters)
        sizes = 1 + draws.multinomial(documents - clusters, weights / weights.sum())
        shares = draws.dirichlet(np.array([lost, gained, 1 - changed]) * spread, clusters)
        counts = np.array([draws.multinomial(size, share) for size, share in zip(sizes, shares, strict=True)])
        net, total = counts[:, 1] - counts[:, 0], counts.sum(axis=0)
        pairs = Pairs(int(total[2]), int(total[0]), int(total[1]), 0)
        sums = ClusterSums(clusters, int(net @ net), int(net @ sizes), int(sizes @ sizes))
        whole, own = tango_clustered(pairs, sums), TANGO(*pairs)
        clustered += whole is not None and whole.low <= truth <= whole.high
        plain += own is not None and own.low <= truth <= own.high
    return Hits(clustered / CAMPAIGNS, plain / CAMPAIGNS)


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "documents"), [(15, 150), (20, 200), (40, 200), (40, 300), (100, 300)])
@pytest.mark.parametrize(("changed", "correlation"), [(0.05, 0.05), (0.05, 0.2), (0.1, 0.05), (0.1, 0.2), (0.2, 0.2)])
def test_the_clustered_interval_covers_the_paired_difference_where_documents_of_one_template_fail_together(
    clusters: int, documents: int, changed: float, correlation: float
) -> None:
    seed = 1000 * clusters + documents + round(100 * changed) + round(10 * correlation)
    hits = clustered_hits(seed=seed, clusters=clusters, documents=documents, changed=changed, correlation=correlation)
    assert_in_band(hits.clustered)


def test_where_documents_of_one_template_fail_together_the_plain_interval_falls_short_and_the_clustered_does_not() -> (
    None
):
    hits = clustered_hits(seed=5, clusters=20, documents=200, changed=0.1, correlation=0.3)
    assert_in_band(hits.clustered)
    assert hits.plain < 0.9
