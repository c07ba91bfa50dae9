"""The four numbers of page one with their captions, and the finding over its chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from collector.contract.judging.gates import GateVerdict

from .book import ref
from .case import Case
from .configurations import Configuration, accepted_id, subset_row
from .dossier import Sentence
from .judgement import LOSS
from .limits import ALL_DOCUMENTS
from .packages import Package
from .price_tables import CORPORA, WANTED, bought, needed_figure, package_figure
from .selection import Standing
from .verdict_tables import corpus_figure
from .wording import sentence

MOST = 4


class Headline(NamedTuple):
    """A figure of page one and what stands under it."""

    figure_id: str
    caption: Sentence


def headlines(case: Case) -> list[Headline]:
    """Return the numbers of what is to be rented, else of the equivalents and the reference."""
    chosen = case.selection.chosen
    has_measured = chosen is not None and chosen.configuration is not None and chosen.configuration.accepted is not None
    found = _headline(case, chosen) if chosen is not None and has_measured else _headline_without(case)
    return list(found)[:MOST]


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
            sentence("caption_cost", size=_corpus_size(case), paid=paid, corpora=ref(CORPORA)),
        )


def _corpus_size(case: Case) -> str:
    """Add how many documents a corpus is said to have; return the reference to it."""
    assert case.campaign is not None
    size = case.campaign.documents_per_corpus
    return ref(case.book.given("campaign/volume/documents_per_corpus", size, "documents", "assumed"))


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
    ending, quantity = bought(standing, best)
    return sentence("caption_price" + ending, label=standing.label, **quantity)


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


def finding(case: Case) -> Sentence:
    """Return what the chart of the losses shows, judged by the rule and not by eye."""
    compared = [s for s in case.measured if s.configuration is not None and case.book.row("paired", s.key)]
    if not compared:
        return sentence("finding_nothing_paired")
    count = ref(case.counted("compared", len(compared), "configurations paired with the reference"))
    losses = [(s, gate) for s in compared for gate in s.gates if gate.rule == LOSS]
    losing = sum(_breaks(standing, gate) for standing, gate in losses)
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
    failed = {gate.rule for gate in standing.gates if _breaks(standing, gate)}
    return bool(failed) and LOSS not in failed


def _breaks(standing: Standing, gate: GateVerdict) -> bool:
    """Return whether the documents counted break the rule; what an interval leaves undecided breaks none."""
    if not standing.outcomes:
        return not gate.has_passed
    return gate.counted > gate.limit if gate.rule == LOSS else gate.counted < gate.limit
