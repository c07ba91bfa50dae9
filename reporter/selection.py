"""Gates -> what qualifies -> whole packages -> the best under the declared objective; near ties stay ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from collector.contract.campaign import Campaign, Candidate, Objective
from collector.contract.judging.gates import GateVerdict, judge_gates
from collector.contract.money import exact
from collector.contract.protocol import Gates

from .configurations import Configuration
from .offered import Offered, offered
from .packages import NS_PER_HOUR, Need, Package, calendar_need, cheapest

State = Literal["qualified", "rejected", "not_judged", "failed", "not_measured"]
Blocked = Literal["no_price", "expired", "mismatch", "deadline", "no_duration", "no_headroom", "no_candidate"]
NoWinner = Literal[
    "equivalent", "none_measured", "no_reference", "none_qualifies", "no_campaign", "no_candidate", "not_comparable",
    "not_priced", "not_in_time", "decides_by_interval", "records_changed",
]  # fmt: skip

WITHIN_WITHOUT_DEADLINE_NS = 30 * 24 * NS_PER_HOUR
"""Corpora are counted within the deadline, or within one package of 30 days where the campaign names none."""


class Standing(NamedTuple):
    """Where one configuration (or a candidate that was not measured) stands.

    `gates` is empty where nothing was judged. `best` is the cheapest package that may win. `late_ns` is the time beyond
    the deadline. `blocked` is why a qualified one cannot win.
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

    @property
    def has_qualified(self) -> bool:
        return self.state == "qualified"

    @property
    def is_deliverable(self) -> bool:
        """A corpus of this configuration is complete and accepted: yes or no, never a rate (mission F3)."""
        return self.has_qualified and self.configuration is not None and self.configuration.is_complete

    @property
    def worst_gate(self) -> GateVerdict | None:
        """The first rule that was not met."""
        return next((gate for gate in self.gates if not gate.has_passed), None)


class Selection(NamedTuple):
    """The outcome. `ranked` are the ones that may win, best first; `equivalents` has two or more or none."""

    standings: list[Standing]
    winner: Standing | None
    equivalents: list[Standing]
    ranked: list[Standing]
    no_winner: NoWinner | None


def judged(gates: Gates, configuration: Configuration, reference: Configuration | None) -> list[GateVerdict]:
    """Return the verdicts of repetition 1; empty where it was not completed or its reference is missing.

    Documents that were not returned count as not accepted: N is what the protocol expects.
    """
    if configuration.accepted is None or (gates.max_lost_points is not None and reference is None):
        return []
    return judge_gates(
        gates,
        documents=configuration.expected_documents,
        reference_accepted=reference.accepted or 0 if reference is not None else 0,
        accepted=configuration.accepted,
        subsets=configuration.subsets,
    )


def select(
    gates: Gates, measured: Sequence[Configuration], reference: Configuration | None, campaign: Campaign | None
) -> Selection:
    """Return where each configuration and each candidate stands, and the winner if there is one."""
    joined = join(measured, campaign)
    standings = [
        _standing(gates, configuration, candidate, reference, campaign)
        if configuration is not None
        else _unmeasured(candidate)
        for configuration, candidate in joined
    ]
    if gates.decide_by == "interval":
        return Selection(standings, None, [], [], "decides_by_interval")
    has_reference = reference is not None or gates.max_lost_points is None
    return _chosen(standings, campaign, has_reference=has_reference)


def withheld(selection: Selection) -> Selection:
    """Return the selection with nobody preferred: its records are not what was written."""
    return Selection(selection.standings, None, [], [], "records_changed")


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
    reference: Configuration | None,
    campaign: Campaign | None,
) -> Standing:
    verdicts = judged(gates, configuration, reference)
    need = _need(configuration, campaign)
    offers = offered(candidate, configuration.machine, need, campaign)
    late = _late(need, campaign)
    standing = Standing(
        key=configuration.key, label=candidate.label if candidate else configuration.label,
        state=state_of(configuration, verdicts, gates), is_reference=configuration is reference,
        configuration=configuration, candidate=candidate,
        gates=verdicts, need=need, offered=offers, late_ns=late, blocked=None,
        best=cheapest([p for o in offers for p in o.packages if p.is_valid]) if late is None else None,
    )  # fmt: skip
    return standing._replace(blocked=_blocked(standing, campaign))


def state_of(configuration: Configuration, verdicts: list[GateVerdict], gates: Gates) -> State:
    """Return what the rules make of a configuration's first pass."""
    if configuration.accepted is None:
        return "failed"
    if not configuration.is_complete:
        return "rejected"
    if not verdicts and (gates.max_lost_points is not None or gates.min_accepted_percent is not None or gates.subsets):
        return "not_judged"
    return "qualified" if all(verdict.has_passed for verdict in verdicts) else "rejected"


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


def _blocked(standing: Standing, campaign: Campaign | None) -> Blocked | None:
    """Return why a measured configuration may not win, whatever the objective prefers."""
    if campaign is None:
        return None
    if standing.candidate is None:
        return "no_candidate"
    if standing.need is None:
        return "no_duration"
    if standing.late_ns is not None:
        return "deadline"
    if standing.offered and standing.best is None:
        return "mismatch" if all(o.blocked == "mismatch" for o in standing.offered) else "expired"
    if standing.best is None and campaign.objective.prefer == "cheapest":
        return "no_price"
    if campaign.objective.prefer == "most_headroom" and headroom_bytes(standing) is None:
        return "no_headroom"
    return None


def headroom_bytes(standing: Standing) -> int | None:
    """Return the device memory left at the peak: a capacity less one peak; null where either was not read."""
    peak = standing.configuration.peak if standing.configuration else None
    if peak is None or peak.capacity_bytes is None:
        return None
    return peak.capacity_bytes - peak.peak.peak_bytes


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
            return Fraction(-standing.best.price.net.minor_units)
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
    if len(tied) > 1:
        return Selection(standings, None, tied, ranked, "equivalent")
    return Selection(standings, ranked[0], [], ranked, None)


def _why_none(qualified: Sequence[Standing]) -> NoWinner:
    """Return the nearest obstacle: the one that is left when the others are out of the way."""
    blocked: Mapping[Blocked | None, int] = {s.blocked: 1 for s in qualified}
    if "deadline" in blocked:
        return "not_in_time"
    if {"no_price", "expired", "mismatch"} & set(blocked):
        return "not_priced"
    if {"no_headroom", "no_duration"} & set(blocked):
        return "not_comparable"
    return "no_candidate"
