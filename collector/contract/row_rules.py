"""Rules inside one record that a type cannot say: stamps in order, no null without a reason."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from .records import GAP_BUCKET_BOUNDS_NS, KINDS, AnyRecord, PassBegin, Probe, Reading, Record, Request
from .records.base import UtcStamp
from .rules import Problem

_STAMPS_IN_ORDER = ("intended_ns", "sent_ns", "first_chunk_ns", "first_token_ns", "last_token_ns", "done_ns")
_MEASURED = {Reading: "value_bytes", Probe: "probe_value"}


def row_problems(record: AnyRecord) -> tuple[Problem, ...]:
    """Return what is wrong within one decoded record; empty for almost every line."""
    problems: list[Problem] = []
    for name in _STAMP_FIELDS[type(record)]:
        if not _is_possible(getattr(record, name)):
            problems.append(Problem("impossible-stamp", f"{name} {getattr(record, name)!r} is no date"))
    if record.missing:
        problems.extend(_missing_map(record))
    if rule := _ROW_RULES.get(type(record)):
        problems.extend(rule(record))
    return tuple(problems)


def _is_possible(stamp: str) -> bool:
    try:
        dt.datetime.fromisoformat(stamp)
    except ValueError:
        return False
    return True


def _missing_map(record: Record) -> Iterator[Problem]:
    """A reason names a null field, or `field.key` for an entry left out of a map or list."""
    for name, reason in record.missing.items():
        field, _, entry = name.partition(".")
        if field not in record.__struct_fields__:
            yield Problem("missing-map", f"{name} is no field of this kind, yet has the reason {reason}")
        elif not entry and getattr(record, field) is not None and not isinstance(getattr(record, field), list | dict):
            yield Problem("missing-map", f"{name} is not null, yet has the reason {reason}")


def _null_with_reason(record: Reading | Probe) -> Iterator[Problem]:
    name = _MEASURED[type(record)]
    if getattr(record, name) is None and name not in record.missing:
        yield Problem("null-without-reason", f"{name} is null and `missing` does not say why")


def _request(record: Request) -> Iterator[Problem]:
    happened = [(name, stamp) for name in _STAMPS_IN_ORDER if (stamp := getattr(record, name)) is not None]
    for (earlier, first), (later, second) in itertools.pairwise(happened):
        if first > second:
            yield Problem("stamp-order", f"{earlier} {first} is after {later} {second}")
    if record.gap_counts and len(record.gap_counts) != len(GAP_BUCKET_BOUNDS_NS) + 1:
        yield Problem("gap-buckets", f"{len(record.gap_counts)} buckets, not {len(GAP_BUCKET_BOUNDS_NS) + 1} or none")
    if record.request_outcome == "failed" and record.failure_cause is None:
        yield Problem("failure-without-cause", "the request failed and failure_cause is null")


def _pass_begin(record: PassBegin) -> Iterator[Problem]:
    named = len(record.document_order)
    if len(set(record.document_order)) != named:
        yield Problem("document-order", "a document stands twice in document_order")
    if named != record.expected_document_count:
        yield Problem("document-order", f"{named} documents in order, {record.expected_document_count} expected")


_ROW_RULES: dict[type, Callable[[Any], Iterator[Problem]]] = {
    Reading: _null_with_reason,
    Probe: _null_with_reason,
    Request: _request,
    PassBegin: _pass_begin,
}


_STAMP_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in msgspec.structs.fields(kind) if field.type == UtcStamp)
    for kind in KINDS.values()
}
