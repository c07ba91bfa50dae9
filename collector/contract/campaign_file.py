"""Read campaign.toml: its shape, and everything in it that would make a price or a comparison wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from .campaign import Campaign, Objective
from .charge_rules import Fault, charge_faults
from .errors import Finding, Refused
from .money import exact
from .offer_rules import offer_faults
from .toml_lines import read_toml


class LoadedCampaign(NamedTuple):
    """A campaign file that can be used. `line_of` gives the line of a path such as `offer[0].price_3_days`."""

    campaign: Campaign
    path: Path
    line_of: Callable[[str], int | None]


def read_campaign(path: Path) -> LoadedCampaign:
    """Return the campaign.

    Raises Refused with one finding per fault: of shape first, and of sense where the shape is right.
    """
    text = read_toml(path)
    findings = text.findings(Campaign)
    if not findings:
        campaign = msgspec.convert(text.data, Campaign)
        findings = [
            Finding(path, text.line_of(fault.where) or 1, fault.rule, fault.message, fault.next_step)
            for fault in (*_unprintable(text.data), *_faults(campaign), *charge_faults(campaign, text.line_of))
        ]
    if findings:
        raise Refused(findings)
    return LoadedCampaign(campaign, path, text.line_of)


def _faults(campaign: Campaign) -> Iterator[Fault]:
    yield from _repeated(campaign)
    if campaign.deadline_h is not None and exact(campaign.deadline_h) == 0:
        yield Fault(
            "deadline_h", "amount", "a deadline of 0 hours is met by nothing", "write the hours, or leave the line out"
        )
    yield from _candidates(campaign)
    yield from offer_faults(campaign)
    yield from _calendar(campaign)
    yield from _objective(campaign.objective)
    yield from _ranges(campaign)


def _unprintable(value: object, where: str = "") -> Iterator[Fault]:
    """Yield each text that a page or a terminal could not print as one line."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _unprintable(inner, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _unprintable(inner, f"{where}[{index}]")
    elif isinstance(value, str) and not value.isprintable() and any(ord(c) < 32 or ord(c) == 127 for c in value):
        yield Fault(where, "control-character", f"{value!r} holds a control character", "write it in one plain line")


def _repeated(campaign: Campaign) -> Iterator[Fault]:
    for table, ids in (
        ("candidate", [candidate.id for candidate in campaign.candidates]),
        ("offer", [offer.id for offer in campaign.offers]),
    ):
        for index, name in enumerate(ids):
            if name in ids[:index]:
                yield Fault(
                    f"{table}[{index}].id", "duplicate-id", f'the {table} id "{name}" is given twice',
                    f"give each {table} an id of its own",
                )  # fmt: skip


def _candidates(campaign: Campaign) -> Iterator[Fault]:
    known = {offer.id for offer in campaign.offers}
    seen: dict[tuple[str, str, int, int, str | None], str] = {}
    for index, candidate in enumerate(campaign.candidates):
        for place, name in enumerate(candidate.offers):
            if name not in known:
                listed = ", ".join(sorted(known)) or "none"
                yield Fault(
                    f"candidate[{index}].offers[{place}]", "unknown-offer",
                    f'candidate "{candidate.id}" names the offer "{name}", which is not in this file',
                    f"add an [[offer]] with this id, or name one of: {listed}",
                )  # fmt: skip
            if name in candidate.offers[:place]:
                yield Fault(
                    f"candidate[{index}].offers[{place}]", "duplicate-offer",
                    f'candidate "{candidate.id}" names the offer "{name}" twice', "name each offer once",
                )  # fmt: skip
        if candidate.label in (earlier.label for earlier in campaign.candidates[:index]):
            yield Fault(
                f"candidate[{index}].label", "duplicate-label", f'two candidates are labelled "{candidate.label}"',
                "give each candidate a label of its own: the dossier tells them apart by it",
            )  # fmt: skip
        key = (
            candidate.variant, candidate.device, candidate.batch, candidate.concurrency, candidate.configuration,
        )  # fmt: skip
        if key in seen:
            yield Fault(
                f"candidate[{index}]", "duplicate-candidate",
                f'candidates "{seen[key]}" and "{candidate.id}" are one configuration',
                "keep one of them and list all its offers there",
            )  # fmt: skip
        seen.setdefault(key, candidate.id)


def _calendar(campaign: Campaign) -> Iterator[Fault]:
    for phase in campaign.calendar.__struct_fields__:
        duration = getattr(campaign.calendar, phase)
        if duration is not None and duration.basis == "assumed" and duration.by is None:
            yield Fault(
                f"calendar.{phase}", "assumed-by-nobody",
                f"{duration.hours} hours of {phase} are assumed, but not by whom",
                'add by = "name of the person who answers for it"',
            )  # fmt: skip


def _objective(objective: Objective) -> Iterator[Fault]:
    """A requirement that every candidate meets, or none could, is a slip of the pen."""
    if exact(objective.tie_percent) > 100:
        yield Fault(
            "objective.tie_percent", "range",
            f"a width of {objective.tie_percent} % would call a candidate of more than twice the value equivalent",
            'write a percentage from "0" to "100", e.g. "5"',
        )  # fmt: skip
    headroom = objective.min_headroom_percent
    if headroom is not None and exact(headroom) >= 100:
        yield Fault(
            "objective.min_headroom_percent", "range", f"no configuration leaves {headroom} % of a card's memory free",
            'write a percentage below "100", e.g. "10", or leave the line out',
        )  # fmt: skip
    has_limit = objective.max_first_token_s is not None or objective.max_answer_s is not None
    if objective.time_percentile is not None and not has_limit:
        yield Fault(
            "objective.time_percentile", "no-time-limit",
            f"percentile {objective.time_percentile} is given, and no time limit that it is for",
            "add max_first_token_s or max_answer_s, or leave the line out",
        )  # fmt: skip


def _ranges(campaign: Campaign) -> Iterator[Fault]:
    """An input that could fall by its whole would leave nothing to choose."""
    declared = campaign.sensitivity
    if declared is None:
        return
    for name in ("price_percent", "accepted_points", "utilisation_percent", "volume_percent"):
        text = getattr(declared, name)
        if text is not None and exact(text) >= 100:
            yield Fault(
                f"sensitivity.{name}", "range", f"a range of ± {text} % is as much as the value itself or more",
                "write what it may really be wrong by, below 100, or leave the line out: it is then not varied",
            )  # fmt: skip
