"""Find the order of candidates in an answer: a JSON list of ids, else ids in lines; reasoning is removed first.

A JSON list of strings or numbers, best first, is taken wherever it stands; of several the last that names a candidate
counts. Without one, lines are read: a line that names several candidates (`A, C, B`, `A > C > B`, `Best first: A C B`)
is an order of its own, and the last such line counts; otherwise the lines that name one candidate each (`C`, `2. A`,
`- B: its text`) are one order from top to bottom, and lines that name none are passed over.

An id is compared in NFC, without case where no two candidates differ in case alone.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from .parse import split_reasoning

_SCALAR = r'(?:"(?:[^"\\\x00-\x1f]|\\.)*+"|-?\d++(?:\.\d++)?)'
_LIST = re.compile(rf"\[\s*+(?:{_SCALAR}\s*+(?:,\s*+{_SCALAR}\s*+)*+)?\]")
_BULLET = re.compile(r"^\s*(?:[-*•]|\(?\d{1,3}[.):])\s+")
_LEAD = re.compile(r"^[^:]*:\s*")
_SPLIT = re.compile(r"\s*(?:[,;>→]|\band\b)\s*")
_AROUND = " \t\"'“”‘’`*_()[]<>.,;"


class Order(NamedTuple):
    """An order as it was given, best first: candidate ids, and null for an item that is no candidate.

    order_count: orders found in the answer, JSON lists quoted while reasoning included. has_text: something is left
    without the reasoning.
    """

    items: list[str | None]
    order_count: int
    has_text: bool


def find_order(answer: str, candidates: Iterable[str], *, is_cut: bool) -> Order:
    """Return the order of an answer; empty where none names a candidate. Of a cut answer the last line is not read."""
    names = _Names(candidates)
    outside, reasoning = split_reasoning(answer)
    quoted = sum(1 for block in reasoning for _ in _LIST.finditer(block))
    lists = [items for match in _LIST.finditer(outside) if any(items := names.known(_decoded(match[0])))]
    has_text = bool(outside.strip())
    if lists:
        return Order(lists[-1], len(lists) + quoted, has_text)
    lines = (outside[: max(0, outside.rfind("\n"))] if is_cut else outside).splitlines()
    read = [items for line in lines if any(items := names.in_line(line))]
    several = [items for items in read if len(items) > 1]
    if several:
        return Order(several[-1], len(several) + quoted, has_text)
    return Order([item for items in read for item in items], int(bool(read)) + quoted, has_text)


def _decoded(text: str) -> list[str]:
    try:
        items: list[object] = json.loads(text, parse_int=str, parse_float=str)
    except ValueError:  # an escape that JSON does not know
        return []
    return [str(item) for item in items]


class _Names:
    """The candidates' ids, found again in an answer."""

    def __init__(self, candidates: Iterable[str]) -> None:
        ids = list(candidates)
        self._exact = {unicodedata.normalize("NFC", name): name for name in ids}
        folded = [_folded(name) for name in ids]
        self._folded = {_folded(name): name for name in ids} if len(set(folded)) == len(ids) else {}

    def known(self, items: Iterable[str]) -> list[str | None]:
        return [self._id(item) for item in items]

    def in_line(self, line: str) -> list[str | None]:
        """Return what a line names; empty where it names no candidate."""
        bare = _BULLET.sub("", line)
        for text in dict.fromkeys((_LEAD.sub("", bare), bare, line)):
            if (one := self._id(text)) is not None:
                return [one]
            # Blanks part ids only where nothing else stands between them: a sentence is no order.
            if (words := self.known(text.split())) and None not in words:
                return words
            if self._is_list(parts := self.known(_SPLIT.split(text.strip(_AROUND)))):
                return parts
        head, mark, _ = bare.partition(":")  # `B: its text`
        return [one] if mark and (one := self._id(head)) is not None else []

    @staticmethod
    def _is_list(parts: list[str | None]) -> bool:
        """An unknown id among more known ones is an item of the order; in a sentence with a comma it is the rule."""
        return len(parts) > 1 and sum(item is not None for item in parts) * 2 > len(parts)

    def _id(self, text: str) -> str | None:
        normal = unicodedata.normalize("NFC", text.strip())
        for form in (normal, normal.strip(_AROUND)):
            if form in self._exact:
                return self._exact[form]
        return self._folded.get(_folded(normal.strip(_AROUND)))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
