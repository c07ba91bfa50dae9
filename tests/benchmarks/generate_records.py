"""Writes a generated campaign: run files whose records are drawn from a recorded run, and their campaign.toml.

    python tests/benchmarks/generate_records.py OUT [--cards 5 --variants 6 --cells 4 --repetitions 5 --documents 300]

It is no measurement, and says so wherever that can be read: in the names of protocol and cards, as the collector's
version, as a warning in each run, and through the engine `scripted`, which the dossier names before anything else.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import math
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from generated_campaign import write_campaign_file
from generated_grid import GIB, MODEL_SCALE, Card, Cell, Grid, VariantKind
from recorded_pool import Pool, read_pool, run_files

from collector.append_file import AppendFile
from collector.clock import FakeClock
from collector.contract import protocol as p
from collector.contract import records as r
from collector.contract.digests import short_id, text_hmac
from collector.contract.texts import TextsHeader, texts_path
from collector.journal import Journal

RECORDED = Path(__file__).parents[2] / "sample_runs" / "labelled" / "runs"
MS = 1_000_000
S = 1_000 * MS
FAILED = frozenset({"too_long", "failed"})
TOO_LONG_DOCUMENT, FAILING_DOCUMENT = 7, 11


class GeneratedRun(NamedTuple):
    """One run file as written. The times are those of its first and last record."""

    path: Path
    run_id: str
    card: Card
    began: dt.datetime
    ended: dt.datetime


def generate(out: Path, grid: Grid, *, recorded: Path = RECORDED) -> list[GeneratedRun]:
    """Write one run file per card into `out/runs` and `out/campaign.toml`; equal grids give equal bytes."""
    pool = read_pool(run_files(recorded))
    documents = Documents(pool, grid)
    runs = out / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    written = [CardRun(runs, pool, grid, documents, index).write() for index in range(len(grid.cards))]
    write_campaign_file(out / "campaign.toml", grid, [(run.card, run.run_id, run.began, run.ended) for run in written])
    return written


class Documents:
    """The generated documents, how hard each is, and the lock that names them."""

    def __init__(self, pool: Pool, grid: Grid) -> None:
        self.salt = hashlib.sha256(f"generated {grid.seed}".encode()).digest()
        self.patterns = [pool.documents[i % len(pool.documents)] for i in range(grid.documents)]
        draw = random.Random(f"{grid.seed} documents")
        groups = [f"{one.cluster}-{i // len(pool.documents) // 2 + 1}" for i, one in enumerate(self.patterns)]
        of_group = {group: draw.gauss(0, 0.6) for group in dict.fromkeys(groups)}
        self.hardness = [of_group[group] + draw.gauss(0, 0.8) for group in groups]
        self.locked = [
            p.LockedDocument(
                document_id=f"val-{i + 1:03d}", role="validation", length_class=one.length_class, is_hard=one.is_hard,
                subsets=one.subsets, cluster=group, language=one.language,
                text_hmac=self.hmac(f"text {i}"), expected_hmac=self.hmac(f"expected {i}"),
            )
            for i, (one, group) in enumerate(zip(self.patterns, groups, strict=True))
        ]  # fmt: skip
        self.lock = _lock(pool.lock, grid, self.locked)
        self.prompts = [self.hmac(f"prompt {i}") for i in range(grid.documents)]
        self.tokens = [self.hmac(f"tokens {i}") for i in range(grid.documents)]
        self._answers: dict[str, str] = {}

    def hmac(self, text: str) -> str:
        return str(text_hmac(self.salt, text))

    def answer(self, text: str) -> str:
        found = self._answers.get(text)
        if found is None:
            found = self._answers[text] = self.hmac(text)
        return found


def _lock(recorded: p.Lock, grid: Grid, documents: list[p.LockedDocument]) -> p.Lock:
    trial = msgspec.structs.replace(
        recorded.trial, name=f"GENERATED from: {recorded.trial.name}", reference=grid.variants[0].name,
        documents_digest=p.documents_digest(documents),
    )  # fmt: skip
    plan = p.LockedPlan(
        model=recorded.plan.model, engine=p.EngineChoice(name="scripted", script="generated"),
        engine_script_sha256="0" * 64,
        variants=[p.VariantChoice(name=v.name, dtype=v.dtype, quantization=v.quantization) for v in grid.variants],
        plan=p.PlanChoice(
            reference=grid.variants[0].name, reference_runs=grid.repetitions, repetitions=grid.repetitions,
            warmup_requests=grid.warmup_requests, batches=[cell.batch for cell in grid.cells if cell.batch > 1],
        ),
    )  # fmt: skip
    protocol_id = p.protocol_digest(trial)
    return p.Lock(
        lock_format=1, frozen_at="2026-06-01T08:00:00.000000Z", protocol_id=protocol_id,
        plan_id=p.plan_digest(protocol_id, plan), trial=trial, plan=plan, documents=documents,
    )  # fmt: skip


class CardRun:
    """Writes the run file of one card, pass after pass."""

    def __init__(self, runs: Path, pool: Pool, grid: Grid, documents: Documents, card: int) -> None:
        self.pool, self.grid, self.documents, self.place = pool, grid, documents, card
        self.card = grid.cards[card]
        self.start = dt.datetime(2026, 6, 2 + 3 * card, 8, tzinfo=dt.UTC)
        self.clock = FakeClock(start_utc=self.start.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        self.run_id = hashlib.sha256(f"{grid} {self.card}".encode()).hexdigest()[:32]
        self.path = runs / f"{self.start:%Y%m%dT%H%M%SZ}-{self.run_id}.jsonl"
        self.environment_id = short_id({"generated": self.card.name})
        self.engine_id = short_id({"engine": "scripted", "version": "generated"})

    def write(self) -> GeneratedRun:
        main, texts = AppendFile.create(self.path), AppendFile.create(texts_path(self.path))
        texts.append(msgspec.json.encode(TextsHeader(run_id=self.run_id, salt_hex=self.documents.salt.hex())) + b"\n")
        with Journal(
            main=main, texts=texts, run_id=self.run_id, salt=self.documents.salt, clock=self.clock, on_acknowledged=None
        ) as self.journal:
            self._set_up()
            for variant in range(len(self.grid.variants)):
                for cell in range(len(self.grid.cells)):
                    self._configuration(variant, cell)
            self.journal.seal()
        if not self.grid.has_texts:
            texts_path(self.path).unlink()
        ended = dt.datetime.fromisoformat(self.clock.utc())
        return GeneratedRun(self.path, self.run_id, self.card, self.start, ended)

    def _set_up(self) -> None:
        lock, recorded = self.documents.lock, self.pool.environment
        bare = msgspec.json.encode(msgspec.structs.replace(lock, documents=[])).decode()
        self.journal.append(r.Header(
            format=1, stage="validation", protocol_json=bare, protocol_id=lock.protocol_id, plan_id=lock.plan_id,
            rental_id=f"rental-{self.card.slug}", collector_version="generated", wall_at=self.clock.utc(),
            monotonic_ns=self.clock.monotonic_ns(),
        ))  # fmt: skip
        for document in lock.documents:
            self.journal.append(r.Document(**msgspec.structs.asdict(document)))
        self.journal.append(msgspec.structs.replace(
            recorded, environment_id=self.environment_id, driver_version="generated", cuda_version="generated",
            missing={k: why for k, why in recorded.missing.items() if k not in ("driver_version", "cuda_version")},
        ))  # fmt: skip
        self.journal.append(r.Device(
            environment_id=self.environment_id, device_id="cpu", device_kind="cpu", device_name="Generated CPU",
            device_memory_bytes=recorded.host_memory_bytes, missing={"device_uuid": "not_applicable"},
        ))  # fmt: skip
        self.journal.append(r.Device(
            environment_id=self.environment_id, device_id="cuda:0", device_kind="cuda", device_name=self.card.name,
            device_uuid=f"GPU-GENERATED-{self.place:08d}", device_memory_bytes=self.card.memory_gib * GIB,
            compute_capability="0.0", foreign_process_count=0, missing={"power_limit_mw": "not_measured"},
        ))  # fmt: skip
        self.journal.append(msgspec.structs.replace(
            self.pool.engine, engine_id=self.engine_id, engine_name="scripted", engine_version="generated",
            engine_flags={"device": "cuda:0"}, engine_evidence="claimed",
        ))  # fmt: skip
        self.journal.append(r.Warning(warning_class="generated"))
        self.journal.flush()

    def _configuration(self, variant: int, cell: int) -> None:
        kind, load = self.grid.variants[variant], self.grid.cells[cell]
        for repetition in range(1, self.grid.repetitions + 1):
            if self.grid.never_ran(self.place, variant, cell, repetition):
                continue
            one = PassWriter(self, variant, cell, repetition, attempt=1)
            if self.grid.has_failures and one.peak_bytes() > self.card.memory_gib * GIB:
                one.out_of_memory()
                detail = {"variant": kind.name, "batch": str(load.batch), "reason": "out_of_memory"}
                self.journal.append(r.Decision(decision="skipped", decided_by="collector", detail=detail))
                return
            if self.grid.is_killed_once(self.place, variant, cell, repetition):
                one.write(is_killed=True)
                one = PassWriter(self, variant, cell, repetition, attempt=2)
            one.write(is_killed=False)


class PassWriter:
    """Writes one pass: its key, set-up, readings, warm-up, answers, judgements and end."""

    def __init__(self, run: CardRun, variant: int, cell: int, repetition: int, attempt: int) -> None:
        self.run, self.pool, self.documents, self.journal = run, run.pool, run.documents, run.journal
        self.kind: VariantKind = run.grid.variants[variant]
        self.load: Cell = run.grid.cells[cell]
        self.cell, self.repetition = cell, repetition
        self.is_reference = variant == cell == 0
        mark = f"{run.grid.seed} {run.card.name} {self.kind.name} {self.load}"
        self.draw = random.Random(f"{mark} {repetition} {attempt}")
        self.speed = run.card.speed * self.kind.time * (1 + self.draw.gauss(0, 0.015))
        self.variant_id = short_id({"generated": self.kind.name, "dtype": self.kind.dtype})
        self.key: dict[str, Any] = {
            "protocol_id": self.documents.lock.protocol_id, "stage": "validation",
            "environment_id": run.environment_id, "engine_id": run.engine_id, "variant_id": self.variant_id,
            "batch": self.load.batch, "concurrency": self.load.concurrency, "cache_kind": "dynamic",
            "output_limit_tokens": self.documents.lock.trial.generation.max_new_tokens, "repetition": repetition,
            "attempt": attempt,
        }  # fmt: skip
        self.pass_id = short_id(self.key)
        self.like = self.pool.passes[self.kind.like]

    def peak_bytes(self) -> int:
        weights = (self.like.variants[-1].weight_bytes or 0) * MODEL_SCALE
        return round(weights * 1.02 + self.load.batch * GIB * 1.1)

    def write(self, *, is_killed: bool) -> None:
        order = list(range(len(self.documents.locked)))
        if self.is_reference and self.repetition > 1:
            random.Random(self.repetition).shuffle(order)
        self._begin(order)
        self._side_records()
        clock = started = self._warm_up()
        if self.load.batch > 1:
            checked = [self.documents.locked[i].document_id for i in order[:8]]
            self.journal.append(r.BatchCheck(
                pass_id=self.pass_id, variant_id=self.variant_id, batch=self.load.batch, checked_document_ids=checked,
                differing_document_ids=[], emptied_document_ids=[], first_difference_tokens=[], padding_side="left",
                pad_token_source="unknown_token",
            ))  # fmt: skip
        asked = order[: len(order) // 2] if is_killed else order
        tokens, failed, live_rows = 0, 0, Counter[str]()
        for number, first in enumerate(range(0, len(asked), self.load.batch)):
            rows = asked[first : first + self.load.batch]
            requests = [self._request(index, clock) for index in rows]
            longest = max(one.prompt_tokens or 0 for one in requests)
            for row, (index, request) in enumerate(zip(rows, requests, strict=True)):
                if self.load.batch > 1:
                    request = _in_batch(request, row, number, longest)
                failed += request.request_outcome != "completed"
                self.journal.append(request)
                self.journal.append(self._score(index, request))
            counts = [one.output_tokens or 0 for one in requests]
            tokens += sum(counts)
            live_rows.update(str(sum(count > step for count in counts)) for step in range(max(counts)))
            done = max(one.done_ns or clock for one in requests)
            self.run.clock.advance_ns(done - clock + MS // 10)
            clock = done + MS // 10
        if is_killed:
            self.journal.append(r.Failure(
                failure_scope="pass", failure_cause="killed", pass_id=self.pass_id, variant_id=self.variant_id,
                phase="measure", exit_code=-9,
            ))  # fmt: skip
            self.journal.append(r.Decision(decision="restarted", decided_by="collector", pass_id=self.pass_id))
        load_ns = round(self.like.end.phase_ns["load"] * (1 + self.draw.gauss(0, 0.05)))
        self.run.clock.advance_ns(load_ns + started)
        self.journal.append(r.PassEnd(
            pass_id=self.pass_id, pass_outcome="failed" if is_killed else "completed",
            distinct_document_count=len(asked), try_count=len(asked), completed_request_count=len(asked) - failed,
            failed_request_count=failed, output_token_count=tokens, pass_ns=load_ns + clock + 2 * S,
            phase_ns={"load": load_ns, "warmup": started, "measure": clock - started}, is_steady=True,
            warmup_request_count=self.run.grid.warmup_requests, live_row_steps=tokens,
            live_row_histogram=dict(live_rows),
        ))  # fmt: skip
        self.journal.flush()

    def out_of_memory(self) -> None:
        """Write an attempt that ends while warming up."""
        self._begin(list(range(len(self.documents.locked))))
        self.journal.append(r.Failure(
            failure_scope="variant", failure_cause="out_of_memory", pass_id=self.pass_id, variant_id=self.variant_id,
            phase="warmup", exception_class="OutOfMemoryError", exit_code=1,
        ))  # fmt: skip
        if self.load.batch > 1:
            detail = {"variant": self.kind.name, "from": str(self.load.batch), "to": str(self.load.batch // 2)}
            self.journal.append(r.Decision(
                decision="batch_reduced", decided_by="collector", pass_id=self.pass_id,
                detail=detail | {"reason": "out_of_memory"},
            ))  # fmt: skip
        self.run.clock.advance_ns(9 * S)
        self.journal.append(r.PassEnd(
            pass_id=self.pass_id, pass_outcome="failed", distinct_document_count=0, try_count=0,
            completed_request_count=0, failed_request_count=0, output_token_count=0, pass_ns=9 * S,
            phase_ns={"load": 7 * S, "warmup": S},
        ))  # fmt: skip
        self.journal.flush()

    def _begin(self, order: list[int]) -> None:
        is_first, is_reference = self.repetition == 1, self.kind == self.run.grid.variants[0]
        if self.is_reference:
            purpose, factor = ("reference", "none") if is_first else ("reference_repeat", "order")
        else:
            purpose = "repetition" if not is_first else "variant" if self.cell == 0 else "series"
            factor = "batch" if is_reference else "weights" if self.cell == 0 else "several"
        self.journal.append(r.PassBegin(
            pass_id=self.pass_id, variant_name=self.kind.name, purpose=purpose, factor=factor,
            series="batch" if factor == "batch" else "weights", expected_document_count=len(order),
            document_order=[self.documents.locked[i].document_id for i in order], began_at=self.run.clock.utc(),
            missing=dict.fromkeys(
                ("rate_per_s", "context_tokens", "arrival_seed", "cache_state"), "not_applicable"
            ), **self.key,
        ))  # fmt: skip

    def _side_records(self) -> None:
        mine = {"pass_id": self.pass_id}
        variant = {"variant_id": self.variant_id, "variant_name": self.kind.name, "compute_dtype": self.kind.dtype}
        for one in self.like.variants:
            scaled = {
                name: value * MODEL_SCALE
                for name in ("parameter_count", "weight_bytes", "claimed_weight_bytes")
                if (value := getattr(one, name)) is not None
            }
            self.journal.append(msgspec.structs.replace(
                one, **mine, **variant, **scaled, device_map={"": "cuda:0"},
                dtype_bytes={dtype: size * MODEL_SCALE for dtype, size in one.dtype_bytes.items()},
            ))  # fmt: skip
        for group in self.like.groups:
            self.journal.append(msgspec.structs.replace(
                group, **mine, variant_id=self.variant_id, device_id="cuda:0",
                element_count=group.element_count * MODEL_SCALE, tensor_bytes=group.tensor_bytes * MODEL_SCALE,
            ))  # fmt: skip
        for note in (*self.like.telemetry, *self.like.warnings):
            self.journal.append(msgspec.structs.replace(note, **mine))
        self._readings()

    def _readings(self) -> None:
        peak = round(self.peak_bytes() * (1 + abs(self.draw.gauss(0, 0.002))))
        scopes = (
            ("cuda:0", "allocated", peak), ("cuda:0", "reserved", round(peak * 1.03)),
            ("cuda:0", "process", round(peak * 1.03) + 400 * 2**20),
            ("cuda:0", "device", round(peak * 1.03) + 700 * 2**20), ("cpu", "host", 3 * GIB + peak // 50),
        )  # fmt: skip
        for phase, of_peak in (("load", 85), ("warmup", 95), ("measure", 100)):
            for device_id, scope, value in scopes:
                is_sampled = scope in ("process", "device")
                for statistic, share in (("start", 60), ("peak", 100), ("end", 80)):
                    self.journal.append(r.Reading(
                        pass_id=self.pass_id, phase=phase, device_id=device_id, memory_scope=scope,
                        statistic=statistic, value_bytes=value * of_peak * share // 10_000,
                        counter_method="sampled" if is_sampled else "counter",
                        sample_interval_ns=50 * MS if is_sampled else None,
                    ))  # fmt: skip

    def _warm_up(self) -> int:
        clock = MS
        for index in range(self.run.grid.warmup_requests):
            request = self._request(index, clock)
            request = msgspec.structs.replace(request, phase="warmup")
            if self.load.batch > 1:
                request = _in_batch(request, 0, index, request.prompt_tokens or 0)
            self.journal.append(request)
            clock = (request.done_ns or clock) + MS
        return clock

    def _request(self, index: int, clock: int) -> r.Request:
        """Return a recorded answer to a document of this pattern, as fast as this card and variant are."""
        pattern = self.documents.patterns[index]
        recorded = self.draw.choice(self._answers(pattern.document_id))
        common: dict[str, Any] = {
            "pass_id": self.pass_id, "phase": "measure", "document_id": self.documents.locked[index].document_id,
            "intended_ns": clock, "prompt_hmac": self.documents.prompts[index], "batch_row": 0, "batch_number": 0,
            "prompt_token_hmac": self.documents.tokens[index], "padding_tokens": None,
        }  # fmt: skip
        nulls = {"first_chunk_ns", "padding_tokens", "reasoning_tokens", "cached_tokens"}
        missing = {name: recorded.missing.get(name, "not_applicable") for name in nulls}
        outcome = self._outcome(index)
        if outcome in FAILED:
            is_long = outcome == "too_long"
            return msgspec.structs.replace(
                recorded, **common, sent_ns=None if is_long else clock, first_token_ns=None, last_token_ns=None,
                done_ns=None if is_long else clock + 40 * MS, output_tokens=None, gap_counts=[], gap_max_ns=None,
                answer_hmac=None, finish_reason="not_started" if is_long else "error",
                request_outcome="too_long" if is_long else "failed",
                failure_cause="too_long" if is_long else "engine_error",
                missing=missing | {"output_tokens": "failed"},
            )  # fmt: skip
        factor = self.speed * self.draw.lognormvariate(0, 0.06)
        intended, tokens = recorded.intended_ns, recorded.output_tokens or 1
        first = clock + round(((recorded.first_token_ns or 0) - intended) * factor)
        last = first + round(((recorded.last_token_ns or 0) - (recorded.first_token_ns or 0)) * factor)
        return msgspec.structs.replace(
            recorded, **common, sent_ns=clock, first_token_ns=first, last_token_ns=last, done_ns=last + 200_000,
            gap_counts=shifted(recorded.gap_counts, factor), gap_max_ns=_scaled(recorded.gap_max_ns, factor),
            finish_reason="length" if outcome == "truncated" else recorded.finish_reason, output_tokens=tokens,
            answer_hmac=self.documents.answer(self._answer_text(index, outcome)), missing=missing,
        )  # fmt: skip

    def _answers(self, pattern: str) -> list[r.Request]:
        of_batch = self.pool.answers.get(self.load.batch) or self.pool.answers[1]
        return of_batch.get(pattern) or self.pool.answers[1][pattern]

    def _outcome(self, index: int) -> str:
        """Return what is judged of this document here: hard ones fail everywhere, close ones now and then."""
        if self.run.grid.has_failures and index == TOO_LONG_DOCUMENT:
            return "too_long"
        mark = f"{self.run.grid.seed} {self.kind.name} {index}"
        if self.run.grid.has_failures and index == FAILING_DOCUMENT and self.kind is self.run.grid.variants[-1]:
            return "failed"
        of_variant = _unit(mark) * 0.5
        of_cell = _unit(f"{mark} {self.load}") * 0.06
        of_pass = _unit(f"{mark} {self.pass_id}") * 0.04
        if self.documents.hardness[index] + of_variant + of_cell + of_pass < self.kind.accepts:
            return "right"
        wrong = sorted(outcome for outcome in self.pool.scores if outcome != "right")
        weights = [len(self.pool.scores[outcome]) for outcome in wrong]
        return random.Random(mark).choices(wrong, weights)[0] if wrong else "wrong"

    def _answer_text(self, index: int, outcome: str) -> str:
        """Return what stands for the answer's text: equal ones have equal HMACs."""
        other = _unit(f"{index} {self.kind.name} {self.load} {self.run.card.name} words") > 1.9
        mark = f" {self.kind.name} {self.load}" if other or outcome != "right" else ""
        return f"answer {index} {outcome}{mark}"

    def _score(self, index: int, request: r.Request) -> r.Score:
        outcome: Any = self._outcome(index)
        pattern = self.pool.scores.get(outcome)
        rule = p.rule_digest(self.documents.lock.trial)
        if pattern:
            found = pattern[index % len(pattern)]
            return msgspec.structs.replace(
                found, pass_id=self.pass_id, document_id=request.document_id, rule_digest=rule,
                is_accepted=outcome == "right",
            )  # fmt: skip
        return r.Score(
            pass_id=self.pass_id, document_id=request.document_id, rule_digest=rule, scorer_digest="6" * 64,
            score_outcome=outcome, is_accepted=False, is_well_formed=False, fields_right=[],
            fields_wrong=[field.name for field in self.documents.lock.trial.fields],
        )  # fmt: skip


def _in_batch(request: r.Request, row: int, number: int, longest: int) -> r.Request:
    missing = {name: why for name, why in request.missing.items() if name != "padding_tokens"}
    return msgspec.structs.replace(
        request, batch_row=row, batch_number=number, padding_tokens=longest - (request.prompt_tokens or 0),
        missing=missing,
    )  # fmt: skip


def _scaled(value: int | None, factor: float) -> int | None:
    return None if value is None else round(value * factor)


def shifted(counts: list[int], factor: float) -> list[int]:
    """Return the histogram of gaps that take `factor` times as long: ten buckets are one decade."""
    steps, last = round(10 * math.log10(factor)), len(counts) - 1
    moved = [0] * len(counts)
    for bucket, count in enumerate(counts):
        if count:
            moved[min(max(bucket + steps, 0), last)] += count
    return moved


def _unit(mark: str) -> float:
    """Return a number that belongs to the mark, about normal with deviation one: a sum of twelve bytes."""
    digest = hashlib.blake2b(mark.encode(), digest_size=12).digest()
    return (sum(digest) - 1530) / 256


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    for name, default in (("cards", 5), ("variants", 6), ("cells", 4), ("repetitions", 5), ("documents", 300)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recorded", type=Path, default=RECORDED)
    given = parser.parse_args()
    grid = Grid.first(
        given.cards, given.variants, given.cells, given.repetitions, given.documents, seed=given.seed
    )  # fmt: skip
    for run in generate(given.out, grid, recorded=given.recorded):
        sys.stdout.write(f"{run.path.name}: {run.card.name}, {run.path.stat().st_size / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
