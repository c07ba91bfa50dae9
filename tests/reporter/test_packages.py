"""Packages are whole, their arithmetic is exact, and an offer is only for the machine that was measured."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract import matching
from collector.contract.campaign import Calendar, Duration
from collector.contract.money import Money, MoneyError
from collector.contract.offers import Offer
from collector.contract.tariffs import package_count
from reporter import packages as pk

HOUR = pk.NS_PER_HOUR
AS_OF = dt.date(2026, 11, 30)


def offer(**changes: Any) -> Offer:
    fields: dict[str, Any] = {
        "id": "o1", "provider": "Example Cloud", "device": "NVIDIA L40S", "pricing_class": "quote", "currency": "EUR",
        "price_3_days": "540.00", "price_7_days": "1092.00", "price_30_days": "3900.00", "tax_percent": "19",
        "basis": "quoted", "source": "quote 17", "retrieved": dt.date(2026, 11, 20),
        "valid_until": dt.date(2026, 12, 14),
    }  # fmt: skip
    return Offer(**(fields | changes))


def need(corpus_ns: int, *, wanted: int = 200, calendar: Calendar | None = None, loading_ns: int = 0) -> pk.Need:
    return pk.calendar_need(
        calendar or Calendar(), corpus_ns=Fraction(corpus_ns), loading_ns=loading_ns, measured_documents=200,
        wanted_documents=wanted,
    )  # fmt: skip


@pytest.mark.parametrize("days", [3, 7, 30])
def test_exactly_the_length_is_one_package_and_one_nanosecond_more_is_two(days: int) -> None:
    length = Fraction(days * 24 * HOUR)
    assert package_count(length, days) == 1
    assert package_count(length + 1, days) == 2
    assert package_count(length + Fraction(1, 10**9), days) == 2
    assert package_count(length * 2, days) == 2


def test_72_hours_of_four_decimals_are_one_package_where_floats_would_make_two() -> None:
    calendar = Calendar(
        preparation=Duration(hours="6.7", basis="assumed", by="A. N."),
        evaluation=Duration(hours="26.6", basis="assumed", by="A. N."),
        export=Duration(hours="28.8", basis="assumed", by="A. N."),
    )
    exact_need = need(200, calendar=calendar, loading_ns=HOUR * 99 // 10 - 200)
    assert exact_need.total_ns == 72 * HOUR
    assert package_count(exact_need.total_ns, 3) == 1
    assert 6.7 + 26.6 + 28.8 + 9.9 > 72


@given(st.integers(1, 10**19), st.sampled_from([3, 7, 30]))
def test_packages_cover_the_need_and_one_less_would_not(needed_ns: int, days: int) -> None:
    count = package_count(Fraction(needed_ns), days)
    length = days * 24 * HOUR
    assert (count - 1) * length < needed_ns <= count * length


def test_processing_grows_with_the_wanted_documents_and_the_rest_of_the_calendar_does_not() -> None:
    calendar = Calendar(preparation=Duration(hours="5", basis="assumed", by="A. N."))
    once = need(HOUR, calendar=calendar, loading_ns=60)
    sixfold = need(HOUR, wanted=1200, calendar=calendar, loading_ns=60)
    assert once.total_ns == 6 * HOUR + 60
    assert sixfold.total_ns == 11 * HOUR + 60
    assert sixfold.fixed_ns == once.fixed_ns == 5 * HOUR + 60
    assert (once.is_extrapolated, sixfold.is_extrapolated) == (False, True)


def test_a_phase_that_is_not_foreseen_has_no_hours_which_is_not_zero_hours() -> None:
    phases = {phase.phase: phase for phase in need(HOUR).phases}
    assert phases["quantization"].duration_ns is None
    assert set(phases) >= {"processing", "load_and_warmup", "preparation", "restarts", "export"}


def test_the_volume_that_still_fits_is_the_last_one_before_another_package() -> None:
    wanted = need(HOUR, wanted=200, loading_ns=HOUR)
    most = pk.documents_within(wanted, 72 * HOUR)
    assert package_count(need(HOUR, wanted=most, loading_ns=HOUR).total_ns, 3) == 1
    assert package_count(need(HOUR, wanted=most + 1, loading_ns=HOUR).total_ns, 3) == 2


def test_the_price_is_whole_packages_with_tax_on_their_sum() -> None:
    three, seven, thirty = pk.packages_of(offer(), Fraction(100 * HOUR), as_of=AS_OF)
    assert (three.bought, seven.bought, thirty.bought) == (2, 1, 1)
    assert three.price.net == Money.parse("1080.00", "EUR")
    assert seven.price == (Money(109_200, "EUR"), Money(20_748, "EUR"), Money(129_948, "EUR"))
    assert (seven.paid_ns, seven.idle_ns) == (168 * HOUR, 68 * HOUR)


def test_a_faster_run_does_not_lower_the_price_of_the_same_package() -> None:
    slow, fast = (pk.packages_of(offer(), Fraction(hours * HOUR), as_of=AS_OF)[1] for hours in (150, 15))
    assert slow.price == fast.price
    assert slow.idle_ns < fast.idle_ns


def test_gross_prices_give_back_their_tax() -> None:
    package = pk.packages_of(
        offer(prices_are="gross", price_3_days=None, price_7_days="1299.48", price_30_days=None),
        Fraction(HOUR), as_of=AS_OF,
    )[0]  # fmt: skip
    assert (package.price.net, package.unit_net) == (Money(109_200, "EUR"), Money(109_200, "EUR"))


def test_tax_is_rounded_on_the_sum_not_per_package() -> None:
    package = pk.packages_of(
        offer(price_3_days="0.03", price_7_days=None, price_30_days=None), Fraction(700 * HOUR), as_of=AS_OF
    )[0]
    assert package.bought == 10
    assert package.price.tax.minor_units == 6


@pytest.mark.parametrize(
    ("as_of", "is_valid"),
    [("2026-12-14", True), ("2026-12-15", False), ("2026-11-20", True), ("2026-11-19", False)],
)
def test_a_quote_holds_from_its_date_to_its_last_day_inclusive(as_of: str, is_valid: bool) -> None:
    assert {p.is_valid for p in pk.packages_of(offer(), Fraction(1), as_of=dt.date.fromisoformat(as_of))} == {is_valid}


def test_the_cheapest_is_by_net_price_and_never_across_currencies() -> None:
    packages = pk.packages_of(offer(), Fraction(100 * HOUR), as_of=AS_OF)
    best = pk.cheapest(packages)
    assert best is not None
    assert best.days == 3
    lira = pk.packages_of(offer(id="o2", currency="TRY"), Fraction(100 * HOUR), as_of=AS_OF)
    with pytest.raises(MoneyError):
        pk.cheapest([*packages, *lira])
    assert pk.cheapest([]) is None


MACHINE = matching.Machine("NVIDIA L40S", 1, 46_068 * 2**20, None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"device_memory_gib": "48"}, None),
        ({"device_memory_gib": "44.99"}, None),
        ({"device": "NVIDIA L4"}, "device"),
        ({"device_count": 4}, None),
        ({"device_count": 4, "prices_per": "card", "minimum_cards": 4}, None),
        ({"device_memory_gib": "24"}, "memory"),
        ({"mig_profile": "1g.12gb"}, "mig"),
    ],
)
def test_g01_an_offer_for_another_machine_is_told_apart(changes: dict[str, Any], reason: str | None) -> None:
    mismatch = matching.offer_mismatch(offer(**changes), MACHINE)
    assert (mismatch.reason if mismatch else None) == reason


def test_an_offer_that_names_memory_needs_a_machine_whose_memory_was_detected() -> None:
    mismatch = matching.offer_mismatch(offer(device_memory_gib="48"), MACHINE._replace(memory_bytes=None))
    assert mismatch == ("memory", "48", "not detected")


def test_g16_packages_are_elapsed_hours_of_72_168_and_720() -> None:
    assert [p.paid_ns // HOUR for p in pk.packages_of(offer(), Fraction(1), as_of=AS_OF)] == [72, 168, 720]
