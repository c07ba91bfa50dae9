"""One language of the starter's documents: names, goods, conditions, templates; read from `languages/<code>.toml`."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

import msgspec

from collector.contract.records.base import Role

LANGUAGES = ("en", "es", "tr", "vi", "fr", "de")
CATEGORIES = ("travel", "food", "office", "utilities")
Tier = Literal["labelled", "semi-structured", "prose"]
Kind = Literal["invoice", "receipt", "ticket", "bill", "statement"]


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One layout. Its id is the documents' cluster."""

    id: str
    kind: Kind
    tier: Tier
    currency: str
    text: str
    """Holds {name}, {town}, {number}, {item}, {category}; days {date}, {due}, {delivery}; sums {subtotal}, {tax},
    {total}, {other}; {lines} and {clauses}. A day or a sum names the way in which it is written: {total.comma}."""
    roles: tuple[Role, ...] = ("development", "validation", "test")
    categories: tuple[str, ...] = CATEGORIES
    goods: tuple[int, ...] = tuple(range(8))
    """Which of its category's goods it can name."""
    share: int = 1
    """Used for one document in so many; the templates with share 1 take turns for the others."""
    missing: Literal["", "date", "amount"] = ""
    """The field that its documents do not have."""
    is_hard: bool = False
    is_long: bool = False
    bytes_wanted: int = 0
    """Lines are added to a long document until its text has this many bytes of UTF-8."""
    tax: int = 0
    """Percent on top of the lines."""
    lines: int = 1
    line: tuple[str, ...] = ("{item}",)
    """Patterns that take turns: {day}, {item}, {town}, {quantity}, {price}, {sum}."""
    join: str = "\n"
    clauses: int = 0


class Phrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    clauses: list[str]


class Language(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of `languages/`."""

    language: str
    months: list[str]
    places: list[str]
    names: dict[str, list[str]]
    """Category -> names of businesses with {place}."""
    items: dict[str, list[str]]
    """Category -> eight goods, in the order of PRICES."""
    phrases: Phrases
    templates: list[Template] = msgspec.field(name="template")


def read_language(code: str) -> Language:
    """Return the language's file. Raises msgspec.ValidationError for a broken one."""
    text = files("collector.starter").joinpath("languages", f"{code}.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=Language)
