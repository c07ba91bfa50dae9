"""What a corpus is made of: counts by role, tier, language, length, mark and template; and the page that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from collector.contract.protocol import DocumentLine

ROLES = ("development", "calibration", "validation", "test")
LENGTH_CLASSES = ("short", "usual", "long")


class Range(NamedTuple):
    """Smallest, middle and largest of some counts, and their sum."""

    least: int
    middle: float
    most: int
    total: int


class CorpusStatistics(NamedTuple):
    """Counts of documents: of each mapping the key is (role, value). Nothing here depends on a model."""

    roles: dict[str, int]
    languages: dict[tuple[str, str], int]
    length_classes: dict[tuple[str, str], int]
    subsets: dict[tuple[str, str], int]
    hard: dict[str, int]
    missing: dict[tuple[str, str], int]
    """(role, field) -> documents that do not have it."""
    clusters: dict[str, set[str]]
    """Role -> its templates or sources."""


def corpus_statistics(documents: Sequence[DocumentLine]) -> CorpusStatistics:
    """Return the counts of any documents; a language that is not said counts as `not said`."""
    clusters: dict[str, set[str]] = {}
    for one in documents:
        clusters.setdefault(one.role, set()).add(one.cluster or one.id)
    return CorpusStatistics(
        roles=Counter(one.role for one in documents),
        languages=Counter((one.role, one.language or "not said") for one in documents),
        length_classes=Counter((one.role, one.length_class) for one in documents),
        subsets=Counter((one.role, subset) for one in documents for subset in sorted(set(one.subsets))),
        hard=Counter(one.role for one in documents if one.is_hard),
        missing=Counter((one.role, name) for one in documents for name, value in one.expected.items() if value is None),
        clusters=clusters,
    )


def summary_lines(documents: Sequence[DocumentLine]) -> list[str]:
    """Return what `check` prints of a corpus: one line per property, counts over all roles."""
    counts = corpus_statistics(documents)
    lines = []
    for title, by in (
        ("languages", counts.languages),
        ("lengths", counts.length_classes),
        ("subsets", counts.subsets),
    ):
        merged: Counter[str] = Counter()
        for (_, value), count in by.items():
            merged[value] += count
        if merged:
            lines.append(f"{title}: {', '.join(f'{count} {value}' for value, count in sorted(merged.items()))}")
    clusters = set().union(*counts.clusters.values()) if counts.clusters else set()
    lines.append(f"templates or sources: {len(clusters)}; marked hard: {sum(counts.hard.values())}")
    return lines


def size_range(sizes: Iterable[int]) -> Range | None:
    """Return the range of some counts, null where there are none."""
    ordered = sorted(sizes)
    return Range(ordered[0], median(ordered), ordered[-1], sum(ordered)) if ordered else None


def corpus_page(
    documents: Sequence[DocumentLine],
    *,
    title: str,
    currencies: Mapping[str, str] | None = None,
    token_counts: Mapping[str, int] | None = None,
    tokenizer: str = "",
) -> str:
    """Return the statistics as a Markdown page.

    currencies: document id -> currency of its amount. token_counts: document id -> tokens of its text, counted with
    `tokenizer`; without them the page says that they were not counted.
    """
    counts = corpus_statistics(documents)
    roles = [role for role in ROLES if counts.roles.get(role)]
    by_role = {role: [one for one in documents if one.role == role] for role in roles}

    def cells(by: Mapping[tuple[str, str], int], value: str) -> list[str]:
        return [str(by.get((role, value), 0)) for role in roles]

    def block(by: Mapping[tuple[str, str], int], order: Sequence[str] = ()) -> list[list[str]]:
        values = sorted({value for _, value in by}, key=lambda one: (one not in order, [*order, one].index(one), one))
        return [[value, *cells(by, value)] for value in values]

    parts = [f"# {title}\n", f"{len(documents)} documents. Written by the script that writes the documents.\n"]
    parts.append(_table("documents", roles, [["all", *(str(counts.roles[role]) for role in roles)]]))
    parts.append(_table("subset", roles, block(counts.subsets)))
    parts.append(_table("language", roles, block(counts.languages)))
    parts.append(_table("length class", roles, block(counts.length_classes, LENGTH_CLASSES)))
    parts.append(_table("mark", roles, [["hard", *(str(counts.hard.get(role, 0)) for role in roles)]]))
    if counts.missing:
        parts.append(_table("field that a document lacks", roles, block(counts.missing)))
    if currencies:
        by_currency: Counter[tuple[str, str]] = Counter(
            (one.role, currencies[one.id]) for one in documents if one.id in currencies
        )
        parts.append(_table("currency", roles, block(by_currency)))
    parts.append(_cross(documents, roles))
    parts.append(_clusters(counts.clusters, roles))
    parts.append(_sizes(by_role, token_counts, tokenizer))
    return "\n".join(parts)


def _table(head: str, roles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {head} | {' | '.join(roles)} |", f"|---|{'---:|' * len(roles)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _cross(documents: Sequence[DocumentLine], roles: Sequence[str]) -> str:
    """Subset x length class x language, so that no cell hides in the sums above."""
    cells: Counter[tuple[str, str, str, str]] = Counter(
        (subset, one.length_class, one.language or "not said", one.role)
        for one in documents
        for subset in sorted(set(one.subsets)) or ["none"]
    )
    keys = sorted({key[:3] for key in cells}, key=lambda key: (key[0], LENGTH_CLASSES.index(key[1]), key[2]))
    rows = [[*key, *(str(cells[*key, role]) for role in roles)] for key in keys]
    lines = [
        "## Subset, length class and language together\n",
        f"| subset | length class | language | {' | '.join(roles)} |",
        f"|---|---|---|{'---:|' * len(roles)}",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _clusters(clusters: Mapping[str, set[str]], roles: Sequence[str]) -> str:
    lines = ["## Templates or sources\n"]
    lines += [f"- {role}: {len(clusters[role])}" for role in roles]
    for index, left in enumerate(roles):
        for right in roles[index + 1 :]:
            shared = len(clusters[left] & clusters[right])
            only = len(clusters[right] - clusters[left])
            lines.append(f"- {left} and {right} share {shared}; {only} of {right} are unknown to {left}")
    return "\n".join(lines) + "\n"


def _sizes(
    by_role: Mapping[str, Sequence[DocumentLine]], token_counts: Mapping[str, int] | None, tokenizer: str
) -> str:
    measures: list[tuple[str, Callable[[DocumentLine], int]]] = [
        ("bytes", lambda one: len(one.text.encode())),
        ("characters", lambda one: len(one.text)),
        ("words", lambda one: len(one.text.split())),
    ]
    if token_counts is not None:
        measures.append(("tokens", lambda one: token_counts[one.id]))
    lines = [
        "## Lengths of the texts\n",
        "| length class | role | documents | measure | least | median | most | together |",
        "|---|---|---:|---|---:|---:|---:|---:|",
    ]
    for length_class in LENGTH_CLASSES:
        for role, documents in by_role.items():
            chosen = [one for one in documents if one.length_class == length_class]
            for name, measure in measures:
                if found := size_range(measure(one) for one in chosen):
                    row = f"{found.least:,} | {found.middle:,.1f} | {found.most:,} | {found.total:,}"
                    lines.append(f"| {length_class} | {role} | {len(chosen)} | {name} | {row} |")
    how = f"Tokens are of the text alone, counted with the tokenizer of {tokenizer}." if tokenizer else ""
    lines.append(f"\n{how or 'Tokens were not counted: that takes a model.'}")
    return "\n".join(lines) + "\n"
