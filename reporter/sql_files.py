"""Reads `reporter/sql/`: each file holds definitions and the query that computes them, in one place.

The head of a file is comments: the grain (`-- one row per ...`), then either `-- step: mart` or the labels and figures
of a table of the dossier:

    -- labels: label, configuration_key
    -- figure accepted_documents | documents | measured | formula | n=document_count | interval=wilson(document_count)

`-- only with: batch_passes` names a step without whose rows the table has none.

A row with the label `configuration_key` also gets the configuration's variant, device and purpose.
"""

from __future__ import annotations

import functools
import hashlib
import re
from importlib.resources import files
from typing import NamedTuple, cast, get_args

from .dossier import BASES, Basis, Unit

MARTS = (
    "judged_stage", "embedding_passes",
    "pass_attempts", "configuration_devices", "configurations", "counted_passes", "pass_documents",
    "final_requests", "judged_documents", "document_groups", "reference_documents", "configuration_references",
    "prompt_documents", "unlike_prompts", "paired_documents",
    "observed_variants", "gated_subsets", "request_times", "latency_samples", "repetition_medians", "batch_passes",
    "batch_documents",
    "pass_times",
    "engine_passes", "engine_windows", "engine_clients",
    "load_passes", "load_windows", "load_requests", "load_samples",
)  # fmt: skip
"""Steps between the records and the tables, in the order they need one another."""

TABLES = (
    "runs", "passes", "looks", "roles", "environments", "devices", "engines", "variants", "tensor_groups",
    "weight_places", "workload", "quality", "coverage", "quality_repetitions", "subset_repetitions", "quality_by_group",
    "quality_warnings", "fields", "graded",
    "comparisons", "paired", "paired_subsets", "changed_documents", "noise", "latency",
    "latency_repetitions", "latency_between", "durations", "energy", "memory", "batch_series", "batch_changes",
    "batch_checks",
    "reload_checks", "failures", "decisions", "warnings",
    "engine_phases", "engine_counts", "engine_means",
    "load_series", "load_latency", "load_clients", "load_prompts", "load_checks", "load_drift",
)  # fmt: skip
"""Tables of the dossier that are computed from records, in the dossier's order."""

TEST_PREFIX = "test_"
"""Before the name of a table that shows the test stage beside the judged one: the same SQL over other passes."""

TEST_STAGE = "select 'test' as stage, 'test' as role"
"""Stands for judged_stage while the tables of the test stage are computed."""

TEST_MARTS = (
    "pass_attempts", "counted_passes", "pass_documents", "judged_documents", "reference_documents",
    "configuration_references", "prompt_documents", "unlike_prompts", "paired_documents",
)  # fmt: skip
"""Steps that depend on the stage; the test tables take the others as they are."""

TEST_TABLES = (
    "workload", "quality", "quality_by_group", "fields", "comparisons", "paired", "changed_documents", "durations",
    "memory",
)  # fmt: skip
"""Tables that exist a second time, for the test stage."""

CHECKS = (
    "pass-of-another-protocol", "unknown-pass", "unknown-setup", "unknown-request", "document-order-differs",
    "incomplete-pass", "several-final-tries", "unexpected-document", "unscored-request", "pass-counts", "unended-pass",
    "repeated-pass", "different-prompt", "allocated-over-reserved", "peak-below-reading", "peak-over-memory",
    "scope-order", "look-unrecorded", "look-repeated", "live-rows", "artefact-differs",
    "batch-rows", "batch-unchecked", "zero-latency",
)  # fmt: skip
"""Rules between records, each a file of `reporter/sql/checks/` that returns what breaks it."""

_GRAIN = re.compile(r"^-- (one row.*)$")
_ONLY_WITH = re.compile(r"^-- only with: (\w+)$", re.MULTILINE)
_LABELS = re.compile(r"^-- labels: (.+)$")
_FIGURE = re.compile(r"^-- figure (\w+) \| (\w+) \| (measured|derived|claimed|assumed) \| (.+)$")
_N = re.compile(r"^n=(\w+)$")
_SEVERITY = re.compile(r"^-- severity: (finding|flag)$")
_NEXT = re.compile(r"^-- next: (.+)$")
_INTERVAL = re.compile(r"^interval=(\w+)\((.+)\)$")


class FigureColumn(NamedTuple):
    """One figure column as its file declares it.

    n: the column that counts the values behind it. interval: the method and the columns it takes.
    """

    name: str
    unit: Unit
    basis: Basis
    is_derived: bool
    formula: str
    n: str | None
    interval: tuple[str, tuple[str, ...]] | None


class SqlFile(NamedTuple):
    """One file of `reporter/sql/`."""

    name: str
    grain: str
    labels: tuple[str, ...]
    figures: tuple[FigureColumn, ...]
    text: str
    only_with: str | None = None
    """A step without whose rows the table has none, so that it need not be asked."""


class CheckFile(NamedTuple):
    """One rule between records: the query returns run_id, seq and message of each break."""

    rule: str
    is_finding: bool
    next_step: str
    text: str


@functools.cache
def check_file(rule: str) -> CheckFile:
    """Return the rule's file. Raises ValueError where its head does not keep the form."""
    text = (files("reporter") / "sql" / "checks" / f"{rule}.sql").read_text(encoding="utf-8")
    first, second, third = text.split("\n", 3)[:3]
    severity, step = _SEVERITY.match(second), _NEXT.match(third)
    if not _GRAIN.match(first) or severity is None or step is None:
        raise ValueError(f"checks/{rule}.sql: the head is grain, severity and next step, a line each")
    return CheckFile(rule, severity[1] == "finding", step[1], text)


@functools.cache
def sql_file(name: str) -> SqlFile:
    """Return the file of that name, its head parsed. Raises ValueError where the head does not keep the form.

    A name with TEST_PREFIX is the same file over the test stage, which its formulas then say.
    """
    if name.startswith(TEST_PREFIX):
        file = sql_file(name.removeprefix(TEST_PREFIX))
        figures = [column._replace(formula=f"{column.formula} (test documents)") for column in file.figures]
        return file._replace(name=name, grain=f"{file.grain} (test documents)", figures=tuple(figures))
    return parse(name, (files("reporter") / "sql" / f"{name}.sql").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> SqlFile:
    """Return the file's definition. Raises ValueError where the head does not keep the form."""
    head = [line for line in text.splitlines() if line.startswith("-- ")]
    grain = _GRAIN.match(text.split("\n", 1)[0])
    if grain is None:
        raise ValueError(f"{name}.sql: the first line is not '-- one row per ...'")
    only_with = _ONLY_WITH.search(text)
    labels = [match[1].split(", ") for line in head if (match := _LABELS.match(line))]
    return SqlFile(
        name=name,
        grain=grain[1],
        labels=tuple(labels[0]) if labels else (),
        figures=tuple(_figure(name, line) for line in head if line.startswith("-- figure ")),
        text=text,
        only_with=only_with[1] if only_with else None,
    )


@functools.cache
def query_digest(name: str) -> str:
    """Return the sha256 over the marts and this file: what a figure of the table was computed by."""
    digest = hashlib.sha256(TEST_STAGE.encode() if name.startswith(TEST_PREFIX) else b"")
    for each in (*MARTS, name):
        digest.update(sql_file(each).text.encode() + b"\0")
    return digest.hexdigest()


def _figure(name: str, line: str) -> FigureColumn:
    match = _FIGURE.match(line)
    if match is None or match[2] not in get_args(Unit):
        raise ValueError(f"{name}.sql: not a figure's declaration: {line}")
    column, unit, stated, rest = match.groups()
    formula, *options = [part.strip() for part in rest.split(" | ")]
    n: str | None = None
    interval: tuple[str, tuple[str, ...]] | None = None
    for option in options:
        if found := _N.match(option):
            n = found[1]
        elif found := _INTERVAL.match(option):
            interval = (found[1], tuple(part.strip() for part in found[2].split(",")))
        else:
            raise ValueError(f"{name}.sql: {column} has an unknown option: {option}")
    basis = stated if stated in BASES else "measured"
    return FigureColumn(
        column, cast(Unit, unit), cast(Basis, basis), stated == "derived", formula, n, interval
    )  # fmt: skip
