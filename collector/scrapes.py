"""Reads a server's metrics page (Prometheus text, OpenMetrics) into the numbers that its kind is known for.

A parser of our own, since a record must survive any page: prometheus_client gives up a whole page for one odd line, and
is no dependency otherwise. What is read is the engine's own account, at the moment the page was asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from collector.contract.engine_metrics import Combine, record_key
from collector.contract.protocol import ServerKind
from collector.contract.records import Scrape
from collector.contract.records.passes import ScrapeMoment
from collector.contract.server_kinds import KINDS, ServerKindFacts

MAX_METRICS = 400
"""Most numbers of one scrape; a histogram's buckets are left out first."""
PROCESS_START = "process_start_time_seconds"
"""Of whatever answers: another value after than before says that the server was started anew in between."""

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_OPENING = re.compile(r"\s*\{")
_CLOSING = re.compile(r"\s*\}")
_LABEL = re.compile(
    r'\s*(?:(?P<name>[a-zA-Z_][a-zA-Z0-9_:]*)|"(?P<quoted>(?:[^"\\]|\\.)*)")\s*'
    r'(?:=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*)?(?:,|(?=\}))'
)
_VALUE = re.compile(r"\s+(?P<value>[-+]?(?:[0-9.]+(?:[eE][-+]?[0-9]+)?|[iI]nf|[nN]a[nN]))(?=\s|$)")
_ESCAPE = re.compile(r"\\(.)")


class Sample(NamedTuple):
    """One line of a metrics page; the value may be NaN or infinite."""

    name: str
    labels: dict[str, str]
    value: float


def samples(text: str) -> Iterator[Sample]:
    """Yield the page's samples; comments, exemplars, timestamps and lines that are no sample are passed over."""
    for line in text.split("\n"):  # not splitlines: a label's value may hold other line ends
        if (sample := _sample(line.strip())) is not None:
            yield sample


def _sample(line: str) -> Sample | None:
    if not line or line.startswith("#"):
        return None
    found = _NAME.match(line)
    name, at = (found[0], found.end()) if found else ("", 0)
    labels: dict[str, str] = {}
    opening = _OPENING.match(line, at)
    if opening is not None:
        at = opening.end()
        while (label := _LABEL.match(line, at)) is not None:
            key = label["name"] or _plain(label["quoted"] or "")
            if label["value"] is None:  # a name that needs quotes stands among the labels
                name = key
            else:
                labels[key] = _plain(label["value"])
            at = label.end()
        closing = _CLOSING.match(line, at)
        if closing is None:
            return None
        at = closing.end()
    value = _VALUE.match(line, at)
    if not name or value is None:
        return None
    try:
        return Sample(name, labels, float(value["value"]))
    except ValueError:
        return None


def _plain(escaped: str) -> str:
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], escaped)


def parse_metrics(text: str, kind: ServerKind = "other", *, has_buckets: bool = True) -> dict[str, float]:
    """Return the kind's metrics by their names in records, label sets that do not matter taken together.

    Of a kind without a table every plain sample is kept. Never more than MAX_METRICS, and none that is not finite: a
    sum with a NaN in it is not known.
    """
    facts = KINDS[kind]
    found: dict[str, float] = {}
    buckets: dict[str, float] = {}
    wanted = _wanted(facts)
    for sample in samples(text):
        if facts.one_rank_label and sample.labels.get(facts.one_rank_label, "0") != "0":
            continue
        key, combine = _place(sample, facts, wanted)
        if key is None:
            continue
        into = buckets if sample.name.endswith("_bucket") else found
        known = into.get(key)
        taken = sample.value if known is None else known + sample.value
        into[key] = taken if combine == "sum" or known is None else max(known, sample.value)
    kept = _finite(found)
    if has_buckets and len(kept) + len(buckets) <= MAX_METRICS:
        kept |= _finite(buckets)
    return dict(list(kept.items())[:MAX_METRICS])


class _Wanted(NamedTuple):
    """By the name of a sample: which labels it must have, and how samples become one."""

    labels: Mapping[str, str]
    combine: Combine


def _wanted(facts: ServerKindFacts) -> dict[str, list[_Wanted]]:
    wanted: dict[str, list[_Wanted]] = {PROCESS_START: [_Wanted({}, "max")]}
    for metric in facts.metrics.values():
        rule = _Wanted(metric.labels, metric.combine)
        for name in filter(None, (metric.name, metric.minus, metric.plus)):
            ends = ("_sum", "_count", "_bucket") if metric.type == "histogram" else ("",)
            for end in ends:
                rules = wanted.setdefault(name + end, [])
                if rule not in rules:
                    rules.append(rule)
    return wanted


def _place(sample: Sample, facts: ServerKindFacts, wanted: Mapping[str, list[_Wanted]]) -> tuple[str | None, Combine]:
    """Return under which name a sample is kept, null for one that is not, and how it joins what is there."""
    if not facts.metrics and sample.name not in wanted:
        is_plain = not sample.name.endswith(("_bucket", "_created")) and "quantile" not in sample.labels
        is_of_the_runtime = sample.name.startswith(("python_", "process_"))
        return (sample.name if is_plain and not is_of_the_runtime else None), "sum"
    for rule in wanted.get(sample.name, ()):
        if all(sample.labels.get(label) == value for label, value in rule.labels.items()):
            bound = {"le": sample.labels["le"]} if "le" in sample.labels else {}
            return record_key(sample.name, {**rule.labels, **bound}), rule.combine
    return None, "sum"


def _finite(found: Mapping[str, float]) -> dict[str, float]:
    return {key: value for key, value in found.items() if math.isfinite(value)}


def scrape_record(
    moment: ScrapeMoment, text: str | None, *, kind: ServerKind, offset_ns: int, pass_id: str = ""
) -> Scrape | None:  # fmt: skip
    """Return the record of one page, null where it could not be read or tells nothing that is known.

    offset_ns: since the pass began. The buckets of histograms are kept before and after, where their difference is the
    window's own; pages in between are read for their gauges.
    """
    metrics = parse_metrics(text, kind, has_buckets=moment != "during") if text else {}
    if not metrics:
        return None
    return Scrape(pass_id=pass_id, scrape_moment=moment, offset_ns=max(0, offset_ns), engine_metrics=metrics)


def claims_of_metrics(text: str, kind: ServerKind) -> dict[str, str]:
    """Return what the labels of a metrics page claim: the cache's size in tokens, the share of memory that is taken."""
    facts = KINDS[kind]
    claims: dict[str, str] = {}
    for sample in samples(text):
        for claim in facts.info_claims:
            value = sample.labels.get(claim.label) if sample.name == claim.metric else None
            if value not in (None, "", "None"):
                claims.setdefault(claim.name, str(value))
    return claims
