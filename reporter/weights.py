"""Weights as they really are: claims against tensors found, bits against bytes taken, and what did not load."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from collector.contract.protocol import Lock

from .book import Book, ref, row
from .dossier import Figure, Row, Sentence, Unit, number
from .wording import sentence

CLAIM_TOLERANCE_PERCENT = 1
"""A footprint method that is further off than this is called wrong."""
LOADING = ("build", "load")


def put_weights(book: Book, lock: Lock) -> None:
    """Add what the variants' weights say beside one another, and the table of what did not load.

    Each variant is compared with the reference on the same machine. A claim that is wrong is said in the variant's row.
    """
    found = book.rows("variants")
    references = {r.labels["environment_id"]: r for r in found if r.labels["variant"] == lock.trial.reference}
    said = [
        msgspec.structs.replace(
            r, cells=r.cells | _compared(book, r, references), sentences=[*r.sentences, *_claim(book, r)]
        )
        for r in found
    ]
    if found:
        book.tables["variants"] = msgspec.structs.replace(book.tables["variants"], rows=said)
    answers = [
        row(r.key, {"label": r.labels["label"]}, {}, *told)
        for r in said
        if (told := list(_answer(book, r, references)))
    ]
    if answers:
        book.put("bits", "one row per quantized variant: what its bits promise and what its weights take", answers)
    failed = [r for r in book.rows("failures") if r.labels["phase"] in LOADING and r.labels["label"]]
    if failed:
        methods = {v.name: v.dtype if v.quantization == "none" else v.quantization for v in lock.plan.variants}
        rows = [_incompatible(r, methods.get(r.labels["variant"], "")) for r in failed]
        book.put("compatibility", "one row per variant that did not load", rows)


def load_limits(book: Book) -> list[Sentence]:
    """Return what nothing can be said about, since it did not load."""
    return [
        sentence("limit_not_loaded", label=r.labels["label"], cause="@" + r.labels["cause"])
        for r in book.rows("compatibility")
    ]


def _incompatible(failure: Row, method: str) -> Row:
    kept = ("label", "variant", "device", "cause", "phase", "exception_class")
    return row(failure.key, {name: failure.labels[name] for name in kept} | {"method": method}, {})


def _compared(book: Book, variant: Row, references: dict[str, Row]) -> dict[str, str]:
    """Add the claim's factor and the share of the reference's bytes; without a value no cell is made."""
    cells = {}
    factor = _ratio(book, variant, "claimed_factor", book.figure(variant, "claimed_weight_bytes"), "ratio")
    reference = references.get(variant.labels["environment_id"])
    if factor is not None:
        cells["claimed_factor"] = factor
    if reference is not None and reference.key != variant.key:
        whole = book.figure(reference, "weight_bytes")
        share = _ratio(book, variant, "percent_of_reference", whole, "percent")
        if share is not None:
            cells["percent_of_reference"] = share
    return cells


def _ratio(book: Book, variant: Row, column: str, other: Figure | None, unit: Unit) -> str | None:
    """Add claimed / weight bytes, or 100 x weight bytes / those of the reference."""
    own = book.figure(variant, "weight_bytes")
    taken, against = number(own), number(other)
    if own is None or other is None or not taken or not against:
        return None
    is_claim = unit == "ratio"
    return book.derived(
        [own.figure_id, other.figure_id],
        figure_id=f"variants/{variant.key}/{column}",
        value=against / taken if is_claim else 100 * taken / against,
        unit=unit,
        formula="claimed_weight_bytes / weight_bytes" if is_claim else "100 x weight_bytes / those of the reference",
    )


def _claim(book: Book, variant: Row) -> Iterator[Sentence]:
    own, claimed = number(book.figure(variant, "weight_bytes")), number(book.figure(variant, "claimed_weight_bytes"))
    if own and claimed and abs(claimed - own) * 100 > CLAIM_TOLERANCE_PERCENT * own:
        yield sentence(
            "weights_claim_wrong", label=variant.labels["label"], claimed=ref(variant.cells["claimed_weight_bytes"]),
            bytes=ref(variant.cells["weight_bytes"]), factor=ref(f"variants/{variant.key}/claimed_factor"),
        )  # fmt: skip


def _answer(book: Book, variant: Row, references: dict[str, Row]) -> Iterator[Sentence]:
    """Answer from these records whether fewer bits take as much less memory."""
    reference = references.get(variant.labels["environment_id"])
    bits = int(variant.labels["bits"] or 0)
    if reference is None or not bits or "percent_of_reference" not in variant.cells:
        return
    of_reference = book.figure(reference, "effective_bits")
    before = number(of_reference)
    if of_reference is None or not before or bits >= before:
        return
    promised = book.derived(
        [of_reference.figure_id], figure_id=f"variants/{variant.key}/promised_percent", value=100 * bits / before,
        unit="percent", formula="100 x bits of the method / effective_bits of the reference",
    )  # fmt: skip
    yield sentence(
        "weights_against", label=variant.labels["label"], bytes=ref(variant.cells["weight_bytes"]),
        reference=reference.labels["label"], share=ref(variant.cells["percent_of_reference"]), bits=str(bits),
        promised=ref(promised),
    )  # fmt: skip
    parts = [r for r in book.rows("tensor_groups") if r.labels["variant_key"] == variant.key]
    largest = max(parts, key=lambda r: book.whole(r, "tensor_bytes") or 0, default=None)
    if largest is not None and largest.labels["storage_dtype"] == reference.labels["weight_storage"]:
        yield sentence(
            "weights_largest", part="@" + largest.labels["module_group"], dtype=largest.labels["storage_dtype"],
            bytes=ref(largest.cells["tensor_bytes"]),
        )  # fmt: skip
