"""What `collector init` copies: a protocol and documents per kind of task, a campaign; runnable as they are."""

from __future__ import annotations

import json
from importlib.resources import files

KINDS = ("extraction", "answers", "ranking")
TIERS = ("labelled", "semi-structured", "prose")
SMALL_ROLES = {"development": 12, "validation": 24, "test": 12}
"""How many documents of each role a small trial has: the first ones."""
CORPUS_TITLES = {
    "extraction": "The starter's corpus: invoices, receipts, tickets, bills and statements",
    "answers": "The starter's questions with known answers",
    "ranking": "The starter's queries with candidates",
}


def starter_text(name: str, kind: str = "extraction") -> str:
    """Return one of the starter's files; of another kind than extraction, its own one where it has one."""
    place = files(__name__)
    own = place.joinpath(kind, name)
    return (own if own.is_file() else place.joinpath(name)).read_text(encoding="utf-8")


def starter_documents(kind: str = "extraction", *, tier: str | None = None, is_small: bool = False) -> str:
    """Return the starter's documents file: all lines, those of one tier, or the labelled tier's first ones."""
    kept: list[str] = []
    counts = dict.fromkeys(SMALL_ROLES, 0)
    wanted = "labelled" if is_small and kind == "extraction" else tier
    for line in starter_text("documents.jsonl", kind).splitlines(keepends=True):
        document = json.loads(line)
        if wanted is not None and wanted not in document["subsets"]:
            continue
        counts[document["role"]] += 1
        if not is_small or counts[document["role"]] <= SMALL_ROLES[document["role"]]:
            kept.append(line)
    return "".join(kept)
