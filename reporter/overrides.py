"""The decision record of page one: who chose what instead of the rules' recommendation, when and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.contract.campaign_file import LoadedCampaign
from collector.contract.errors import Finding, Refused

from .book import ref
from .case import Case
from .configurations import Configuration
from .dossier import Sentence
from .gate_tables import gate_figure
from .judgement import LOSS
from .price_tables import bought, package_figure
from .selection import Standing, fitting
from .verdicts import blocked, converted, missed
from .wording import sentence


def refuse_override(loaded: LoadedCampaign, measured: Sequence[Configuration]) -> None:
    """Raise Refused where the override names no candidate, or one that was never measured."""
    override = loaded.campaign.override
    if override is None:
        return
    candidate = next((one for one in loaded.campaign.candidates if one.id == override.candidate), None)
    if candidate is None:
        known = ", ".join(one.id for one in loaded.campaign.candidates) or "none"
        message = f'the override chooses "{override.candidate}", which is no candidate of this file'
        step = f"write the id of a candidate: {known}"
    elif not fitting(candidate, measured):
        message = f'the override chooses "{override.candidate}", which was not measured'
        step = "measure it first, or choose one that was"
    else:
        return
    line = loaded.line_of("override.candidate") or loaded.line_of("override")
    raise Refused([Finding(loaded.path, line or 1, "override", message, step)])


def override(case: Case) -> list[Sentence]:
    """Return the record: who, when, because; the price; and what the rules say. Nothing without an override."""
    chosen = case.selection.overridden
    if case.campaign is None or case.campaign.override is None or chosen is None:
        return []
    return list(_record(case, chosen))


def _record(case: Case, chosen: Standing) -> Iterator[Sentence]:
    assert case.campaign is not None
    written = case.campaign.override
    assert written is not None
    assert chosen.configuration is not None
    yield sentence(
        "override_chosen", by=written.by, label=chosen.label, date="~" + written.on.isoformat(),
        because=written.because.rstrip("."),
    )  # fmt: skip
    if chosen.best is None:
        yield sentence("override_no_package")
    else:
        ending, quantity = bought(chosen, chosen.best)
        net, gross = (ref(package_figure(chosen, chosen.best, column)) for column in ("price_net", "price_gross"))
        yield sentence(
            "override_package" + ending, device=chosen.configuration.device, provider=chosen.best.offer.provider,
            net=net, gross=gross, **quantity,
        )  # fmt: skip
        yield sentence("reason_valid_until", date="~" + chosen.best.offer.valid_until.isoformat())
        if chosen is not (case.selection.winner or case.selection.preferred):  # the reasons say it of that one
            yield from converted(chosen, chosen.best, case.campaign)
    yield from _against(case, chosen)
    yield _instead(case, chosen)


def _instead(case: Case, chosen: Standing) -> Sentence:
    selection = case.selection
    if selection.winner is not None:
        if selection.winner is chosen:
            return sentence("override_same")
        return sentence("override_instead", label=selection.winner.label)
    if selection.equivalents:
        return sentence("override_instead_equivalent", labels=", ".join(s.label for s in selection.equivalents))
    return sentence("override_instead_nobody")


def _against(case: Case, chosen: Standing) -> Iterator[Sentence]:
    """What was fixed in advance and is not kept by what a person chose: never silent."""
    if not chosen.has_qualified:
        yield _breaks(chosen)
    elif missed(chosen) is not None:
        yield sentence("override_against_requirements", label=chosen.label)
        said = blocked(case.book, chosen, case.campaign)
        if said is not None:
            yield said


def _breaks(chosen: Standing) -> Sentence:
    """Return the first rule that it does not meet, or why no rule could be judged."""
    gate, label = chosen.worst_gate, chosen.label
    if chosen.state not in ("rejected", "inconclusive"):
        return sentence("override_against_unjudged", label=label)
    if gate is None or chosen.configuration is None or not chosen.configuration.is_complete:
        quality = f"quality/{chosen.key}"
        returned, expected = ref(f"{quality}/returned_documents"), ref(f"{quality}/document_count")
        return sentence("override_against_incomplete", label=label, returned=returned, expected=expected)
    counted, limit = (ref(gate_figure(chosen.key, gate, column)) for column in ("counted", "limit"))
    if gate.rule == LOSS:
        undecided = "_undecided" if chosen.state == "inconclusive" else ""
        return sentence("override_against_lost" + undecided, label=label, lost=counted, allowed=limit)
    if gate.subset:
        return sentence("override_against_subset", label=label, subset=gate.subset, accepted=counted, needed=limit)
    return sentence("override_against_accepted", label=label, accepted=counted, needed=limit)
