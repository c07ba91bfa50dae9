"""Who used what was rented: passes, rentals and targets of a campaign, read from records and the campaign file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import duckdb

from collector.contract.campaign import Campaign
from collector.contract.charge_rules import home_currency, weight
from collector.contract.charges import Rental
from collector.contract.money import exact
from collector.contract.tariffs import cards_rented
from collector.contract.times import instant_ns, utc_stamp

from .allocation import Origin, Pool, Target, origin
from .load import SEQ_BITS
from .selection import Standing


class PassTime(NamedTuple):
    """The device time of one pass attempt.

    rental: the one its run ran on, null where nothing names a rental of the campaign. duration_ns: from starting the
    worker to its end; of an attempt that did not end, to the last record written of it, null where there is none.
    """

    run_id: str
    pass_id: str
    configuration_key: str
    label: str
    rental: str | None
    device_count: int
    duration_ns: int | None
    is_ended: bool
    began_at: str
    document_count: int
    sources: tuple[str, ...]

    @property
    def device_ns(self) -> int:
        return (self.duration_ns or 0) * self.device_count


class Accounts(NamedTuple):
    """What is needed to split a campaign's charges. target_of_key: configuration key -> target."""

    campaign: Campaign
    home: str
    pool: Pool
    origins: list[Origin]
    passes: list[PassTime]
    target_of_key: dict[str, str]
    standings: dict[str, Standing]


def accounts(con: duckdb.DuckDBPyConnection, standings: Sequence[Standing], campaign: Campaign) -> Accounts | None:
    """Return what the campaign's charges are split by; null where it has no charge.

    Targets are the candidates and, so that nothing is hidden, every measured configuration that is none of them.
    """
    home = home_currency(campaign)
    if not campaign.charges or home is None:
        return None
    passes = pass_times(con, campaign.rentals)
    targets, of_key, of_candidate = _targets(standings, passes)
    used: dict[tuple[str | None, str], Fraction | int] = {}
    for each in passes:
        key = (each.rental, of_key[each.configuration_key])
        used[key] = used.get(key, 0) + each.device_ns
    pool = Pool(
        targets=tuple(targets),
        paid_ns={rental.id: rented_ns(rental) * rented_cards(rental, campaign, passes) for rental in campaign.rentals},
        used_ns=used,
        weights={of_candidate[name]: weight(text) for name, text in campaign.allocation.weights.items()},
        rates={rate.currency: exact(rate.rate) for rate in campaign.exchange_rates},
    )
    by_target = {target_key(standing): standing for standing in standings}
    origins = [origin(charge, of_candidate) for charge in campaign.charges]
    return Accounts(campaign, home, pool, origins, passes, of_key, by_target)


def pass_times(con: duckdb.DuckDBPyConnection, rentals: Iterable[Rental]) -> list[PassTime]:
    """Return every pass attempt by time. A run's own rental counts before what the campaign file says of it."""
    known = {rental.id for rental in rentals}
    named = {run: rental.id for rental in rentals for run in rental.runs}
    rows = con.execute("""
        select
            run_id, pass_id, configuration_key, label, rental_id, device_count, duration_ns, is_ended, began_at,
            document_count, sources
        from pass_times""").fetchall()
    found = []
    for *row, sources in rows:
        records = tuple(f"{row[0]}:{source & (1 << SEQ_BITS) - 1}" for source in sources)
        each = PassTime._make([*row, records])
        rental = each.rental if each.rental is not None else named.get(each.run_id)
        found.append(each._replace(rental=rental if rental in known else None))
    return found


def rented_ns(rental: Rental) -> int:
    """Return the elapsed time of a rental, whatever the clocks of its place did meanwhile."""
    return (rental.end - rental.start) // dt.timedelta(microseconds=1) * 1000


def rented_cards(rental: Rental, campaign: Campaign, passes: Sequence[PassTime]) -> int:
    """Return the cards that were paid for: all of a node, or single ones, as many as a pass used and the minimum."""
    offer = next(offer for offer in campaign.offers if offer.id == rental.offer)
    used = max((each.device_count for each in passes if each.rental == rental.id), default=1)
    return cards_rented(offer, used)


def outside(passes: Sequence[PassTime], rental: Rental) -> list[PassTime]:
    """Return the passes of a rental that began before it or ended after it, by the wall clock of their machine."""
    start, end = (instant_ns(utc_stamp(moment)) for moment in (rental.start, rental.end))
    return [
        each
        for each in passes
        if each.rental == rental.id
        and not start <= instant_ns(each.began_at) <= instant_ns(each.began_at) + (each.duration_ns or 0) <= end
    ]


def target_key(standing: Standing) -> str:
    """Return the key of what bears cost: of the candidate, or of a measured configuration that is none."""
    if standing.candidate is not None:
        return f"candidate~{standing.candidate.id}"
    return f"configuration~{standing.key}"


def _targets(
    standings: Sequence[Standing], passes: Sequence[PassTime]
) -> tuple[list[Target], dict[str, str], dict[str, str]]:
    """Return the targets, configuration key -> target, and candidate id -> target."""
    targets, of_key, of_candidate = [], {}, {}
    for standing in standings:
        if standing.configuration is None and standing.candidate is None:
            continue
        target = Target(target_key(standing), standing.label, int(standing.is_deliverable))
        targets.append(target)
        if standing.configuration is not None:
            of_key[standing.configuration.key] = target.key
        if standing.candidate is not None:
            of_candidate[standing.candidate.id] = target.key
    # what only another stage measured took its time too
    for each in passes:
        if each.configuration_key not in of_key:
            targets.append(Target(f"configuration~{each.configuration_key}", each.label))
            of_key[each.configuration_key] = targets[-1].key
    return targets, of_key, of_candidate
