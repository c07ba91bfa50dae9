"""The tables of rented time: used and idle per rental, per target, and what a target alone would add to the cost."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from collector.contract.charges import Rental
from collector.contract.matching import Machine
from collector.contract.money import Money, minor_digits, rounded
from collector.contract.times import utc_stamp

from .allocation import summed
from .allocation_analysis import (
    MOST_PLAYERS,
    Cost,
    Utilisation,
    hours_game,
    incremental,
    per_unit,
    shapley,
    stand_alone,
)
from .allocation_tables import charge_figure, usage_figure
from .allocation_usage import Accounts, PassTime, outside, rented_cards
from .book import Book, hours, ref, row
from .dossier import Figure, Row, Sentence, Unit
from .figures import weakest
from .offered import Offered
from .packages import cheapest, packages_of
from .tables import MAX_SOURCES
from .wording import sentence


def put_usage(book: Book, found: Accounts, digests: dict[str, list[str]]) -> None:
    """Add the measured time of each target on each rental; the tables of charges cite it.

    digests: run id -> digests of its files.
    """
    rows = []
    groups: dict[tuple[str | None, str], list[PassTime]] = {}
    for each in found.passes:
        groups.setdefault((each.rental, found.target_of_key[each.configuration_key]), []).append(each)
    labels = {target.key: target.label for target in found.pool.targets}
    for (rental, target), passes in sorted(groups.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        key = usage_figure(rental or "", target).split("/")[1]
        cells = _time_cells(book, f"usage/{key}", passes, digests)
        rows.append(row(key, {"rental": rental or "", "target": target, "label": labels[target]}, cells))
    book.put("usage", "one row per (rental, who ran on it); without a rental where none is named", rows)
    if found.passes:
        _time_cells(book, "usage/all", found.passes, digests)
    for target in labels:
        passes = [p for p in found.passes if found.target_of_key[p.configuration_key] == target]
        if passes:
            _time_cells(book, f"usage/{target}", passes, digests)


def _time_cells(book: Book, prefix: str, passes: list[PassTime], digests: dict[str, list[str]]) -> dict[str, str]:
    sources = list(dict.fromkeys(source for each in passes for source in each.sources))
    files = sorted({digest for each in passes for digest in digests.get(each.run_id, [])})

    def measured(name: str, value: int | float, unit: Unit, formula: str) -> str:
        return book.add(
            Figure(
                figure_id=f"{prefix}/{name}", value=value, unit=unit, basis="measured", is_derived=unit == "hours",
                formula=formula, n=len(passes), record_count=len(sources), sources=sources[:MAX_SOURCES],
                file_digests=files,
            )
        )  # fmt: skip

    device_ns = sum(each.device_ns for each in passes)
    return {
        "device_hours": measured(
            "device_hours", hours(device_ns), "hours", "sum of pass duration x devices, of every attempt"
        ),
        "pass_count": measured("pass_count", len(passes), "passes", "attempts of passes"),
        "document_count": measured(
            "document_count", sum(each.document_count for each in passes), "documents", "answered, by pass"
        ),
    }


def put_utilisation(book: Book, found: Accounts) -> None:
    """Add the tables of rentals, of what would be avoidable, and of usage that no rental of the campaign covers."""
    rentals = [entry for rental in found.campaign.rentals for entry in _rental(book, found, rental)]
    book.put("utilisation", "one row per (rental, currency of its charges)", rentals)
    unrented = [each for each in book.rows("usage") if not each.labels["rental"]]
    book.put("usage_without_rental", "one row per target that ran on no rental of the campaign", list(unrented))
    book.put("avoidable", "one row per target: analysis, no allocation", list(_avoidable(book, found)))


def _rental(book: Book, found: Accounts, rental: Rental) -> Iterator[Row]:
    """Yield what was rented, by its dates, beside what was used, by the workers' clocks, and what each cost."""
    offer = next(offer for offer in found.campaign.offers if offer.id == rental.offer)
    used = {target: ns for (name, target), ns in found.pool.used_ns.items() if name == rental.id}
    time = Utilisation(found.pool.paid_ns[rental.id], sum(map(Fraction, used.values()), Fraction(0)))
    cards = rented_cards(rental, found.campaign, found.passes)
    prefix = f"utilisation/{rental.id}"
    paid = book.add(
        Figure(
            figure_id=f"{prefix}/rented_hours", value=hours(time.paid_ns), unit="hours", basis=offer.basis,
            is_derived=True, formula=f"(to - from) x {cards} devices",
        )
    )  # fmt: skip
    measured = [usage_figure(rental.id, target) for target in used] or [paid]
    busy = book.derived(
        measured, figure_id=f"{prefix}/busy_hours", value=hours(time.busy_ns), unit="hours",
        formula="sum of the device time of its passes",
    )  # fmt: skip
    cells: dict[str, str | None] = {"rented_hours": paid, "busy_hours": busy}
    cells["idle_hours"] = book.derived(
        [paid, busy], figure_id=f"{prefix}/idle_hours", value=hours(time.idle_ns), unit="hours",
        formula="rented hours - busy hours, 0 at least",
    )  # fmt: skip
    cells["utilisation_percent"] = book.derived(
        [paid, busy], figure_id=f"{prefix}/utilisation_percent", value=float(time.ratio * 100), unit="percent",
        formula="busy hours / rented hours x 100",
    )  # fmt: skip
    labels = {
        "rental": rental.id, "offer": offer.id, "provider": offer.provider, "device": offer.device,
        "from": utc_stamp(rental.start), "to": utc_stamp(rental.end),
    }  # fmt: skip
    costs = summed(
        ("", each.amount.currency, each.amount) for each in found.origins if each.charge.rental == rental.id
    )  # fmt: skip
    said = list(_said(book, found, rental, time, cells))
    if not costs:
        yield row(rental.id, {**labels, "currency": ""}, cells, *said)
    for (_, currency), amount in costs.items():
        money = _costs(book, found, rental, time, amount)
        yield row(f"{rental.id}~{currency}", {**labels, "currency": currency}, {**cells, **money}, *said)


def _costs(book: Book, found: Accounts, rental: Rental, time: Utilisation, amount: Money) -> dict[str, str]:
    """Add the cost of the reserved time and of the used part of it, and the documents answered for one unit."""
    prefix = f"utilisation/{rental.id}~{amount.currency}"
    charges = [
        charge_figure(each.charge.id)
        for each in found.origins
        if (each.charge.rental, each.amount.currency) == (rental.id, amount.currency)
    ]
    reserved = book.derived(
        charges, figure_id=f"{prefix}/reserved_cost", value=amount.minor_units, unit="minor_units",
        currency=amount.currency, formula="sum of the charges of this rental",
    )  # fmt: skip
    busy = f"utilisation/{rental.id}/utilisation_percent"
    used = time.used_cost(Fraction(amount.minor_units))
    cells = {"reserved_cost": reserved}
    cells["used_cost"] = book.derived(
        [reserved, busy], figure_id=f"{prefix}/used_cost", value=rounded(used), unit="minor_units",
        currency=amount.currency, formula="reserved cost x busy hours / rented hours",
    )  # fmt: skip
    answers = sum(each.document_count for each in found.passes if each.rental == rental.id)
    rate = per_unit(answers, used / 10 ** minor_digits(amount.currency))
    cells["answers_per_unit"] = book.derived(
        [cells["used_cost"]], figure_id=f"{prefix}/answers_per_unit", unit="documents",
        value=float(rate) if rate is not None else None, missing_reason="not_defined",
        formula=f"{answers} documents answered / used cost, unrounded",
    )  # fmt: skip
    return cells


def _said(
    book: Book, found: Accounts, rental: Rental, time: Utilisation, cells: dict[str, str | None]
) -> Iterator[Sentence]:
    """Yield what is remarkable about a rental: full, overrun, unused, passes outside its dates or without an end."""
    passes = [each for each in found.passes if each.rental == rental.id]
    if strange := [run for run in rental.runs if run not in {each.run_id for each in passes}]:
        yield sentence("rental_runs", rental=rental.id, runs=", ".join(strange))
    if not passes:
        yield sentence("rental_unused", rental=rental.id)
    elif time.ratio > 1:
        yield sentence("rental_overrun", rental=rental.id, busy=ref(str(cells["busy_hours"])))
    elif time.ratio == 1:
        yield sentence("rental_full", rental=rental.id)
    for key, count in (
        ("rental_outside", len(outside(passes, rental))),
        ("rental_unended", sum(not each.is_ended for each in passes)),
    ):
        if count:
            figure = book.derived(
                [str(cells["busy_hours"])], figure_id=f"utilisation/{rental.id}/{key}", value=count, unit="passes",
                formula="attempts of passes",
            )  # fmt: skip
            yield sentence(key, rental=rental.id, passes=ref(figure))


def _avoidable(book: Book, found: Accounts) -> Iterator[Row]:
    """Yield per target what it would cost alone, what leaving it out saves, and Shapley's mean where computed."""
    game = _game(found)
    if game is None:
        return
    players, cost, offers = game
    basis = weakest([entry.offer.basis for entry in offers])
    everyone = book.add(
        Figure(
            figure_id="avoidable/all/packages", value=rounded(cost(frozenset(players))), unit="minor_units",
            currency=found.home, basis=basis, is_derived=True,
            formula="whole packages for the hours of all passes, cheapest valid offer per machine",
        )
    )  # fmt: skip
    columns = {
        "stand_alone": (stand_alone(players, cost), "whole packages for its own hours alone"),
        "incremental": (incremental(players, cost), "packages for all - packages for all others"),
    }
    mean = shapley(players, cost)
    if mean is not None:
        columns["shapley"] = (mean, "mean of what it adds over all orders of joining, rounded for print")
    labels = {target.key: target.label for target in found.pool.targets}
    for player in players:
        inputs = [everyone, f"usage/{player}/device_hours"]
        cells = {
            name: book.derived(
                inputs, figure_id=f"avoidable/{player}/{name}", value=rounded(values[player]), unit="minor_units",
                currency=found.home, formula=formula,
            )
            for name, (values, formula) in columns.items()
        }  # fmt: skip
        said = [sentence("shapley_too_many", most=str(MOST_PLAYERS))] if mean is None else []
        yield row(player, {"target": player, "label": labels[player]}, cells, *said)


def _game(found: Accounts) -> tuple[list[str], Cost, list[Offered]] | None:
    """Return the players and the cost of each subset; null where a machine has no offer that holds."""
    machines: dict[str, Machine] = {}
    offered: dict[str, dict[str, Offered]] = {}
    needed: dict[tuple[str, str], int] = {}
    for each in found.passes:
        target = found.target_of_key[each.configuration_key]
        standing = found.standings.get(target)
        if standing is None or standing.configuration is None:
            continue
        name = str(standing.configuration.machine)
        machines[name] = standing.configuration.machine
        open_offers = {entry.offer.id: entry for entry in standing.offered if entry.blocked is None}
        offered.setdefault(name, {}).update(open_offers)
        needed[name, target] = needed.get((name, target), 0) + (each.duration_ns or 0)
    if not needed or not all(offered.get(name) for name, _ in needed):
        return None
    campaign = found.campaign

    def price_of(name: str, hours_ns: Fraction) -> Fraction:
        packages = [
            package
            for entry in offered[name].values()
            for package in packages_of(
                entry.offer, hours_ns, as_of=campaign.as_of, used_cards=machines[name].used_cards, campaign=campaign
            )
            if package.days is not None
        ]  # fmt: skip
        best = cheapest(packages)
        return Fraction(best.compared.net.minor_units) if best is not None else Fraction(0)

    offers = [entry for entries in offered.values() for entry in entries.values()]
    return sorted({target for _, target in needed}), hours_game(needed, price_of), offers
