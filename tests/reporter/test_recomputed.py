"""The main figures of a dossier, computed a second time in plain Python from the JSON lines and campaign.toml alone."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

import pytest

from reporter.assemble import build_dossier

NS_PER_H = 3600 * 10**9
OUTCOMES = ("wrong", "unparseable", "truncated", "too_long", "empty", "failed")
Values = Iterator[tuple[str, Any]]


class Counted:
    """The last complete attempt of each pass key of the judged stage, with what belongs to it."""

    def __init__(self, runs: Path) -> None:
        self.of: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for path in sorted(runs.glob("*.jsonl")):
            if not path.name.endswith(".texts.jsonl"):
                for line in path.read_text().splitlines():
                    record = json.loads(line)
                    self.of[record["kind"]].append(record)
        self.trial = json.loads(self.of["header"][0]["protocol_json"])["trial"]
        self.documents = {d["document_id"]: d for d in self.of["document"] if d["role"] == "validation"}
        self.device = {d["environment_id"]: d for d in self.of["device"]}
        ends = {e["pass_id"]: e for e in self.of["pass_end"] if e["pass_outcome"] == "completed"}
        last: dict[tuple[str, int], dict[str, Any]] = {}
        for begin in self.of["pass_begin"]:
            if begin["pass_id"] in ends:
                slug = re.sub("[^a-z0-9]+", "-", self.device[begin["environment_id"]]["device_name"].lower()).strip("-")
                key = f"{begin['variant_name']}~{slug}~b{begin['batch']}~c{begin['concurrency']}"
                begin |= {"end": ends[begin["pass_id"]], "key": key}
                known = last.setdefault((key, begin["repetition"]), begin)
                if begin["attempt"] > known["attempt"]:
                    last[key, begin["repetition"]] = begin
        self.passes = list(last.values())
        self.judged = {p["key"]: p for p in self.passes if p["repetition"] == 1}
        self.reference = next(p for p in self.judged.values() if p["purpose"] == "reference")

    def requests(self, one: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return {
            r["document_id"]: r
            for r in self.of["request"]
            if r["pass_id"] == one["pass_id"] and r["phase"] == "measure" and r["is_final"]
        }

    def scores(self, one: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return {s["document_id"]: s for s in self.of["score"] if s["pass_id"] == one["pass_id"]}

    def accepted(self, one: dict[str, Any], of: Callable[[dict[str, Any]], bool] = lambda _: True) -> set[str]:
        scores = self.scores(one)
        return {d for d, doc in self.documents.items() if d in scores and scores[d]["is_accepted"] and of(doc)}

    def durations(self, key: str, phase: str) -> list[int]:
        return [p["end"]["phase_ns"][phase] for p in self.passes if p["key"] == key]


def quality(counted: Counted) -> Values:
    for key, one in counted.judged.items():
        scores, accepted, n = counted.scores(one), counted.accepted(one), len(counted.documents)
        said = [scores[d]["score_outcome"] if d in scores else "failed" for d in counted.documents]
        yield f"quality/{key}/document_count", n
        yield f"quality/{key}/accepted_documents", len(accepted)
        yield f"quality/{key}/accepted_documents/interval", wilson(len(accepted), n)
        yield f"quality/{key}/returned_documents", len(counted.requests(one).keys() & counted.documents.keys())
        yield f"quality/{key}/well_formed_documents", sum(s["is_well_formed"] for s in scores.values())
        yield from ((f"quality/{key}/{outcome}_documents", said.count(outcome)) for outcome in OUTCOMES)
        for field in (field["name"] for field in counted.trial["fields"]):
            right = sum(field in score["fields_right"] for score in scores.values())
            yield f"fields/{key}~{field}/right_documents", right
        for length in {d["length_class"] for d in counted.documents.values()}:
            found = counted.accepted(one, lambda d, length=length: d["length_class"] == length)
            yield f"quality_by_group/{key}~length_class~{length}/accepted_documents", len(found)
        yield from gates(counted, key, one)


def gates(counted: Counted, key: str, one: dict[str, Any]) -> Values:
    rules, n = counted.trial["gates"], len(counted.documents)
    if rules["max_lost_points"] is not None:
        lost = len(counted.accepted(counted.reference)) - len(counted.accepted(one))
        yield f"gates/{key}~max_lost_points/counted", lost
        yield f"gates/{key}~max_lost_points/limit", math.floor(Fraction(rules["max_lost_points"]) * n / 100)
    for rule in rules["subset"]:
        name = rule["subset"]
        total = sum(name in d["subsets"] for d in counted.documents.values())
        found = len(counted.accepted(one, lambda d, name=name: name in d["subsets"]))
        yield f"gates/{key}~subset_min_accepted_percent~{name}/counted", found
        needed = math.ceil(Fraction(rule["min_accepted_percent"]) * total / 100)
        yield f"gates/{key}~subset_min_accepted_percent~{name}/limit", needed


def wilson(accepted: int, n: int) -> tuple[float, float]:
    z, p = NormalDist().inv_cdf(0.975), accepted / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return tuple(n * min(1.0, max(0.0, (middle + s * half) / (1 + z * z / n))) for s in (-1, 1))  # type: ignore[return-value]


def pairs(counted: Counted) -> Values:
    before, n = counted.accepted(counted.reference), len(counted.documents)
    for one in counted.passes:
        now, key = counted.accepted(one), one["key"]
        if one["purpose"] == "reference_repeat":
            yield f"noise/{key}~ref{one['repetition']}/flipped_documents", len(before ^ now)
            first, again = counted.requests(counted.reference), counted.requests(one)
            differ = sum(first[d]["answer_hmac"] != again[d]["answer_hmac"] for d in counted.documents if d in first)
            yield f"noise/{key}~ref{one['repetition']}/different_answers", differ
        elif one["repetition"] == 1 and one is not counted.reference:
            yield f"paired/{key}/lost_documents", len(before - now)
            yield f"paired/{key}/gained_documents", len(now - before)
            yield f"paired/{key}/both_right", len(before & now)
            yield f"paired/{key}/both_not_right", n - len(before | now)
            yield f"paired/{key}/difference_points", 100 * (len(now) - len(before)) / n


def times(counted: Counted) -> Values:
    for one in counted.passes:
        row = f"durations/{one['key']}~{'ref' if one['purpose'] == 'reference_repeat' else 'r'}{one['repetition']}"
        done = [r for r in counted.requests(one).values() if r["request_outcome"] == "completed"]
        measure, tokens = one["end"]["phase_ns"]["measure"], sum(r["output_tokens"] for r in done)
        yield from ((f"{row}/{phase}_ns", ns) for phase, ns in one["end"]["phase_ns"].items())
        yield f"{row}/pass_ns", one["end"]["pass_ns"]
        yield f"{row}/output_tokens", tokens
        yield f"{row}/output_tokens_per_s", tokens * 1e9 / measure
        yield f"{row}/documents_per_h", len(done) * NS_PER_H / measure
    for key, one in counted.judged.items():
        done = [r for r in counted.requests(one).values() if r["request_outcome"] == "completed"]
        several = [r for r in done if r["output_tokens"] > 1 and r["last_token_ns"] > r["first_token_ns"]]
        samples = {
            "ttft_s": [r["first_token_ns"] - r["intended_ns"] for r in done],
            "e2e_s": [r["last_token_ns"] - r["intended_ns"] for r in done],
            "tpot_s": [(r["last_token_ns"] - r["first_token_ns"]) / (r["output_tokens"] - 1) for r in several],
        }
        for metric, values in samples.items():
            values.sort()
            for percent in (50, 90, 95):
                rank = math.ceil(Fraction(percent * len(values), 100))
                yield f"latency/{key}~{metric}~all/p{percent}_s", values[rank - 1] / 1e9


def memory(counted: Counted) -> Values:
    for key, one in counted.judged.items():
        for r in counted.of["reading"]:
            if r["pass_id"] == one["pass_id"]:
                row = f"memory/{key}~{r['device_id']}~{r['memory_scope']}~{r['phase']}"
                yield f"{row}/{r['statistic']}_bytes", r["value_bytes"]


def prices(counted: Counted, campaign: dict[str, Any]) -> Values:
    wanted = campaign["corpora_wanted"] * campaign["documents_per_corpus"]
    foreseen = sum((Fraction(phase["hours"]) for phase in campaign.get("calendar", {}).values()), Fraction(0))
    offers = {offer["id"]: offer for offer in campaign["offer"]}
    for candidate in campaign["candidate"]:
        for key, one in counted.judged.items():
            device = counted.device[one["environment_id"]]["device_name"]
            if (one["variant_name"], device) != (candidate["variant"], candidate["device"]):
                continue
            corpus = Fraction(median(Fraction(ns) for ns in counted.durations(key, "measure")))
            loading = sum(counted.durations(key, phase)[0] for phase in ("load", "warmup"))
            need = foreseen + (loading + corpus / len(counted.documents) * wanted) / NS_PER_H
            yield f"calendar/{key}/needed_hours", float(need)
            yield f"candidates/{key}/corpus_hours", float(corpus / NS_PER_H)
            for offer in (offers[name] for name in candidate["offers"] if offers[name]["device"] == device):
                for days in (days for days in (3, 7, 30) if f"price_{days}_days" in offer):
                    yield from package(f"packages/{key}~{offer['id']}~{days}d", offer, days, need, campaign)


def package(row: str, offer: dict[str, Any], days: int, need: Fraction, campaign: dict[str, Any]) -> Values:
    count, rate = max(1, math.ceil(need / (24 * days))), Fraction(offer["tax_percent"]) / 100
    cents = count * Fraction(offer[f"price_{days}_days"]) * 100
    is_gross = offer.get("prices_are") == "gross"
    tax = math.floor(cents * (rate / (1 + rate) if is_gross else rate) + Fraction(1, 2))
    net = cents - tax if is_gross else cents
    yield f"{row}/package_count", count
    yield f"{row}/price_net", net
    yield f"{row}/tax", tax
    yield f"{row}/price_gross", net + tax
    yield f"{row}/paid_hours", float(count * 24 * days)
    yield f"{row}/idle_hours", float(count * 24 * days - need)
    yield f"{row}/cost_per_corpus", float(net / 100 / campaign["corpora_wanted"])


def differences(runs: Path, campaign: Path) -> tuple[int, dict[str, tuple[Any, Any]]]:
    """Return how many values were computed twice, and those that differ: figure id -> (dossier, second computation)."""
    counted, figures = Counted(runs), build_dossier([runs], campaign).figures
    tables = [quality(counted), pairs(counted), times(counted), memory(counted)]
    tables.append(prices(counted, tomllib.loads(campaign.read_text())))
    expected = {name: value for table in tables for name, value in table}
    differ: dict[str, tuple[Any, Any]] = {}
    for name, value in expected.items():
        if name.endswith("/interval"):
            interval = figures[name.removesuffix("/interval")].interval
            told: Any = interval and (interval.low, interval.high)
        else:
            told = figures[name].value if name in figures else "absent"
        is_rejected_price = told is None and name.endswith("cost_per_corpus")
        if not is_rejected_price and told != pytest.approx(value, rel=1e-12, abs=1e-12):
            differ[name] = told, value
    return len(expected), differ


def test_a_second_computation_in_plain_python_finds_the_same_figures(
    tmp_path: Path, campaign_records: Any, campaign_text: Any
) -> None:
    kit = campaign_records
    hard = kit.variant(
        name="fp16", dtype="float16", outcomes={0: "too_long", 2: "wrong", 9: "empty"}, killed_attempts=1,
        missing=frozenset({20}),
    )  # fmt: skip
    kit(tmp_path / "runs", documents=40, critical=9, repetitions=2, variants=[kit.fp32, kit.bf16, hard])
    campaign_text.candidate("a", "fp32", "net", "gross").candidate("b", "bf16", "net", "gross")
    campaign_text.offer("net", {3: "18.05", 7: "38.50", 30: "141.00"}, basis="example")
    campaign_text.offer("gross", {3: "24.61", 30: "150.00"}, more='prices_are = "gross"\n')
    campaign_text.calendar = '[calendar]\nexport = { hours = "70.9", basis = "assumed", by = "A. N." }\n'
    count, differ = differences(tmp_path / "runs", campaign_text.write(corpora=7, documents=9000))
    assert differ == {}
    assert count > 200
