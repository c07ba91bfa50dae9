"""The table `sensitivity`: each declared range as figures, with a sentence on where the answer changes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from collector.contract.campaign import Campaign

from .allocation_usage import target_key
from .book import Book, hours, ref, row
from .dossier import Row, Sentence, Unit
from .price_tables import compared_figure, needed_figure
from .selection import Selection, Standing
from .sensitivity import REACH, End, Factor, Inputs, Swing, sensitivities
from .wording import sentence

UNITS: dict[Factor, Unit] = {
    "price": "percent", "acceptance": "documents", "restarts": "hours", "utilisation": "percent",
    "volume": "percent",
}  # fmt: skip
_VARIED: dict[Factor, str] = {
    "price": "prices and fees of the recommended offer",
    "acceptance": "documents accepted of the recommended configuration, in whole documents",
    "restarts": "hours of restarts",
    "utilisation": "processing time of every configuration",
    "volume": "documents per corpus",
}


def put_sensitivity(book: Book, inputs: Inputs, selection: Selection) -> None:
    """Add the table; without rows where no range was declared, with one that says why where nothing is recommended."""
    found = sensitivities(inputs, selection)
    winner = selection.winner
    rows: list[Row] = []
    if winner is None and inputs.campaign.sensitivity is not None:
        rows.append(row("none", {"is_declared": "none"}, {}, sentence("sensitivity_nothing_recommended")))
    if found is not None and winner is not None:
        labels = {s.key: s.label for s in selection.standings}
        rows = [_row(book, inputs.campaign, winner, swing, labels) for swing in found.swings]
        rows += [
            row(f"undeclared~{factor}", {"factor": factor, "is_declared": "no"}, {}, sentence("sensitivity_undeclared"))
            for factor in found.undeclared
        ]
        rows += _convention(book, winner)
    book.put("sensitivity", "one row per input that may be wrong", rows)


def _convention(book: Book, winner: Standing) -> list[Row]:
    """Return what the recommended one bears of the campaign's cost, at least and at most, by each currency paid in."""
    amounts: dict[str, list[str]] = {}
    for entry in book.rows("conventions"):
        if entry.labels["target"] == target_key(winner):
            amounts.setdefault(entry.labels["currency"], []).append(entry.cells["amount"])
    rows = []
    for currency, ids in amounts.items():
        cells = {
            side: book.derived(
                ids, figure_id=f"sensitivity/convention~{currency}/{side}",
                value=pick(int(book.figures[name].value or 0) for name in ids), unit="minor_units", currency=currency,
                formula=f"{side}est of its amounts over all conventions",
            )
            for side, pick in (("low", min), ("high", max))
        }  # fmt: skip
        said = sentence("sensitivity_convention", label=winner.label, low=ref(cells["low"]), high=ref(cells["high"]))
        rows.append(row(f"convention~{currency}", {"factor": "convention", "is_declared": "given"}, cells, said))
    return rows


def _row(book: Book, campaign: Campaign, winner: Standing, swing: Swing, labels: dict[str, str]) -> Row:
    factor, unit = swing.factor, UNITS[swing.factor]
    base = f"sensitivity/{factor}"
    width = book.given(f"{base}/range", _in_unit(swing.range, factor, winner), unit, "assumed")
    cells = {"range": width, "price": _base_price(winner), "hours": needed_figure(winner)}
    for side, end in (("low", swing.low), ("high", swing.high)):
        cells |= _end_cells(book, winner, swing, side, end, width)
    for side, change in zip(("down", "up"), swing.changes_at, strict=True):
        if change is not None:
            cells[f"changes_{side}"] = book.derived(
                [width, needed_figure(winner)], figure_id=f"{base}/changes_{side}",
                value=_in_unit(abs(change), factor, winner), unit=unit,
                formula=f"smallest step {side}, {_VARIED[factor]}, at which the selection answers otherwise",
            )  # fmt: skip
    by = campaign.sensitivity.by if campaign.sensitivity else ""
    marks = {"low_outcome": _outcome(swing.low), "high_outcome": _outcome(swing.high)}
    own = {"factor": factor, "unit": unit, "is_declared": "yes", "by": by, **marks}
    return row(factor, own, cells, *_said(swing, cells, labels))


def _base_price(winner: Standing) -> str | None:
    return compared_figure(winner, winner.best) if winner.best is not None else None


def _end_cells(book: Book, winner: Standing, swing: Swing, side: str, end: End, width: str) -> dict[str, str]:
    base, cells = f"sensitivity/{swing.factor}", {}
    told = f"the selection again, {_VARIED[swing.factor]} {side} by the declared range"
    price = _base_price(winner)
    if price is not None and winner.best is not None:
        cells[f"{side}_price"] = book.derived(
            [width, price], figure_id=f"{base}/{side}_price", value=end.price.minor_units if end.price else None,
            unit="minor_units", currency=winner.best.compared.net.currency, formula=told,
            missing_reason=None if end.price else "not_defined",
        )  # fmt: skip
    if end.needed_ns is not None:
        cells[f"{side}_hours"] = book.derived(
            [width, needed_figure(winner)], figure_id=f"{base}/{side}_hours", value=hours(end.needed_ns), unit="hours",
            formula=told,
        )  # fmt: skip
    return cells


def _outcome(end: End) -> str:
    """Return the one word for what becomes of the recommended one."""
    if end.is_same:
        return "same"
    if not end.is_accepted:
        return "not_accepted"
    return "another" if len(end.instead) == 1 else "tie" if end.instead else "none_alone"


def _said(swing: Swing, cells: dict[str, str | None], labels: dict[str, str]) -> Iterator[Sentence]:
    """Say where the answer changes, in both directions; once, where neither does."""
    if swing.changes_at == (None, None):
        yield sentence("sensitivity_stays", times=str(REACH))
        return
    for side, change, instead in zip(("down", "up"), swing.changes_at, swing.instead, strict=True):
        if change is None:
            continue
        name = cells[f"changes_{side}"]
        assert name is not None
        unit = "_documents" if swing.factor == "acceptance" else ""
        named = ", ".join(labels.get(key, key) for key in instead)
        if not instead:
            yield sentence(f"sensitivity_{side}{unit}_none", change=ref(name))
        elif len(instead) == 1:
            yield sentence(f"sensitivity_{side}{unit}", change=ref(name), label=named)
        else:
            yield sentence(f"sensitivity_{side}{unit}_tie", change=ref(name), labels=named)


def _in_unit(value: Fraction, factor: Factor, winner: Standing) -> int | float:
    """Return the value in the factor's unit; points become the whole documents by which acceptance is moved."""
    if factor == "acceptance":
        assert winner.configuration is not None
        return (value * winner.configuration.expected_documents) // 100
    return value.numerator if value.denominator == 1 else float(value)
