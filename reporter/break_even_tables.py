"""The tables of break-even: which tariff is cheapest from how many hours on, and the steps that the chart draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from collector.contract.campaign import Campaign
from collector.contract.money import Money
from collector.contract.offers import Offer
from collector.contract.tariffs import NS_PER_HOUR, Tariff, tariffs_of

from .book import Book, hours, row
from .break_even import Segment, Totals, breakpoints, horizon_ns, segments
from .dossier import Row
from .offer_figures import exchange_inputs, offer_inputs
from .selection import Standing

MOST_POINTS = 64
"""Points of one line of the chart: a tariff that is billed in finer steps is drawn through as many of its totals."""


class Group(NamedTuple):
    """Candidates for which the same offers may win with the same number of cards: they share one chart."""

    key: str
    offers: list[Offer]
    used_cards: int
    standings: list[Standing]

    @property
    def tariffs(self) -> list[Tariff]:
        return [tariff for offer in self.offers for tariff in tariffs_of(offer, self.used_cards)]


def groups_of(standings: Sequence[Standing]) -> list[Group]:
    """Return the groups of those that meet the rules, or of all where none does; none where no offer may win."""
    qualified = [standing for standing in standings if standing.has_qualified]
    found: dict[tuple[tuple[str, ...], int], Group] = {}
    for standing in qualified or standings:
        offers = [offered.offer for offered in standing.offered if offered.blocked is None]
        if not offers or standing.configuration is None:
            continue
        cards = standing.configuration.machine.used_cards
        key = (tuple(offer.id for offer in offers), cards)
        group = found.setdefault(key, Group(f"g{len(found) + 1}", offers, cards, []))
        group.standings.append(standing)
    return list(found.values())


def put_break_even(book: Book, standings: Sequence[Standing], campaign: Campaign) -> None:
    """Add the tables `break_even`, `break_even_steps` and `break_even_needs`, where an offer may win."""
    intervals: list[Row] = []
    steps: list[Row] = []
    needs: list[Row] = []
    for group in groups_of(standings):
        totals = Totals(group.tariffs, campaign)
        until = horizon_ns([standing.need.total_ns for standing in group.standings if standing.need is not None])
        found = segments(totals, until)
        intervals += [_interval(book, group, totals, place, segment) for place, segment in enumerate(found)]
        steps += [entry for index in range(len(totals.tariffs)) for entry in _steps(book, group, totals, index, until)]
        needs += [_need(group, standing) for standing in group.standings if standing.need is not None]
    if intervals:
        book.put("break_even", "one row per (group of candidates, interval of needed hours)", intervals)
        book.put("break_even_steps", "one row per (group of candidates, tariff, point of its line)", steps)
        book.put("break_even_needs", "one row per (group of candidates, candidate)", needs)


def _labels(group: Group, tariff: Tariff) -> dict[str, str]:
    return {"group": group.key, "offer": tariff.offer.id, "tariff": tariff.term}


def _inputs(tariff: Tariff, total: Money) -> list[str]:
    is_own = total.currency == tariff.offer.currency
    return [*offer_inputs(tariff.offer, tariff), *([] if is_own else exchange_inputs(tariff.offer.currency))]


def _interval(book: Book, group: Group, totals: Totals, place: int, segment: Segment) -> Row:
    """Return one interval; every tariff of the group was compared, so the prices of all of them enter."""
    key, names = f"{group.key}~{place}", {}
    inputs = list(dict.fromkeys(n for tariff in totals.tariffs for n in _inputs(tariff, segment.lowest)))
    for column, bound in (("over_hours", segment.start_ns), ("to_hours", segment.end_ns)):
        names[column] = book.derived(
            inputs, figure_id=f"break_even/{key}/{column}", value=hours(bound), unit="hours",
            formula="where the cheapest net total over all tariffs changes, exact to a billing step",
        )  # fmt: skip
    for column, total, where in (
        ("lowest", segment.lowest, "just over the start"),
        ("highest", segment.highest, "at the end"),
    ):
        names[column] = book.derived(
            inputs, figure_id=f"break_even/{key}/{column}", value=total.minor_units, unit="minor_units",
            currency=total.currency, formula=f"net total of this tariff {where} of the interval",
        )  # fmt: skip
    inside = [s.label for s in group.standings if s.need and segment.start_ns < s.need.total_ns <= segment.end_ns]
    labels = _labels(group, segment.tariff) | {
        "provider": segment.tariff.offer.provider, "needed_by": ", ".join(inside),
    }  # fmt: skip
    return row(key, labels, names)


def _steps(book: Book, group: Group, totals: Totals, index: int, until: int) -> Iterable[Row]:
    """Yield the points of a step line: each holds for needs from the point before up to and including itself."""
    tariff = totals.tariffs[index]
    for place, at in enumerate(_drawn_at(tariff, until)):
        total = totals.price(index, at)[0]
        key, inputs = f"{group.key}~{tariff.offer.id}~{tariff.term}~{place}", _inputs(tariff, total)
        name = f"break_even_steps/{key}"
        book.derived(inputs, figure_id=f"{name}/at_hours", value=hours(at), unit="hours", formula="end of a step")
        book.derived(
            inputs, figure_id=f"{name}/total", value=total.minor_units, unit="minor_units", currency=total.currency,
            formula="net total of this tariff for a need of these hours",
        )  # fmt: skip
        yield row(key, _labels(group, tariff), {"at_hours": f"{name}/at_hours", "total": f"{name}/total"})


def _drawn_at(tariff: Tariff, until: int) -> list[int]:
    points = breakpoints([tariff], until)
    if tariff.days is not None:
        return points
    even = {until * part // MOST_POINTS for part in range(1, MOST_POINTS + 1)} | {min(NS_PER_HOUR, until)}
    return sorted(even | (set(points) if len(points) <= MOST_POINTS else set()))


def _need(group: Group, standing: Standing) -> Row:
    labels = {"group": group.key, "candidate": standing.label}
    return row(f"{group.key}~{standing.key}", labels, {"needed_hours": f"calendar/{standing.key}/needed_hours"})


def cheapest_rent(standing: Standing, campaign: Campaign) -> Callable[[Fraction], Money | None]:
    """Return what gives the cheapest net total of a standing's valid offers for a need, in the campaign's currency."""
    group = next(iter(groups_of([standing])), None)
    totals = Totals(group.tariffs if group is not None else [], campaign)

    def rent(needed_ns: Fraction) -> Money | None:
        if not totals.tariffs:
            return None
        whole = -(-needed_ns // 1)
        return totals.price(totals.cheapest(whole), whole)[0]

    return rent
