"""Read the numbers in an answer exactly: decimal comma or point, thousands separators, units left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

# A digit of any script; a number does not begin inside a word (the 2 of `H2O` is none), and it may end in a unit.
_NUMBER = re.compile(
    r"""(?<![\w.,])(?P<sign>[-−‒–+]?)
        (?P<body>\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:[.,]\d+)?(?!\d) | \d[\d.,'’_]* | [.,]\d+)
        (?:[eE](?P<power>[-+]?\d{1,2})(?!\w))?""",
    re.VERBOSE,
)
_MINUS = "-−‒–"
_MAX_DIGITS = 60

Readings = frozenset[Fraction]
"""What one number can mean: `1.234` and `1,234` can be read in two ways, most numbers in one."""


def numbers_in(text: str) -> Iterator[Readings]:
    """Yield the numbers of a text in their order.

    `.` and `,` are read as decimal mark or as separator of thousands, whichever the digits allow; where they allow both
    (one mark, three digits after it, one to three before it), both readings are kept. Blanks, apostrophes and
    underscores only separate thousands. What cannot be read (a version, a date) is no number.
    """
    for match in _NUMBER.finditer(text):
        if readings := _readings(match["body"].rstrip(".,'’_")):
            factor = Fraction(10) ** int(match["power"] or 0) * (-1 if match["sign"] and match["sign"] in _MINUS else 1)
            yield frozenset(value * factor for value in readings)


def is_within(readings: Readings, *, wanted: str, tolerance: str) -> bool:
    """Return whether a number can be read as one at most `tolerance` away from `wanted`; exact, in fractions."""
    known = Fraction(Decimal(wanted.strip()))
    return any(abs(value - known) <= Fraction(tolerance) for value in readings)


def _readings(body: str) -> set[Fraction]:
    digits = re.sub(r"[ \u00a0\u202f'’_]", "", body)
    if len(digits) > _MAX_DIGITS:
        return set()
    found = {_decimal(digits, mark=mark, separator=separator) for mark, separator in ((".", ","), (",", "."))}
    return {value for value in found if value is not None}


def _decimal(digits: str, *, mark: str, separator: str) -> Fraction | None:
    """Return the number where `mark` is the decimal mark and `separator` parts thousands; null where that cannot be."""
    whole, _, fraction = digits.partition(mark)
    whole = whole or "0"  # .5
    if not re.fullmatch(r"\d*", fraction):
        return None
    part = re.escape(separator)
    grouped = rf"\d+|[1-9]\d{{0,2}}(?:{part}\d{{3}})+|[1-9]\d?(?:{part}\d{{2}})+{part}\d{{3}}"
    if not re.fullmatch(grouped, whole):
        return None
    return Fraction(f"{whole.replace(separator, '')}.{fraction or '0'}")
