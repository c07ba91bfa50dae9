"""From how many hours on another tariff is cheaper: exact to a billing step, without gaps, held against trying all."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.contract.campaign import Campaign, Objective
from collector.contract.offers import ExchangeRate, Fee, Offer
from collector.contract.tariffs import NS_PER_HOUR, tariffs_of
from reporter.break_even import MOST_HORIZON_NS, Segment, Totals, horizon_ns, segments
from reporter.step_lines import spread

HOUR = NS_PER_HOUR
DAY = dt.date(2026, 11, 30)
FIELDS: dict[str, Any] = {
    "id": "o", "provider": "p", "device": "d", "pricing_class": "quote", "currency": "EUR", "tax_percent": "19",
    "basis": "quoted", "source": "s", "retrieved": DAY, "valid_until": DAY,
}  # fmt: skip
PACKAGES = {"price_3_days": "165.00", "price_7_days": "336.00", "price_30_days": "1188.00"}


def totals(*offers: Offer, rates: list[ExchangeRate] | None = None) -> Totals:
    campaign = Campaign(
        format=1, question="q", dossier_id="d", as_of=DAY, issued=DAY, documents_per_corpus=1,
        objective=Objective(prefer="cheapest"), offers=list(offers), exchange_rates=rates or [],
    )  # fmt: skip
    return Totals([tariff for offer in offers for tariff in tariffs_of(offer)], campaign)


def offer(**more: Any) -> Offer:
    return Offer(**(FIELDS | more))


def told(found: list[Segment]) -> list[tuple[float, float, str]]:
    return [(round(s.start_ns / HOUR, 4), round(s.end_ns / HOUR, 4), s.tariff.term) for s in found]


def test_packages_alone_change_at_whole_packages_and_exactly_72_hours_are_one() -> None:
    assert told(segments(totals(offer(**PACKAGES)), 720 * HOUR)) == [
        (0, 144, "3d"), (144, 168, "7d"), (168, 288, "3d"), (288, 336, "7d"), (336, 432, "3d"), (432, 504, "7d"),
        (504, 720, "30d"),
    ]  # fmt: skip


def test_by_the_hour_ends_at_the_second_in_which_it_would_cost_a_package() -> None:
    found = segments(totals(offer(**PACKAGES, price_hour="2.49")), 168 * HOUR)
    assert told(found) == [
        (0, 66.2628, "hour"), (66.2628, 72, "3d"), (72, 132.5281, "hour"), (132.5281, 144, "3d"), (144, 168, "7d"),
    ]  # fmt: skip
    assert found[0].end_ns == 238_546 * 10**9
    assert (found[0].highest.decimal(), found[1].lowest.decimal()) == ("164.99", "165.00")


@pytest.mark.parametrize(("step_s", "until_h"), [(3600, 66), (60, 66.25), (5400, 66.0)])
def test_a_coarser_billing_step_moves_the_change_to_the_end_of_a_step(step_s: int, until_h: float) -> None:
    made = offer(**PACKAGES, price_hour="2.49", billing_step_s=step_s)
    assert told(segments(totals(made), 100 * HOUR))[0] == (0, until_h, "hour")


PRICES = st.integers(1, 400).map(lambda euros: f"{euros}.37")


@settings(max_examples=60, deadline=None)
@given(PRICES, PRICES, st.integers(1, 600), st.sampled_from([1, 60, 600, 3600, 7200]), st.integers(0, 90))
def test_every_interval_has_the_cheapest_tariff_at_both_ends_and_inside(
    three: str, seven: str, cents: int, step_s: int, minimum_h: int
) -> None:
    fees = [Fee(name="f", amount="1.11", per="day"), Fee(name="g", amount="2.00", per="package")]
    made = offer(
        price_3_days=three, price_7_days=seven, price_hour=f"{cents / 100:.2f}", billing_step_s=step_s,
        minimum_hours=str(minimum_h), fees=fees,
    )  # fmt: skip
    all_of = totals(made)
    found = segments(all_of, 400 * HOUR)
    assert [s.end_ns for s in found[:-1]] == [s.start_ns for s in found[1:]]
    assert (found[0].start_ns, found[-1].end_ns) == (0, 400 * HOUR)
    for segment in found:
        inside = [segment.start_ns + 1, (segment.start_ns + segment.end_ns) // 2, segment.end_ns]
        assert {all_of.tariffs[all_of.cheapest(at)].term for at in inside} == {segment.tariff.term}


def test_g17_tariffs_are_compared_in_one_currency_and_left_out_without_a_rate() -> None:
    euro, dollar = offer(price_3_days="100.00"), offer(id="u", currency="USD", price_3_days="90.00")
    rate = ExchangeRate(currency="USD", rate="1.20", on=DAY, source="bank")
    assert [tariff.offer.id for tariff in totals(euro, dollar).tariffs] == ["o"]
    both = segments(totals(euro, dollar, rates=[rate]), 72 * HOUR)
    assert [(s.tariff.offer.id, s.lowest.currency) for s in both] == [("o", "EUR")]


def test_the_horizon_covers_a_month_and_a_quarter_beyond_the_need_and_ends_after_a_year() -> None:
    assert horizon_ns([]) == 720 * HOUR
    assert horizon_ns([Fraction(1000 * HOUR)]) == 53 * 24 * HOUR
    assert horizon_ns([Fraction(10**9 * HOUR)]) == MOST_HORIZON_NS


def test_names_of_lines_are_moved_apart_and_stay_in_the_picture() -> None:
    placed = spread([0.0, 1.0, 2.0, 100.0, 100.0], 100.0)
    assert placed == [0.0, 12.0, 24.0, 88.0, 100.0]
    assert spread([99.0, 98.0, 97.0], 100.0) == [100.0, 88.0, 76.0]


def test_a_tariff_billed_in_whole_hours_costs_its_first_hour_just_over_the_start() -> None:
    first = segments(totals(offer(**PACKAGES, price_hour="2.49", billing_step_s=3600)), 168 * HOUR)[0]
    assert (first.lowest.decimal(), first.highest.decimal()) == ("2.49", "164.34")
