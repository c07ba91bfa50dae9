"""What would change the answer: each threshold computed from the figures of the decision, none guessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from collector.contract.judging.gates import GateVerdict
from collector.contract.money import exact

from .book import ref
from .case import Case
from .dossier import Sentence
from .feasibility import Requirement
from .gate_tables import gate_figure
from .judgement import LOSS
from .price_tables import needed_figure
from .price_triggers import runner_up_price, varied, volume
from .requirement_tables import requirement_figures, requirement_sentence
from .selection import Standing, merit
from .verdicts import missed, more_documents_figure
from .wording import sentence

MOST = 5


def would_change(case: Case) -> list[Sentence]:
    """Return up to five sentences, the nearest change first."""
    winner = case.selection.winner
    found = list(_from_winner(case, winner)) if winner is not None else list(_without_winner(case))
    return found[:MOST]


def _from_winner(case: Case, winner: Standing) -> Iterator[Sentence]:
    if case.is_refuted or case.look_count > 1:
        yield sentence("change_test_documents")
    yield from varied(case)
    yield from runner_up_price(case)
    yield from volume(case, winner)
    yield from _margin(case, winner)
    yield from _admitted(case)
    yield from _obstacles(case, [s for s in case.qualified if s.blocked is not None])
    yield from _undecided(case)
    yield from _failures(case)


def _without_winner(case: Case) -> Iterator[Sentence]:
    match case.selection.no_winner:
        case "records_changed":
            yield sentence("change_records")
        case "no_campaign":
            yield sentence("change_campaign")
        case "equivalent":
            yield from _tie(case)
            yield from runner_up_price(case)
            if case.selection.preferred is None:
                labels = ", ".join(standing.label for standing in case.selection.equivalents)
                yield sentence("change_reload", labels=labels)
        case "no_reference":
            yield sentence("change_reference")
            yield from _failures(case)
        case "none_qualifies" | "undecided":
            yield from _undecided(case)
            rejected = (s for s in sorted(case.measured, key=_documents_missing) if s.state == "rejected")
            yield from _together(case, [said for standing in rejected for said in _needs(case, standing)])
            yield from _failures(case)
        case "no_candidate":
            for standing in case.qualified:
                yield sentence("change_candidate", label=standing.label)
        case _:
            yield from _obstacles(case, case.qualified)
            yield from _undecided(case)
            yield from _failures(case)


def margin(gate: GateVerdict) -> int:
    """Return by how many documents a rule is met; negative where it is not."""
    return gate.limit - gate.counted if gate.rule == LOSS else gate.counted - gate.limit


def _margin(case: Case, winner: Standing) -> Iterator[Sentence]:
    """The rule that is met by the fewest documents: one more than that rejects the winner."""
    if not winner.gates or winner.outcomes:  # an interval is not moved by whole documents
        return
    gate = min(winner.gates, key=margin)
    name = _documents(case, winner, gate, margin(gate) + 1, "to_reject", "documents until the rule is not met")
    if gate.rule == LOSS:
        yield sentence("change_margin_lost", documents=ref(name), label=winner.label)
    elif gate.subset:
        yield sentence("change_margin_subset", documents=ref(name), label=winner.label, subset=gate.subset)
    else:
        yield sentence("change_margin_accepted", documents=ref(name), label=winner.label)


def _documents(case: Case, standing: Standing, gate: GateVerdict, value: int, name: str, formula: str) -> str:
    inputs = [gate_figure(standing.key, gate, column) for column in ("counted", "limit")]
    subset = f"~{gate.subset}" if gate.subset else ""
    return case.book.derived(
        inputs, figure_id=f"what_if/{standing.key}~{gate.rule}{subset}/{name}", value=value, unit="documents",
        formula=formula,
    )  # fmt: skip


def _documents_missing(standing: Standing) -> int:
    return sum(-margin(gate) for gate in standing.gates if not gate.has_passed) if standing.gates else 10**18


def _admitted(case: Case) -> Iterator[Sentence]:
    """The nearest configuration that only the rule on the loss rejects, and the rule that would admit it."""
    for standing in sorted(case.measured, key=_documents_missing):
        failed = [gate for gate in standing.gates if not gate.has_passed]
        if (
            standing.state == "rejected"
            and not standing.outcomes
            and len(failed) == 1
            and failed[0].rule == LOSS
            and margin(failed[0]) < 0
        ):
            yield _admits(standing, failed[0])
            return


def _admits(standing: Standing, gate: GateVerdict) -> Sentence:
    return sentence(
        "change_rule_admits", lost=ref(gate_figure(standing.key, gate, "counted")),
        documents=ref(gate_figure(standing.key, gate, "document_count")), label=standing.label,
    )  # fmt: skip


def _needs(case: Case, standing: Standing) -> Iterator[Sentence]:
    """What one rejected configuration lacks, in one sentence: a document accepted more counts for every rule."""
    if standing.outcomes and standing.worst_gate is not None:
        rule = standing.worst_gate.subset or "@" + standing.worst_gate.rule
        yield sentence("change_interval_rejects", label=standing.label, rule=rule)
        return
    failed = [gate for gate in standing.gates if not gate.has_passed and margin(gate) < 0]
    subsets = [gate for gate in failed if gate.subset]
    if not failed:
        return
    if len(failed) == 1 and failed[0].rule == LOSS:
        yield _admits(standing, failed[0])
    elif len(failed) == 1:
        yield _needs_one(case, standing, failed[0])
    elif not subsets:
        yield _needs_one(case, standing, min(failed, key=margin))
    elif len(subsets) == 1:
        yield _needs_all(case, standing, failed, subsets[0])
    else:
        for gate in failed:
            yield _needs_one(case, standing, gate)


def _together(case: Case, found: Sequence[Sentence]) -> Iterator[Sentence]:
    """Say once what several configurations lack alike, and name them all."""
    alike: dict[tuple[str, ...], list[Sentence]] = {}
    for said in found:
        figures = case.book.figures
        values = [str(figures[p[1:]].value) if p.startswith("#") else p for n, p in _but_label(said)]
        alike.setdefault((said.key, *values), []).append(said)
    for group in alike.values():
        labels = ", ".join(said.parameters["label"] for said in group)
        is_one = len(group) == 1 or not group[0].key.startswith("change_needs_")
        key = group[0].key + ("" if is_one else "_several")
        yield sentence(key, **dict(_but_label(group[0])), label=labels)


def _but_label(said: Sentence) -> list[tuple[str, str]]:
    return [(name, value) for name, value in sorted(said.parameters.items()) if name != "label"]


def _needs_one(case: Case, standing: Standing, gate: GateVerdict) -> Sentence:
    name = ref(_documents(case, standing, gate, -margin(gate), "missing", "documents until the rule is met"))
    if gate.rule == LOSS:
        return sentence("change_needs_loss", documents=name, label=standing.label)
    if gate.subset:
        return sentence("change_needs_subset", documents=name, label=standing.label, subset=gate.subset)
    return sentence("change_needs_accepted", documents=name, label=standing.label)


def _needs_all(case: Case, standing: Standing, failed: Sequence[GateVerdict], of_subset: GateVerdict) -> Sentence:
    """The documents that meet all rules at once: those of the subset are among them."""
    in_subset = _documents(case, standing, of_subset, -margin(of_subset), "missing", "documents until the rule is met")
    every = max(-margin(gate) for gate in failed)
    inputs = [gate_figure(standing.key, gate, column) for gate in failed for column in ("counted", "limit")]
    name = case.book.derived(
        inputs, figure_id=f"what_if/{standing.key}~all/missing", value=every, unit="documents",
        formula="most documents that one of the rules lacks",
    )  # fmt: skip
    return sentence(
        "change_needs_all", documents=ref(name), of_subset=ref(in_subset), subset=of_subset.subset or "",
        label=standing.label,
    )  # fmt: skip


def _undecided(case: Case) -> Iterator[Sentence]:
    """How many more documents could decide what the interval leaves open."""
    for standing in case.measured:
        if standing.state != "inconclusive":
            continue
        for gate in (gate for gate in standing.gates if not gate.has_passed):
            more, label = more_documents_figure(case.book, standing, gate), standing.label
            if more is None:
                yield sentence("change_undecided", label=label, rule=gate.subset or "@" + gate.rule)
            elif gate.rule == LOSS:
                yield sentence("change_documents_decide", documents=ref(more), label=label)
            elif gate.subset:
                yield sentence("change_documents_decide_subset", documents=ref(more), label=label, subset=gate.subset)
            else:
                yield sentence("change_documents_decide_share", documents=ref(more), label=label)


def _obstacles(case: Case, standings: Sequence[Standing]) -> Iterator[Sentence]:
    """What keeps those that meet the rules from winning."""
    for standing in standings:
        label = standing.label
        match standing.blocked:
            case "deadline":
                yield sentence("change_deadline", hours=ref(needed_figure(standing)), label=label)
            case "mismatch":
                yield sentence("change_offer_machine", label=label)
            case "no_price" | "expired":
                assert case.campaign is not None
                yield sentence("change_price_given", date="~" + case.campaign.as_of.isoformat(), label=label)
            case "incomplete" | "arithmetic" | "no_rate":
                yield sentence("change_offer_whole", label=label)
            case "headroom" | "first_token" | "answer":
                yield from _requirement(case, standing)
            case "impossible_peak" | "coverage" | "failing" | "cache_reuse":
                yield sentence(f"change_{standing.blocked}", label=label)
            case _:
                pass


def _requirement(case: Case, standing: Standing) -> Iterator[Sentence]:
    requirement = missed(standing)
    assert requirement is not None
    assert case.campaign is not None
    label = standing.label
    if requirement.kind == "headroom":
        if requirement.result == "not_shown":
            return
        yield _larger_card(case, standing, requirement)
    elif requirement.result == "not_shown":
        yield sentence(
            "change_more_requests", label=label, needed=str(requirement.needed_requests),
            percentile=str(requirement.percentile),
        )  # fmt: skip
    else:
        key = f"change_{requirement.kind}"
        yield requirement_sentence(case.book, standing, requirement, case.campaign, key=key, label=label)


def _larger_card(case: Case, standing: Standing, requirement: Requirement) -> Sentence:
    """The memory of a card on which the same peak leaves enough free: peak / (1 - share)."""
    assert case.campaign is not None
    figures = requirement_figures(case.book, standing, requirement, case.campaign)
    share = exact(case.campaign.objective.min_headroom_percent or "0") / 100
    assert requirement.capacity is not None
    assert requirement.measured is not None
    peak = requirement.capacity - requirement.measured
    name = case.book.derived(
        [figures["peak"]], figure_id=f"what_if/{standing.key}/card_bytes", unit="bytes",
        value=ceil(peak / (1 - share)) if share < 1 else None, formula="peak_bytes / (1 - share that stays free)",
        missing_reason="not_defined",
    )  # fmt: skip
    return sentence("change_headroom", label=standing.label, capacity=ref(name), peak=ref(figures["peak"]))


def _failures(case: Case) -> Iterator[Sentence]:
    for standing in case.measured:
        failed = standing.configuration.failed if standing.configuration else None
        if standing.state == "failed" and failed is not None and failed.cause not in ("", "unknown"):
            yield sentence("change_failure", label=standing.label, cause="@" + failed.cause)


def _tie(case: Case) -> Iterator[Sentence]:
    """The tie width below which the first of the equivalents is best alone; none where they are equal."""
    assert case.campaign is not None
    first, second = case.selection.ranked[:2]
    best, next_best = merit(first, case.campaign), merit(second, case.campaign)
    if best == 0 or best == next_best:
        return
    percent = (best - next_best) * 100 / abs(best)
    name = case.book.derived(
        case.judged_inputs, figure_id="what_if/all/tie_percent", value=float(percent), unit="percent",
        formula="100 x (best - second) / best",
    )  # fmt: skip
    yield sentence("change_tie", tie=ref(name), label=first.label)
