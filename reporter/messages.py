"""How a sentence of the reporter is held and marked for extraction: a message with placeholders, and its plural."""

from __future__ import annotations

from typing import NamedTuple


class Wording(NamedTuple):
    """An English message; where a number decides its form, the plural message and the parameter that holds it."""

    message: str
    plural: str | None = None
    by: str | None = None


def say(message: str) -> Wording:
    """Mark a message for extraction."""
    return Wording(message)


def say_counted(message: str, plural: str, *, by: str) -> Wording:
    """Mark a message and its plural; `by` names the parameter that decides."""
    return Wording(message, plural, by)
