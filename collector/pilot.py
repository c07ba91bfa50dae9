"""What a plan will take before money is spent: its passes in their order, and hours, money and disk from a pilot.

The pilot measures development documents as any run does: real records of the stage `pilot`, the reference first, each
variant once. What it finds is carried over to the plan in `estimate`. A variant that cannot be loaded is told now.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from collector.contract.campaign import Campaign
from collector.contract.errors import DossierError
from collector.contract.matching import Machine, Mismatch, offer_mismatch
from collector.contract.money import exact
from collector.contract.offers import Offer
from collector.contract.protocol import Lock
from collector.contract.records import Device
from collector.contract.records.base import FailureCause, Phase
from collector.contract.tariffs import NS_PER_HOUR, Bill, Tariff, bill, tariffs_of
from collector.contract.texts import is_run_file
from collector.estimate import (
    Measured,
    PassEstimate,
    Span,
    estimated,
    measured_in,
    reload_estimates,
    total,
)
from collector.plan import CHECKED, Chosen, PlannedPass, is_loaded_anew, plan_passes, stage_documents
from collector.run_options import RunOptions

_NO_ID = "0" * 16


class Failed(NamedTuple):
    """A variant that the pilot could not measure."""

    variant: str
    cause: FailureCause
    phase: Phase | None


class Priced(NamedTuple):
    """One way of paying for the plan: for the expected time, and for the high end of the range."""

    tariff: Tariff
    expected: Bill
    high: Bill


class OfferForPlan(NamedTuple):
    """One offer of the campaign for the measured plan: its tariffs, or why it is not for this machine."""

    offer: Offer
    mismatch: Mismatch | None
    is_valid: bool
    """The offer holds on the campaign's date."""
    priced: list[Priced]


class Disk(NamedTuple):
    """Bytes that records and texts of the whole plan will take: those of one measured request times all requests."""

    requests: int
    record_bytes: Fraction
    text_bytes: Fraction
    free_bytes: int


class Deadline(NamedTuple):
    """The campaign's deadline against the plan and the other hours of its calendar."""

    deadline_h: Fraction
    calendar_h: Fraction
    span: Span

    @property
    def verdict(self) -> str:
        """`fits`, `too long`, or `uncertain` where the range holds the deadline."""
        left_ns = (self.deadline_h - self.calendar_h) * NS_PER_HOUR
        if self.span.high_ns <= left_ns:
            return "fits"
        return "too long" if self.span.low_ns > left_ns else "uncertain"


class PlanReport(NamedTuple):
    """What is known of a plan before it runs. Everything after `passes` is empty or null where nothing was measured.

    documents: development documents that the pilot measured per variant; wanted: how many it was asked for.
    """

    plan_id: str
    passes: list[PassEstimate]
    reloads: dict[str, Span | None]
    whole: Span | None
    wanted: int
    documents: int
    failed: list[Failed]
    has_assumed_loads: bool
    offers: list[OfferForPlan]
    disk: Disk | None
    deadline: Deadline | None


def planned(lock: Lock) -> list[PlannedPass]:
    """Return the passes of `collector run` in their order; ids of a machine are left out, nothing here needs them."""
    engines = dict.fromkeys((variant.name for variant in lock.plan.variants), _NO_ID)
    return plan_passes(lock, stage="validation", environment_id=_NO_ID, engine_ids=engines)


def run_span(lock: Lock, options: RunOptions, folder: Path) -> Span | None:
    """Return what a run will take by the passes that earlier runs of this plan left in the folder; null without any."""
    engines = dict.fromkeys((variant.name for variant in lock.plan.variants), _NO_ID)
    passes = plan_passes(
        lock, stage=options.stage, environment_id=_NO_ID, engine_ids=engines, only=options.only,
        only_series=options.only_series, configurations=options.configurations, reference_runs=options.reference_runs,
    )  # fmt: skip
    costs = measured_in(run_files(folder), lock.plan_id).costs
    again = [planned for planned in passes if is_loaded_anew(lock, planned.variant)]
    reloads = reload_estimates(again, costs) if lock.plan.plan.reload_check else {}
    return total(estimated(passes, costs, lock, options.stage), reloads)


def run_files(folder: Path) -> list[Path]:
    """Return the run files in a folder, none where it does not exist."""
    return sorted(path for path in folder.glob("*.jsonl") if path.is_file() and is_run_file(path))


def pilot_options(lock: Lock, documents: int, device: str, commit: str | None) -> RunOptions:
    """Return the run of a pilot: each variant once with so many development documents, the reference first.

    Raises DossierError for a protocol without development documents.
    """
    if not stage_documents(lock, "pilot"):
        raise DossierError(
            "the protocol has no documents with role development, which a pilot measures",
            next_step='give a few documents role "development" and freeze again; or leave --pilot out',
        )
    others = [Chosen(variant.name) for variant in lock.plan.variants if variant.name != lock.plan.plan.reference]
    return RunOptions(
        stage="pilot", device=device, configurations=others, reference_runs=1, repetitions=1,
        document_limit=documents, is_reloading=False, commit=commit,
    )  # fmt: skip


def plan_report(
    lock: Lock,
    measured: Measured,
    *,
    wanted: int = 0,
    campaign: Campaign | None = None,
    devices: Sequence[Device] = (),
    folder: Path,
) -> PlanReport:
    """Return what the plan will take by what was measured; offers are priced where they are for these devices.

    folder: where the records will be written, for the room that is free there.
    """
    passes = planned(lock)
    estimates = estimated(passes, measured.costs, lock, "validation")
    reloads = _reloads(lock, passes, measured)
    whole = total(estimates, {name: span for name, span in reloads.items() if span is not None})
    return PlanReport(
        plan_id=lock.plan_id, passes=estimates, reloads=reloads, whole=whole, wanted=wanted,
        documents=min([cost.documents for cost in measured.costs.values() if cost.cause is None], default=0),
        failed=[
            Failed(chosen.variant, cost.cause, cost.phase)
            for chosen, cost in measured.costs.items()
            if cost.cause is not None
        ],
        has_assumed_loads=any(one.basis == "one_at_a_time" for one in estimates),
        offers=_offers(campaign, devices, whole) if campaign is not None else [],
        disk=_disk(measured, estimates, reloads, folder),
        deadline=_deadline(campaign, whole),
    )  # fmt: skip


def _reloads(lock: Lock, passes: Sequence[PlannedPass], measured: Measured) -> dict[str, Span | None]:
    if not lock.plan.plan.reload_check:
        return {}
    passes = [planned for planned in passes if is_loaded_anew(lock, planned.variant)]
    known = reload_estimates(passes, measured.costs)
    failed = {chosen.variant for chosen, cost in measured.costs.items() if cost.cause is not None}
    names = dict.fromkeys(one.variant.name for one in passes)
    return {name: known.get(name) for name in names if name in known or name not in failed}


def _offers(campaign: Campaign, devices: Sequence[Device], whole: Span | None) -> list[OfferForPlan]:
    machine = machine_of(devices)
    found = []
    for offer in campaign.offers:
        mismatch = offer_mismatch(offer, machine)
        priced = [] if mismatch is not None or whole is None else _priced(offer, machine, whole)
        found.append(OfferForPlan(offer, mismatch, offer.holds_on(campaign.as_of), priced))
    return found


def _priced(offer: Offer, machine: Machine, whole: Span) -> list[Priced]:
    return [
        Priced(tariff, bill(tariff, whole.expected_ns), bill(tariff, whole.high_ns))
        for tariff in tariffs_of(offer, machine.used_cards)
    ]


def machine_of(devices: Sequence[Device]) -> Machine:
    """Return the devices of a run as an offer can name them."""
    first = devices[0]
    return Machine(first.device_name, len(devices), first.device_memory_bytes, first.mig_profile)


def _disk(
    measured: Measured, estimates: Sequence[PassEstimate], reloads: Mapping[str, Span | None], folder: Path
) -> Disk | None:  # fmt: skip
    if not measured.request_count:
        return None
    requests = sum(one.requests for one in estimates) + CHECKED * len(reloads)
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    return Disk(
        requests=requests,
        record_bytes=Fraction(measured.record_bytes, measured.request_count) * requests,
        text_bytes=Fraction(measured.text_bytes, measured.request_count) * requests,
        free_bytes=shutil.disk_usage(there).free,
    )


def _deadline(campaign: Campaign | None, whole: Span | None) -> Deadline | None:
    if campaign is None or campaign.deadline_h is None or whole is None:
        return None
    calendar = campaign.calendar
    given = [getattr(calendar, name) for name in calendar.__struct_fields__]
    hours = sum((exact(duration.hours) for duration in given if duration is not None), Fraction(0))
    return Deadline(exact(campaign.deadline_h), hours, whole)
