"""Which documents the starter has: role by role, tier by tier, the languages and their templates in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, cast

from collector.contract.records.base import Role
from collector.starter import TIERS
from collector.starter.language import LANGUAGES, Language, Template, Tier

ROLES: tuple[Role, ...] = ("development", "validation", "test")


class Share(NamedTuple):
    """How many documents of a role a tier has, how many of them are critical, and how many (the last ones) are long."""

    documents: int
    critical: int
    long: int


PLAN: dict[tuple[Role, Tier], Share] = {
    ("development", "labelled"): Share(12, 0, 0),
    ("development", "semi-structured"): Share(10, 0, 1),
    ("development", "prose"): Share(8, 0, 1),
    ("validation", "labelled"): Share(40, 4, 0),
    ("validation", "semi-structured"): Share(35, 4, 6),
    ("validation", "prose"): Share(25, 2, 2),
    ("test", "labelled"): Share(80, 8, 0),
    ("test", "semi-structured"): Share(70, 8, 12),
    ("test", "prose"): Share(50, 4, 4),
}


class Place(NamedTuple):
    """Where a document stands: in the whole corpus, in its role and tier, and among those of its language."""

    role: Role
    tier: Tier
    serial: int
    in_tier: int
    in_language: int
    in_cell: int
    """Among the documents of its role, tier and language that are not long."""
    is_critical: bool
    is_long: bool
    language: str


def places() -> Iterator[Place]:
    """Yield the place of each document: role by role, tier by tier, the languages in turn."""
    serial = 0
    in_language: Counter[str] = Counter()
    in_cell: Counter[tuple[str, str, str]] = Counter()
    for role in ROLES:
        for tier_number, tier in enumerate(TIERS):
            share = PLAN[role, cast("Tier", tier)]
            # A step through the tier and another through the languages, so that critical documents are of each.
            critical = {
                number * share.documents // share.critical + (3 + number) % 6 for number in range(share.critical)
            }
            for index in range(share.documents):
                language = LANGUAGES[(index + 4 * tier_number) % len(LANGUAGES)]
                cell = (role, tier, language)
                is_long = index >= share.documents - share.long
                yield Place(
                    role, cast("Tier", tier), serial, index, in_language[language], in_cell[cell],
                    index in critical, is_long, language,
                )  # fmt: skip
                serial += 1
                in_language[language] += 1
                in_cell[cell] += not is_long


def template_for(place: Place, language: Language) -> Template:
    """Return the template whose turn it is."""
    fitting = [
        one
        for one in language.templates
        if one.tier == place.tier and one.is_long == place.is_long and place.role in one.roles
    ]
    turn = place.in_cell + LANGUAGES.index(place.language)
    for rare in (one for one in fitting if one.share > 1):
        if turn % rare.share == rare.share - 1:
            return rare
    regular = [one for one in fitting if one.share == 1]
    return regular[turn % len(regular)]


def category_for(place: Place, template: Template) -> str:
    """Return the category whose turn it is among those that the template can have."""
    return template.categories[(place.in_language + LANGUAGES.index(place.language)) % len(template.categories)]
