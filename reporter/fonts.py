"""Which characters the shipped fonts hold, so that paper never shows a box for one that they do not."""

from __future__ import annotations

import unicodedata
from functools import cache

from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

from collector.contract.resources import data_dir

PAPER_FONTS = ("Inter-Regular.ttf", "DejaVuSans.ttf")
"""The text font and the fallback; the other weights hold the same letters as the first."""


@cache
def covered() -> frozenset[int]:
    """Return the code points that paper can print."""
    folder = data_dir("templates") / "fonts"
    points: set[int] = set()
    for name in PAPER_FONTS:
        with TTFont(folder / name, lazy=True) as font:
            points.update(font.getBestCmap())
    return frozenset(points)


def is_printable(character: str) -> bool:
    """Say whether a character is printed as it is: in a shipped font, or white space, or an invisible format sign."""
    return ord(character) in covered() or character in "\n\t\r" or unicodedata.category(character) == "Cf"


def unprintable(text: str) -> list[str]:
    """Return the characters of a text that no shipped font holds, each once, in code point order."""
    return sorted({c for c in set(text) if not is_printable(c)})


def code_point(character: str) -> str:
    return f"U+{ord(character):04X}"


def spelled_out(text: str) -> str:
    """Return the text with each character that no shipped font holds as its code point in brackets."""
    missing = {ord(c): f"[{code_point(c)}]" for c in unprintable(text)}
    return text.translate(missing) if missing else text
