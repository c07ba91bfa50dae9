"""Gates -> requirements -> whole packages -> the best under the declared objective; near ties stay ties."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from collector.contract.campaign import Campaign, Candidate, Objective
from collector.contract.judging.gates import GateVerdict
from collector.contract.money import exact
from collector.contract.protocol import Gates
from collector.contract.tariffs import NS_PER_HOUR

from .configurations import Configuration
from .feasibility import (
    Requirement,
    capacity_bytes,
    is_impossible,
    memory_requirement,
    offers_blocked,
    requirements,
    usable,
)
from .judgement import State, judged, keeps_to, outcomes, references_of, state_of
from .offered import OfferBlocked, Offered, offered
from .packages import Need, Package, calendar_need, cheapest
from .paired_statistics import Outcome

Blocked = (
    OfferBlocked
    | Literal[
        "no_candidate", "no_duration", "impossible_peak", "headroom", "first_token", "answer", "deadline",
        "no_headroom", "coverage", "failing", "cache_reuse",
    ]
)  # fmt: skip
"""Why one that meets the rules cannot win: the first obstacle on the way from its measurement to a rental."""
NoWinner = Literal[
    "equivalent", "none_measured", "no_reference", "none_qualifies", "undecided", "no_campaign", "no_candidate",
    "not_comparable", "not_priced", "not_feasible", "not_in_time", "records_changed",
]  # fmt: skip
Preferred = Literal["one", "none", "several"]
"""How many of the equivalents passed their reload check and can be explained (mission E4)."""

WITHIN_WITHOUT_DEADLINE_NS = 30 * 24 * NS_PER_HOUR
"""Corpora are counted within the deadline, or within one package of 30 days where the campaign names none."""


class Standing(NamedTuple):
    """Where one configuration (or a candidate that was not measured) stands.

    `gates` is empty where nothing was judged; `outcomes` says beside each what its interval decides, where the protocol
    decides by interval. `reference` is what its losses are counted against. `best` is the cheapest package that may
    win. `late_ns` is the time beyond the deadline. `blocked` is why a qualified one cannot win.
    """

    key: str
    label: str
    state: State
    is_reference: bool
    configuration: Configuration | None
    candidate: Candidate | None
    gates: list[GateVerdict]
    need: Need | None
    offered: list[Offered]
    best: Package | None
    late_ns: Fraction | None
    blocked: Blocked | None
    reference: Configuration | None = None
    outcomes: list[Outcome] = []
    requirements: list[Requirement] = []

    @property
    def has_qualified(self) -> bool:
        return self.state == "qualified"

    @property
    def is_deliverable(self) -> bool:
        """A corpus of this configuration is complete and accepted: yes or no, never a rate (mission F3)."""
        return self.has_qualified and self.configuration is not None and self.configuration.is_complete

    @property
    def worst_gate(self) -> GateVerdict | None:
        """The first rule that was not met; of undecided and rejected ones, the first that was rejected."""
        failed = [gate for gate in self.gates if not gate.has_passed]
        rejected = [g for g, outcome in zip(self.gates, self.outcomes, strict=False) if outcome == "reject"]
        return next(iter(rejected or failed), None)

    @property
    def can_be_explained(self) -> bool:
        """What was loaded is as requested, read back, and its artefact is known by digest."""
        found = self.configuration
        return found is not None and bool(found.is_as_requested) and bool(found.has_artefact_digest)

    @property
    def has_reloaded(self) -> bool:
        """It passed its check after a reload in a fresh process (mission C10)."""
        found = self.configuration.reload if self.configuration is not None else None
        return found is not None and found.has_passed


class Selection(NamedTuple):
    """The outcome. `ranked` are the ones that may win, best first; `equivalents` has two or more or none.

    preferred: of the equivalents the one that was reloaded and can be explained; `preference` says how many there are.
    overridden: what a person chose instead, or all the same.
    """

    standings: list[Standing]
    winner: Standing | None
    equivalents: list[Standing]
    ranked: list[Standing]
    no_winner: NoWinner | None
    preferred: Standing | None = None
    preference: Preferred | None = None
    overridden: Standing | None = None

    @property
    def chosen(self) -> Standing | None:
        """What is to be rented and confirmed: what a person chose, else the winner, else the preferred equivalent."""
        return self.overridden or self.winner or self.preferred


def select(
    gates: Gates, measured: Sequence[Configuration], reference: Configuration | None, campaign: Campaign | None
) -> Selection:
    """Return where each configuration and each candidate stands, and the winner if there is one.

    A function of plain values: nothing is read, so that changed inputs can be tried.
    """
    references = references_of(measured, reference)
    standings = [
        _standing(gates, configuration, candidate, references[configuration.key], reference, campaign)
        if configuration is not None
        else _unmeasured(candidate)
        for configuration, candidate in join(measured, campaign)
    ]
    has_reference = reference is not None or gates.max_lost_points is None
    chosen = _chosen(_equally_covered(standings), campaign, has_reference=has_reference)
    return chosen._replace(overridden=_overridden(chosen.standings, campaign))


def _overridden(standings: Sequence[Standing], campaign: Campaign | None) -> Standing | None:
    if campaign is None or campaign.override is None:
        return None
    named = campaign.override.candidate
    return next((s for s in standings if s.candidate is not None and s.candidate.id == named), None)


def withheld(selection: Selection) -> Selection:
    """Return the selection with nobody preferred: its records are not what was written."""
    return Selection(selection.standings, None, [], [], "records_changed", overridden=selection.overridden)


def join(
    measured: Sequence[Configuration], campaign: Campaign | None
) -> list[tuple[Configuration, Candidate | None] | tuple[None, Candidate]]:
    """Pair candidates with what was measured by variant, device, batch and concurrency; the rest follows alone.

    Where several fit, the first is taken: `build_dossier` refuses such a candidate unless it names one.
    """
    left = list(measured)
    pairs: list[tuple[Configuration, Candidate | None] | tuple[None, Candidate]] = []
    for candidate in campaign.candidates if campaign else []:
        found = next(iter(fitting(candidate, left)), None)
        if found is None:
            pairs.append((None, candidate))
        else:
            left.remove(found)
            pairs.append((found, candidate))
    return [*pairs, *((configuration, None) for configuration in left)]


def fitting(candidate: Candidate, measured: Sequence[Configuration]) -> list[Configuration]:
    """Return the configurations that a candidate names by its labels, and by its key where it gives one."""
    key = (candidate.variant, candidate.device, candidate.batch, candidate.concurrency)
    fits = [c for c in measured if (c.variant, c.device, c.batch, c.concurrency) == key]
    return [c for c in fits if candidate.configuration in (None, c.key)]


def _unmeasured(candidate: Candidate | None) -> Standing:
    assert candidate is not None
    return Standing(
        key=f"candidate~{candidate.id}", label=candidate.label, state="not_measured", is_reference=False,
        configuration=None, candidate=candidate, gates=[], need=None, offered=[], best=None, late_ns=None, blocked=None,
    )  # fmt: skip


def _standing(
    gates: Gates,
    configuration: Configuration,
    candidate: Candidate | None,
    own_reference: Configuration | None,
    reference: Configuration | None,
    campaign: Campaign | None,
) -> Standing:
    counted_against = reference if configuration is reference or configuration is own_reference else own_reference
    is_judged = keeps_to(gates, counted_against, reference) and not configuration.has_other_prompts
    verdicts = judged(gates, configuration, counted_against) if is_judged else []
    need = _need(configuration, campaign)
    offers = offered(candidate, configuration.machine, need, campaign)
    late = _late(need, campaign)
    standing = Standing(
        key=configuration.key, label=candidate.label if candidate else configuration.label,
        state=state_of(configuration, verdicts, gates), is_reference=configuration is reference,
        configuration=configuration, candidate=candidate, gates=verdicts, need=need, offered=offers, late_ns=late,
        blocked=None, best=None, reference=counted_against, outcomes=outcomes(gates, configuration, verdicts),
        requirements=requirements(configuration, offers, campaign.objective) if campaign is not None else [],
    )  # fmt: skip
    if campaign is None:
        return standing
    best = _best(standing, campaign.objective)
    standing = standing._replace(best=best, requirements=_on_the_card(standing, best, campaign.objective))
    return standing._replace(blocked=_blocked(standing, campaign))


def _best(standing: Standing, objective: Objective) -> Package | None:
    """Return the cheapest package of the offers whose card holds what was measured; none beyond the deadline.

    Where free memory is what is preferred, of the offers whose card has most of it.
    """
    configuration = standing.configuration
    if standing.late_ns is not None or configuration is None:
        return None
    held = [
        offer
        for offer in usable(standing.offered)
        if memory_requirement(configuration, offer.offer, objective).result == "met" or not _asks_memory(standing)
    ]
    if objective.prefer == "most_headroom":
        sizes = [capacity_bytes(configuration, offer.offer) or 0 for offer in held]
        held = [offer for offer, size in zip(held, sizes, strict=True) if size == max(sizes)]
    return cheapest([package for offer in held for package in offer.packages if package.is_valid])


def _on_the_card(standing: Standing, best: Package | None, objective: Objective) -> list[Requirement]:
    """Return the requirements, that of memory on the card to be rented where there is one."""
    if best is None or standing.configuration is None:
        return standing.requirements
    memory = memory_requirement(standing.configuration, best.offer, objective)
    return [memory if requirement.kind == "headroom" else requirement for requirement in standing.requirements]


def _asks_memory(standing: Standing) -> bool:
    return any(requirement.kind == "headroom" for requirement in standing.requirements)


def _need(configuration: Configuration, campaign: Campaign | None) -> Need | None:
    if campaign is None or not configuration.corpus_ns or not configuration.expected_documents:
        return None
    return calendar_need(
        campaign.calendar, corpus_ns=configuration.corpus_ns, loading_ns=configuration.loading_ns,
        measured_documents=configuration.expected_documents,
        wanted_documents=campaign.corpora_wanted * campaign.documents_per_corpus,
    )  # fmt: skip


def _late(need: Need | None, campaign: Campaign | None) -> Fraction | None:
    if need is None or campaign is None or campaign.deadline_h is None:
        return None
    beyond = need.total_ns - exact(campaign.deadline_h) * NS_PER_HOUR
    return beyond if beyond > 0 else None


def _blocked(standing: Standing, campaign: Campaign) -> Blocked | None:
    """Return why a measured configuration may not win, whatever the objective prefers."""
    if standing.candidate is None or standing.configuration is None:
        return "no_candidate"
    if is_impossible(standing.configuration):
        return "impossible_peak"
    if standing.configuration.unranked is not None and _is_about_time(campaign.objective):
        return standing.configuration.unranked
    for requirement in standing.requirements:
        if requirement.result != "met":
            return requirement.kind
    if standing.need is None:
        return "no_duration"
    if standing.late_ns is not None:
        return "deadline"
    if (reason := offers_blocked(standing.offered)) is not None:
        return reason
    if standing.best is None and campaign.objective.prefer == "cheapest":
        return "no_price"
    if campaign.objective.prefer == "most_headroom" and headroom_bytes(standing) is None:
        return "no_headroom"
    return None


def _is_about_time(objective: Objective) -> bool:
    """Whether a time decides: of the packages needed, of the corpus, or of one request; of free memory none does."""
    has_limit = objective.max_first_token_s is not None or objective.max_answer_s is not None
    return has_limit or objective.prefer != "most_headroom"


def _equally_covered(standings: list[Standing]) -> list[Standing]:
    """Take out of the ranking whatever had fewer documents judged than another: the two are no longer comparable."""
    free = [s for s in standings if s.has_qualified and s.blocked is None and s.candidate is not None]
    most = max((s.configuration.scored or 0 for s in free if s.configuration is not None), default=0)
    keys = {
        s.key
        for s in free
        if s.configuration is not None and s.configuration.scored is not None and s.configuration.scored < most
    }
    return [s._replace(blocked="coverage") if s.key in keys else s for s in standings]


def headroom_bytes(standing: Standing) -> int | None:
    """Return the memory left at the peak on the card to be rented, else on the one measured; null where not read."""
    configuration = standing.configuration
    if configuration is None or configuration.peak is None:
        return None
    capacity = capacity_bytes(configuration, standing.best.offer if standing.best else None)
    return None if capacity is None else math.floor(capacity) - configuration.peak.peak.peak_bytes


def corpora_within(standing: Standing, campaign: Campaign) -> int:
    """Return the whole corpora finished within the deadline (or 720 h), the rest of the calendar included."""
    assert standing.need is not None
    limit = exact(campaign.deadline_h) * NS_PER_HOUR if campaign.deadline_h else Fraction(WITHIN_WITHOUT_DEADLINE_NS)
    per_corpus = standing.need.ns_per_document * campaign.documents_per_corpus
    return max(0, (limit - standing.need.fixed_ns) // per_corpus)


def merit(standing: Standing, campaign: Campaign) -> Fraction:
    """Return the objective's quantity, the larger the better: what is to be small is negative."""
    match campaign.objective.prefer:
        case "cheapest":
            assert standing.best is not None
            return Fraction(-standing.best.compared.net.minor_units)
        case "most_headroom":
            return Fraction(headroom_bytes(standing) or 0)
        case "fastest_corpus":
            assert standing.need is not None
            return -standing.need.total_ns
        case "most_corpora":
            return Fraction(corpora_within(standing, campaign))


def is_tied(of: Fraction, best: Fraction, objective: Objective) -> bool:
    """Return whether a merit is within the tie width, in percent of the best."""
    return abs(of - best) * 100 <= exact(objective.tie_percent) * abs(best)


def _chosen(standings: list[Standing], campaign: Campaign | None, *, has_reference: bool) -> Selection:
    def none(reason: NoWinner, ranked: list[Standing] | None = None) -> Selection:
        return Selection(standings, None, [], ranked or [], reason)

    qualified = [standing for standing in standings if standing.has_qualified]
    if not qualified:
        if all(standing.state in ("failed", "not_measured") for standing in standings):
            return none("none_measured")
        if any(standing.state == "inconclusive" for standing in standings):
            return none("undecided")
        return none("none_qualifies" if has_reference else "no_reference")
    if campaign is None:
        return none("no_campaign")
    free = [standing for standing in qualified if standing.blocked is None]
    if not free:
        return none(_why_none(qualified))
    merits = {standing.key: merit(standing, campaign) for standing in free}
    ranked = sorted(free, key=lambda standing: (-merits[standing.key], standing.key))
    best = merits[ranked[0].key]
    tied = [standing for standing in ranked if is_tied(merits[standing.key], best, campaign.objective)]
    if len(tied) == 1:
        return Selection(standings, ranked[0], [], ranked, None)
    sound = [standing for standing in tied if standing.has_reloaded and standing.can_be_explained]
    preferred = sound[0] if len(sound) == 1 else None
    preference: Preferred = "one" if preferred is not None else "several" if sound else "none"
    return Selection(standings, None, tied, ranked, "equivalent", preferred, preference)


def _why_none(qualified: Sequence[Standing]) -> NoWinner:
    """Return the nearest obstacle: the one that is left when the others are out of the way."""
    blocked: Mapping[Blocked | None, int] = {s.blocked: 1 for s in qualified}
    if "deadline" in blocked:
        return "not_in_time"
    if {"no_price", "expired", "mismatch", "incomplete", "arithmetic", "no_rate"} & set(blocked):
        return "not_priced"
    if {"headroom", "first_token", "answer", "impossible_peak", "failing", "cache_reuse"} & set(blocked):
        return "not_feasible"
    if {"no_headroom", "no_duration"} & set(blocked):
        return "not_comparable"
    return "no_candidate"
