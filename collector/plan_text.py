"""A plan before it runs, as lines for a terminal and as plain values for JSON. Only here are hours rounded."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from collector.contract.money import Taxed
from collector.contract.protocol import Protocol
from collector.contract.tariffs import NS_PER_HOUR
from collector.engines._cold import cold_method
from collector.estimate import LINEAR, LOAD_AS_ONE, PassEstimate, Span
from collector.pilot import Deadline, Disk, OfferForPlan, PlanReport, Priced
from collector.server_rules import used_servers

_FITS = {
    "fits": "it fits, also at the slow end of the range",
    "too long": "it does not fit, even at the fast end of the range: drop variants, loads or repetitions",
    "uncertain": "it may not fit: the deadline lies within the range; measure more documents with --pilot",
}


def plan_lines(report: PlanReport) -> Iterator[str]:
    """Yield what a person reads before renting: the order, then hours, money, disk and the deadline."""
    yield f"plan {report.plan_id[:12]}…: {len(report.passes)} passes, in this order"
    for place, one in enumerate(report.passes, start=1):
        yield f"{place:>3}  {_pass_line(one)}"
    for name, span in report.reloads.items():
        yield f"     {name} loaded again and asked again{_hours_after(span)}"
    if report.documents == 0 and not report.failed:
        yield "hours: not measured; `--pilot 5` measures five development documents per variant"
        return
    if 0 < report.documents < report.wanted:
        yield f"measured: {_documents(report.documents)} per variant, of {report.wanted} wanted: there are no more"
    elif report.documents:
        yield f"measured: {_documents(report.documents)} per variant"
    for failed in report.failed:
        where = f" in {failed.phase}" if failed.phase else ""
        yield f"{failed.variant}: failed ({failed.cause}{where}); its passes will cost only the time until they fail"
    yield from _estimates(report)


def _estimates(report: PlanReport) -> Iterator[str]:
    if report.whole is None:
        unknown = ", ".join(_name(one) for one in report.passes if one.span is None)
        yield f"hours: not known, nothing was measured of {unknown}"
    else:
        yield f"hours: {_hours(report.whole)}; {LINEAR}"
        if report.has_assumed_loads:
            yield f"       {LOAD_AS_ONE}"
    for offer in report.offers:
        yield from _offer_lines(offer)
    if report.disk is not None:
        yield _disk_line(report.disk)
    if report.deadline is not None:
        yield _deadline_line(report.deadline)


def load_lines(protocol: Protocol) -> Iterator[str]:
    """Yield what a protocol says of servers and of how requests are put to them; nothing for one in process."""
    for server in used_servers(protocol):
        behind = [variant.name for variant in protocol.variants if protocol.engine_of(variant).server == server]
        how = "started by each pass, which needs --allow-commands" if server.start else "which runs already"
        yield f"server: {server.name} ({server.kind}, {how}) answers for {', '.join(behind)}"
        if not server.start:
            yield f"        {server.name} was not asked now: each pass asks it for its version and models first"
        if cold_method(server) == "nonce":
            yield (
                f"        {server.name} is kept cold by an unlike first line in each prompt: its answers are "
                'compared with no other engine\'s; cache_state = "warm" leaves prompts as they are'
            )
        if len(behind) > 1:
            yield f"        {', '.join(behind)} put the same requests to it: one thing is measured {len(behind)} times"
    plan = protocol.plan
    if plan.concurrencies:
        yield f"concurrencies: {', '.join(map(str, plan.concurrencies))} requests at a time, after one at a time"
    if plan.rates:
        yield f"rates: {', '.join(f'{rate:g}' for rate in plan.rates)} arrivals per second ({plan.arrivals})"


def plan_values(report: PlanReport) -> dict[str, Any]:
    """Return the same as plain values; hours are floats, amounts exact decimals as texts."""
    return {
        "plan_id": report.plan_id,
        "passes": [
            {
                "variant": one.planned.variant.name, "batch": one.planned.key.batch,
                "concurrency": one.planned.key.concurrency, "rate_per_s": one.planned.key.rate_per_s,
                "repetition": one.planned.key.repetition, "purpose": one.planned.purpose,
                "documents": len(one.planned.document_order), "hours": _hours_value(one.span), "basis": one.basis,
            }
            for one in report.passes
        ],
        "reload_checks": {name: _hours_value(span) for name, span in report.reloads.items()},
        "hours": _hours_value(report.whole),
        "assumptions": [LINEAR, *([LOAD_AS_ONE] if report.has_assumed_loads else [])] if report.documents else [],
        "pilot": {
            "documents_wanted": report.wanted, "documents_measured": report.documents,
            "failed": [failed._asdict() for failed in report.failed],
        },
        "offers": [_offer_value(offer) for offer in report.offers],
        "disk": _disk_value(report.disk),
        "deadline": _deadline_value(report.deadline),
    }  # fmt: skip


def _name(one: PassEstimate) -> str:
    key, name = one.planned.key, one.planned.variant.name
    if key.rate_per_s is not None:
        return f"{name} at {key.rate_per_s:g} arrivals per second ({key.arrivals})"
    if key.concurrency > 1:
        return f"{name}, {key.concurrency} requests at a time"
    return f"{name} in batches of {key.batch}" if key.batch > 1 else name


def _pass_line(one: PassEstimate) -> str:
    purpose = one.planned.purpose.replace("_", " ")
    repetition = f" {one.planned.key.repetition}" if one.planned.key.repetition > 1 else ""
    return f"{_name(one)}, {purpose}{repetition}: {_documents(len(one.planned.document_order))}{_hours_after(one.span)}"


def _documents(count: int) -> str:
    return f"{count} document{'' if count == 1 else 's'}"


def _hours_after(span: Span | None) -> str:
    return "" if span is None else f", {_hours(span)}"


def hours_text(hours: Fraction, *, unit_of: Fraction | None = None) -> str:
    """Return hours for a person: two decimals, below a tenth of an hour in minutes, below a minute in seconds.

    unit_of: the hours whose unit is taken, so that the ends of one range have one unit.
    """
    size = hours if unit_of is None else unit_of
    if size >= Fraction(1, 10):
        return f"{float(hours):,.2f} h"
    return f"{float(hours * 60):.1f} min" if size >= Fraction(1, 60) else f"{float(hours * 3600):.1f} s"


def _hours(span: Span) -> str:
    expected_h = span.expected_ns / NS_PER_HOUR
    low, expected, high = (hours_text(part / NS_PER_HOUR, unit_of=expected_h) for part in span)
    return expected if low == high else f"{expected} expected, {low} to {high}"


def _hours_value(span: Span | None) -> dict[str, float] | None:
    if span is None:
        return None
    low, expected, high = (float(part / NS_PER_HOUR) for part in span)
    return {"low": low, "expected": expected, "high": high}


def _offer_lines(one: OfferForPlan) -> Iterator[str]:
    name = f"offer {one.offer.id}"
    if one.mismatch is not None:
        yield f"{name}: not for this machine: its {one.mismatch.reason} is {one.mismatch.offered}, here is " + (
            one.mismatch.measured
        )
        return
    note = "" if one.is_valid else "; the offer does not hold on the campaign's date"
    if one.offer.basis == "example":
        note += "; an example price"
    if not one.priced:
        yield f"{name}: price unknown{note}"
    for priced in one.priced:
        more = "" if priced.high.price == priced.expected.price else f" (slow end: {_bought(priced, is_high=True)})"
        yield f"{name}: {_bought(priced, is_high=False)}{more}{note}"


def _bought(priced: Priced, *, is_high: bool) -> str:
    billed, days = priced.high if is_high else priced.expected, priced.tariff.days
    paid = hours_text(billed.paid_ns / NS_PER_HOUR)
    what = f"{paid} by the hour" if days is None else f"{billed.bought} x {days} days"
    return f"{what}, {_taxed(billed.price)}"


def _taxed(amount: Taxed) -> str:
    return f"{amount.net.decimal()} {amount.net.currency} net, {amount.gross.decimal()} with tax"


def _offer_value(one: OfferForPlan) -> dict[str, Any]:
    return {
        "id": one.offer.id,
        "mismatch": None if one.mismatch is None else one.mismatch._asdict(),
        "is_valid": one.is_valid,
        "basis": one.offer.basis,
        "tariffs": [
            {
                "days": priced.tariff.days,
                **{
                    name: {
                        "bought": billed.bought, "net": billed.price.net.decimal(),
                        "gross": billed.price.gross.decimal(),
                    }
                    for name, billed in (("expected", priced.expected), ("high", priced.high))
                },
                "currency": one.offer.currency,
            }
            for priced in one.priced
        ],
    }  # fmt: skip


def _disk_line(disk: Disk) -> str:
    needed = disk.record_bytes + disk.text_bytes
    room = "there is room" if needed < disk.free_bytes else "there is not enough room: name another folder with --out"
    return (
        f"disk: {_bytes(disk.record_bytes)} of records and {_bytes(disk.text_bytes)} of texts for {disk.requests:,} "
        f"requests; {_bytes(Fraction(disk.free_bytes))} are free: {room}"
    )


def rental_line(rental_id: str, left_h: Fraction, span: Span | None) -> str:
    """Return how much of a rental is left and whether a run fits into it; no span where nothing was measured."""
    left = f"rental {rental_id}: {hours_text(left_h)} left"
    if span is None:
        return f"{left}; what the run takes is not known before it was measured (`collector plan --pilot 5`)"
    left_ns = left_h * NS_PER_HOUR
    fits = "fits" if span.high_ns <= left_ns else "does not fit" if span.low_ns > left_ns else "may not fit"
    return f"{left}; by earlier passes the run takes {_hours(span)}: it {fits}"


def _bytes(count: Fraction) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{float(count / size):,.1f} {unit}"
    return f"{int(count)} bytes"


def _disk_value(disk: Disk | None) -> dict[str, int] | None:
    if disk is None:
        return None
    return {
        "requests": disk.requests, "record_bytes": int(disk.record_bytes), "text_bytes": int(disk.text_bytes),
        "free_bytes": disk.free_bytes,
    }  # fmt: skip


def _deadline_line(deadline: Deadline) -> str:
    calendar = f", {hours_text(deadline.calendar_h)} of it for the rest of the calendar" if deadline.calendar_h else ""
    return (
        f"deadline: {float(deadline.deadline_h):g} h{calendar}; the wanted volume is not in it: "
        f"{_FITS[deadline.verdict]}"
    )


def _deadline_value(deadline: Deadline | None) -> dict[str, Any] | None:
    if deadline is None:
        return None
    return {
        "deadline_h": float(deadline.deadline_h), "calendar_h": float(deadline.calendar_h), "verdict": deadline.verdict
    }  # fmt: skip
