"""Each configuration against its reference: tests, margins in reach, and what they say in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from collector.contract.protocol import Gates

from .book import Book, ref, row
from .dossier import Row, Sentence
from .paired_statistics import (
    POWER_PERCENT,
    Outcome,
    Pairs,
    documents_needed,
    holm,
    margin_outcome,
    smallest_decidable_points,
)
from .statistics import mcnemar_exact, tango
from .wording import sentence

SIGNIFICANT = 0.05
"""Holm's p up to which a difference is shown, where it is also larger than what a repeat changes by itself."""
FEW_POINTS = 10.0
"""Where an equally good variant could lose so many of 100 documents unnoticed, page one says that documents are few."""

_SIZES = ("needed_documents", "document_count")

Shown = Literal["lower", "higher", "lower_alone", "higher_alone", "no_difference_shown"]
"""alone: beyond chance by its own interval, not among all configurations compared for the same purpose."""


class _Noise(NamedTuple):
    """What a reference's own repeats change: the most flipped documents, and the figure that says so."""

    flipped: int
    figure_id: str
    share: float


def put_paired_tests(book: Book, gates: Gates) -> None:
    """Add the table `paired_tests`; what is compared for one purpose is one family of tests."""
    pairs = {r.key: _pairs(book, r) for r in book.rows("paired")}
    p_values = {key: mcnemar_exact(found.lost, found.gained) for key, found in pairs.items()}
    adjusted = _adjusted(book, p_values)
    noise = _noise(book)
    tests = []
    for paired in book.rows("paired"):
        p_pair = (p_values[paired.key], adjusted[paired.key])
        tests.append(_test(book, paired, pairs[paired.key], p_pair, noise.get(_reference_key(book, paired)), gates))
    if tests:
        book.put("paired_tests", "one row per configuration other than the reference: what its pairs decide", tests)


def caution_few_documents(book: Book, key: str) -> Sentence | None:
    """Return page one's caution where very few documents stand behind a configuration; null where they are enough.

    Adds the figure for a reference, which is compared with nothing.
    """
    test = book.row("paired_tests", key)
    source = test or book.row("coverage", key)
    if source is None:
        return None
    smallest = test.cells.get("smallest_points") if test else _alone(book, source)
    value = book.figures[smallest].value if smallest else None
    if smallest is None or not isinstance(value, int | float) or value <= FEW_POINTS:
        return None
    return sentence("caution_few_documents", documents=ref(source.cells["document_count"]), smallest=ref(smallest))


def margin_caveat(book: Book, key: str) -> Sentence | None:
    """Return what the interval says beside a rule on lost documents that is met or not; null where it agrees with it.

    The rule decides in whole documents; this says that the interval leaves it open, and how many documents would not.
    """
    test = book.row("paired_tests", key)
    if test is None or test.labels.get("outcome") != "inconclusive" or "needed_documents" not in test.cells:
        return None
    if not _asks_for_more(book, test.cells):
        return None
    return sentence(
        "caveat_margin", label=test.labels["label"], points=test.labels["margin"],
        documents=ref(test.cells["document_count"]), needed=ref(test.cells["needed_documents"]),
    )  # fmt: skip


def _asks_for_more(book: Book, cells: Mapping[str, str | None]) -> bool:
    """Say whether the margin needs more documents than there are; where it does not, the loss itself leaves it open."""
    needed, documents = (book.figures[name].value if name else None for name in map(cells.get, _SIZES))
    return isinstance(needed, int) and isinstance(documents, int) and needed > documents


def _alone(book: Book, coverage: Row) -> str | None:
    documents = book.whole(coverage, "document_count")
    smallest = smallest_decidable_points(documents or 0, 0)
    return book.derived(
        [coverage.cells["document_count"]], figure_id=f"coverage/{coverage.key}/smallest_points", value=smallest,
        unit="points", formula="- lower limit of Tango's interval of as many documents, none of them changed",
        missing_reason="not_measured" if smallest is None else None,
    )  # fmt: skip


def _pairs(book: Book, paired: Row) -> Pairs:
    counts = (book.whole(paired, name) or 0 for name in ("both_right", "lost_documents", "gained_documents"))
    both, lost, gained = counts
    return Pairs(both, lost, gained, book.whole(paired, "both_not_right") or 0)


def _reference_key(book: Book, paired: Row) -> str:
    compared = book.row("comparisons", paired.key)
    return compared.labels.get("reference_key", "") if compared is not None else ""


def _adjusted(book: Book, p_values: Mapping[str, float]) -> dict[str, float]:
    """Return Holm's p of each pair: variants are one family, passes of a series, which ask something else, another."""
    families: dict[str, list[str]] = {}
    for paired in book.rows("paired"):
        families.setdefault(paired.labels.get("purpose", ""), []).append(paired.key)
    adjusted: dict[str, float] = {}
    for keys in families.values():
        adjusted |= dict(zip(keys, holm([p_values[key] for key in keys]), strict=True))
    return adjusted


def _noise(book: Book) -> dict[str, _Noise]:
    """Return reference key -> the repeat that changed most; what a repeat changes is no difference of a variant."""
    found: dict[str, _Noise] = {}
    for repeat in book.rows("noise"):
        flipped, documents = book.whole(repeat, "flipped_documents"), book.whole(repeat, "document_count")
        if flipped is None or not documents:
            continue
        key = repeat.labels["configuration_key"]
        if key not in found or flipped > found[key].flipped:
            found[key] = _Noise(flipped, repeat.cells["flipped_documents"], flipped / documents)
    return found


def _test(
    book: Book, paired: Row, pairs: Pairs, p_pair: tuple[float, float], noise: _Noise | None, gates: Gates
) -> Row:
    points = gates.max_lost_points
    outcome = margin_outcome(points, pairs) if points is not None else None
    shown = _shown(pairs, p_pair[1], noise)
    is_observed = pairs.discordant > 0 or noise is None
    labels = {name: paired.labels.get(name, "") for name in ("label", "configuration_key", "variant", "device")} | {
        "shown": shown, "outcome": outcome or "", "margin": points or "",
        "share_from": "observed" if is_observed else "repeat", "clusters": _clusters(book, paired),
    }  # fmt: skip
    cells: dict[str, str | None] = {
        name: paired.cells[name]
        for name in (
            "document_count", "both_right", "lost_documents", "gained_documents", "both_not_right", "difference_points",
            "compared_answers", "other_answers", "cluster_count", "clustered_points",
        )
    }  # fmt: skip
    cells |= {"repeat_flips": noise.figure_id if noise else None}
    cells |= _derived(book, paired, pairs, p_pair)
    cells["needed_documents"] = _needed(book, paired, pairs, None if is_observed else noise, points)
    return row(paired.key, labels, cells, *_said(book, labels, cells, outcome))


def _clusters(book: Book, paired: Row) -> str:
    """Return `single` where each document is its own cluster, `few` where they allow no interval, or `enough`."""
    clustered = book.figure(paired, "clustered_points")
    if clustered is None or clustered.missing_reason == "not_applicable":
        return "single"
    return "enough" if clustered.value is not None else "few"


def _shown(pairs: Pairs, adjusted: float, noise: _Noise | None) -> Shown:
    net = pairs.gained - pairs.lost
    bounds = tango(*pairs)
    is_beyond_chance = bounds is not None and not bounds.low <= 0 <= bounds.high
    if abs(net) <= (noise.flipped if noise else 0) or (adjusted > SIGNIFICANT and not is_beyond_chance):
        return "no_difference_shown"
    if adjusted > SIGNIFICANT:
        return "higher_alone" if net > 0 else "lower_alone"
    return "higher" if net > 0 else "lower"


def _derived(book: Book, paired: Row, pairs: Pairs, p_pair: tuple[float, float]) -> dict[str, str | None]:
    changed = [paired.cells[name] for name in ("lost_documents", "gained_documents")]
    everything = [*changed, paired.cells["document_count"]]
    name = f"paired_tests/{paired.key}"
    smallest = smallest_decidable_points(pairs.total, pairs.discordant)
    return {
        "mcnemar_p": book.derived(
            changed, figure_id=f"{name}/mcnemar_p", value=p_pair[0], unit="probability", n=pairs.discordant,
            formula="McNemar, exact and two-sided, over lost_documents and gained_documents",
        ),
        "holm_p": book.derived(
            changed, figure_id=f"{name}/holm_p", value=p_pair[1], unit="probability",
            formula="mcnemar_p, adjusted by Holm over all configurations compared for the same purpose",
        ),
        "smallest_points": book.derived(
            everything, figure_id=f"{name}/smallest_points", value=smallest, unit="points",
            formula="- lower limit of Tango's interval with as many documents and as many changed ones, evenly split",
            missing_reason="not_measured" if smallest is None else None,
        ),
    }  # fmt: skip


def _needed(book: Book, paired: Row, pairs: Pairs, noise: _Noise | None, points: str | None) -> str | None:
    """Add how many documents the declared margin needs; none is made without a margin, or for one of zero."""
    share = noise.share if noise else pairs.discordant / pairs.total if pairs.total else 0.0
    needed = documents_needed(points, share) if points is not None else None
    if needed is None:
        return None
    origin = "verdicts changed by repeating the reference" if noise else "lost and gained documents"
    names = ("lost_documents", "gained_documents", "document_count")
    inputs = [noise.figure_id] if noise else [paired.cells[column] for column in names]
    return book.derived(
        inputs, figure_id=f"paired_tests/{paired.key}/needed_documents", value=needed, unit="documents",
        formula=f"(1.96 + 0.84)^2 x share of {origin} / ({points} points)^2, power {POWER_PERCENT} %; no fewer than "
        "the interval needs without any changed document",
    )  # fmt: skip


def _said(
    book: Book, labels: Mapping[str, str], cells: Mapping[str, str | None], outcome: Outcome | None
) -> Sequence[Sentence]:
    """Return what the pairs show against the reference, and what they say of the margin."""
    said = [sentence(f"paired_{labels['shown']}")]
    if outcome is None:
        return said
    needed = cells["needed_documents"]
    if outcome != "inconclusive" or needed is None or not _asks_for_more(book, cells):
        return [*said, sentence(f"margin_{outcome}", points=labels["margin"])]
    return [*said, sentence("margin_inconclusive_needs", points=labels["margin"], needed=ref(needed))]
