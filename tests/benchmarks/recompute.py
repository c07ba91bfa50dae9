"""The figures of a generated campaign a second time, in plain Python from the JSON lines and campaign.toml alone.

Nothing of the project is imported. Each function yields pairs of a figure's id and the value it must have; an id that
ends in `/interval` stands for the figure's two limits.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import NormalDist, fmean, median
from typing import Any, NamedTuple

Values = Iterator[tuple[str, Any]]
NS_PER_H = 3600 * 10**9
Z = NormalDist().inv_cdf(0.975)
OUTCOMES = ("wrong", "unparseable", "truncated", "too_long", "empty", "failed")
PACKAGES = (3, 7, 30)


class Asked(NamedTuple):
    """What is needed of one final try."""

    outcome: str
    intended: int
    first: int | None
    last: int | None
    tokens: int
    answer: str | None


class Judged(NamedTuple):
    outcome: str
    is_accepted: bool
    is_well_formed: bool
    right: tuple[str, ...]


class Pass:
    """One attempt: its begin and end, and what was asked and judged in it."""

    def __init__(self, begin: dict[str, Any], device: str, rental: str | None) -> None:
        self.begin, self.device, self.rental = begin, device, rental
        self.end: dict[str, Any] = {}
        self.asked: dict[str, Asked] = {}
        self.judged: dict[str, Judged] = {}
        slug = re.sub("[^a-z0-9]+", "-", device.lower()).strip("-")
        self.key = f"{begin['variant_name']}~{slug}~b{begin['batch']}~c{begin['concurrency']}"
        repeat = "ref" if begin["purpose"] == "reference_repeat" else "r"
        self.pass_key = f"{self.key}~{repeat}{begin['repetition']}"

    @property
    def accepted(self) -> set[str]:
        return {document for document, judged in self.judged.items() if judged.is_accepted}

    @property
    def done(self) -> list[Asked]:
        return [one for one in self.asked.values() if one.outcome == "completed"]


class Records:
    """The run files of a folder, read once."""

    def __init__(self, runs: Path) -> None:
        self.attempts: dict[str, Pass] = {}
        self.documents: dict[str, dict[str, Any]] = {}
        self.readings: dict[str, list[dict[str, Any]]] = defaultdict(list)
        devices: dict[str, str] = {}
        rental: str | None = None
        for path in sorted(path for path in runs.glob("*.jsonl") if not path.name.endswith(".texts.jsonl")):
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    record = json.loads(line)
                    kind = record["kind"]
                    if kind == "header":
                        self.trial, rental = json.loads(record["protocol_json"])["trial"], record["rental_id"]
                    elif kind == "document" and record["role"] == "validation":
                        self.documents[record["document_id"]] = record
                    elif kind == "device" and record["device_kind"] == "cuda":
                        devices[record["environment_id"]] = record["device_name"]
                    elif kind == "pass_begin":
                        device = devices[record["environment_id"]]
                        self.attempts[record["pass_id"]] = Pass(record, device, rental)
                    elif kind == "pass_end":
                        self.attempts[record["pass_id"]].end = record
                    elif kind == "reading":
                        self.readings[record["pass_id"]].append(record)
                    elif kind == "request" and record["phase"] == "measure" and record["is_final"]:
                        self.attempts[record["pass_id"]].asked[record["document_id"]] = Asked(
                            record["request_outcome"], record["intended_ns"], record["first_token_ns"],
                            record["last_token_ns"], record["output_tokens"] or 0, record["answer_hmac"],
                        )  # fmt: skip
                    elif kind == "score":
                        self.attempts[record["pass_id"]].judged[record["document_id"]] = Judged(
                            record["score_outcome"], record["is_accepted"], record["is_well_formed"],
                            tuple(record["fields_right"]),
                        )  # fmt: skip
        last: dict[str, Pass] = {}
        for one in self.attempts.values():
            if one.end.get("pass_outcome") == "completed":
                known = last.get(one.pass_key)
                if known is None or one.begin["attempt"] > known.begin["attempt"]:
                    last[one.pass_key] = one
        self.passes = list(last.values())
        self.judged = {one.key: one for one in self.passes if one.begin["repetition"] == 1}
        self.of_key: dict[str, list[Pass]] = defaultdict(list)
        for one in self.passes:
            self.of_key[one.key].append(one)
        own = [one for one in self.judged.values() if one.begin["purpose"] == "reference"]
        self.first_reference = min(own, key=lambda one: str(one.begin["began_at"]))
        self._own = {one.device: one for one in own}

    def reference_of(self, one: Pass) -> Pass:
        """Return the reference of its card; another card's reference is counted against the first one."""
        found = self._own[one.device]
        return self.first_reference if found is one else found


def wilson(part: int, n: int) -> tuple[float, float]:
    p = part / n
    middle, half = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + Z * Z / n) for sign in (-1, 1))
    return max(0.0, low) if part else 0.0, min(1.0, high) if part < n else 1.0


def tango(lost: int, gained: int, n: int) -> tuple[float, float]:
    """Return the limits between which the score of the paired difference stays within Z, each found by halving."""

    def score(delta: float) -> float:
        # the constrained estimate of the share lost: the larger root of 2n q^2 + b q + c = 0
        b = (2 * n - gained + lost) * delta - gained - lost
        c = -lost * delta * (1 - delta)
        q = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        spread = n * (2 * q + delta * (1 - delta))
        gap = gained - lost - n * delta
        return gap / math.sqrt(spread) if spread > 0 else math.copysign(math.inf, gap)

    def between(inside: float, outside: float) -> float:
        for _ in range(100):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if abs(score(middle)) <= Z else (inside, middle)
        return (inside + outside) / 2

    centre = (gained - lost) / n
    return between(centre, -1.0), between(centre, 1.0)


def mcnemar(lost: int, gained: int) -> float:
    n = lost + gained
    tail = sum(math.comb(n, k) for k in range(min(lost, gained) + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 2**n)))


@cache
def order_ranks(n: int, percent: int) -> tuple[int, int] | None:
    """Return the ranks that bound the percentile at 95 %, by exact sums; none where one of them does not exist."""
    p, tail = Fraction(percent, 100), Fraction(25, 1000)
    below, sums = Fraction(0), [Fraction(0)]
    for k in range(n + 1):
        below += math.comb(n, k) * p**k * (1 - p) ** (n - k)
        sums.append(below)
    low = max((rank for rank in range(1, n + 1) if sums[rank] <= tail), default=None)
    high = min((rank for rank in range(1, n + 1) if 1 - sums[rank] <= tail), default=None)
    return (low, high) if low is not None and high is not None else None


def quality(records: Records) -> Values:
    n = len(records.documents)
    for key, one in records.judged.items():
        said = [one.judged[d].outcome if d in one.judged else "failed" for d in records.documents]
        yield f"quality/{key}/document_count", n
        yield f"quality/{key}/accepted_documents", len(one.accepted)
        yield f"quality/{key}/accepted_documents/interval", tuple(n * x for x in wilson(len(one.accepted), n))
        yield f"quality/{key}/returned_documents", len(one.asked)
        yield f"quality/{key}/well_formed_documents", sum(judged.is_well_formed for judged in one.judged.values())
        yield from ((f"quality/{key}/{outcome}_documents", said.count(outcome)) for outcome in OUTCOMES)
        for field in (field["name"] for field in records.trial["fields"]):
            right = sum(field in judged.right for judged in one.judged.values())
            yield f"fields/{key}~{field}/right_documents", right
        groups = Counter(group for d in one.accepted for group in _groups(records.documents[d]))
        for group in {group for document in records.documents.values() for group in _groups(document)}:
            yield f"quality_by_group/{key}~{group}/accepted_documents", groups[group]
    for one in records.passes:
        yield f"quality_repetitions/{one.pass_key}/accepted_documents", len(one.accepted)


def _groups(document: dict[str, Any]) -> list[str]:
    plain = [f"length_class~{document['length_class']}", f"language~{document['language']}"]
    return [*plain, f"hard~{'yes' if document['is_hard'] else 'no'}", *(f"subset~{s}" for s in document["subsets"])]


def gates(records: Records, key: str) -> list[tuple[str, int, int, bool]]:
    """Return (rule, counted, limit, passed) of a configuration."""
    one, rules, n = records.judged[key], records.trial["gates"], len(records.documents)
    found = []
    if rules["max_lost_points"] is not None:
        lost = len(records.reference_of(one).accepted) - len(one.accepted)
        limit = math.floor(Fraction(rules["max_lost_points"]) * n / 100)
        found.append(("max_lost_points", lost, limit, lost <= limit))
    for rule in rules["subset"]:
        own = {d for d, document in records.documents.items() if rule["subset"] in document["subsets"]}
        counted, wanted = len(one.accepted & own), math.ceil(Fraction(rule["min_accepted_percent"]) * len(own) / 100)
        found.append((f"subset_min_accepted_percent~{rule['subset']}", counted, wanted, counted >= wanted))
    return found


def judgements(records: Records) -> Values:
    for key, one in records.judged.items():
        for rule, counted, limit, _ in gates(records, key):
            if rule != "max_lost_points" or one is not records.first_reference:
                yield f"gates/{key}~{rule}/counted", counted
                yield f"gates/{key}~{rule}/limit", limit


def pairs(records: Records) -> Values:
    n = len(records.documents)
    for one in records.passes:
        if one.begin["repetition"] > 1:
            first = records.judged[one.key]
            yield f"noise/{one.pass_key}/flipped_documents", len(first.accepted ^ one.accepted)
            differ = sum(first.asked[d].answer != one.asked[d].answer for d in records.documents)
            yield f"noise/{one.pass_key}/different_answers", differ
        elif one is not records.first_reference:
            before, now, key = records.reference_of(one).accepted, one.accepted, one.key
            lost, gained = len(before - now), len(now - before)
            yield f"paired/{key}/lost_documents", lost
            yield f"paired/{key}/gained_documents", gained
            yield f"paired/{key}/both_right", len(before & now)
            yield f"paired/{key}/both_not_right", n - len(before | now)
            yield f"paired/{key}/difference_points", 100 * (gained - lost) / n
            yield f"paired/{key}/difference_points/interval", tuple(100 * x for x in tango(lost, gained, n))
            yield f"paired_tests/{key}/mcnemar_p", mcnemar(lost, gained)


def samples(one: Pass) -> dict[str, list[float]]:
    several = [r for r in one.done if r.tokens > 1 and r.last != r.first]
    return {
        "ttft_s": sorted((r.first or 0) - r.intended for r in one.done),
        "e2e_s": sorted((r.last or 0) - r.intended for r in one.done),
        "tpot_s": sorted(((r.last or 0) - (r.first or 0)) / (r.tokens - 1) for r in several),
    }


def times(records: Records) -> Values:
    for one in records.passes:
        row, phases = f"durations/{one.pass_key}", one.end["phase_ns"]
        yield from ((f"{row}/{phase}_ns", ns) for phase, ns in phases.items())
        yield f"{row}/pass_ns", one.end["pass_ns"]
        yield f"{row}/output_tokens_per_s", sum(r.tokens for r in one.done) * 1e9 / phases["measure"]
        yield f"{row}/documents_per_h", len(one.done) * NS_PER_H / phases["measure"]
    for key, one in records.judged.items():
        for metric, values in samples(one).items():
            row, n = f"latency/{key}~{metric}~all", len(values)
            yield f"{row}/valued_count", n
            for percent in (50, 90, 95):
                yield f"{row}/p{percent}_s", values[math.ceil(Fraction(percent * n, 100)) - 1] / 1e9
                if ranks := order_ranks(n, percent):
                    yield f"{row}/p{percent}_s/interval", tuple(values[rank - 1] / 1e9 for rank in ranks)
    middles: dict[tuple[str, str], list[float]] = {}
    for key, several in records.of_key.items():
        for metric in ("ttft_s", "tpot_s", "e2e_s"):
            all_values = [samples(one)[metric] for one in several]
            middles[key, metric] = [values[math.ceil(len(values) / 2) - 1] / 1e9 for values in all_values]
    for (key, metric), medians in middles.items():
        yield f"latency_between/{key}~{metric}/p50_mean_s", fmean(medians)
        own = records.reference_of(records.judged[key]).key
        if records.judged[key] is not records.first_reference:
            ratio = _mean_log(medians) - _mean_log(middles[own, metric])
            yield f"latency_between/{key}~{metric}/p50_ratio", math.exp(ratio)


def _mean_log(values: list[float]) -> float:
    return fmean(math.log(value) for value in values)


def memory(records: Records) -> Values:
    for key, one in records.judged.items():
        for r in records.readings[one.begin["pass_id"]]:
            row = f"memory/{key}~{r['device_id']}~{r['memory_scope']}~{r['phase']}"
            yield f"{row}/{r['statistic']}_bytes", r["value_bytes"]


class Priced(NamedTuple):
    """The cheapest valid package of one configuration."""

    key: str
    net: int
    need: Fraction


def keys_of(records: Records, campaign: dict[str, Any]) -> dict[str, str]:
    """Return candidate id -> configuration key, of those that were measured."""
    found = {
        (one.begin["variant_name"], one.device, one.begin["batch"], one.begin["concurrency"]): key
        for key, one in records.judged.items()
    }
    wanted = {c["id"]: (c["variant"], c["device"], c["batch"], c["concurrency"]) for c in campaign["candidate"]}
    return {name: found[labels] for name, labels in wanted.items() if labels in found}


def needed(records: Records, campaign: dict[str, Any], key: str) -> Fraction:
    """Return the hours that the wanted volume takes."""
    phases = campaign.get("calendar", {}).values()
    foreseen = sum((Fraction(phase["hours"]) for phase in phases), Fraction(0))
    wanted = campaign["corpora_wanted"] * campaign["documents_per_corpus"]
    first = records.judged[key].end["phase_ns"]
    corpus = Fraction(median(Fraction(one.end["phase_ns"]["measure"]) for one in records.of_key[key]))
    return foreseen + (first["load"] + first["warmup"] + corpus / len(records.documents) * wanted) / NS_PER_H


def prices(records: Records, campaign: dict[str, Any]) -> Values:
    for key, offer, days, need in _offered(records, campaign):
        row = f"packages/{key}~{offer['id']}~{days}d"
        count, net, tax = _package(offer, days, need)
        yield f"calendar/{key}/needed_hours", float(need)
        yield f"{row}/package_count", count
        yield f"{row}/price_net", net
        yield f"{row}/tax", tax
        yield f"{row}/price_gross", net + tax
        yield f"{row}/paid_hours", float(count * 24 * days)
        yield f"{row}/idle_hours", float(count * 24 * days - need)


def _offered(records: Records, campaign: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], int, Fraction]]:
    offers = {offer["id"]: offer for offer in campaign["offer"]}
    keys = keys_of(records, campaign)
    for candidate in campaign["candidate"]:
        if key := keys.get(candidate["id"]):
            need = needed(records, campaign, key)
            yield from ((key, offers[name], days, need) for name in candidate["offers"] for days in PACKAGES)


def _package(offer: dict[str, Any], days: int, need: Fraction) -> tuple[int, int, int]:
    count, rate = max(1, math.ceil(need / (24 * days))), Fraction(offer["tax_percent"]) / 100
    paid = count * Fraction(offer[f"price_{days}_days"]) * 100
    is_gross = offer.get("prices_are") == "gross"
    tax = math.floor(paid * (rate / (1 + rate) if is_gross else rate) + Fraction(1, 2))
    net = paid - tax if is_gross else paid
    return count, int(net), tax


def cheapest(records: Records, campaign: dict[str, Any]) -> list[Priced]:
    """Return who passes every gate, answered every document that any did, and is in time: the cheapest first.

    What lies within the objective's tie width of the first is equivalent to it.
    """
    deadline = Fraction(campaign["deadline_h"])
    most = max(len(one.done) for one in records.judged.values())
    best: dict[str, Priced] = {}
    for key, offer, days, need in _offered(records, campaign):
        is_judged = all(passed for *_, passed in gates(records, key)) or records.judged[key] is records.first_reference
        if is_judged and need <= deadline and len(records.judged[key].done) == most:
            net = _package(offer, days, need)[1]
            if key not in best or net < best[key].net:
                best[key] = Priced(key, net, need)
    return sorted(best.values(), key=lambda one: (one.net, one.key))


def allocation(records: Records, campaign: dict[str, Any]) -> Values:
    """Yield each bearer's sum under each convention, and the shares of each charge under the declared one."""
    rentals = {rental["id"]: rental for rental in campaign["rental"]}
    paid_ns = {name: _elapsed(one["from"], one["to"]) for name, one in rentals.items()}
    names = {key: f"candidate~{name}" for name, key in keys_of(records, campaign).items()}
    used: dict[str, Counter[str]] = {name: Counter() for name in rentals}
    for one in records.attempts.values():
        target = names.get(one.key) or _unmeasured(campaign, one)
        used[one.rental or ""][target] += one.end["pass_ns"]
    targets = sorted(f"candidate~{candidate['id']}" for candidate in campaign["candidate"])
    accepted = {
        names[key] for key in names
        if all(passed for *_, passed in gates(records, key)) or records.judged[key] is records.first_reference
    }  # fmt: skip
    direct: Counter[str] = Counter()
    for charge in campaign["charge"]:
        if "candidate" in charge:
            direct[f"candidate~{charge['candidate']}"] += round(Fraction(charge["amount"]) * 100)
    for method in (
        "direct", "even", "proportional_usage~separate", "proportional_usage~even", "proportional_usage~weighted",
        "proportional_direct", "accepted_output", "unallocated",
    ):  # fmt: skip
        sums: Counter[str] = Counter()
        for charge in campaign["charge"]:
            usage = used[charge["rental"]] if "rental" in charge else sum(used.values(), Counter[str]())
            idle = Fraction(0)
            if "rental" in charge:
                idle = Fraction(max(0, paid_ns[charge["rental"]] - sum(usage.values())))
            sharing = sorted(usage) if "rental" in charge else targets
            weights = _weights(method, charge, usage, idle, sharing, direct, accepted)
            shares = _split(round(Fraction(charge["amount"]) * 100), weights)
            sums.update(shares)
            if method == f"{campaign['allocation']['convention']}~{campaign['allocation']['idle']}":
                yield from ((f"allocated_charges/{charge['id']}~{t}/amount", cents) for t, cents in shares.items())
        for target in targets:
            yield f"conventions/{method}~{target}~EUR/amount", sums[target]
        total = sum(round(Fraction(charge["amount"]) * 100) for charge in campaign["charge"])
        yield f"conventions/{method}~together~EUR/amount", total
        assert sum(sums.values()) == total
    for rental, usage in used.items():
        yield from ((f"usage/{rental}~{target}/device_hours", ns / NS_PER_H) for target, ns in usage.items())


def _weights(
    method: str, charge: dict[str, Any], usage: Counter[str], idle: Fraction, sharing: list[str],
    direct: Counter[str], accepted: set[str],
) -> dict[str, Fraction]:  # fmt: skip
    if "candidate" in charge:
        return {f"candidate~{charge['candidate']}": Fraction(1)}
    by_usage = {target: Fraction(ns) for target, ns in usage.items()}
    found: dict[str, Fraction] = {}
    if method == "direct" and "rental" in charge and len(usage) == 1:
        found = dict.fromkeys(usage, Fraction(1))
    elif method == "even":
        found = dict.fromkeys(sharing, Fraction(1))
    elif method == "proportional_usage~separate":
        found = by_usage | ({"idle": idle} if idle else {})
    elif method == "proportional_usage~even":
        found = {target: by_usage.get(target, Fraction(0)) + idle / len(sharing) for target in sharing}
        found = found if idle else by_usage
    elif method == "proportional_usage~weighted":
        found = by_usage
    elif method == "proportional_direct":
        found = {target: Fraction(direct[target]) for target in sharing}
    elif method == "accepted_output":
        found = {target: Fraction(target in accepted) for target in sharing}
    return found if any(found.values()) else {"unallocated": Fraction(1)}


def _split(cents: int, weights: dict[str, Fraction]) -> dict[str, int]:
    """Return whole cents by largest remainder; equal remainders are served by name."""
    whole = sum(weights.values())
    exact = {target: cents * weight / whole for target, weight in weights.items() if weight}
    shares = {target: math.floor(quota) for target, quota in exact.items()}
    for target in sorted(exact, key=lambda t: (shares[t] - exact[t], t))[: cents - sum(shares.values())]:
        shares[target] += 1
    return shares


def _unmeasured(campaign: dict[str, Any], one: Pass) -> str:
    labels = (one.begin["variant_name"], one.device, one.begin["batch"], one.begin["concurrency"])
    for c in campaign["candidate"]:
        if (c["variant"], c["device"], c["batch"], c["concurrency"]) == labels:
            return f"candidate~{c['id']}"
    return f"configuration~{one.key}"


def _elapsed(start: datetime, end: datetime) -> int:
    return (end - start) // timedelta(microseconds=1) * 1000


EVERY: tuple[Callable[[Records], Values], ...] = (quality, judgements, pairs, times, memory)


def every_value(records: Records, campaign_path: Path) -> dict[str, Any]:
    """Return figure id -> value of everything above."""
    campaign = tomllib.loads(campaign_path.read_text(encoding="utf-8"))
    found = {name: value for part in EVERY for name, value in part(records)}
    return found | dict(prices(records, campaign)) | dict(allocation(records, campaign))
