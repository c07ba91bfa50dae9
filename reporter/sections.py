"""The numbered sections of the dossier: each appears where its tables hold evidence, else it is named as not tested."""

from __future__ import annotations

from typing import NamedTuple

from .dossier import Dossier
from .translate import N_


class Section(NamedTuple):
    """One section: its anchor and template, its title, and the tables of which at least one must have rows."""

    anchor: str
    title: str
    tables: tuple[str, ...] = ()
    is_named_when_absent: bool = True
    """False for what can only be asked of some campaigns: without a server, its side was not left untested."""


SECTIONS = (
    Section("scope", N_("Scope and workload covered")),
    Section("rules", N_("Acceptance rule, fixed in advance")),
    Section("environment", N_("Environment, engines and variants"), ("environments", "variants", "engines")),
    Section("method", N_("Method")),
    Section("quality", N_("Quality reached"), ("quality",)),
    Section("confirmation", N_("Confirmation on test documents"), ("confirmation", "looks")),
    Section("memory", N_("Memory"), ("memory",)),
    Section("times", N_("Measured times"), ("latency", "durations")),
    Section("batches", N_("One factor grows: batch"), ("batches",)),
    Section("load", N_("Load: concurrency and arrivals"), ("load_closed", "load_open")),
    Section("engine_side", N_("Where a request's time goes"), ("engine_side",), is_named_when_absent=False),
    Section("failures", N_("Failed variants, decisions and warnings"), ("failures", "decisions", "warnings", "passes")),
    Section("packages", N_("Offers and packages of 3, 7 and 30 days"), ("packages",)),
    Section("allocation", N_("Shared campaign cost and its allocation"), ("origin_charges",)),
    Section("sensitivity", N_("Sensitivity and risk"), ("sensitivity",)),
    Section("limits", N_("Limits")),
    Section("untested", N_("Not tested in this campaign")),
    Section("reading", N_("How to read the numbers")),
    Section("annex", N_("Annex: records, traceability, attachments")),
)

LOAD = next(section for section in SECTIONS if section.anchor == "load")
SERIES = (N_("Series by context length and concurrency"), "series")
SERIES_OF_CONTEXT = N_("Series by context length")
"""What is left of SERIES where loads were measured."""
FORESEEN = (
    (N_("Claims not measured here"), "claims"),
    (N_("Machine probes"), "probes"),
    SERIES,
)
"""Sections that a later campaign may hold: title and the table that would fill them."""


def has_rows(dossier: Dossier, table: str) -> bool:
    return table in dossier.tables and bool(dossier.tables[table].rows)


def present(dossier: Dossier) -> list[Section]:
    """Return the sections to print, in order."""
    return [s for s in SECTIONS if not s.tables or any(has_rows(dossier, t) for t in s.tables)]


def absent(dossier: Dossier) -> list[str]:
    """Return the titles of sections without evidence, to be listed as not tested."""
    printed = present(dossier)
    foreseen = [
        (SERIES_OF_CONTEXT if (title, table) == SERIES and LOAD in printed else title, table)
        for title, table in FORESEEN
    ]
    # what a load without evidence lacks is said by the series that is foreseen
    missing = [s.title for s in SECTIONS if s not in printed and s is not LOAD and s.is_named_when_absent]
    return missing + [title for title, table in foreseen if not has_rows(dossier, table)]
