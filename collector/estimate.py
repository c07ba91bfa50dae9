"""How long passes will take, from passes that were measured: starting, loading and warming up once, then linear.

A pass takes its start, load and warm-up as measured once, and so much per document. The expected time takes the mean of
the measured documents; the range is that of documents which are all as fast as the fastest measured, or all as slow as
the slowest. That time grows in proportion to the number of documents is an assumption, and is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal, NamedTuple

from collector.contract import chain
from collector.contract.protocol import Lock
from collector.contract.records import Failure, Header, PassBegin, PassEnd, Request
from collector.contract.records.base import FailureCause, Phase, Stage
from collector.contract.texts import texts_path
from collector.plan import CHECKED, Chosen, PlannedPass, check_documents, warmup_documents

LINEAR = "time grows in proportion to the number of documents: assumed"
LOAD_AS_ONE = (
    "a batch takes as long per document as one request at a time: assumed, none was measured; and so do requests "
    "submitted together"
)
Basis = Literal["measured", "one_at_a_time", "failed", "unknown"]


class Span(NamedTuple):
    """Nanoseconds: every document as fast as the fastest, expected, every document as slow as the slowest."""

    low_ns: Fraction
    expected_ns: Fraction
    high_ns: Fraction

    def plus(self, other: Span) -> Span:
        return Span(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, count: int) -> Span:
        return Span(*(part * count for part in self))


NOTHING = Span(Fraction(0), Fraction(0), Fraction(0))


class Cost(NamedTuple):
    """What one measured pass says of its configuration; a failed one has a cause and how long it took to fail."""

    once_ns: int
    """Start of the process, load, warm-up and reading back what was loaded."""
    load_ns: int
    documents: int
    per_document: Span | None
    cause: FailureCause | None = None
    phase: Phase | None = None


class Measured(NamedTuple):
    """What run files say of a plan. `request_count` counts warm-up requests too."""

    costs: dict[Chosen, Cost]
    request_count: int
    record_bytes: int
    text_bytes: int


class PassEstimate(NamedTuple):
    """What one pass will take; no span where nothing was measured that says so."""

    planned: PlannedPass
    requests: int
    span: Span | None
    basis: Basis


def measured_in(paths: Iterable[Path], plan_id: str) -> Measured:
    """Return what these run files say of a plan; of a configuration measured twice the last complete pass counts."""
    costs: dict[Chosen, Cost] = {}
    requests = record_bytes = text_bytes = 0
    for path in sorted(paths):
        found, count = _measured_in(path, plan_id)
        if not count and not found:
            continue
        costs.update({key: cost for key, cost in found.items() if cost.cause is None or key not in costs})
        requests += count
        record_bytes += path.stat().st_size
        text_bytes += texts_path(path).stat().st_size if texts_path(path).exists() else 0
    return Measured(costs, requests, record_bytes, text_bytes)


def _measured_in(path: Path, plan_id: str) -> tuple[dict[Chosen, Cost], int]:
    begun: dict[str, Chosen] = {}
    answered: dict[str, list[Request]] = {}
    together: dict[str, int] = {}
    failures: dict[str, Failure] = {}
    costs: dict[Chosen, Cost] = {}
    count = 0
    for line in chain.scan(path):
        match line.record:
            case Header() as header if header.plan_id != plan_id or header.source_head_digest is not None:
                return {}, 0
            case PassBegin() as begin:
                begun[begin.pass_id] = Chosen(begin.variant_name, begin.batch, begin.concurrency, begin.rate_per_s)
                together[begin.pass_id] = begin.concurrency if begin.arrivals == "closed" else 1
            case Request() as request:
                count += 1
                if request.phase == "measure" and request.request_outcome == "completed":
                    answered.setdefault(request.pass_id, []).append(request)
            case Failure(failure_scope="pass", pass_id=str(pass_id)) as failure:
                failures.setdefault(pass_id, failure)
            case PassEnd(pass_id=pass_id) as end if pass_id in begun and end.pass_outcome != "interrupted":
                cost = _cost(end, answered.get(pass_id, []), failures.get(pass_id), together=together[pass_id])
                if cost.cause is None or begun[pass_id] not in costs:
                    costs[begun[pass_id]] = cost
            case _:
                pass
    return costs, count


def _cost(end: PassEnd, answered: Sequence[Request], failure: Failure | None, *, together: int) -> Cost:
    if failure is not None and end.pass_outcome == "failed":
        return Cost(end.pass_ns, 0, 0, None, failure.failure_cause, failure.phase)
    load_ns, measure_ns = end.phase_ns.get("load", 0), end.phase_ns.get("measure", 0)
    documents = end.distinct_document_count  # tries made again are no further documents
    per_document = _per_document(answered, measure_ns, documents, together=together)
    return Cost(end.pass_ns - measure_ns, load_ns, documents, per_document)


def _per_document(
    answered: Sequence[Request], measure_ns: int, documents: int, *, together: int
) -> Span | None:  # fmt: skip
    """Return the time per document: the measure phase by its documents, and the fastest and slowest one or batch.

    What passes between answers is in the mean, and is put onto both ends as well. together: requests that a closed loop
    has under way, each of which takes its share of the time.
    """
    rows: dict[tuple[str, int], list[Request]] = {}
    for request in answered:
        key = (request.document_id, 0) if request.padding_tokens is None else ("", request.batch_number)
        rows.setdefault(key, []).append(request)
    spans = [
        Fraction(max(done) - min(sent), len(batch) * together)
        for batch in rows.values()
        if (done := [r.done_ns for r in batch if r.done_ns is not None])
        and (sent := [r.sent_ns for r in batch if r.sent_ns is not None])
    ]
    if not documents or not spans:
        return None
    mean = Fraction(measure_ns, documents)
    between = max(Fraction(0), mean - sum(spans, Fraction(0)) / len(spans))
    return Span(min(mean, min(spans) + between), mean, max(mean, max(spans) + between))


def estimated(
    passes: Sequence[PlannedPass], costs: Mapping[Chosen, Cost], lock: Lock, stage: Stage
) -> list[PassEstimate]:
    """Return what each pass will take, in the order of the plan."""
    return [_estimate(planned, costs, lock, stage) for planned in passes]


def _estimate(planned: PlannedPass, costs: Mapping[Chosen, Cost], lock: Lock, stage: Stage) -> PassEstimate:
    load, documents = planned.load, len(planned.document_order)
    checks = 2 * len(check_documents(lock, stage)) if load.batch > 1 else 0
    warmups = len(warmup_documents(lock, stage, load=load))
    requests = documents + warmups + checks
    chosen = Chosen(planned.variant.name, load.batch, load.concurrency, load.rate_per_s)
    own, alone = costs.get(chosen), costs.get(Chosen(planned.variant.name))
    cost = own or alone
    if cost is None:
        return PassEstimate(planned, requests, None, "unknown")
    if cost.per_document is None:  # how long an answer takes, a pass without any does not say
        until_failure = Span(*[Fraction(cost.once_ns)] * 3) if cost.cause else None
        return PassEstimate(planned, 0, until_failure, "failed" if cost.cause else "unknown")
    more = 0 if own else checks + max(0, warmups - lock.plan.plan.warmup_requests)
    once = Span(*[Fraction(cost.once_ns)] * 3)
    each = cost.per_document
    if load.rate_per_s is not None:  # an open loop is not over before its last arrival
        apart_ns = Fraction(10**9) / Fraction(load.rate_per_s)
        each = Span(*(max(part, apart_ns) for part in each))
    span = once.plus(each.times(documents + more))
    return PassEstimate(planned, requests, span, "measured" if own else "one_at_a_time")


def reload_estimates(passes: Sequence[PlannedPass], costs: Mapping[Chosen, Cost]) -> dict[str, Span]:
    """Return variant -> what loading it again and asking at most CHECKED documents again will take."""
    found: dict[str, Span] = {}
    for planned in passes:
        cost = costs.get(Chosen(planned.variant.name))
        if cost is not None and cost.per_document is not None:
            once = Span(*[Fraction(cost.load_ns)] * 3)
            asked = min(CHECKED, len(planned.document_order))
            found.setdefault(planned.variant.name, once.plus(cost.per_document.times(asked)))
    return found


def total(estimates: Sequence[PassEstimate], reloads: Mapping[str, Span]) -> Span | None:
    """Return the whole, null where a pass is unknown: a sum without it would be too short."""
    if any(one.span is None for one in estimates):
        return None
    whole = NOTHING
    for span in (*(one.span for one in estimates), *reloads.values()):
        if span is not None:
            whole = whole.plus(span)
    return whole
