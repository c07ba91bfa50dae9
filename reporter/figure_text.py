"""Figures as text: the unit and precision of a column, missing values, intervals, bases. No number is made here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .dossier import Figure, Unit
from .translate import N_, NO_BREAK, Translator
from .vocabulary import BASIS_WORDS, WORDS

EN_DASH = "\u2013"
QUOTIENT_DECIMALS = 4
"""Of an amount of money divided by a count: it is never added up, so it may be finer than the currency."""
PROBABILITY_DECIMALS = 4
"""A smaller probability is printed as `< 0.0001`: zero it is not."""


class Scale(NamedTuple):
    """How the figures of one column are printed: divided by `divisor`, with `decimals` digits and `unit_word`."""

    unit_word: str
    divisor: float
    decimals: int
    is_signed: bool = False


_SIZES = ((N_("GiB"), 2**30), (N_("MiB"), 2**20), (N_("KiB"), 2**10), (N_("bytes"), 1))
_TIMES = ((N_("h"), 7200.0, 3600.0), (N_("min"), 300.0, 60.0), (N_("s"), 1.0, 1.0), (N_("ms"), 0.0, 0.001))
_PLAIN: dict[Unit, str] = {
    "tokens_per_second": N_("tokens/s"),
    "documents_per_hour": N_("documents/h"),
    "requests_per_second": N_("requests/s"),
    "bits": N_("bits"),
    "days": N_("days"),
    "percent": N_("%"),
    "percentage_points": N_("points"),
    "points": N_("points"),
    "probability": "",
    "ratio": "",
    "rows": N_("rows"),
}
_COUNTED: dict[Unit, str] = {
    "documents": N_("documents"),
    "requests": N_("requests"),
    "records": N_("records"),
    "tokens": N_("tokens"),
    "passes": N_("passes"),
    "packages": N_("packages"),
    "corpora": N_("corpora"),
    "count": "",
}


def scale_of(figures: Sequence[Figure]) -> Scale:
    """Return one scale for figures of one unit: a column shows one unit and one precision."""
    unit: Unit = figures[0].unit if figures else "count"
    sizes = [abs(float(f.value)) for f in figures if isinstance(f.value, int | float)]
    if unit in _COUNTED:
        has_fraction = any(isinstance(f.value, float) and not f.value.is_integer() for f in figures)
        return Scale(_COUNTED[unit], 1, 2 if has_fraction else 0)
    if unit == "bytes":
        top = max(sizes, default=0)
        word, divisor = next(((w, d) for w, d in _SIZES if top >= d), _SIZES[-1])
        return Scale(word, divisor, 0 if divisor == 1 else _decimals([s / divisor for s in sizes], most=2))
    if unit in ("nanoseconds", "seconds", "hours"):
        return _time_scale(unit, sizes)
    if unit == "amount":
        return Scale("", 1, QUOTIENT_DECIMALS)
    if unit == "millijoules":
        return Scale(N_("J"), 1000, 0)
    if unit == "percentage_points":
        return Scale(_PLAIN[unit], 1, 1, is_signed=True)
    if unit == "probability":
        return Scale("", 1, PROBABILITY_DECIMALS)
    if unit in ("percent", "points", "days"):
        is_whole = bool(sizes) and all(isinstance(f.value, int) for f in figures if f.value is not None)
        return Scale(_PLAIN[unit], 1, 0 if is_whole else 1)
    return Scale(_PLAIN.get(unit, ""), 1, _decimals(sizes, most=2))


def _time_scale(unit: Unit, sizes: list[float]) -> Scale:
    in_seconds = {"nanoseconds": 1e-9, "seconds": 1.0, "hours": 3600.0}[unit]
    top = max(sizes, default=0.0) * in_seconds
    word, _, divisor = next(row for row in _TIMES if top >= row[1])
    if unit == "hours" and (top >= 3600 or top == 0):
        word, divisor = N_("h"), 3600.0
    return Scale(word, divisor / in_seconds, _decimals([s * in_seconds / divisor for s in sizes], most=3))


def _decimals(sizes: Iterable[float], *, most: int) -> int:
    """Return digits after the point: three significant ones for the smallest value, fewer where the largest is big."""
    values = [s for s in sizes if s > 0]
    if not values:
        return 1
    wanted = 2 - math.floor(math.log10(min(values)))
    room = 3 - math.floor(math.log10(max(values)))
    return max(0, min(wanted, room, most))


class FigureText:
    """Prints figures in one language."""

    def __init__(self, translator: Translator) -> None:
        self.tr = translator

    def value(self, figure: Figure, scale: Scale | None = None) -> str:
        """Return the number alone, or an en dash where there is none."""
        if figure.value is None:
            return EN_DASH
        if isinstance(figure.value, str):
            return figure.value
        if figure.unit == "minor_units" and figure.currency:
            return self.tr.money(int(figure.value), figure.currency, with_code=False)
        scale = scale or scale_of([figure])
        if figure.unit == "probability" and 0 < figure.value < 10**-PROBABILITY_DECIMALS:
            return f"< {self.tr.number(10**-PROBABILITY_DECIMALS, PROBABILITY_DECIMALS)}"
        return self._scaled(figure.value, scale)

    def _scaled(self, value: float, scale: Scale) -> str:
        exact = value if scale.divisor == 1 else value / scale.divisor
        return self.tr.number(exact, scale.decimals, is_signed=scale.is_signed)

    def unit(self, figure: Figure, scale: Scale | None = None) -> str:
        """Return the unit's word as it stands after a number or in a column head; empty for bare counts."""
        if figure.unit in ("minor_units", "amount"):
            return figure.currency or ""
        word = (scale or scale_of([figure])).unit_word
        return self.tr.text(word) if word else ""

    def in_sentence(self, figure: Figure) -> str:
        """Return a figure as it stands in a sentence: counts, points and ratios bare, the others with their unit."""
        if figure.value is None or isinstance(figure.value, str) or figure.unit in _COUNTED or figure.unit == "ratio":
            return self.value(figure)
        if figure.unit == "percentage_points":
            return self.value(figure, scale_of([figure])._replace(is_signed=False))
        return f"{self.value(figure)}{NO_BREAK}{self.unit(figure)}"

    def is_measured_in(self, figure: Figure) -> bool:
        """Say whether a unit belongs beside the number; counts are named by their caption."""
        return figure.unit not in _COUNTED and bool(self.unit(figure))

    def interval(self, figure: Figure, scale: Scale | None = None) -> str:
        """Return `low to high` in the figure's scale, or an empty string."""
        if figure.interval is None or figure.value is None:
            return ""
        scale = scale or scale_of([figure])
        low, high = figure.interval.low, figure.interval.high
        if scale.decimals == 0 and figure.unit in _COUNTED:
            scale = scale._replace(decimals=1)
        return self.tr.text(N_("%(low)s to %(high)s")) % {
            "low": self._scaled(low, scale),
            "high": self._scaled(high, scale),
        }

    def basis(self, figure: Figure) -> str:
        """Return the words of a basis; where several entered a derived figure all of them, the weakest first."""
        if not (figure.is_derived and figure.bases):
            return self.tr.text(BASIS_WORDS[figure.basis, figure.is_derived])
        words = ", ".join(self.tr.text(BASIS_WORDS[basis, False]) for basis in figure.bases)
        return self.tr.text(N_("derived from %(bases)s")) % {"bases": words}

    def weakest_basis(self, figure: Figure) -> str:
        """Return the words of a basis for a table: of several that entered the weakest alone; the annex names all."""
        if not (figure.is_derived and figure.bases):
            return self.basis(figure)
        word = self.tr.text(BASIS_WORDS[figure.bases[0], False])
        return self.tr.text(N_("derived from %(bases)s")) % {"bases": word}

    def word(self, label: str, *, prefix: str = "") -> str:
        """Return a vocabulary word in the language, or the label itself where it is data."""
        message = WORDS.get(f"{prefix}:{label}" if prefix else label)
        return self.tr.text(message) if message else label

    def is_word(self, label: str, *, prefix: str = "") -> bool:
        """Say whether a label is a vocabulary word, and so is translated."""
        return (f"{prefix}:{label}" if prefix else label) in WORDS

    def reason(self, figure: Figure) -> str:
        """Return why a figure has no value."""
        return self.word(figure.missing_reason or "not_measured")
