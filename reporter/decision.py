"""Page one: the recommendation or why there is none, its reasons, its four figures and the chart's finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .book import ref
from .case import Case
from .configurations import Configuration, accepted_id, subset_row
from .dossier import Decision, Sentence
from .limits import ALL_DOCUMENTS, does_not_show
from .packages import Package, cheapest
from .price_tables import CORPORA, TIE, WANTED, needed_figure, package_figure
from .selection import Standing, headroom_bytes
from .verdict_tables import corpus_figure, difference_figure, gate_figure, headroom_inputs
from .what_if import would_change
from .wording import sentence


class Headline(NamedTuple):
    """A figure of page one and what stands under it."""

    figure_id: str
    caption: Sentence


def decision(case: Case, *, several_factors: Sequence[str]) -> Decision:
    """Return page one."""
    winner = case.selection.winner
    headline = [*(_headline(case, winner) if winner else _headline_without(case))][:4]
    return Decision(
        has_winner=winner is not None,
        recommendation=_recommended(winner) if winner else _none(case),
        reasons=[*cautions(case), *(_reasons(case, winner) if winner else _reasons_without(case))],
        headline=[entry.figure_id for entry in headline],
        headline_captions=[entry.caption for entry in headline],
        chart_finding=_finding(case),
        would_change=would_change(case),
        does_not_show=does_not_show(case, several_factors=several_factors),
        prices_valid_until=valid_until(case),
    )


def cautions(case: Case) -> Iterator[Sentence]:
    """Return what weakens every answer of these records; it stands before the reasons."""
    if case.has_open_files:
        yield sentence("reason_open_records")
    if case.was_machine_busy:
        yield sentence("reason_machine_busy")


def valid_until(case: Case) -> str | None:
    """Return the day the decision's prices end: the winner's, else the first of the equivalents', else of all."""
    winner = case.selection.winner
    if winner is not None and winner.best is not None:
        return winner.best.offer.valid_until.isoformat()
    equivalents = [s.best.offer.valid_until for s in case.selection.equivalents if s.best is not None]
    if equivalents:
        return min(equivalents).isoformat()
    used = [o.offer.valid_until for s in case.selection.standings for o in s.offered if o.packages]
    return min(used).isoformat() if used else None


def _recommended(winner: Standing) -> Sentence:
    assert winner.configuration is not None
    device = winner.configuration.device
    if winner.best is None:
        return sentence("recommend_configuration", label=winner.label, device=device)
    best = winner.best
    packages, net, gross = (
        ref(package_figure(winner, best, column)) for column in ("package_count", "price_net", "price_gross")
    )
    return sentence(
        "recommend_package", device=device, provider=best.offer.provider, packages=packages, days=str(best.days),
        label=winner.label, net=net, gross=gross,
    )  # fmt: skip


def _none(case: Case) -> Sentence:
    criterion = "@" + case.campaign.objective.prefer if case.campaign else ""
    match case.selection.no_winner:
        case "equivalent":
            return _equivalent(case.selection.equivalents, criterion)
        case "none_qualifies":
            return sentence("recommend_none_qualifies", measured=ref(case.measured_count()))
        case "no_campaign":
            return sentence(
                "recommend_none_without_campaign", qualified=ref(case.qualified_count()),
                measured=ref(case.measured_count()),
            )  # fmt: skip
        case "not_priced":
            return sentence("recommend_none_priced", qualified=ref(case.qualified_count()))
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
        case "decides_by_interval":
            return sentence("recommend_none_interval")
        case "none_measured" | None:
            return sentence("recommend_none_measured")


def _equivalent(equivalents: Sequence[Standing], criterion: str) -> Sentence:
    labels, first = ", ".join(standing.label for standing in equivalents), equivalents[0]
    if first.best is None or any(standing.best is None for standing in equivalents):
        return sentence("recommend_none_equivalent", labels=labels, criterion=criterion, tie=ref(TIE))
    packages, net, gross = (
        ref(package_figure(first, first.best, column)) for column in ("package_count", "price_net", "price_gross")
    )
    return sentence(
        "recommend_none_equivalent_priced", labels=labels, criterion=criterion, tie=ref(TIE), first=first.label,
        packages=packages, days=str(first.best.days), provider=first.best.offer.provider, net=net, gross=gross,
    )  # fmt: skip


def _reasons(case: Case, winner: Standing) -> Iterator[Sentence]:
    yield _quality(winner, is_refuted=case.is_refuted)
    headroom = _headroom(case, winner)
    if headroom is not None:
        yield headroom
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


def _other_offer(winner: Standing) -> Iterator[Sentence]:
    """The cheapest package of the winner's other offers, which lost to the one recommended."""
    if winner.best is None:
        return
    others = [o for o in winner.offered if o.offer.id != winner.best.offer.id]
    second = cheapest([package for o in others for package in o.packages if package.is_valid])
    if second is not None:
        packages, net = (ref(package_figure(winner, second, column)) for column in ("package_count", "price_net"))
        yield sentence(
            "reason_other_offer", label=winner.label, provider=second.offer.provider, net=net, packages=packages,
            days=str(second.days),
        )  # fmt: skip


def _quality(winner: Standing, *, is_refuted: bool) -> Sentence:
    accepted, documents = ref(accepted_id(winner.key)), ref(f"quality/{winner.key}/document_count")
    loss = next((gate for gate in winner.gates if gate.rule == "max_lost_points"), None)
    if loss is None or winner.is_reference:
        plain = "reason_quality_validation" if is_refuted else "reason_quality"
        return sentence(plain, accepted=accepted, documents=documents)
    return sentence(
        "reason_quality_lost_validation" if is_refuted else "reason_quality_lost",
        accepted=accepted, documents=documents,
        lost=ref(gate_figure(winner.key, loss, "counted")), allowed=ref(gate_figure(winner.key, loss, "limit")),
    )  # fmt: skip


def _headroom(case: Case, winner: Standing) -> Sentence | None:
    left = headroom_bytes(winner)
    peak = winner.configuration.peak if winner.configuration else None
    if left is None or peak is None or peak.capacity_id is None:
        return None
    name = case.book.derived(
        headroom_inputs(winner), figure_id=f"candidates/{winner.key}/headroom_bytes", value=left, unit="bytes",
        formula="device_memory_bytes - peak_bytes",
    )  # fmt: skip
    return sentence("reason_headroom", headroom=ref(name), capacity=ref(peak.capacity_id))


def _runner_up(case: Case) -> Iterator[Sentence]:
    ranked = case.selection.ranked
    if len(ranked) < 2:
        yield sentence("reason_only_one")
    elif case.campaign is not None and case.campaign.objective.prefer == "cheapest":
        name = difference_figure(case.book, ranked[1], ranked[0], case.campaign)
        yield sentence("reason_runner_up_more", label=ranked[1].label, difference=ref(name))
    elif case.campaign is not None:
        yield sentence("reason_objective", criterion="@" + case.campaign.objective.prefer, tie=ref(TIE))


def _others(case: Case) -> Iterator[Sentence]:
    rejected = sum(standing.state == "rejected" for standing in case.measured)
    failed = sum(standing.state == "failed" for standing in case.measured)
    if rejected:
        yield sentence("reason_rejected", rejected=ref(case.counted("rejected", rejected, "configurations rejected")))
    if failed:
        yield sentence("reason_failed", failed=ref(case.counted("failed", failed, "configurations without a pass")))


def _reasons_without(case: Case) -> Iterator[Sentence]:
    if case.selection.no_winner == "equivalent" and case.campaign is not None:
        yield sentence("reason_objective", criterion="@" + case.campaign.objective.prefer, tie=ref(TIE))
        yield sentence("reason_tie_prefer")
    yield from _others(case)
    if case.selection.no_winner in ("no_campaign", "not_priced", "no_candidate"):
        yield sentence("reason_no_speed_preference")


def _headline(case: Case, winner: Standing) -> Iterator[Headline]:
    assert winner.configuration is not None
    yield Headline(accepted_id(winner.key), _accepted(case, winner.configuration))
    yield from _peak(winner.configuration, _longest_prompt(case, winner.label))
    if winner.need is not None:
        key = "caption_needed" if winner.need.is_extrapolated else "caption_needed_exact"
        yield Headline(needed_figure(winner), sentence(key, wanted=ref(WANTED)))
    if winner.best is not None and winner.is_deliverable:
        paid = ref(package_figure(winner, winner.best, "price_net"))
        yield Headline(
            package_figure(winner, winner.best, "cost_per_corpus"),
            sentence("caption_cost", paid=paid, corpora=ref(CORPORA)),
        )


def _accepted(case: Case, configuration: Configuration) -> Sentence:
    """Return the caption of the accepted documents, with the reference's and those of the first subset ruled on."""
    parameters = {"documents": ref(f"quality/{configuration.key}/document_count")}
    if case.reference is not None:
        parameters["reference"] = ref(accepted_id(case.reference.key))
    name = next(iter(configuration.subsets), None)
    found = subset_row(case.book, configuration.key, name) if name is not None else None
    if name is None or found is None:
        plain = "caption_accepted" if case.reference is None else "caption_accepted_reference"
        return sentence(plain, **parameters)
    key = "caption_accepted_subset" if case.reference is None else "caption_accepted_reference_subset"
    return sentence(
        key, subset=name, accepted=ref(found.cells["accepted_documents"]),
        subset_documents=ref(found.cells["document_count"]), **parameters,
    )  # fmt: skip


def _longest_prompt(case: Case, label: str) -> dict[str, str]:
    """Return what a peak is named by: the longest prompt, or the configuration where no prompt length is known."""
    longest = case.book.figure(case.book.row("workload", ALL_DOCUMENTS), "prompt_tokens_max")
    return {"label": label} if longest is None or longest.value is None else {"tokens": ref(longest.figure_id)}


def _price_caption(standing: Standing, best: Package) -> Sentence:
    packages = ref(package_figure(standing, best, "package_count"))
    return sentence("caption_price", label=standing.label, packages=packages, days=str(best.days))


def _peak(configuration: Configuration, named: dict[str, str]) -> Iterator[Headline]:
    peak = configuration.peak
    if peak is None:
        return
    parameters = {"scope": "@short_" + peak.peak.memory_scope, **named}
    key = "caption_peak_prompt" if "tokens" in named else "caption_peak"
    if peak.capacity_id is not None and peak.capacity_bytes is not None:
        parameters["capacity"] = ref(peak.capacity_id)
        key = "caption_peak_of_prompt" if "tokens" in named else "caption_peak_of"
    yield Headline(peak.figure_id, sentence(key, **parameters))


def _headline_without(case: Case) -> Iterator[Headline]:
    measured = ref(case.measured_count())
    yield Headline(case.qualified_count(), sentence("caption_qualified", measured=measured))
    for standing in case.selection.equivalents[:1]:
        if standing.best is not None and standing.need is not None:
            yield Headline(
                package_figure(standing, standing.best, "price_net"), _price_caption(standing, standing.best)
            )
            key = "caption_needed" if standing.need.is_extrapolated else "caption_needed_exact"
            yield Headline(needed_figure(standing), sentence(key, wanted=ref(WANTED)))
    if case.reference is None:
        return
    reference = case.reference
    documents = ref(f"quality/{reference.key}/document_count")
    yield Headline(
        accepted_id(reference.key),
        sentence("caption_accepted_by_reference", documents=documents, label=reference.label),
    )
    yield from _peak(reference, {"label": reference.label})
    if reference.corpus_ns is not None:
        caption = sentence("caption_corpus", documents=documents, label=reference.label)
        yield Headline(corpus_figure(reference.key), caption)


def _finding(case: Case) -> Sentence:
    """Return what the chart of the losses shows, judged by the rule and not by eye."""
    compared = [s for s in case.measured if s.configuration is not None and case.book.row("paired", s.key)]
    if not compared:
        return sentence("finding_nothing_paired")
    count = ref(case.counted("compared", len(compared), "configurations paired with the reference"))
    losses = [gate for s in compared for gate in s.gates if gate.rule == "max_lost_points"]
    losing = sum(not gate.has_passed for gate in losses)
    if not losses:
        return sentence("finding_no_loss_rule", compared=count)
    if losing == len(compared):
        return sentence("finding_all_lose", compared=count)
    parameters = {"compared": count}
    if losing:
        name = case.counted("losing", losing, "configurations that lose more than the rule allows")
        parameters["losing"] = ref(name)
    failing = sum(_fails_another_rule_only(standing) for standing in compared)
    if failing:
        name = case.counted("failing_another_rule", failing, "configurations that fail a rule other than on the loss")
        parameters["failing"] = ref(name)
        return sentence("finding_some_lose_others_fail" if losing else "finding_none_loses_but", **parameters)
    return sentence("finding_some_lose" if losing else "finding_none_loses", **parameters)


def _fails_another_rule_only(standing: Standing) -> bool:
    failed = {gate.rule for gate in standing.gates if not gate.has_passed}
    return bool(failed) and "max_lost_points" not in failed
