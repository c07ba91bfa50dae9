"""A rich dossier made by hand: the layout study's campaign, every table filled, every number invented."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reporter import wording
from reporter.document import write_pdf
from reporter.dossier import Basis, Decision, Dossier, Figure, Interval, Row, Sentence, Table, Unit
from reporter.messages import say
from reporter.render import Words

HOUR = 3_600_000_000_000
SECOND = 1_000_000_000
GIB = 2**30

SENTENCES: dict[str, str] = {
    "fixture.recommend": "Rent one {device} for one {days}-day package and run the {variant} variant at concurrency"
    " {concurrency}: {net} net, {gross} with VAT.",
    "fixture.none": "No candidate meets every rule; nothing is recommended.",
    "fixture.reason": "It meets every quality rule, leaves {free} free, and finishes the wanted volume on day 5 of 7.",
    "fixture.reason2": "The two 4-bit variants lose more documents than the rule allows.",
    "fixture.subtitle": "Field extraction (date, amount, category), six languages, 200 confirmed test documents.",
    "fixture.subtitle2": "Protocol {protocol} frozen 12 days before the first run.",
    "fixture.caption1": "of 200\ndocuments accepted (reference 190); critical 19 of 20",
    "fixture.caption2": "device memory at its peak, longest document, concurrency 8",
    "fixture.caption3": "for 12,000 documents, including evaluation and one restart",
    "fixture.caption4": "per accepted corpus: {paid} paid, 2 corpora accepted",
    "fixture.finding": "Two variants lose more than the rule allows; the others cannot be told apart",
    "fixture.change1": "An RTX 4090 package under {price} (quoted 588.00 EUR).",
    "fixture.change2": "A volume above 18,100 documents a month: two packages of either card.",
    "fixture.change3": "A rule of 0.5 points: int8 could then not be confirmed on 200 documents;"
    " 3,100 would be needed.",
    "fixture.not1": "Documents over 6,000 tokens, other languages than the six, concurrency above 8.",
    "fixture.not2": "Anything about fine-tuning, or about cards and hosts not measured here.",
    "fixture.not3": "That the provider's image has the model installed: the reload check covers our artefact only.",
    "fixture.verdict": "{text}",
    "fixture.gate1": "At most {points} may be lost against the reference.",
    "fixture.gate2": "At least {percent} of the subset critical must be accepted.",
    "fixture.notice1": "One run file is open: its tail is not protected by a seal.",
    "fixture.nt1": "Contexts above 6,000 tokens.",
    "fixture.nt2": "Concurrency above 8.",
}


class Maker:
    """Collects figures and tables under the ids and names of the contract."""

    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}
        self.tables: dict[str, Table] = {}

    def figure(self, figure_id: str, value: Any, unit: Unit, **more: Any) -> str:
        settings: dict[str, Any] = {"basis": "measured", "record_count": 200, "query_digest": digest(figure_id)[:64]}
        settings |= {"sources": [f"run-a:{n}" for n in range(3)], "file_digests": [digest("file")]} | more
        if value is None:
            settings.setdefault("missing_reason", "not_measured")
        self.figures[figure_id] = Figure(figure_id=figure_id, value=value, unit=unit, **settings)
        return figure_id

    def row(self, table: str, key: str, labels: Mapping[str, str], cells: Mapping[str, tuple[Any, ...]] = {}) -> None:
        made: dict[str, str] = {}
        for column, (value, unit, *rest) in cells.items():
            more = rest[0] if rest else {}
            made[column] = self.figure(f"{table}/{key}/{column}", value, unit, **more)
        said = [Sentence(key="fixture.verdict", parameters={"text": labels["verdict"]})] if "verdict" in labels else []
        kept = {k: v for k, v in labels.items() if k != "verdict"}
        old = self.tables.get(table, Table(name=table, grain=f"one row per {table}", rows=[]))
        self.tables[table] = Table(
            name=table, grain=old.grain, rows=[*old.rows, Row(key=key, labels=kept, cells=made, sentences=said)]
        )


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def interval(low: float, high: float, method: str = "wilson") -> dict[str, Any]:
    return {"interval": Interval(low=low, high=high, level_percent=95.0, method=method)}


# label, key, device, variant, purpose, status, verdict, accepted, critical, peak GiB, corpus h, (days, n, price)
CONFIGURATIONS: list[tuple[Any, ...]] = [
    (
        "L40S 48 GB · int8 · 8",
        "int8~l40s~b1~c8",
        "L40S 48 GB",
        "int8",
        "variant",
        "recommended",
        "recommended",
        189,
        19,
        28.6,
        1.83,
        (7, 1, 109_200),
    ),
    (
        "RTX 4090 24 GB · int8 · 4",
        "int8~rtx4090~b1~c4",
        "RTX 4090 24 GB",
        "int8",
        "variant",
        "feasible",
        "meets the rules, 84.00 more",
        188,
        18,
        21.9,
        2.71,
        (7, 2, 117_600),
    ),
    (
        "RTX 4090 24 GB · bf16 · 1",
        "bf16~rtx4090~b1~c1",
        "RTX 4090 24 GB",
        "bf16",
        "reference",
        "reference",
        "reference; misses the deadline",
        190,
        19,
        22.8,
        9.40,
        (30, 1, 199_000),
    ),
    (
        "RTX 4090 24 GB · nf4 · 8",
        "nf4~rtx4090~b1~c8",
        "RTX 4090 24 GB",
        "nf4",
        "variant",
        "rejected",
        "rejected: 6 lost, 2 allowed",
        184,
        16,
        17.2,
        2.02,
        None,
    ),
    (
        "L4 24 GB · nf4 · 4",
        "nf4~l4~b1~c4",
        "L4 24 GB",
        "nf4",
        "variant",
        "rejected",
        "rejected: 7 lost, 2 allowed",
        183,
        16,
        16.8,
        6.15,
        None,
    ),
    (
        "L4 24 GB · int8 · 8",
        "int8~l4~b1~c8",
        "L4 24 GB",
        "int8",
        "variant",
        "failed",
        "failed: memory, 6,100 tokens",
        None,
        None,
        None,
        None,
        None,
    ),
]


def fill_candidates(m: Maker, price_basis: Basis) -> None:
    for label, key, device, variant, purpose, status, verdict, ok, critical, peak, hours, package in CONFIGURATIONS:
        gone = {"missing_reason": "failed"}
        price = {"basis": price_basis, "currency": "EUR"}
        days, count, amount = package or ("", None, None)
        m.row(
            "candidates",
            key,
            {
                "label": label,
                "status": status,
                "device": device,
                "variant": variant,
                "purpose": purpose,
                "verdict": verdict,
                "peak_scope": "process",
                "package_days": str(days),
            },
            {
                "accepted_documents": (ok, "documents", gone),
                "document_count": (200, "documents"),
                "subset_accepted:critical": (critical, "documents", gone),
                "subset_documents:critical": (20, "documents"),
                "peak_bytes": (None if peak is None else int(peak * GIB), "bytes", gone),
                "corpus_hours": (hours, "hours", {"n": 5, **gone}),
                "package_price": (amount, "minor_units", {**price, "missing_reason": "not_applicable"}),
                "package_count": (count, "packages", {"basis": price_basis, "missing_reason": "not_applicable"}),
            },
        )


def fill_quality(m: Maker) -> None:
    for label, key, device, variant, purpose, _, _, ok, critical, *_ in CONFIGURATIONS[:5]:
        base = {"label": label, "variant": variant, "device": device, "purpose": purpose}
        wrong = 200 - ok - 3
        m.row(
            "quality",
            key,
            base,
            {
                "document_count": (200, "documents"),
                "accepted_documents": (ok, "documents", {"n": 200, **interval(ok - 7.3, min(200, ok + 4.9))}),
                "wrong_documents": (wrong, "documents"),
                "unparseable_documents": (2, "documents"),
                "truncated_documents": (1, "documents"),
                "too_long_documents": (0, "documents"),
                "empty_documents": (0, "documents"),
                "failed_documents": (0, "documents"),
                "well_formed_documents": (197, "documents"),
                "several_candidates_documents": (3, "documents"),
                "normalised_documents": (24, "documents"),
            },
        )
        for dimension, value, n, right in (
            ("subset", "critical", 20, critical),
            ("length_class", "short", 60, 58),
            ("length_class", "usual", 110, ok - 80),
            ("length_class", "long", 30, 22),
            ("language", "en", 80, 77),
            ("language", "vi", 60, 55),
            ("language", "tr", 60, 53),
        ):
            m.row(
                "quality_by_group",
                f"{key}~{dimension}~{value}",
                base | {"dimension": dimension, "value": value},
                {
                    "document_count": (n, "documents"),
                    "accepted_documents": (
                        right,
                        "documents",
                        {"n": n, **interval(right * 0.93, min(n, right * 1.03))},
                    ),
                },
            )
        for field, right in (("date", ok + 4), ("amount", ok + 6), ("category", ok + 2)):
            m.row(
                "fields",
                f"{key}~{field}",
                base | {"field": field},
                {"document_count": (200, "documents"), "right_documents": (right, "documents")},
            )
        if purpose != "reference":
            net = ok - 190
            points = {"is_derived": True, **interval(net / 2 - 2.4, net / 2 + 1.9, "paired")}
            m.row(
                "paired",
                key,
                base,
                {
                    "document_count": (200, "documents"),
                    "both_right": (ok - 1, "documents"),
                    "lost_documents": (191 - ok, "documents"),
                    "gained_documents": (1, "documents"),
                    "both_not_right": (9, "documents"),
                    "net_documents": (net, "documents"),
                    "difference_points": (net / 2, "percentage_points", points),
                },
            )
            m.row(
                "paired_tests",
                key,
                base
                | {
                    "shown": "no_difference_shown",
                    "outcome": "inconclusive",
                    "margin": "1",
                    "share_from": "observed",
                    "clusters": "enough",
                    "verdict": "no difference shown",
                },
                {
                    "document_count": (200, "documents"),
                    "both_right": (ok - 1, "documents"),
                    "lost_documents": (191 - ok, "documents"),
                    "gained_documents": (1, "documents"),
                    "both_not_right": (9, "documents"),
                    "difference_points": (net / 2, "percentage_points", points),
                    "cluster_count": (24, "count"),
                    "clustered_points": (net / 2, "percentage_points", {"is_derived": True, "n": 24}),
                    "mcnemar_p": (0.00004, "probability", {"is_derived": True}),
                    "holm_p": (0.0002, "probability", {"is_derived": True}),
                    "smallest_points": (2.4, "points", {"is_derived": True}),
                    "needed_documents": (784, "documents", {"is_derived": True}),
                },
            )
            m.row(
                "critical_subsets",
                f"{key}~critical",
                base | {"subset": "critical"},
                {
                    "document_count": (20, "documents"),
                    "new_failures": (0, "documents"),
                    "supported_percent": (13.9, "percent", {"is_derived": True, "n": 20}),
                    "needed_documents": (299, "documents", {"is_derived": True}),
                },
            )
            for n, direction in ((17, "lost"), (42, "lost"), (113, "gained")):
                m.row(
                    "changed_documents",
                    f"{key}~invoice-{n:04d}",
                    {
                        "label": label,
                        "document_id": f"invoice-{n:04d}",
                        "direction": direction,
                        "severity": "critical" if n == 17 else "hard" if n == 42 else "other",
                        "reference_outcome": "right" if direction == "lost" else "wrong",
                        "outcome": "wrong" if direction == "lost" else "right",
                        "fields": "amount",
                        "newly_wrong": "amount" if direction == "lost" else "",
                        "newly_right": "amount" if direction == "gained" else "",
                        "subsets": "critical",
                        "language": "vi",
                        "length_class": "long",
                    },
                )
            for rule, subset, counted, limit in (
                ("max_lost_points", "", 190 - ok, 2),
                ("min_accepted_percent", "critical", critical, 18),
            ):
                good = counted <= limit if rule == "max_lost_points" else counted >= limit
                m.row(
                    "gates",
                    f"{key}~{rule}",
                    {"label": label, "rule": rule, "subset": subset, "result": "pass" if good else "fail"},
                    {
                        "counted": (counted, "documents"),
                        "limit": (limit, "documents"),
                        "document_count": (20 if subset else 200, "documents"),
                    },
                )
    m.row(
        "noise",
        "bf16~rtx4090~b1~c1~ref2",
        {"label": "RTX 4090 24 GB · bf16 · 1, repeated"},
        {
            "document_count": (200, "documents"),
            "flipped_documents": (1, "documents"),
            "different_answers": (3, "documents"),
            "flip_percent": (0.5, "percent", {"is_derived": True}),
        },
    )


def fill_times_and_memory(m: Maker) -> None:
    for label, key, device, variant, purpose, _, _, _, _, peak, hours, _ in CONFIGURATIONS[:5]:
        base = {"label": label, "variant": variant, "device": device, "purpose": purpose}
        for metric, p50 in (("ttft_s", 0.21), ("tpot_s", 0.018), ("e2e_s", hours * 1.9)):
            for length in ("all", "long"):
                scale = 1.0 if length == "all" else 2.3
                n = 200 if length == "all" else 30
                p95 = (
                    (p50 * scale * 1.9, "seconds", {"n": n})
                    if n > 100
                    else (None, "seconds", {"missing_reason": "too_few_samples"})
                )
                m.row(
                    "latency",
                    f"{key}~{metric}~{length}",
                    base | {"metric": metric, "length_class": length, "loop": "closed"},
                    {
                        "request_count": (n, "requests"),
                        "p50_s": (
                            p50 * scale,
                            "seconds",
                            {"n": n, **interval(p50 * scale * 0.96, p50 * scale * 1.04, "order_statistics")},
                        ),
                        "p90_s": (
                            p50 * scale * 1.6,
                            "seconds",
                            {"n": n, **interval(p50 * scale * 1.5, p50 * scale * 1.7, "order_statistics")},
                        ),
                        "p95_s": p95,
                    },
                )
            is_reference = "yes" if purpose == "reference" else "no"
            ratio = {"missing_reason": "not_applicable"} if purpose == "reference" else {"is_derived": True, "n": 3}
            m.row(
                "latency_between",
                f"{key}~{metric}",
                base | {"metric": metric, "is_reference": is_reference, "is_repeated": "yes"},
                {
                    "repetition_count": (3, "count"),
                    "reference_repetition_count": (3, "count"),
                    "p50_mean_s": (p50 * 1.01, "seconds", {"n": 3, **interval(p50 * 0.98, p50 * 1.04, "t_of_means")}),
                    "p50_ratio": (None if purpose == "reference" else 0.71, "ratio", ratio),
                },
            )
        for repetition in (1, 2):
            m.row(
                "durations",
                f"{key}~r{repetition}",
                base | {"repetition": str(repetition)},
                {
                    "load_ns": (int(21.4 * SECOND), "nanoseconds"),
                    "warmup_ns": (int(6.1 * SECOND), "nanoseconds"),
                    "measure_ns": (int(hours / 60 * HOUR), "nanoseconds"),
                    "pass_ns": (int(hours / 60 * HOUR + 30 * SECOND), "nanoseconds"),
                    "output_tokens": (9_412, "tokens"),
                    "output_tokens_per_s": (9_412 / (hours * 60), "tokens_per_second", {"is_derived": True}),
                    "documents_per_h": (200 / (hours / 60), "documents_per_hour", {"is_derived": True}),
                },
            )
        for scope, share in (("allocated", 0.86), ("reserved", 0.93), ("process", 1.0), ("host", 0.2)):
            for phase, part in (("load", 0.78), ("warmup", 0.9), ("measure", 1.0)):
                end = (int(peak * share * part * 0.95 * GIB), "bytes") if scope != "host" else (None, "bytes")
                m.row(
                    "memory",
                    f"{key}~{scope}~{phase}",
                    base
                    | {
                        "device_id": "cpu" if scope == "host" else "cuda:0",
                        "scope": scope,
                        "phase": phase,
                        "method": "counter" if scope in ("allocated", "reserved") else "sampled",
                    },
                    {
                        "start_bytes": (int(peak * share * part * 0.4 * GIB), "bytes"),
                        "peak_bytes": (int(peak * share * part * GIB), "bytes"),
                        "end_bytes": end,
                    },
                )


def fill_setup(m: Maker) -> None:
    for run in ("a", "b"):
        m.row(
            "runs",
            f"run-{run}",
            {
                "file": f"20261118T080000Z-run{run}.jsonl",
                "run_id": f"run{run}0000000",
                "stage": "validation",
                "is_sealed": "yes" if run == "a" else "no",
                "head_digest": digest(run),
                "plan_id": digest("plan"),
                "began_at": "2026-11-18T08:00:00.000000Z",
                "ended_at": "2026-11-18T13:40:00.000000Z",
            },
            {"record_count": (2_412, "records")},
        )
    for label, key, _, _, purpose, status, *_ in CONFIGURATIONS:
        failed = status == "failed"
        m.row(
            "passes",
            key,
            {
                "label": label,
                "purpose": purpose,
                "outcome": "failed" if failed else "completed",
                "counts_yes_no": "no" if failed else "yes",
                "cause": "out_of_memory" if failed else "",
            },
            {
                "attempt": (1, "count"),
                "documents": (37 if failed else 200, "documents"),
                "measure_ns": (110 * SECOND, "nanoseconds"),
            },
        )
    for device in ("L40S 48 GB", "RTX 4090 24 GB", "L4 24 GB"):
        env = digest(device)[:12]
        m.row(
            "environments",
            env,
            {
                "environment_id": env,
                "os": "Debian GNU/Linux 12",
                "kernel": "6.1.0-18-amd64",
                "cpu_model": "AMD EPYC 9354P 32-Core Processor",
                "python": "3.11.2",
                "packages": "torch=2.8.0; transformers=5.17.0; accelerate=1.10.1; tokenizers=0.22.0",
                "unchecked": "telemetry, ecc",
            },
            {
                "cpu_usable_count": (16, "count"),
                "host_memory_bytes": (128 * GIB, "bytes"),
                "thread_count": (16, "count"),
                "load_average_1m": (0.24, "ratio"),
            },
        )
        m.row(
            "devices",
            f"{env}~cuda:0",
            {"environment_id": env, "device_id": "cuda:0", "kind": "cuda", "name": device},
            {"device_memory_bytes": (int(47.9 * GIB), "bytes"), "power_limit_mw": (350_000, "count")},
        )
    m.row(
        "engines",
        "transformers-5",
        {
            "engine_id": "a1b2c3d4e5f6",
            "name": "transformers",
            "version": "5.17.0",
            "flags": "attn=sdpa; cache=dynamic",
            "evidence": "verified",
        },
    )
    for variant, bits in (("bf16", 16.0), ("int8", 8.5), ("nf4", 4.6)):
        weight = int(14.2 * GIB * bits / 16)
        m.row(
            "variants",
            variant,
            {
                "label": variant,
                "model_id": "example-org/extractor-7b-instruct",
                "revision": "5f0b02c75b57c5855da9ae460ce51323ea669d8a",
                "origin": "Stored as published in bfloat16; quantized at load time by the engine, without calibration.",
                "quantization": "none" if variant == "bf16" else variant,
                "weight_storage": "bfloat16; " + variant,
                "compute_dtype": "bfloat16",
                "attention": "sdpa",
                "cache": "dynamic",
                "output_layer": "bfloat16",
                "deviations": "",
                "file_digests": f"model-1-of-2.safetensors={digest('m1')}; model-2-of-2.safetensors={digest('m2')}",
            },
            {
                "parameter_count": (7_615_616_512, "count"),
                "weight_bytes": (weight, "bytes"),
                "claimed_weight_bytes": (int(weight * 0.97), "bytes", {"basis": "claimed"}),
                "effective_bits": (bits, "bits", {"is_derived": True}),
            },
        )
        for group, share in (
            ("embedding", 0.07),
            ("attention", 0.2),
            ("mlp", 0.65),
            ("output_layer", 0.07),
            ("norm", 0.01),
        ):
            m.row(
                "tensor_groups",
                f"{variant}~{group}",
                {
                    "label": variant,
                    "module_group": group,
                    "storage_dtype": "bfloat16" if group in ("embedding", "norm", "output_layer") else variant,
                },
                {
                    "tensor_bytes": (int(weight * share), "bytes"),
                    "element_count": (int(7_615_616_512 * share), "count"),
                },
            )
    for dimension, value, n in (
        ("role", "validation", 200),
        ("length_class", "short", 60),
        ("length_class", "usual", 110),
        ("length_class", "long", 30),
        ("language", "en", 80),
        ("language", "vi", 60),
        ("language", "tr", 60),
        ("subset", "critical", 20),
        ("hard", "yes", 31),
    ):
        m.row(
            "workload",
            f"{dimension}~{value}",
            {"dimension": dimension, "value": value},
            {
                "document_count": (n, "documents"),
                "prompt_tokens_p50": (412, "tokens"),
                "prompt_tokens_max": (5_984, "tokens"),
            },
        )


def fill_events(m: Maker) -> None:
    m.row(
        "failures",
        "f1",
        {
            "scope": "pass",
            "cause": "out_of_memory",
            "label": "L4 24 GB · int8 · 8",
            "phase": "measure",
            "document_id": "invoice-0037",
            "exception_class": "torch.OutOfMemoryError",
        },
    )
    m.row("decisions", "d1", {"decision": "restarted", "by": "collector", "detail": "attempt 2 after a killed worker"})
    m.row(
        "decisions",
        "d2",
        {"decision": "skipped", "by": "A. Person", "detail": "concurrency 16 on the L4, after the failure at 8"},
    )
    m.row("warnings", "w1", {"warning_class": "UserWarning", "phase": "load"}, {"repeat_count": (14, "count")})


def fill_packages(m: Maker, basis: Basis) -> None:
    offers = {
        "L40S 48 GB": ("l40s-a", "Provider A", {3: 54_600, 7: 109_200, 30: 389_000}),
        "RTX 4090 24 GB": ("4090-b", "Provider B", {3: 29_400, 7: 58_800, 30: 199_000}),
    }
    for label, key, device, _, _, _, _, _, _, _, hours, _ in CONFIGURATIONS[:3]:
        offer, provider, prices = offers[device]
        needed = hours * 60
        for days, price in prices.items():
            count = -(-needed // (24 * days))
            net = int(price * count)
            money: dict[str, Any] = {"basis": basis, "currency": "EUR"}
            derived = {**money, "is_derived": True, "formula": "packages x price"}
            m.row(
                "packages",
                f"{key}~{offer}~{days}",
                {
                    "candidate": label,
                    "offer": offer,
                    "provider": provider,
                    "days": str(days),
                    "pricing_class": "reserved",
                    "source": "price list 17",
                    "retrieved": "2026-11-20",
                    "basis": basis,
                    "valid_until": "2026-12-14",
                    "is_valid": "yes",
                },
                {
                    "package_count": (int(count), "packages", {"is_derived": True}),
                    "needed_hours": (needed, "hours", {"is_derived": True}),
                    "paid_hours": (count * 24 * days, "hours", {"is_derived": True}),
                    "idle_hours": (count * 24 * days - needed, "hours", {"is_derived": True}),
                    "price_net": (net, "minor_units", derived),
                    "tax": (net * 19 // 100, "minor_units", derived),
                    "price_gross": (net + net * 19 // 100, "minor_units", derived),
                    "cost_per_corpus": (net // 2, "minor_units", derived),
                },
            )
        for phase, duration, by, kind in (
            ("preparation", 6.0, "A. Person", "assumed"),
            ("processing", needed - 10, "", "measured"),
            ("evaluation", 4.0, "A. Person", "assumed"),
        ):
            m.row(
                "calendar",
                f"{key}~{phase}",
                {"candidate": label, "phase": phase, "by": by},
                {"hours": (duration, "hours", {"basis": kind})},
            )


def make_decision(m: Maker, price_basis: Basis) -> Decision:
    first = "candidates/int8~l40s~b1~c8"
    money: dict[str, Any] = {"basis": price_basis, "currency": "EUR"}
    m.figure("decision/net", 109_200, "minor_units", **money)
    m.figure("decision/gross", 129_948, "minor_units", is_derived=True, **money)
    m.figure("decision/free", int(19.3 * GIB), "bytes", is_derived=True)
    m.figure("decision/accepted", 189, "documents", n=200)
    m.figure("decision/days", 4.6, "days", basis="assumed", is_derived=True)
    m.figure("decision/corpus", 54_600, "minor_units", is_derived=True, **money)
    m.figure("decision/break_even", 54_600, "minor_units", is_derived=True, **money)

    def say(key: str, **parameters: str) -> Sentence:
        return Sentence(key=f"fixture.{key}", parameters=parameters)

    return Decision(
        has_winner=True,
        recommendation=say(
            "recommend",
            device="L40S 48 GB",
            days="7",
            variant="int8",
            concurrency="8",
            net="#decision/net",
            gross="#decision/gross",
        ),
        reasons=[say("reason", free="#decision/free"), say("reason2")],
        headline=["decision/accepted", f"{first}/peak_bytes", "decision/days", "decision/corpus"],
        headline_captions=[say("caption1"), say("caption2"), say("caption3"), say("caption4", paid="#decision/net")],
        chart_finding=say("finding"),
        would_change=[say("change1", price="#decision/break_even"), say("change2"), say("change3")],
        does_not_show=[say("not1"), say("not2"), say("not3")],
        prices_valid_until="2026-12-14",
    )


def make_dossier(price_basis: Basis = "quoted", **changes: Any) -> Dossier:
    """Return the campaign of the layout study; `price_basis="example"` watermarks it."""
    m = Maker()
    fill_candidates(m, price_basis)
    fill_quality(m)
    fill_times_and_memory(m)
    fill_setup(m)
    fill_events(m)
    fill_packages(m, price_basis)
    m.figure("rules/points", 1.0, "percentage_points", basis="measured")
    m.figure("rules/percent", 90.0, "percent")
    settings: dict[str, Any] = {
        "dossier_id": "SD-2026-014",
        "revision": 2,
        "supersedes": "revision 1",
        "question": "Which GPU should read our 12,000 invoices a month?",
        "issuer": "Measurement desk",
        "prepared_for": "Procurement",
        "issued": "2026-11-30",
        "as_of": "2026-11-30",
        "protocol_id": digest("protocol"),
        "protocol_name": "Invoices, three fields",
        "plan_ids": [digest("plan")],
        "stages": ["validation"],
        "frozen_at": "2026-11-06T09:12:00.000000Z",
        "first_run_at": "2026-11-18T08:00:00.000000Z",
        "objective_declared_before": True,
        "records_digest": digest("records"),
        "has_example_prices": price_basis == "example",
        "subtitle": [
            Sentence(key="fixture.subtitle"),
            Sentence(key="fixture.subtitle2", parameters={"protocol": "4b1d…e07a"}),
        ],
        "decision": make_decision(m, price_basis),
        "figures": m.figures,
        "tables": m.tables,
        "not_tested": [Sentence(key="fixture.nt1"), Sentence(key="fixture.nt2")],
        "notices": [Sentence(key="fixture.notice1")],
        "gates": [
            Sentence(key="fixture.gate1", parameters={"points": "#rules/points"}),
            Sentence(key="fixture.gate2", parameters={"percent": "#rules/percent"}),
        ],
    }
    return Dossier(**(settings | changes))


def make_small(price_basis: Basis = "quoted", **changes: Any) -> Dossier:
    """Return the same campaign with at most three rows a table: quick to lay out."""
    whole = make_dossier(price_basis, **changes)
    tables = {name: msgspec.structs.replace(t, rows=t.rows[:3]) for name, t in whole.tables.items()}
    return msgspec.structs.replace(whole, tables=tables)


def make_words() -> Words:
    """Return the product's sentences and the fixture's."""
    fixture = {key: say(message) for key, message in SENTENCES.items()}
    return Words({**wording.SENTENCES, **fixture}, wording.WORDS)


@pytest.fixture(scope="session")
def dossier() -> Dossier:
    return make_dossier()


@pytest.fixture(scope="session")
def small() -> Dossier:
    return make_small()


@pytest.fixture
def dossier_factory() -> Callable[..., Dossier]:
    return make_dossier


@pytest.fixture
def small_factory() -> Callable[..., Dossier]:
    return make_small


@pytest.fixture(scope="session")
def words() -> Words:
    return make_words()


@pytest.fixture(scope="session")
def small_pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One PDF of the small campaign with example prices and two attachments, laid out once for all tests."""
    folder = tmp_path_factory.mktemp("pdf")
    (folder / "20261118T080000Z-runa.jsonl").write_bytes(b'{"kind":"header"}\n')
    (folder / "campaign.toml").write_bytes(b'question = "Which?"\n')
    out = folder / "dossier.pdf"
    files = [folder / "20261118T080000Z-runa.jsonl", folder / "campaign.toml"]
    write_pdf(make_small("example"), out, attachments=files, words=make_words())
    return out
