"""Allocation keeps every charge to the minor unit under every convention, and no order of input changes a share."""

from __future__ import annotations

import datetime as dt
import random
from fractions import Fraction

import pytest

from collector.contract.charges import CONVENTIONS, Charge
from collector.contract.money import Money, MoneyError, minor_digits
from reporter.allocation import (
    IDLE,
    UNALLOCATED,
    Allocated,
    Origin,
    Pool,
    Target,
    allocate,
    conventions,
    filtered,
    order,
    origin,
    reconcile,
)
from reporter.allocation_analysis import Utilisation, hours_game, incremental, per_unit, shapley, stand_alone

HOUR_NS = 3_600_000_000_000
CASES = 20_000
CURRENCIES = ("EUR", "TRY", "VND", "KWD")


def charge(
    name: str, amount: str, *, currency: str = "EUR", rental: str | None = None, candidate: str | None = None
) -> Charge:
    category = "credit" if amount.startswith("-") else "usage"
    return Charge(
        id=name, invoice="2026-17", issuer="Example Cloud", line=name, on=dt.date(2026, 1, 5), amount=amount,
        currency=currency, category=category, description=f"line {name}", rental=rental, candidate=candidate,
    )  # fmt: skip


def origins(*charges: Charge) -> list[Origin]:
    return [origin(each, {name: name for name in "ABCDEFGHIJKL"}) for each in charges]


def pool(hours: dict[str, int], paid: int = 10, **more: object) -> Pool:
    """One rental `r` of `paid` device-hours on which targets ran for so many hours."""
    targets = tuple(Target(name, name) for name in hours)
    used = {("r", name): count * HOUR_NS for name, count in hours.items()}
    return Pool(targets, {"r": paid * HOUR_NS}, used)._replace(**more)


def amounts(allocated: Allocated) -> dict[str, str]:
    return {target: amount.decimal() for (_, target), amount in allocated.totals().items()}


def random_case(seed: int) -> tuple[list[Origin], Pool]:
    """Up to twelve targets on up to three rentals, with charges and credits of one of four currencies."""
    rng = random.Random(seed)
    currency = CURRENCIES[seed % len(CURRENCIES)]
    names = "ABCDEFGHIJKL"[: rng.randint(1, 12)]
    rentals = [f"r{number}" for number in range(rng.randint(1, 3))]
    used = {
        (rng.choice([*rentals, None]), name): rng.randint(0, 10**6) * 10**6 + rng.randint(0, 999)
        for name in names
    }  # fmt: skip
    shares = {name: Fraction(rng.randint(0, 10**6)) for name in names}
    charges = []
    for number in range(rng.randint(1, 3)):
        units = rng.randint(-(10**8), 10**8)
        rental = rng.choice([*rentals, None])
        candidate = rng.choice(names) if rental is None and rng.random() < 0.5 else None
        charges.append(
            charge(
                f"c{number}", Money(units, currency).decimal(), currency=currency, rental=rental, candidate=candidate
            )
        )  # fmt: skip
    whole = sum(shares.values()) or Fraction(1)
    found = Pool(
        tuple(Target(name, name, rng.randint(0, 1)) for name in names),
        {rental: rng.randint(1, 10**6) * 10**6 for rental in rentals}, used,
        {name: share / whole for name, share in shares.items()} if any(shares.values()) else {},
    )  # fmt: skip
    return origins(*charges), found


def test_20_000_random_allocations_are_exact_in_total_and_each_share_within_one_minor_unit() -> None:
    """In EUR, TRY, VND (no decimals) and KWD (three), under each convention in turn and each treatment of idle time."""
    seen = set()
    for seed in range(CASES):
        charges, found = random_case(seed)
        convention = CONVENTIONS[seed // 4 % len(CONVENTIONS)]
        idle = ("separate", "even", "weighted")[seed % 3]
        allocated = allocate(charges, found, convention, idle)  # type: ignore[arg-type]
        for each in charges:
            parts = [share for share in allocated.shares if share.charge_id == each.charge.id]
            assert sum(share.amount.minor_units for share in parts) == each.amount.minor_units
            assert sum(share.ratio for share in parts) == 1
            for share in parts:
                assert abs(share.amount.minor_units - share.ratio * each.amount.minor_units) < 1
        seen.add((convention, charges[0].amount.currency))
    assert seen == {(convention, currency) for convention in CONVENTIONS for currency in CURRENCIES}
    assert [minor_digits(currency) for currency in CURRENCIES] == [2, 2, 0, 3]


@pytest.mark.parametrize("seed", range(200))
def test_the_order_of_input_changes_no_share(seed: int) -> None:
    charges, found = random_case(seed)
    used = list(found.used_ns.items())
    mixed = found._replace(targets=tuple(reversed(found.targets)), used_ns=dict(reversed(used)))
    for each, other in zip(
        conventions(charges, found, "even"), conventions(charges[::-1], mixed, "even"), strict=True
    ):  # fmt: skip
        assert each == other


def test_mission_f_one_rental_for_three_variants_is_paid_once_and_split_by_what_each_used() -> None:
    """Mission F4: 540.00 for one package, never 1,620.00; the split follows device time, idle time stands apart."""
    paid = origins(charge("package", "540.00", rental="r"), charge("tax", "102.60", rental="r"))
    found = pool({"A": 36, "B": 18, "C": 9}, paid=72)
    usage = allocate(paid, found, "proportional_usage")
    assert amounts(usage) == {"A": "321.30", "B": "160.65", "C": "80.33", IDLE: "80.32"}
    assert usage.totals()["EUR", "A"] == Money.parse("321.30", "EUR")
    even = allocate(paid, found, "even")
    assert amounts(even) == {"A": "214.20", "B": "214.20", "C": "214.20"}
    weighted = allocate(paid, found, "proportional_usage", "weighted")
    assert amounts(weighted) == {"A": "367.20", "B": "183.60", "C": "91.80"}
    for each in conventions(paid, found, "separate"):
        assert sum(amount.minor_units for amount in each.totals().values()) == 64_260


def test_100_split_in_three_is_100_again() -> None:
    thirds = allocate(origins(charge("c", "100.00")), pool({"A": 1, "B": 1, "C": 1}), "even")
    assert amounts(thirds) == {"A": "33.34", "B": "33.33", "C": "33.33"}


def test_a_credit_is_split_like_the_charge_that_it_undoes() -> None:
    found = pool({"A": 3, "B": 2, "C": 2}, paid=7)
    both = origins(charge("c", "100.01", rental="r"), charge("d", "-100.01", rental="r"))
    assert set(amounts(allocate(both, found, "proportional_usage")).values()) == {"0.00"}


def test_a_charge_of_one_candidate_is_its_own_under_every_convention() -> None:
    paid = origins(charge("own", "12.00", candidate="B"), charge("shared", "90.00", rental="r"))
    found = pool({"A": 1, "B": 2}, weights={"A": Fraction(1), "B": Fraction(0)})
    for each in conventions(paid, found, "separate"):
        own = [share for share in each.shares if share.charge_id == "own"]
        assert [(share.target, share.amount.decimal(), share.is_direct) for share in own] == [("B", "12.00", True)]


def test_the_conventions_share_as_they_are_published() -> None:
    paid = origins(
        charge("a", "30.00", candidate="A"), charge("b", "10.00", candidate="B"), charge("shared", "40.00", rental="r")
    )
    found = pool({"A": 1, "B": 3, "C": 0}, paid=8, weights={"A": Fraction(1, 4), "C": Fraction(3, 4)})
    found = found._replace(targets=(Target("A", "A", 0), Target("B", "B", 1), Target("C", "C", 0)))
    shared = {
        (each.convention, each.idle): {s.target: s.amount.decimal() for s in each.shares if s.charge_id == "shared"}
        for each in conventions(paid, found, "separate")
    }
    assert shared == {
        ("direct", "separate"): {UNALLOCATED: "40.00"},
        ("even", "separate"): {"A": "20.00", "B": "20.00"},
        ("proportional_usage", "separate"): {"A": "5.00", "B": "15.00", IDLE: "20.00"},
        ("proportional_usage", "even"): {"A": "15.00", "B": "25.00"},
        ("proportional_usage", "weighted"): {"A": "10.00", "B": "30.00"},
        ("proportional_direct", "separate"): {"A": "30.00", "B": "10.00"},
        ("fixed", "separate"): {"A": "10.00", "C": "30.00"},
        ("accepted_output", "separate"): {"B": "40.00"},
        ("unallocated", "separate"): {UNALLOCATED: "40.00"},
    }


def test_direct_traces_a_rental_that_one_target_alone_used() -> None:
    assert amounts(allocate(origins(charge("c", "9.00", rental="r")), pool({"A": 1}), "direct")) == {"A": "9.00"}


def test_a_convention_without_weights_is_said_and_never_replaced_by_another() -> None:
    paid = origins(charge("c", "50.00", rental="r"))
    found = pool({"A": 1, "B": 2})
    for convention, reason in (
        ("accepted_output", "no_accepted_output"), ("proportional_direct", "no_direct_cost"), ("fixed", "no_weights"),
    ):  # fmt: skip
        allocated = allocate(paid, found, convention)  # type: ignore[arg-type]
        assert dict(allocated.undefined) == {"c": reason}
        assert amounts(allocated) == {UNALLOCATED: "50.00"}
    unused = allocate(paid, pool({}), "proportional_usage", "weighted")
    assert dict(unused.undefined) == {"c": "no_usage"}


def test_a_charge_of_the_whole_campaign_follows_the_usage_of_all_rentals_but_not_of_what_was_not_rented() -> None:
    found = Pool(
        (Target("A", "A"), Target("B", "B"), Target("C", "C")), {"r": 8 * HOUR_NS, "s": 8 * HOUR_NS},
        {("r", "A"): HOUR_NS, ("s", "A"): HOUR_NS, ("s", "B"): 2 * HOUR_NS, (None, "C"): 5 * HOUR_NS},
    )  # fmt: skip
    assert amounts(allocate(origins(charge("c", "10.00")), found, "proportional_usage")) == {"A": "5.00", "B": "5.00"}


def test_more_use_than_was_paid_for_leaves_no_negative_idle_time() -> None:
    over = allocate(origins(charge("c", "10.00", rental="r")), pool({"A": 9, "B": 3}, paid=8), "proportional_usage")
    assert amounts(over) == {"A": "7.50", "B": "2.50"}


def test_filtering_never_allocates_anew() -> None:
    paid = origins(charge("c", "100.00", rental="r"), charge("d", "-7.00", rental="r"))
    allocated = allocate(paid, pool({"A": 1, "B": 1, "C": 1}), "proportional_usage")
    view = filtered(allocated, lambda share: share.target == "B")
    assert view.shares == tuple(share for share in allocated.shares if share.target == "B")
    shown = sum(share.amount.minor_units for share in view.shares)
    assert shown + view.rest["EUR"].minor_units == 9_300
    assert filtered(allocated, lambda share: True).rest == {}


def test_a_share_that_is_lost_or_doubled_is_found() -> None:
    paid = origins(charge("c", "100.00", rental="r"))
    allocated = allocate(paid, pool({"A": 1, "B": 1}), "even")
    for broken in (allocated.shares[1:], allocated.shares + allocated.shares[:1]):
        with pytest.raises(ValueError, match="does not sum to what was paid"):
            reconcile(paid, allocated._replace(shares=broken))


def test_currencies_are_kept_apart_and_compared_by_their_rate() -> None:
    found = pool({"A": 1, "B": 1}, paid=2, rates={"USD": Fraction(9, 10)})
    paid = origins(charge("c", "10.00", candidate="A"), charge("d", "11.00", candidate="B", currency="USD"))
    allocated = allocate(paid, found, "direct")
    assert {key: amount.decimal() for key, amount in allocated.totals().items()} == {
        ("EUR", "A"): "10.00", ("USD", "B"): "11.00",
    }  # fmt: skip
    assert order(allocated, found) == [["A"], ["B"]]  # 11.00 USD are 9.90 EUR
    with pytest.raises(MoneyError):
        allocated.totals()["EUR", "A"] + allocated.totals()["USD", "B"]


def test_the_order_of_candidates_is_told_by_exact_shares_so_that_a_cent_left_over_makes_no_rank() -> None:
    found = pool({"A": 1, "B": 1, "C": 1})
    thirds = allocate(origins(charge("c", "100.00")), found, "even")
    assert len(set(amounts(thirds).values())) == 2
    assert order(thirds, found) == [["A", "B", "C"]]


def test_g08_shares_of_all_tenants_and_idle_sum_to_the_device() -> None:
    """Four tenants at a quarter each leave no idle line; three leave a quarter; one whole device is charged whole."""
    device = origins(charge("device", "1.00", rental="r"))
    quarter = Fraction(HOUR_NS, 4)
    for names, idle in (("ABCD", None), ("ABC", "0.25")):
        used = {("r", name): quarter for name in names}
        shared = Pool(tuple(Target(name, name) for name in names), {"r": HOUR_NS}, used)
        found = amounts(allocate(device, shared, "proportional_usage"))
        assert found.pop(IDLE, None) == idle
        assert found == dict.fromkeys(names, "0.25")
    assert amounts(allocate(device, pool({"A": 1}, paid=1), "proportional_usage")) == {"A": "1.00"}


def test_g09_rented_and_busy_time_are_two_inputs_and_give_the_utilisation() -> None:
    """10 hours rented, 2 busy: 20 %; the reserved cost is the whole, the used cost a fifth of it."""
    found = Utilisation(paid_ns=10 * HOUR_NS, busy_ns=Fraction(2 * HOUR_NS))
    assert (found.ratio, found.idle_ns) == (Fraction(1, 5), 8 * HOUR_NS)
    assert found.used_cost(Fraction(40)) == 8
    busy = Utilisation(paid_ns=HOUR_NS, busy_ns=Fraction(HOUR_NS))
    assert busy.used_cost(Fraction(4)) == 4


def test_g11_a_batch_enters_a_throughput_per_currency_unit_exactly_once() -> None:
    """1000 items in 225 ms at 3.06 an hour are 5.2 million per currency unit, not 5,228 nor 5.2 thousand million."""
    batch, seconds, price_hour = 1000, Fraction(225, 1000), Fraction(306, 100)
    used = Utilisation(paid_ns=HOUR_NS, busy_ns=seconds * 10**9).used_cost(price_hour)
    found = per_unit(batch, used)
    assert found is not None
    assert round(float(found) / 10**6, 1) == 5.2
    # by another path: cost of one item x items = price of the hour x the busy share of it
    item_s = seconds / batch
    assert 1 / found * batch == price_hour * item_s * batch / 3600
    assert per_unit(5, Fraction(0)) is None


TOY = {"": 0, "A": 700, "B": 600, "C": 400, "AB": 900, "AC": 800, "BC": 800, "ABC": 1000}


def toy(subset: frozenset[str]) -> Fraction:
    return Fraction(TOY["".join(sorted(subset))])


def test_shapley_of_three_sums_to_the_whole_and_avoidable_cost_does_not() -> None:
    mean = shapley("ABC", toy)
    assert mean == {"A": Fraction(1250, 3), "B": Fraction(1100, 3), "C": Fraction(650, 3)}
    assert sum(mean.values()) == 1000
    saved = incremental("ABC", toy)
    assert saved == {"A": 200, "B": 200, "C": 100}
    assert sum(saved.values()) == 500
    assert stand_alone("ABC", toy) == {"A": 700, "B": 600, "C": 400}


def test_shapley_is_exact_for_ten_and_left_out_for_eleven() -> None:
    needed = {("machine", name): Fraction(hours) for hours, name in enumerate("ABCDEFGHIJ", 1)}
    cost = hours_game(needed, lambda _, hours: Fraction(100) * -(-hours // 20))
    mean = shapley("ABCDEFGHIJ", cost)
    assert mean is not None
    assert sum(mean.values()) == cost(frozenset("ABCDEFGHIJ")) == 300
    assert mean["A"] < mean["J"]
    assert shapley("ABCDEFGHIJK", cost) is None


def test_shapley_equals_the_mean_over_all_orders() -> None:
    from itertools import permutations

    orders = list(permutations("ABC"))
    added = {
        name: sum(toy(frozenset(o[: o.index(name) + 1])) - toy(frozenset(o[: o.index(name)])) for o in orders)
        for name in "ABC"
    }
    assert shapley("ABC", toy) == {name: Fraction(value, len(orders)) for name, value in added.items()}
