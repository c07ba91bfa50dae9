"""Page one: what is recommended or why nothing is, what a person decided, the reasons, and until when it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .book import ref
from .case import Case
from .configurations import accepted_id
from .dossier import Decision, Sentence
from .gate_tables import gate_figure
from .headlines import finding, headlines
from .judgement import LOSS
from .limits import does_not_show
from .missing_passes import NOT_BEGUN
from .overrides import override
from .packages import cheapest
from .paired_tests import caution_few_documents, margin_caveat
from .price_tables import TIE, WANTED, bought, needed_figure, package_figure
from .requirement_tables import requirement_sentence
from .selection import Standing, headroom_bytes
from .verdicts import converted, difference_figure, headroom_inputs
from .what_if import would_change
from .wording import sentence


def decision(case: Case) -> Decision:
    """Return page one."""
    winner = case.selection.winner
    headline = headlines(case)
    return Decision(
        has_winner=winner is not None,
        has_preferred=case.selection.preferred is not None,
        recommendation=_recommended(winner) if winner else _none(case),
        override=override(case),
        reasons=[
            *cautions(case),
            *_few_documents(case),
            *_until(case),
            *(_reasons(case, winner) if winner else _reasons_without(case)),
        ],
        headline=[entry.figure_id for entry in headline],
        headline_captions=[entry.caption for entry in headline],
        chart_finding=finding(case),
        would_change=would_change(case),
        does_not_show=does_not_show(case),
        prices_valid_until=valid_until(case),
    )


def cautions(case: Case) -> Iterator[Sentence]:
    """Return what weakens every answer of these records; it stands before the reasons."""
    if case.has_open_files:
        yield sentence("reason_open_records")
    if case.was_machine_busy:
        yield sentence("reason_machine_busy")
    if any(row.labels["state"] == NOT_BEGUN for row in case.book.rows("missing_passes")):
        yield sentence("reason_missing_runs", missing=ref(case.missing_count()))


def _few_documents(case: Case) -> Iterator[Sentence]:
    """A firm answer from very few documents needs a caution before anything else."""
    chosen = case.selection.chosen or next(iter(case.selection.equivalents), None)
    if chosen is not None and (caution := caution_few_documents(case.book, chosen.key)) is not None:
        yield caution


def _caveat(case: Case, shown: Standing | None) -> Iterator[Sentence]:
    """Why an interval reaches across a rule that is met: the rule counts documents, the interval says what is open."""
    if shown is not None and (caveat := margin_caveat(case.book, shown.key)) is not None:
        yield caveat


def valid_until(case: Case) -> str | None:
    """Return the day the decision's prices end: of what is chosen, else the first of the equivalents', else of all."""
    chosen = case.selection.chosen
    if chosen is not None and chosen.best is not None:
        return chosen.best.offer.valid_until.isoformat()
    equivalents = [s.best.offer.valid_until for s in case.selection.equivalents if s.best is not None]
    if equivalents:
        return min(equivalents).isoformat()
    used = [o.offer.valid_until for s in case.selection.standings for o in s.offered if o.packages]
    return min(used).isoformat() if used else None


def _until(case: Case) -> Iterator[Sentence]:
    """Until when the answer holds; nothing to say where nothing is to be rented."""
    by_rules = case.selection.winner or case.selection.preferred
    if by_rules is not None and by_rules.best is not None:
        yield sentence("reason_valid_until", date="~" + by_rules.best.offer.valid_until.isoformat())
        yield from converted(by_rules, by_rules.best, case.campaign)
    elif dates := [s.best.offer.valid_until for s in case.selection.equivalents if s.best is not None]:
        yield sentence("reason_valid_until_first", date="~" + min(dates).isoformat())
        first = case.selection.equivalents[0]
        if first.best is not None and len(dates) == len(case.selection.equivalents):  # only then is its price printed
            yield from converted(first, first.best, case.campaign)


def _recommended(winner: Standing) -> Sentence:
    assert winner.configuration is not None
    device = winner.configuration.device
    if winner.best is None:
        return sentence("recommend_configuration", label=winner.label, device=device)
    ending, quantity = bought(winner, winner.best)
    net, gross = (ref(package_figure(winner, winner.best, column)) for column in ("price_net", "price_gross"))
    return sentence(
        "recommend_package" + ending, device=device, provider=winner.best.offer.provider, label=winner.label, net=net,
        gross=gross, **quantity,
    )  # fmt: skip


def _none(case: Case) -> Sentence:
    criterion = "@" + case.campaign.objective.prefer if case.campaign else ""
    match case.selection.no_winner:
        case "equivalent":
            preferred = case.selection.preferred
            return _preferred(case, preferred, criterion) if preferred else _equivalent(case, criterion)
        case "none_qualifies":
            return sentence("recommend_none_qualifies", measured=ref(case.measured_count()))
        case "undecided":
            undecided = sum(standing.state == "inconclusive" for standing in case.measured)
            count = case.counted("undecided", undecided, "configurations whose interval decides nothing")
            return sentence("recommend_none_undecided", measured=ref(case.measured_count()), undecided=ref(count))
        case "no_campaign":
            return sentence(
                "recommend_none_without_campaign", qualified=ref(case.qualified_count()),
                measured=ref(case.measured_count()),
            )  # fmt: skip
        case "not_priced":
            return sentence("recommend_none_priced", qualified=ref(case.qualified_count()))
        case "not_feasible":
            return sentence("recommend_none_feasible", qualified=ref(case.qualified_count()))
        case "not_in_time":
            return sentence("recommend_none_in_time")
        case "not_comparable":
            return sentence("recommend_none_comparable", criterion=criterion)
        case "no_candidate":
            return sentence("recommend_none_candidate")
        case "records_changed":
            files = case.book.given("selection/all/changed_files", case.changed_files, "count", "measured")
            return sentence("recommend_none_records_changed", files=ref(files))
        case "no_reference":
            return sentence("recommend_none_reference")
        case "none_measured" | None:
            return sentence("recommend_none_measured")


def _equivalent(case: Case, criterion: str) -> Sentence:
    equivalents = case.selection.equivalents
    labels, first = _labels(equivalents), equivalents[0]
    if first.best is None or any(standing.best is None for standing in equivalents):
        return sentence("recommend_none_equivalent", labels=labels, criterion=criterion, tie=ref(TIE))
    ending, quantity = bought(first, first.best)
    net, gross = (ref(package_figure(first, first.best, column)) for column in ("price_net", "price_gross"))
    return sentence(
        "recommend_none_equivalent_priced" + ending, labels=labels, criterion=criterion, tie=ref(TIE),
        first=first.label, provider=first.best.offer.provider, net=net, gross=gross, **quantity,
    )  # fmt: skip


def _preferred(case: Case, preferred: Standing, criterion: str) -> Sentence:
    """The difference does not decide; what can be reloaded and explained is named (mission E4)."""
    assert preferred.configuration is not None
    common = {
        "labels": _labels(case.selection.equivalents), "criterion": criterion, "tie": ref(TIE),
        "label": preferred.label,
    }  # fmt: skip
    if preferred.best is None:
        return sentence("recommend_preferred", **common)
    ending, quantity = bought(preferred, preferred.best)
    net, gross = (ref(package_figure(preferred, preferred.best, column)) for column in ("price_net", "price_gross"))
    return sentence(
        "recommend_preferred_priced" + ending, device=preferred.configuration.device,
        provider=preferred.best.offer.provider, net=net, gross=gross, **common, **quantity,
    )  # fmt: skip


def _labels(standings: Sequence[Standing]) -> str:
    return ", ".join(standing.label for standing in standings)


def _reasons(case: Case, winner: Standing) -> Iterator[Sentence]:
    yield _quality(winner, is_refuted=case.is_refuted)
    yield from _caveat(case, winner)
    yield from _requirements(case, winner)
    if winner.best is not None:
        paid = package_figure(winner, winner.best, "paid_hours")
        yield sentence("reason_time", needed=ref(needed_figure(winner)), paid=ref(paid))
    if winner.need is not None and winner.need.is_extrapolated:
        yield sentence(
            "reason_linear", wanted=ref(WANTED), measured=ref(f"quality/{winner.key}/document_count")
        )  # fmt: skip
    yield from _other_offer(winner)
    yield from _runner_up(case)
    yield from _others(case)


def _requirements(case: Case, winner: Standing) -> Iterator[Sentence]:
    """What the objective requires and how it is kept; free memory also where nothing is required of it."""
    assert case.campaign is not None
    asked = [one for one in winner.requirements if one.result == "met"]
    if not any(one.kind == "headroom" for one in asked):
        headroom = _headroom(case, winner)
        if headroom is not None:
            yield headroom
    for requirement in asked:
        key = f"reason_requirement_{requirement.kind}"
        yield requirement_sentence(case.book, winner, requirement, case.campaign, key=key)


def _other_offer(winner: Standing) -> Iterator[Sentence]:
    """The cheapest package of the winner's other offers, which lost to the one recommended."""
    if winner.best is None:
        return
    others = [o for o in winner.offered if o.offer.id != winner.best.offer.id]
    second = cheapest([package for o in others for package in o.packages if package.is_valid])
    if second is not None:
        ending, quantity = bought(winner, second)
        yield sentence(
            "reason_other_offer" + ending, label=winner.label, provider=second.offer.provider,
            net=ref(package_figure(winner, second, "price_net")), **quantity,
        )  # fmt: skip


def _quality(winner: Standing, *, is_refuted: bool) -> Sentence:
    accepted, documents = ref(accepted_id(winner.key)), ref(f"quality/{winner.key}/document_count")
    loss = next((gate for gate in winner.gates if gate.rule == LOSS), None)
    if loss is None or winner.is_reference:
        plain = "reason_quality_validation" if is_refuted else "reason_quality"
        return sentence(plain, accepted=accepted, documents=documents)
    return sentence(
        "reason_quality_lost_validation" if is_refuted else "reason_quality_lost",
        accepted=accepted, documents=documents,
        lost=ref(gate_figure(winner.key, loss, "counted")), allowed=ref(gate_figure(winner.key, loss, "limit")),
    )  # fmt: skip


def _headroom(case: Case, winner: Standing) -> Sentence | None:
    left, inputs = headroom_bytes(winner), headroom_inputs(case.book, winner)
    if left is None:
        return None
    name = case.book.derived(
        inputs, figure_id=f"candidates/{winner.key}/headroom_bytes", value=left, unit="bytes",
        formula="memory of the card - peak_bytes",
    )  # fmt: skip
    return sentence("reason_headroom", headroom=ref(name), capacity=ref(inputs[-1]))


def _runner_up(case: Case) -> Iterator[Sentence]:
    ranked = case.selection.ranked
    if len(ranked) < 2:
        yield sentence("reason_only_one")
        return
    assert case.campaign is not None
    if case.campaign.objective.prefer == "cheapest":
        name = difference_figure(case.book, ranked[1], ranked[0], case.campaign)
        yield sentence("reason_runner_up_more", label=ranked[1].label, difference=ref(name))
    else:
        yield sentence("reason_objective", criterion="@" + case.campaign.objective.prefer, tie=ref(TIE))
    yield from _complete_configurations(ranked[0], ranked[1])


def _complete_configurations(left: Standing, right: Standing) -> Iterator[Sentence]:
    """Two that differ in more than one factor are compared whole: the difference is nobody's (mission D2)."""
    if differs_in_several(left, right):
        yield sentence("reason_complete_configurations", left=left.label, right=right.label)


def differs_in_several(left: Standing, right: Standing) -> bool:
    """Return whether a difference between two configurations could have more than one cause.

    Each differs from the reference in the factor that its records name: two that differ from it in two factors, or in
    the same one to two values, are told apart by what both of them changed. Another engine is never one factor alone.
    """
    one, other = left.configuration, right.configuration
    if one is None or other is None:
        return False
    if (one.device, one.environment_id, one.model) != (other.device, other.environment_id, other.model):
        return True
    if (one.variant, one.engine) == (other.variant, other.engine):  # only the load can differ
        return one.batch != other.batch and one.concurrency != other.concurrency
    factors = {one.factor, other.factor} - {"none"}
    return bool(factors & {"several", "engine"}) or len(factors) > 1


def _others(case: Case) -> Iterator[Sentence]:
    rejected = sum(standing.state == "rejected" for standing in case.measured)
    failed = sum(standing.state == "failed" for standing in case.measured)
    if rejected and case.selection.no_winner != "none_qualifies":
        yield sentence("reason_rejected", rejected=ref(case.counted("rejected", rejected, "configurations rejected")))
    if failed:
        yield sentence("reason_failed", failed=ref(case.counted("failed", failed, "configurations without a pass")))


def _reasons_without(case: Case) -> Iterator[Sentence]:
    if case.selection.no_winner == "equivalent" and case.campaign is not None:
        yield from _tie(case, "@" + case.campaign.objective.prefer)
    yield from _caveat(case, next((standing for standing in case.qualified if not standing.is_reference), None))
    yield from _others(case)
    if case.selection.no_winner in ("no_campaign", "not_priced", "no_candidate"):
        yield sentence("reason_no_speed_preference")
    if case.selection.no_winner == "none_qualifies" and _has_examples(case):
        yield sentence("reason_examples_elsewhere")


def _has_examples(case: Case) -> bool:
    return any(figure.basis == "example" for figure in case.book.figures.values())


def _tie(case: Case, criterion: str) -> Iterator[Sentence]:
    """Why one of the equivalents is preferred, or why none is; the difference itself never decides."""
    selection = case.selection
    yield sentence("reason_objective", criterion=criterion, tie=ref(TIE))
    preferred = selection.preferred
    if preferred is not None:
        row = f"reload_checks/{preferred.key}"
        yield sentence(
            "reason_tie_preferred", label=preferred.label, criterion=criterion,
            equal=ref(f"{row}/equal_answer_count"), checked=ref(f"{row}/checked_document_count"),
        )  # fmt: skip
    elif selection.preference == "several":
        sound = [standing for standing in selection.equivalents if standing.has_reloaded and standing.can_be_explained]
        yield sentence("reason_tie_several", labels=_labels(sound), criterion=criterion)
    else:
        yield sentence("reason_tie_none", criterion=criterion)
    first, second = selection.equivalents[:2]
    yield from _complete_configurations(first, second)
