"""What would change the answer: each threshold computed from the figures of the decision, none guessed."""

from __future__ import annotations

from collections.abc import Iterator

from collector.contract.judging.gates import GateVerdict

from .book import ref
from .case import Case
from .dossier import Sentence
from .packages import documents_within
from .price_tables import needed_figure, package_figure
from .selection import Standing, merit
from .verdict_tables import gate_figure
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
    yield from _runner_up_price(case)
    yield from _volume(case, winner)
    yield from _margin(case, winner)
    yield from _admitted(case)
    yield from _obstacles(case, [s for s in case.qualified if s.blocked is not None])
    yield from _failures(case)


def _without_winner(case: Case) -> Iterator[Sentence]:
    match case.selection.no_winner:
        case "decides_by_interval":
            yield sentence("change_interval")
        case "records_changed":
            yield sentence("change_records")
        case "no_campaign":
            yield sentence("change_campaign")
        case "equivalent":
            yield from _tie(case)
            yield from _runner_up_price(case)
        case "no_reference":
            yield sentence("change_reference")
            yield from _failures(case)
        case "none_qualifies":
            for standing in sorted(case.measured, key=_documents_missing):
                yield from _needs(case, standing)
            yield from _failures(case)
        case "no_candidate":
            for standing in case.qualified:
                yield sentence("change_candidate", label=standing.label)
        case _:
            yield from _obstacles(case, case.qualified)
            yield from _failures(case)


def _runner_up_price(case: Case) -> Iterator[Sentence]:
    """The price of one package at which the runner-up would cost less than the best: under P1 / n2, in whole units."""
    if case.campaign is None or case.campaign.objective.prefer != "cheapest" or len(case.selection.ranked) < 2:
        return
    first, second = case.selection.ranked[:2]
    assert first.best is not None
    assert second.best is not None
    best, other = first.best, second.best
    threshold = -(-best.price.net.minor_units // other.bought)
    name = case.book.derived(
        [package_figure(first, best, "price_net"), package_figure(second, other, "package_count")],
        figure_id=f"what_if/{second.key}/package_price", value=threshold, unit="minor_units",
        currency=best.offer.currency, formula="price_net of the best / packages of this one, rounded up",
    )  # fmt: skip
    quoted = package_figure(second, other, "unit_net")
    yield sentence(
        "change_price", days=str(other.days), label=second.label, price=ref(name), quoted=ref(quoted)
    )  # fmt: skip


def _volume(case: Case, winner: Standing) -> Iterator[Sentence]:
    """The largest number of documents that the packages bought still hold."""
    if winner.best is None or winner.need is None:
        return
    most = documents_within(winner.need, winner.best.paid_ns)
    name = case.book.derived(
        [needed_figure(winner), package_figure(winner, winner.best, "paid_hours")],
        figure_id=f"what_if/{winner.key}/most_documents", value=most, unit="documents",
        formula="floor((paid hours - hours that do not grow) / hours per document), assumes linear",
    )  # fmt: skip
    yield sentence("change_volume", documents=ref(name), label=winner.label)


def margin(gate: GateVerdict) -> int:
    """Return by how many documents a rule is met; negative where it is not."""
    return gate.limit - gate.counted if gate.rule == "max_lost_points" else gate.counted - gate.limit


def _margin(case: Case, winner: Standing) -> Iterator[Sentence]:
    """The rule that is met by the fewest documents: one more than that rejects the winner."""
    if not winner.gates:
        return
    gate = min(winner.gates, key=margin)
    name = _documents(case, winner, gate, margin(gate) + 1, "to_reject", "documents until the rule is not met")
    if gate.rule == "max_lost_points":
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
        if standing.state == "rejected" and len(failed) == 1 and failed[0].rule == "max_lost_points":
            yield _admits(standing, failed[0])
            return


def _admits(standing: Standing, gate: GateVerdict) -> Sentence:
    return sentence(
        "change_rule_admits", lost=ref(gate_figure(standing.key, gate, "counted")),
        documents=ref(gate_figure(standing.key, gate, "document_count")), label=standing.label,
    )  # fmt: skip


def _needs(case: Case, standing: Standing) -> Iterator[Sentence]:
    """What one rejected configuration lacks, rule by rule."""
    failed = [gate for gate in standing.gates if not gate.has_passed]
    if len(failed) == 1 and failed[0].rule == "max_lost_points":
        yield _admits(standing, failed[0])
    for gate in failed:
        name = ref(_documents(case, standing, gate, -margin(gate), "missing", "documents until the rule is met"))
        if gate.rule == "max_lost_points":
            yield sentence("change_needs_loss", documents=name, label=standing.label)
        elif gate.subset:
            yield sentence("change_needs_subset", documents=name, label=standing.label, subset=gate.subset)
        else:
            yield sentence("change_needs_accepted", documents=name, label=standing.label)


def _obstacles(case: Case, standings: list[Standing]) -> Iterator[Sentence]:
    """What keeps those that meet the rules from winning."""
    for standing in standings:
        match standing.blocked:
            case "deadline":
                yield sentence("change_deadline", hours=ref(needed_figure(standing)), label=standing.label)
            case "mismatch":
                yield sentence("change_offer_machine", label=standing.label)
            case "no_price" | "expired":
                assert case.campaign is not None
                yield sentence(
                    "change_price_given", date="~" + case.campaign.as_of.isoformat(), label=standing.label
                )  # fmt: skip
            case _:
                pass


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
