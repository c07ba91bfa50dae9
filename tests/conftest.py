"""Shared fixtures: a builder of whole campaigns of valid, chained, sealed record files, made from the Structs."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings

from collector.contract import protocol as p
from collector.contract.digests import short_id, text_hmac
from collector.contract.records import (
    GAP_BUCKET_BOUNDS_NS,
    BatchCheck,
    Decision,
    Device,
    Document,
    Engine,
    Environment,
    Failure,
    Header,
    PassBegin,
    PassEnd,
    Reading,
    Record,
    ReloadCheck,
    Request,
    Score,
    Seal,
    TensorGroup,
    Variant,
    Warning,
    encode_record,
)
from collector.contract.texts import Text, TextsHeader, encode_text, texts_path

# How long an example takes says nothing on a busy machine, nor in a first run, which builds tables of characters.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

MS = 1_000_000
FIELDS = ("date", "amount", "category")
SALT = bytes(range(32))
TINY = "example/tiny"


@dataclass(frozen=True)
class DeviceScript:
    """The machine of one run file. `kind` cpu has host readings only; cuda has allocator and device readings too."""

    name: str = "Example CPU 2 cores"
    kind: str = "cpu"
    host: str = "a"
    """Machines with different letters are different environments."""
    memory_bytes: int = 16 * 2**30
    card_count: int = 1
    """Cards of that name; the weights lie on all of them, and each further one is a little fuller."""

    @property
    def device_id(self) -> str:
        return "cpu" if self.kind == "cpu" else "cuda:0"

    @property
    def device_ids(self) -> list[str]:
        return ["cpu"] if self.kind == "cpu" else [f"cuda:{index}" for index in range(self.card_count)]


@dataclass(frozen=True)
class VariantScript:
    """One variant of the campaign: which documents (0-based) get which outcome, how fast, how large, how it fails.

    `outcomes` maps a document index to its score outcome; every other document is right. `changed_in_repeat` are the
    documents whose acceptance flips in every repeat. `failure` ends the pass in its load phase; "interrupted" is none.
    `killed_attempts` attempts are cut half-way before the complete one.
    """

    name: str = "fp32"
    dtype: str = "float32"
    outcomes: Mapping[int, str] = field(default_factory=dict)
    changed_in_repeat: frozenset[int] = frozenset()
    first_token_ns: int = 90 * MS
    token_gap_ns: int = 24 * MS
    weight_bytes: int = 540_000_000
    peak_bytes: int = 1_400_000_000
    failure: str | None = None
    killed_attempts: int = 0
    missing: frozenset[int] = frozenset()
    """Documents that get no request at all."""
    batch: int = 1
    concurrency: int = 1
    failure_phase: str = "load"
    """Where `failure` happens."""
    other_answers: frozenset[int] = frozenset()
    """Documents answered in other words than the outcome alone says."""
    check_differs: Mapping[int, int] = field(default_factory=dict)
    """Documents of the batch check that differ -> tokens that agree before."""
    factor: str | None = None
    """What the records say it differs in; by default what its purpose implies."""
    reload: tuple[int, int] | None = None
    """Checked and equal answers after its first pass is loaded again."""


FP32 = VariantScript(outcomes={3: "wrong", 7: "unparseable", 11: "truncated"}, changed_in_repeat=frozenset({5}))
BF16 = VariantScript(
    name="bf16", dtype="bfloat16", outcomes={3: "wrong", 7: "unparseable", 9: "wrong", 14: "empty"},
    first_token_ns=70 * MS, token_gap_ns=15 * MS, weight_bytes=270_000_000, peak_bytes=900_000_000,
)  # fmt: skip


class RecordFile:
    """Writes one run file: fills the envelope, chains, counts and seals."""

    def __init__(self, path: Path, run_id: str, start: dt.datetime) -> None:
        self.path, self.run_id, self._now = path, run_id, start
        self.lines: list[bytes] = []
        self._counts: Counter[str] = Counter()
        self._prev = "0" * 64

    def utc(self) -> str:
        """The file's own wall clock, one millisecond later at each call."""
        self._now += dt.timedelta(milliseconds=1)
        return self._now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def pass_time(self, ns: int) -> None:
        self._now += dt.timedelta(microseconds=ns // 1000)

    def _push(self, line: bytes) -> None:
        self.lines.append(line)
        self._prev = hashlib.sha256(line).hexdigest()

    def add(self, record: Record) -> Record:
        """Append one record; its envelope is filled here."""
        full = msgspec.structs.replace(
            record, run_id=self.run_id, seq=len(self.lines), prev=self._prev, written_at=self.utc()
        )
        self._counts[str(type(record).__struct_config__.tag)] += 1
        self._push(encode_record(full))
        return full

    def seal(self) -> str:
        """Append the seal; returns the head digest."""
        seal = Seal(
            run_id=self.run_id, seq=len(self.lines), prev=self._prev, written_at=self.utc(),
            record_counts=dict(self._counts), head_digest="0" * 64,
        )  # fmt: skip
        digest = hashlib.sha256(encode_record(seal)).hexdigest()
        self._push(encode_record(msgspec.structs.replace(seal, head_digest=digest)))
        return digest

    def write(self) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"".join(line + b"\n" for line in self.lines))
        return self.path


def rechain(lines: Sequence[bytes], edit: Callable[[int, dict[str, Any]], dict[str, Any] | None]) -> list[bytes]:
    """Return the lines after `edit(index, object)` (None drops the line), numbered, chained and sealed again.

    This is what a forger with all the time in the world would do: contract and chain are fine, the content is not.
    """
    out: list[bytes] = []
    counts: Counter[str] = Counter()
    prev = "0" * 64
    for index, line in enumerate(lines):
        edited = edit(index, msgspec.json.decode(line))
        if edited is None:
            continue
        edited |= {"seq": len(out), "prev": prev}
        if edited["kind"] == "seal":
            edited |= {"record_counts": dict(counts), "head_digest": "0" * 64}
            edited["head_digest"] = hashlib.sha256(msgspec.json.encode(edited)).hexdigest()
        counts[edited["kind"]] += 1
        out.append(msgspec.json.encode(edited))
        prev = hashlib.sha256(out[-1]).hexdigest()
    return out


@dataclass(frozen=True)
class CampaignFiles:
    """What `campaign_records` wrote. `runs` is the folder to give to the reporter."""

    runs: Path
    path: Path
    run_id: str
    lock: p.Lock
    salt: bytes
    head_digest: str | None


def document_id(index: int, role: str = "validation") -> str:
    return f"{'test' if role == 'test' else 'doc'}-{index + 1:03d}"


def length_class(index: int) -> p.LengthClass:
    return "long" if index % 6 == 5 else "short" if index % 6 == 0 else "usual"


def locked_documents(count: int, critical: int, test_count: int = 0) -> list[p.LockedDocument]:
    """`critical` documents, spread from the first on, are in the subset `critical`; every tenth is hard.

    `test_count` further documents are kept back for the test stage; as many of them are critical.
    """
    return [
        p.LockedDocument(
            document_id=document_id(i, role), role=role, length_class=length_class(i), is_hard=i % 10 == 9,
            subsets=["critical"] if i < critical else [], cluster=f"template-{i % 8}",
            language="vi" if i % 4 == 3 else "en", text_hmac=text_hmac(SALT, f"text {mark}{i}"),
            expected_hmac=text_hmac(SALT, f"expected {mark}{i}"),
        )
        for role, mark, documents in (("validation", "", count), ("test", "test ", test_count))
        for i in range(documents)
    ]  # fmt: skip


def locked_protocol(
    documents: int, critical: int, variants: Sequence[VariantScript], gates: p.Gates, repetitions: int, name: str,
    test_documents: int = 0, model: str = TINY,
) -> p.Lock:  # fmt: skip
    trial = p.LockedTrial(
        format=1, name=name, task_kind="extraction", prompt_hmac=text_hmac(SALT, "prompt"),
        system_hmac=text_hmac(SALT, ""),
        fields=[
            p.FieldRule(name="date", type="date"), p.FieldRule(name="amount", type="money"),
            p.FieldRule(name="category", type="label", labels=["travel", "office", "food"]),
        ],
        missing_value="null", permission="made for this test", review="by the author of the test, 2026-01-01",
        generation=p.Generation(max_new_tokens=48), gates=gates, limits=p.Limits(), reference=variants[0].name,
        documents_digest=p.documents_digest(locked := locked_documents(documents, critical, test_documents)),
    )  # fmt: skip
    names = {v.name: v for v in variants}
    plan = p.LockedPlan(
        model=p.Model(id=model, origin="stored as 4-bit Q4_1 and dequantized"),
        engine=p.EngineChoice(name="scripted", script="script.json"), engine_script_sha256="5" * 64,
        variants=[p.VariantChoice(name=v.name, dtype=v.dtype) for v in names.values()],
        plan=p.PlanChoice(reference=variants[0].name, repetitions=repetitions),
    )  # fmt: skip
    protocol_id = p.protocol_digest(trial)
    return p.Lock(
        lock_format=1, frozen_at="2026-01-01T08:00:00.000000Z", protocol_id=protocol_id,
        plan_id=p.plan_digest(protocol_id, plan), trial=trial, plan=plan, documents=locked,
    )  # fmt: skip


def _device_map(device: DeviceScript) -> dict[str, str]:
    """One device holds everything, several hold a layer each."""
    if len(device.device_ids) == 1:
        return {"": device.device_id}
    return {f"layers.{index}": device_id for index, device_id in enumerate(device.device_ids)}


class CampaignBuilder:
    """Writes the passes of one run file in the order of the plan."""

    def __init__(self, file: RecordFile, lock: p.Lock, device: DeviceScript, stage: str, seed: int) -> None:
        self.file, self.lock, self.device, self.stage = file, lock, device, stage
        self.random = random.Random(seed)
        self.reloads: list[ReloadCheck] = []
        self.texts: dict[str, Text] = {}
        self.documents = lock.documents
        role = "test" if stage == "test" else "validation"
        self.own = [document.document_id for document in lock.documents if document.role == role]
        self.environment_id = short_id({"host": device.host, "device": device.name})
        self.engine_id = short_id({"engine": "scripted", "version": "1"})

    def text(self, kind: str, text: str, document: str | None = None) -> str:
        """Keep a text for the texts file; returns its HMAC."""
        hmac = text_hmac(SALT, text)
        self.texts.setdefault(hmac, Text(hmac=hmac, text_kind=kind, text=text, document_id=document))
        return hmac

    def write_texts(self) -> None:
        header = msgspec.json.encode(TextsHeader(run_id=self.file.run_id, salt_hex=SALT.hex()))
        lines = [header, *map(encode_text, self.texts.values())]
        texts_path(self.file.path).write_bytes(b"".join(line + b"\n" for line in lines))

    def setup(self) -> None:
        lock, device = self.lock, self.device
        bare = msgspec.structs.replace(lock, documents=[])
        self.file.add(Header(
            format=1, stage=self.stage, protocol_json=msgspec.json.encode(bare).decode(),
            protocol_id=lock.protocol_id, plan_id=lock.plan_id, collector_version="0.1.0",
            wall_at=self.file.utc(), monotonic_ns=1_000_000_000,
        ))  # fmt: skip
        for doc in self.documents:
            self.file.add(Document(**{name: getattr(doc, name) for name in doc.__struct_fields__}))
        self.file.add(Environment(
            environment_id=self.environment_id, os_name="Linux", os_version="Debian 13", kernel_version="6.12",
            machine_architecture="x86_64", cpu_model="Example CPU", cpu_logical_count=2, cpu_usable_count=2,
            host_memory_bytes=16 * 2**30, python_version="3.11.9", packages={"torch": "2.13.0", "numpy": "2.3.1"},
            thread_count=2, load_average_1m=0.25,
            unchecked=["gpu_processes"], missing={"driver_version": "unsupported"},
        ))  # fmt: skip
        self.file.add(Device(
            environment_id=self.environment_id, device_id="cpu", device_kind="cpu",
            device_name=device.name if device.kind == "cpu" else "Example CPU 2 cores",
            device_memory_bytes=16 * 2**30, missing={"power_limit_mw": "unsupported"},
        ))  # fmt: skip
        for card, device_id in enumerate(device.device_ids if device.kind != "cpu" else []):
            self.file.add(Device(
                environment_id=self.environment_id, device_id=device_id, device_kind="cuda",
                device_name=device.name, device_uuid=f"GPU-0A1B2C3D-0000-1111-2222-33334444555{5 - card}",
                device_memory_bytes=device.memory_bytes, power_limit_mw=700_000, foreign_process_count=0,
            ))  # fmt: skip
        self.file.add(Engine(
            engine_id=self.engine_id, engine_name="scripted", engine_version="1",
            engine_flags={"device": device.device_id}, engine_evidence="verified",
        ))  # fmt: skip

    def run_pass(self, variant: VariantScript, purpose: str, repetition: int) -> None:
        for attempt in range(1, variant.killed_attempts + 2):
            is_last = attempt == variant.killed_attempts + 1
            self._attempt(variant, purpose, repetition, attempt, is_killed=not is_last)

    def _attempt(self, variant: VariantScript, purpose: str, repetition: int, attempt: int, is_killed: bool) -> None:
        model = self.lock.plan.model.id
        other_model = {} if model == TINY else {"model": model}
        variant_id = short_id({"variant": variant.name, "dtype": variant.dtype} | other_model)
        key = {
            "protocol_id": self.lock.protocol_id, "stage": self.stage, "environment_id": self.environment_id,
            "engine_id": self.engine_id, "variant_id": variant_id, "batch": variant.batch,
            "concurrency": variant.concurrency, "cache_kind": "dynamic", "output_limit_tokens": 48,
            "repetition": repetition, "attempt": attempt,
        }  # fmt: skip
        pass_id = short_id(key)
        order = list(range(len(self.own)))
        if purpose == "reference_repeat":
            random.Random(repetition).shuffle(order)
        factors = {"reference_repeat": "order", "variant": "weights", "series": "batch"}
        default = "batch" if purpose == "repetition" and variant.batch > 1 else "none"
        factor = (variant.factor if purpose == "variant" else None) or factors.get(purpose, default)
        self.file.add(PassBegin(
            pass_id=pass_id, variant_name=variant.name, purpose=purpose, factor=factor,
            series="batch" if factor == "batch" else "weights",
            document_order=[self.own[i] for i in order], expected_document_count=len(order),
            began_at=self.file.utc(), **key,
        ))  # fmt: skip
        if variant.failure:
            self._failed_load(pass_id, variant_id, variant)
            return
        for observed_at in ("loaded", "after_warmup"):
            self._variant(pass_id, variant_id, variant, observed_at)
        self._readings(pass_id, variant)
        self.file.add(Warning(pass_id=pass_id, phase="load", warning_class="UserWarning", repeat_count=2))
        clock = self._warmup(pass_id, variant)
        started = clock
        if variant.batch > 1:
            self.file.add(BatchCheck(
                pass_id=pass_id, variant_id=variant_id, batch=variant.batch, checked_document_ids=self.own[:8],
                differing_document_ids=[document_id(i) for i in variant.check_differs], emptied_document_ids=[],
                first_difference_tokens=list(variant.check_differs.values()), padding_side="left",
                pad_token_source="tokenizer",
            ))  # fmt: skip
        done = order[: len(order) // 2] if is_killed else [i for i in order if i not in variant.missing]
        tokens = 0
        live_rows: Counter[str] = Counter()
        for number, rows in enumerate(
            done[start : start + variant.batch] for start in range(0, len(done), variant.batch)
        ):
            counts = []
            sent = clock
            for row, index in enumerate(rows):
                outcome = variant.outcomes.get(index, "right")
                if purpose in ("reference_repeat", "repetition") and index in variant.changed_in_repeat:
                    outcome = "wrong" if outcome == "right" else "right"
                request = self._request(pass_id, variant, index, "measure", sent, outcome)
                if variant.batch > 1:
                    request = msgspec.structs.replace(request, batch_row=row, batch_number=number, padding_tokens=row)
                clock = max(request.done_ns or clock, clock)
                counts.append(request.output_tokens or 0)
                self.file.add(request)
                self._score(pass_id, index, outcome)
            clock += MS
            tokens += sum(counts)
            live_rows.update(str(sum(count > step for count in counts)) for step in range(max(counts)))
        self.file.pass_time(clock)
        if is_killed:
            self.file.add(Failure(
                failure_scope="pass", failure_cause="killed", pass_id=pass_id, variant_id=variant_id,
                phase="measure", exit_code=-9,
            ))  # fmt: skip
            self.file.add(Decision(decision="restarted", decided_by="collector", pass_id=pass_id))
        failed = sum(variant.outcomes.get(i) in ("failed", "too_long") for i in done)
        self.file.add(PassEnd(
            pass_id=pass_id, pass_outcome="failed" if is_killed else "completed", distinct_document_count=len(done),
            try_count=len(done), completed_request_count=len(done) - failed, failed_request_count=failed,
            output_token_count=tokens, pass_ns=clock + 4_000 * MS, is_steady=True, warmup_request_count=2,
            phase_ns={"load": 3_000 * MS, "warmup": started, "measure": clock - started},
            live_row_steps=tokens if variant.batch > 1 else None,
            live_row_histogram=dict(live_rows) if variant.batch > 1 else {},
        ))  # fmt: skip
        if variant.reload is not None and repetition == 1 and not is_killed:
            self.reloads.append(ReloadCheck(
                pass_id=pass_id, variant_id=variant_id, checked_document_count=variant.reload[0],
                equal_answer_count=variant.reload[1], is_same_artefact=True, load_ns=2_000 * MS, answer_ns=900 * MS,
            ))  # fmt: skip

    def _failed_load(self, pass_id: str, variant_id: str, variant: VariantScript) -> None:
        if variant.failure != "interrupted":
            self.file.add(Failure(
                failure_scope="variant", failure_cause=variant.failure, pass_id=pass_id, variant_id=variant_id,
                phase=variant.failure_phase, exception_class="MemoryError", exit_code=1,
            ))  # fmt: skip
        if variant.batch > 1:
            detail = {"variant": variant.name, "from": str(variant.batch), "to": str(variant.batch // 2)}
            self.file.add(Decision(
                decision="batch_reduced", decided_by="collector", pass_id=pass_id, detail=detail | {"reason": "oom"},
            ))  # fmt: skip
        self.file.add(PassEnd(
            pass_id=pass_id, pass_outcome="interrupted" if variant.failure == "interrupted" else "failed",
            distinct_document_count=0, try_count=0, completed_request_count=0, failed_request_count=0,
            output_token_count=0, pass_ns=500 * MS, phase_ns={"load": 400 * MS},
        ))  # fmt: skip

    def _variant(self, pass_id: str, variant_id: str, variant: VariantScript, observed_at: Any) -> None:
        device_id = self.device.device_id
        element_bytes = 4 if variant.dtype == "float32" else 2
        self.file.add(Variant(
            variant_id=variant_id, pass_id=pass_id, variant_name=variant.name, observed_at=observed_at,
            model_id=self.lock.plan.model.id, model_revision="0" * 40,
            requested={"dtype": variant.dtype, "attention": "sdpa"},
            observed={"dtype": variant.dtype, "attention": "sdpa"}, origin="stored as 4-bit Q4_1 and dequantized",
            weight_storage=variant.dtype, compute_dtype=variant.dtype, attention="sdpa", cache_kind="dynamic",
            output_layer_format=variant.dtype, has_tied_embeddings=True,
            parameter_count=variant.weight_bytes // element_bytes, weight_bytes=variant.weight_bytes,
            claimed_weight_bytes=variant.weight_bytes, effective_bits=float(8 * element_bytes),
            dtype_bytes={variant.dtype: variant.weight_bytes}, device_map=_device_map(self.device), has_offload=False,
            file_digests={"model.safetensors": "7" * 64},
        ))  # fmt: skip
        shares: tuple[tuple[Any, int], ...] = (("embedding", 30), ("attention", 25), ("mlp", 44), ("norm", 1))
        for group, percent in shares:
            size = variant.weight_bytes * percent // 100
            self.file.add(TensorGroup(
                variant_id=variant_id, pass_id=pass_id, observed_at=observed_at, module_group=group,
                module_class="Linear", tensor_class="Parameter", storage_dtype=variant.dtype, device_id=device_id,
                tensor_count=4, element_count=size // element_bytes, tensor_bytes=size,
            ))  # fmt: skip

    def _readings(self, pass_id: str, variant: VariantScript) -> None:
        scopes: list[tuple[str, Any, int]] = [("cpu", "host", variant.peak_bytes)]
        if self.device.kind != "cpu":
            scopes += [
                (device_id, scope, variant.peak_bytes + (more + 8 * card) * 2**20)
                for card, device_id in enumerate(self.device.device_ids)
                for scope, more in (("allocated", 0), ("reserved", 64), ("process", 400), ("device", 900))
            ]
        phases: tuple[tuple[Any, int], ...] = (("load", 85), ("warmup", 95), ("measure", 100))
        statistics: tuple[tuple[Any, int], ...] = (("start", 60), ("peak", 100), ("end", 80))
        for phase, of_peak in phases:
            for device_id, scope, peak in scopes:
                is_sampled = scope in ("process", "device")
                for statistic, share in statistics:
                    self.file.add(Reading(
                        pass_id=pass_id, phase=phase, device_id=device_id, memory_scope=scope, statistic=statistic,
                        value_bytes=peak * of_peak * share // 10_000,
                        counter_method="sampled" if is_sampled else "counter",
                        sample_interval_ns=50 * MS if is_sampled else None,
                    ))  # fmt: skip

    def _warmup(self, pass_id: str, variant: VariantScript) -> int:
        clock = 0
        for index in range(2):
            request = self._request(pass_id, variant, index, "warmup", clock, "right")
            self.file.add(request)
            clock = (request.done_ns or clock) + MS
        return clock

    def _request(
        self, pass_id: str, variant: VariantScript, index: int, phase: Any, clock: int, outcome: str
    ) -> Request:
        prompt_tokens = {"short": 60, "usual": 120, "long": 260}[length_class(index)] + index % 7
        common: dict[str, Any] = {
            "pass_id": pass_id, "phase": phase, "document_id": self.own[index], "is_final": True,
            "intended_ns": clock, "prompt_tokens": prompt_tokens, "token_count_source": "scripted",
            "prompt_hmac": self.text("prompt", f"prompt {index}", self.own[index]), "start_token_count": 1,
        }  # fmt: skip
        if outcome == "too_long":
            return Request(finish_reason="not_started", request_outcome="too_long", failure_cause="too_long", **common)
        if outcome == "failed":
            return Request(
                sent_ns=clock, done_ns=clock + 40 * MS, finish_reason="error", request_outcome="failed",
                failure_cause="engine_error", missing={"first_token_ns": "failed"}, **common,
            )  # fmt: skip
        tokens = 48 if outcome == "truncated" else 1 if outcome == "empty" else 18 + (index * 7) % 20
        first = clock + variant.first_token_ns + prompt_tokens * 100_000 + self.random.randrange(5 * MS)
        gaps = [variant.token_gap_ns + self.random.randrange(MS) for _ in range(tokens - 1)]
        last = first + sum(gaps)
        buckets = [0] * (len(GAP_BUCKET_BOUNDS_NS) + 1) if gaps else []
        for gap in gaps:
            buckets[sum(gap > bound for bound in GAP_BUCKET_BOUNDS_NS)] += 1
        return Request(
            sent_ns=clock, first_chunk_ns=first, first_token_ns=first, last_token_ns=last, done_ns=last + 10_000,
            output_tokens=tokens, finish_reason="length" if outcome == "truncated" else "end_token",
            request_outcome="completed", gap_counts=buckets, gap_max_ns=max(gaps, default=None),
            answer_hmac=self.text("answer", self._answer(variant, index, outcome), self.own[index]), **common,
        )  # fmt: skip

    def _answer(self, variant: VariantScript, index: int, outcome: str) -> str:
        return f"answer {index} {outcome}" + (" in other words" if index in variant.other_answers else "")

    def skip_batch(self, variant: VariantScript) -> None:
        """Record that a batch was not tried since a smaller one ran out of memory."""
        detail = {"variant": variant.name, "batch": str(variant.batch), "reason": "out_of_memory"}
        self.file.add(Decision(decision="skipped", decided_by="collector", detail=detail))

    def _score(self, pass_id: str, index: int, outcome: Any, *, try_index: int = 0) -> None:
        right: list[str] = list(FIELDS) if outcome == "right" else ["date", "amount"] if outcome == "wrong" else []
        self.file.add(Score(
            pass_id=pass_id, document_id=self.own[index], try_index=try_index,
            rule_digest=p.rule_digest(self.lock.trial),
            scorer_digest="6" * 64, score_outcome=outcome, is_accepted=outcome == "right",
            is_well_formed=outcome in ("right", "wrong"), fields_right=right,
            fields_wrong=[name for name in FIELDS if name not in right],
            candidate_count=2 if index == 2 and outcome == "right" else int(outcome in ("right", "wrong")),
            normalisation_count=int(index == 4 and outcome == "right"),
        ))  # fmt: skip


def write_campaign(
    runs: Path,
    *,
    documents: int = 24,
    test_documents: int = 0,
    critical: int = 6,
    variants: Sequence[VariantScript] = (FP32, BF16),
    device: DeviceScript | None = None,
    gates: p.Gates | None = None,
    reference_runs: int = 2,
    repetitions: int = 1,
    batches: Sequence[VariantScript] = (),
    skipped_batches: Sequence[VariantScript] = (),
    stage: str = "validation",
    is_sealed: bool = True,
    has_texts: bool = False,
    run_id: str | None = None,
    protocol_name: str = "Invoices",
    start: str = "2026-01-02T09:00:00",
    seed: int = 1,
    only: Sequence[str] | None = None,
    decisions: Sequence[Decision] = (),
    model: str = TINY,
) -> CampaignFiles:
    """Write one run file of a plausible campaign into `runs`: the first variant is the reference and runs twice.

    Call it again with another `device` (same documents and gates) for a second machine under the same protocol, or
    with stage "test" (same documents, test documents and variants) for a confirmation. `only` names the variants
    beside the reference that run; `decisions` stand before the first pass.
    """
    device = device or DeviceScript()
    gates = gates or p.Gates(max_lost_points="5", subsets=[p.SubsetGate(subset="critical", min_accepted_percent="60")])
    lock = locked_protocol(documents, critical, variants, gates, repetitions, protocol_name, test_documents, model)
    began = dt.datetime.fromisoformat(start)
    run_id = run_id or hashlib.sha256(f"{device}{stage}{start}{seed}{protocol_name}".encode()).hexdigest()[:32]
    file = RecordFile(runs / f"{began:%Y%m%dT%H%M%SZ}-{run_id}.jsonl", run_id, began)
    builder = CampaignBuilder(file, lock, device, stage, seed)
    builder.setup()
    for decision in decisions:
        file.add(decision)
    for repetition in range(1, reference_runs + 1):
        builder.run_pass(variants[0], "reference" if repetition == 1 else "reference_repeat", repetition)
    for variant in variants[1:]:
        if only is not None and variant.name not in only:
            continue
        builder.run_pass(variant, "variant", 1)
        for repetition in range(2, repetitions + 1):
            builder.run_pass(variant, "repetition", repetition)
    numbers: dict[int, int] = {}
    for variant in batches:
        number = numbers[variant.batch] = numbers.get(variant.batch, 0) + 1
        builder.run_pass(variant, "series" if number == 1 else "repetition", number)
    for variant in skipped_batches:
        builder.skip_batch(variant)
    for check in builder.reloads:
        file.add(check)
    head = file.seal() if is_sealed else None
    path = file.write()
    if has_texts:
        builder.write_texts()
    (runs.parent / "protocol.lock.json").write_bytes(msgspec.json.encode(lock))
    return CampaignFiles(runs, path, run_id, lock, SALT, head)


def confirmed(look: int = 1, **detail: str) -> list[Decision]:
    """Return the two decisions with which a run on the test documents begins."""
    choice = {"choice_digest": "c" * 64, "label": "b", "dossier_id": "SD-2026-001", "records_digest": "d" * 64}
    return [
        Decision(decision="choice_confirmed", decided_by="collector", detail=choice | detail),
        Decision(decision="test_set_looked_at", decided_by="collector", detail={"look": str(look)}),
    ]


@dataclass(frozen=True)
class CampaignKit:
    """The builder's parts, since test modules cannot import one another: call it to write a campaign."""

    write: Callable[..., CampaignFiles] = write_campaign
    variant: Callable[..., VariantScript] = VariantScript
    device: Callable[..., DeviceScript] = DeviceScript
    file: Callable[..., RecordFile] = RecordFile
    rechain: Callable[..., list[bytes]] = rechain
    confirmed: Callable[..., list[Decision]] = confirmed
    document_id: Callable[[int], str] = document_id
    builder: type[CampaignBuilder] = CampaignBuilder
    locked: Callable[..., p.Lock] = locked_protocol
    files: Callable[..., CampaignFiles] = CampaignFiles
    salt: bytes = SALT
    fp32: VariantScript = FP32
    bf16: VariantScript = BF16

    def __call__(self, runs: Path, **options: Any) -> CampaignFiles:
        return self.write(runs, **options)


@pytest.fixture(scope="session")
def campaign_records() -> CampaignKit:
    """Write run files of whole campaigns: `campaign_records(tmp_path / "runs", variants=(kit.fp32, ...))`."""
    return CampaignKit()


@pytest.fixture
def texts_of() -> Callable[[Path], dict[str, str]]:
    """Read a run file's texts: HMAC -> text."""

    def read(path: Path) -> dict[str, str]:
        lines = path.with_name(path.name.replace(".jsonl", ".texts.jsonl")).read_text().splitlines()[1:]
        return {entry["hmac"]: entry["text"] for entry in map(json.loads, lines)}

    return read
