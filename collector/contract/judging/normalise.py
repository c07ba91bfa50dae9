"""Bring a field's value into the form in which two values are compared: date, money, label or text."""

from __future__ import annotations

import datetime as dt
import unicodedata
from typing import Literal, NamedTuple

from ..protocol import FieldRule
from .amounts import Money, parse_money, parse_number_literal, same_money
from .dates import parse_date
from .parse import JsonNumber

Comparable = dt.date | Money | str
UnicodeForm = Literal["NFC", "NFKC"] | None


class Comparison(NamedTuple):
    """Whether two values agree, and whether only Unicode normalisation made them agree."""

    is_equal: bool
    needed_unicode: bool


def normalise(rule: FieldRule, value: str) -> Comparable | None:
    """Return the value as it is compared, or null where it is no value of the field's type."""
    return _normalise(rule, value, form=rule.unicode_form)


def compare(rule: FieldRule, *, expected: str, given: str) -> Comparison:
    """Compare an answer's value with the expected one, both normalised alike."""
    if _agree(rule, expected, given, form=rule.unicode_form):
        return Comparison(True, not _agree(rule, expected, given, form=None))
    return Comparison(False, False)


def fold_label(text: str) -> str:
    """Return a label without case, in a way that no locale changes.

    Case folding (`Straße` = `STRASSE`), and the four Turkish i are one letter: the upper case of `fiş` is `FİŞ` there
    and `FIŞ` elsewhere.
    """
    return " ".join(text.casefold().replace("i\u0307", "i").replace("ı", "i").split())


def _agree(rule: FieldRule, expected: str, given: str, *, form: UnicodeForm) -> bool:
    left, right = _normalise(rule, expected, form=form), _normalise(rule, given, form=form)
    if left is None or right is None:
        return False
    if isinstance(left, Money) and isinstance(right, Money):
        return same_money(left, right)
    return left == right


def _normalise(rule: FieldRule, value: str, *, form: UnicodeForm) -> Comparable | None:
    text = _in_form(value, form).strip()
    if rule.type == "date":
        return parse_date(text, day_first=rule.day_first)
    if rule.type == "money":
        return parse_number_literal(text) if isinstance(value, JsonNumber) else parse_money(text)
    if rule.type == "label":
        # Folding can undo the form (a folded letter may be a decomposed one), so it is applied again.
        folded = _in_form(fold_label(text), form)
        return (
            folded if folded in {_in_form(fold_label(_in_form(label, form)), form) for label in rule.labels} else None
        )
    # Text is copied from the document: case and punctuation count, the kind and number of blanks do not.
    return " ".join(text.split()) or None


def _in_form(text: str, form: UnicodeForm) -> str:
    return text if form is None else unicodedata.normalize(form, text)
