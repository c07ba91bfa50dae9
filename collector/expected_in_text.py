"""Notice expected values that a document does not hold in any form: a mistyped one makes every model wrong.

A notice and no refusal: a value may be meant that the document only implies. Labels are never looked for, since they
are the task's words and not the document's.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import msgspec

from collector.contract.errors import Finding
from collector.contract.judging import normalise
from collector.contract.judging.amounts import Money
from collector.contract.judging.numbers import numbers_in
from collector.contract.protocol import FieldRule, Task
from collector.contract.shape import shown
from collector.documents import NumberedDocument
from collector.field_places import place_of

MOST_NOTICES_PER_FIELD = 10
_WORD = re.compile(r"\d+|[^\W\d_]+")
_LONGEST_DATE_WORDS = 8
_UNKNOWN_MONTH = re.compile(
    r"(\d{1,2})[. ]{1,2}(?:[^\W\d_]{2,}[. ]{1,2}){1,3}(\d{4})|(\d{4})\. ?[^\W\d_]{3,}[. ]{1,2}(\d{1,2})"
)
_AFTER_LETTER = re.compile(r"(?<=[^\W\d_])[.:]?(?=\d)")
_LEADERS = re.compile(r"[.,_]{2,}")


def expected_notices(
    path: Path, entries: Sequence[NumberedDocument], task: Task, *, is_sheet: bool = False
) -> list[Finding]:
    """Return a notice for each expected value of an extraction that its document does not hold, or that reads twice.

    Of one field at most ten and a count of the others. `is_sheet`: say columns and cells.
    """
    if task.kind != "extraction" or task.scorer is not None:
        return []  # what a scorer of the user's compares with need not be the document's own words
    found: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for entry in entries:
        for rule in task.fields:
            value = entry.document.expected.get(rule.name)
            if value is None or (meant := normalise(rule, value)) is None:
                continue  # null is no value, and what is none of its type is a finding already
            for notice in (
                _absent(path, entry, rule, value, meant, is_sheet=is_sheet),
                _reads_twice(path, entry, rule, value, meant, is_sheet=is_sheet),
            ):
                if notice is not None:
                    found[notice.rule, rule.name].append(notice)
    return [notice for (_, name), notices in found.items() for notice in _shortened(name, notices)]


def _shortened(name: str, notices: Sequence[Finding]) -> Iterable[Finding]:
    yield from notices[:MOST_NOTICES_PER_FIELD]
    if others := notices[MOST_NOTICES_PER_FIELD:]:
        yield others[0]._replace(message=f"the same of {name!r} in {len(others)} more document(s), from here on")


def _absent(
    path: Path, entry: NumberedDocument, rule: FieldRule, value: str, meant: object, *, is_sheet: bool
) -> Finding | None:
    if rule.type == "label" or holds(entry.document.text, rule, value, meant):
        return None
    place = place_of(entry.document, rule.name, is_sheet=is_sheet)
    message = f"{place} is {shown(value)}, which does not occur in the document in any form"
    step = "compare it with the document: with a wrong expected value no model can be right"
    return Finding(path, entry.line, "expected-not-in-text", message, step)


def _reads_twice(
    path: Path, entry: NumberedDocument, rule: FieldRule, value: str, meant: object, *, is_sheet: bool
) -> Finding | None:
    if not isinstance(meant, Money) or meant.currencies:
        return None
    others = {reading for readings in numbers_in(value) for reading in readings} - {Fraction(meant.amount)}
    other = next((each for each in others if abs(each) != abs(meant.amount)), None)
    if other is None:
        return None
    read, not_read = _plain(Fraction(meant.amount)), _plain(other)
    place = place_of(entry.document, rule.name, is_sheet=is_sheet)
    message = f"{place} is {shown(value)}, {read} or {not_read}? It is read as {read}"
    step = f"write it without a separator of thousands, {read!r} or {not_read + '0'!r}, or with its currency"
    return Finding(path, entry.line, "expected-ambiguous", message, step)


def _plain(number: Fraction) -> str:
    return format((Decimal(number.numerator) / Decimal(number.denominator)).normalize(), "f")


def holds(text: str, rule: FieldRule, value: str, meant: object) -> bool:
    """Return whether a text holds a value: as it is written, or in another form of a date or an amount."""
    text = unicodedata.normalize("NFKC", text)
    plain = unicodedata.normalize("NFKC", value)
    if isinstance(meant, dt.date):
        return _has_date(text, rule, meant)
    if isinstance(meant, Money):
        return _has_amount(text, meant)
    return " ".join(plain.casefold().split()) in " ".join(text.casefold().split())


def _has_amount(text: str, money: Money) -> bool:
    """The sign is left out: a credit may be printed without one."""
    parted = _AFTER_LETTER.sub(" ", _LEADERS.sub(" ", text))
    wanted = abs(Fraction(money.amount))
    # Two numbers beside each other may look like one of several groups, so each is looked at alone as well.
    return any(
        abs(reading) == wanted
        for form in (parted, re.sub(r"\s", "  ", parted))
        for readings in numbers_in(form)
        for reading in readings
    )


def _has_date(text: str, rule: FieldRule, date: dt.date) -> bool:
    """A day and a year around a word that is no known month hold the date too: it may be a month's in any language."""
    rules = [msgspec.structs.replace(rule, day_first=order) for order in (True, False)]
    words = list(_WORD.finditer(text))
    for first, last in _around_year(words, date):
        candidate = text[words[first].start() : words[last].end()]
        read = {normalise(each, candidate) for each in rules}
        if date in read or (read == {None} and _may_be(candidate, date)):
            return True
    return False


def _around_year(words: Sequence[re.Match[str]], date: dt.date) -> Iterable[tuple[int, int]]:
    """Yield first and last word of each place that could be the date: every form of one begins or ends in its year."""
    forms = (f"{date.year:04}", f"{date.year % 100:02}", date.strftime("%Y%m%d"))
    for index, word in enumerate(words):
        if word[0] in forms:
            yield from ((first, index) for first in range(max(0, index - _LONGEST_DATE_WORDS + 1), index + 1))
            yield from ((index, last) for last in range(index + 1, min(index + _LONGEST_DATE_WORDS, len(words))))


def _may_be(candidate: str, date: dt.date) -> bool:
    match = _UNKNOWN_MONTH.fullmatch(candidate)
    return match is not None and (date.day, date.year) in (
        (int(match[1] or 0), int(match[2] or 0)),
        (int(match[4] or 0), int(match[3] or 0)),
    )
