"""Campaigns of an in-process reference and variants behind servers: closed loops, open loops, what can go wrong there.

Test modules get the plain builder as the fixture `campaign_records`; here it is given as `kit`. Times are simulated:
a closed loop has `concurrency` places, an open one sends at its drawn arrivals whatever was answered.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from collector.contract import protocol as p
from collector.contract.digests import short_id
from collector.contract.records import (
    ClientWindow,
    Engine,
    Failure,
    PassBegin,
    PassEnd,
    Request,
    Scrape,
    ServerClaim,
    Variant,
)
from collector.request_records import gap_counts

Kit = Any
MS = 1_000_000
SECOND = 1_000_000_000
OUTPUT_LIMIT = 48


@dataclass(frozen=True)
class LoadScript:
    """One load of one server, in all its repetitions: how requests are put to it, and what comes of them.

    first_token_ns and token_gap_ns: of one request under this load; where not given, the server's own, slower the more
    requests are under way. `outcomes` maps a document's index to `wrong`, `failed`, `lost` (failed after tokens had
    come), `empty`, `too_long`, `truncated` or `in_reasoning` (cut off while thinking).
    retried: index -> tries before the final one.
    output_tokens, cached_share, late_ns and server_prompt_gap give each request the same; `late` delays single ones.
    """

    concurrency: int = 1
    rate_per_s: float | None = None
    arrivals: str = "poisson"
    first_token_ns: int | None = None
    token_gap_ns: int | None = None
    output_tokens: int | None = None
    outcomes: Mapping[int, str] = field(default_factory=dict)
    other_answers: frozenset[int] = frozenset()
    retried: Mapping[int, int] = field(default_factory=dict)
    late_ns: int = 20_000
    late: Mapping[int, int] = field(default_factory=dict)
    cached_share: float | None = 0.0
    """Null: the server tells nothing of reuse."""
    tokens_per_chunk: int = 1
    count_source: str = "usage"
    estimated: frozenset[int] = frozenset()
    """Documents whose output was counted by the client from the text, whatever count_source says."""
    thinking_tokens: int = 0
    server_prompt_gap: int = 0
    """The server's count of prompt tokens less the collector's own."""
    evidence: str = "server_tokenizer"
    has_token_hmac: bool = True
    is_limit: bool = False
    limit_reasons: tuple[str, ...] = ()
    client: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the measured phase's ClientWindow that are to be others."""
    scrapes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Moment -> metrics; the moments `before`, `during` and `after` are written in that order."""
    engine_ns: tuple[int, int, int] | None = None
    """Queue, prefill and decode time by the engine's clock, of each request."""
    speed_by_repetition: Mapping[int, float] = field(default_factory=dict)
    """Repetition -> factor on every duration."""
    repetitions: int = 1
    failure: str | None = None
    """Cause that ends the pass in its load phase."""

    @property
    def loop(self) -> str:
        return "closed" if self.rate_per_s is None else self.arrivals


@dataclass(frozen=True)
class ServerScript:
    """One variant behind one server, and its loads in the order of the plan."""

    name: str = "vllm"
    kind: str = "vllm"
    engine_name: str = ""
    """As the collector names it: the server's kind where nothing is given."""
    engine_version: str = "0.32.0"
    first_token_ns: int = 60 * MS
    token_gap_ns: int = 12 * MS
    loads: Sequence[LoadScript] = (LoadScript(), LoadScript(concurrency=4))
    cache_state: str = "cold"
    peak_bytes: int = 2_400_000_000
    claims: Mapping[str, str] = field(default_factory=lambda: {"version": "0.32.0", "model": "tiny"})


class Served(NamedTuple):
    """What was written: the campaign's files, and label (`vllm~c4/1/1`) -> pass id."""

    files: Any
    pass_ids: dict[str, str]


def write_served(
    kit: Kit,
    runs: Path,
    *,
    servers: Sequence[ServerScript] = (ServerScript(),),
    documents: int = 24,
    critical: int = 6,
    reference: Any = None,
    reference_runs: int = 2,
    has_reference_at_end: bool = False,
    gates: p.Gates | None = None,
    device: Any = None,
    start: str = "2026-01-02T09:00:00",
    seed: int = 1,
    is_sealed: bool = True,
    protocol_name: str = "Invoices",
) -> Served:
    """Write one run file: the reference in process, then every server one request at a time, at c, at r.

    has_reference_at_end: the last repeat of the reference runs after everything else, to show drift.
    """
    reference = reference or kit.fp32
    device = device or kit.device()
    gates = gates or p.Gates(max_lost_points="5", subsets=[p.SubsetGate(subset="critical", min_accepted_percent="60")])
    lock = _lock(kit, reference, servers, gates=gates, documents=documents, critical=critical, name=protocol_name)
    began = dt.datetime.fromisoformat(start)
    run_id = hashlib.sha256(f"served{device}{start}{seed}{protocol_name}".encode()).hexdigest()[:32]
    file = kit.file(runs / f"{began:%Y%m%dT%H%M%SZ}-{run_id}.jsonl", run_id, began)
    builder = _builder_class(kit)(file, lock, device, "validation", seed)
    builder.setup()
    passes = _ServedPasses(builder)
    for server in servers:
        passes.describe(server)
    early = reference_runs - 1 if has_reference_at_end else reference_runs
    for number in range(1, early + 1):
        builder.run_pass(reference, "reference" if number == 1 else "reference_repeat", number)
    for wanted in (_is_plain, _is_concurrent, _is_open):
        chosen = [(server, load) for server in servers for load in server.loads if wanted(load)]
        for repetition in range(1, max((load.repetitions for _, load in chosen), default=0) + 1):
            for server, load in chosen if repetition % 2 else chosen[::-1]:
                if repetition <= load.repetitions:
                    passes.run(server, load, repetition)
    if has_reference_at_end:
        builder.run_pass(reference, "reference_repeat", reference_runs)
    head = file.seal() if is_sealed else None
    path = file.write()
    (runs.parent / "protocol.lock.json").write_bytes(msgspec.json.encode(lock))
    return Served(kit.files(runs, path, run_id, lock, kit.salt, head), passes.pass_ids)


def _is_plain(load: LoadScript) -> bool:
    return load.concurrency == 1 and load.rate_per_s is None


def _is_concurrent(load: LoadScript) -> bool:
    return load.concurrency > 1 and load.rate_per_s is None


def _is_open(load: LoadScript) -> bool:
    return load.rate_per_s is not None


def _lock(kit: Kit, reference: Any, servers: Sequence[ServerScript], *, gates: p.Gates, **options: Any) -> p.Lock:
    bare = kit.locked(
        options["documents"], options["critical"], [reference], gates, 1, options["name"]
    )  # fmt: skip
    loads = [load for server in servers for load in server.loads]
    plan = msgspec.structs.replace(
        bare.plan,
        servers=[
            p.ServerChoice(
                name=server.name, kind=server.kind, url="http://127.0.0.1:8000", cache_state=server.cache_state
            )
            for server in servers
        ],
        variants=[*bare.plan.variants, *(p.VariantChoice(name=each.name, server=each.name) for each in servers)],
        plan=msgspec.structs.replace(
            bare.plan.plan,
            concurrencies=sorted({load.concurrency for load in loads if _is_concurrent(load)}),
            rates=sorted({load.rate_per_s for load in loads if load.rate_per_s is not None}),
            in_flight_limit=max((load.concurrency for load in loads if _is_open(load)), default=64),
        ),
    )
    return msgspec.structs.replace(bare, plan=plan, plan_id=p.plan_digest(bare.protocol_id, plan))


def _builder_class(kit: Kit) -> Any:
    class Builder(kit.builder):  # type: ignore[misc]
        """The plain builder, its reference's prompts known by their token ids as the collector's are."""

        def _request(self, *args: Any, **more: Any) -> Request:
            request: Request = super()._request(*args, **more)
            hmac = self.text("token_ids", f"ids {request.document_id}", request.document_id)
            return msgspec.structs.replace(request, prompt_token_hmac=hmac)

    return Builder


class _ServedPasses:
    """Writes the passes behind servers with the plain builder's file, documents and scores."""

    def __init__(self, builder: Any) -> None:
        self.builder, self.file = builder, builder.file
        self.random = random.Random(7)
        self.pass_ids: dict[str, str] = {}

    def describe(self, server: ServerScript) -> None:
        self.file.add(Engine(
            engine_id=self._engine_id(server), engine_name=server.engine_name or server.kind,
            engine_version=server.engine_version,
            engine_flags={"server": server.name, "kind": server.kind}, engine_evidence="claimed",
        ))  # fmt: skip

    def run(self, server: ServerScript, load: LoadScript, repetition: int) -> None:
        builder, lock = self.builder, self.builder.lock
        variant_id = short_id({"variant": server.name})
        key: dict[str, Any] = {
            "protocol_id": lock.protocol_id, "stage": builder.stage, "environment_id": builder.environment_id,
            "engine_id": self._engine_id(server), "variant_id": variant_id, "batch": 1,
            "concurrency": load.concurrency, "rate_per_s": load.rate_per_s, "cache_kind": "engine",
            "output_limit_tokens": OUTPUT_LIMIT, "repetition": repetition, "attempt": 1,
        }  # fmt: skip
        is_open = load.rate_per_s is not None
        pass_id = short_id(key | ({"arrivals": load.arrivals} if is_open else {}))
        grown = f"~r{load.rate_per_s:g}" if is_open else f"~c{load.concurrency}" if load.concurrency > 1 else ""
        self.pass_ids[f"{server.name}{grown}/{repetition}/1"] = pass_id
        first = "series" if grown else "variant"
        self.file.add(PassBegin(
            pass_id=pass_id, variant_name=server.name, purpose=first if repetition == 1 else "repetition",
            factor="several" if grown else "engine",
            series="rate" if is_open else "concurrency" if grown else "engine",
            arrivals=load.loop, arrival_seed=1000 + repetition if is_open else None, cache_state=server.cache_state,
            document_order=list(builder.own), expected_document_count=len(builder.own), began_at=self.file.utc(), **key,
        ))  # fmt: skip
        if load.failure is not None:
            self._failed(pass_id, variant_id, load)
            return
        self._described(pass_id, variant_id, server)
        warmup = self._window(pass_id, server, load, "warmup", repetition, 0)
        measured = self._window(pass_id, server, load, "measure", repetition, warmup.end_ns)
        self._of_the_window(pass_id, load, warmup, "warmup")
        self._of_the_window(pass_id, load, measured, "measure")
        self._scrapes(pass_id, load, measured)
        self.file.pass_time(measured.end_ns)
        tries = measured.requests
        done = [request for request in tries if request.request_outcome == "completed"]
        self.file.add(PassEnd(
            pass_id=pass_id, pass_outcome="completed",
            distinct_document_count=len({request.document_id for request in tries if request.is_final}),
            try_count=len(tries), completed_request_count=len(done), failed_request_count=len(tries) - len(done),
            output_token_count=sum(request.output_tokens or 0 for request in tries),
            phase_ns={"load": 5 * SECOND, "warmup": warmup.end_ns, "measure": measured.end_ns - warmup.end_ns},
            pass_ns=measured.end_ns + 6 * SECOND, is_steady=True, warmup_request_count=len(warmup.requests),
        ))  # fmt: skip

    def _failed(self, pass_id: str, variant_id: str, load: LoadScript) -> None:
        self.file.add(Failure(
            failure_scope="pass", failure_cause=load.failure, pass_id=pass_id, variant_id=variant_id, phase="load",
            exception_class="DossierError", exit_code=1,
        ))  # fmt: skip
        self.file.add(PassEnd(
            pass_id=pass_id, pass_outcome="failed", distinct_document_count=0, try_count=0, completed_request_count=0,
            failed_request_count=0, output_token_count=0, pass_ns=500 * MS, phase_ns={"load": 400 * MS},
        ))  # fmt: skip

    def _described(self, pass_id: str, variant_id: str, server: ServerScript) -> None:
        self.file.add(ServerClaim(
            pass_id=pass_id, server_name=server.name, server_kind=server.kind, is_started=True, is_loopback=True,
            claims=dict(server.claims), sources=dict.fromkeys(server.claims, "/version"), start_ns=5 * SECOND,
        ))  # fmt: skip
        for observed_at in ("loaded", "after_warmup"):
            self.file.add(Variant(
                variant_id=variant_id, pass_id=pass_id, variant_name=server.name, observed_at=observed_at,
                model_id=self.builder.lock.plan.model.id, model_revision="0" * 40,
                requested={"dtype": "float32", "server": server.name}, observed={}, cache_kind="engine",
                missing={"weight_bytes": "not_exposed_by_engine"},
            ))  # fmt: skip
        self.builder._readings(pass_id, dataclasses.replace(_ANY, peak_bytes=server.peak_bytes))

    def _window(
        self, pass_id: str, server: ServerScript, load: LoadScript, phase: Any, repetition: int, begin_ns: int
    ) -> _Window:
        """Simulate the requests of one phase and write them in the order of completion, each with its score."""
        own = list(range(len(self.builder.own)))
        indices = own if phase == "measure" else own[: max(2, load.concurrency)]
        slower = load.speed_by_repetition.get(repetition, 1.0)
        found: list[tuple[int, int, Request]] = []
        for index, due_ns, slot in _due(load, indices, begin_ns, seed=1000 + repetition):
            number = load.retried.get(index, 0) if phase == "measure" else 0
            at = due_ns
            for try_index in range(number):
                lost = self._lost(pass_id, index, at, try_index, load)
                found.append((lost.done_ns or at, index, lost))
                at = (lost.done_ns or at) + 5 * MS
            request = self._request(pass_id, server, load, index, phase, at, number, slower)
            found.append((request.done_ns or at, index, request))
            slot(request.done_ns or at)
        ordered = [request for _, _, request in sorted(found, key=lambda each: each[:2])]
        for request in ordered:
            self.file.add(request)
            if phase == "measure" and request.is_final:
                index = self.builder.own.index(request.document_id)
                self._judged(pass_id, index, load.outcomes.get(index, "right"), request)
        return _Window(begin_ns, max((at for at, _, _ in found), default=begin_ns), ordered)

    def _judged(self, pass_id: str, index: int, outcome: str, request: Request) -> None:
        if request.request_outcome == "failed":
            self.file.add(Failure(
                failure_scope="request", failure_cause=request.failure_cause, pass_id=pass_id,
                document_id=request.document_id, phase="measure",
            ))  # fmt: skip
        verdict = {"in_reasoning": "truncated", "lost": "failed"}.get(outcome, outcome)
        self.builder._score(pass_id, index, verdict, try_index=request.try_index)

    def _lost(self, pass_id: str, index: int, at: int, try_index: int, load: LoadScript) -> Request:
        return Request(
            is_final=False, try_index=try_index, sent_ns=at, done_ns=at + 3 * MS, finish_reason="error",
            request_outcome="failed", failure_cause="connection", http_status=503, token_count_source="none",
            missing={"first_token_ns": "failed"}, **self._common(pass_id, index, "measure", at, load),
        )  # fmt: skip

    def _common(self, pass_id: str, index: int, phase: Any, intended_ns: int, load: LoadScript) -> dict[str, Any]:
        document_id = self.builder.own[index]
        ids = self.builder.text("token_ids", f"ids {document_id}", document_id)
        return {
            "pass_id": pass_id, "phase": phase, "document_id": document_id, "intended_ns": intended_ns,
            "prompt_hmac": self.builder.text("prompt", f"prompt {index}", document_id),
            "prompt_token_hmac": ids if load.has_token_hmac else None, "prompt_evidence": load.evidence,
            "start_token_count": 1, "gap_unit": "chunk", "local_prompt_tokens": _prompt_tokens(index),
        }  # fmt: skip

    def _request(
        self, pass_id: str, server: ServerScript, load: LoadScript, index: int, phase: Any, due_ns: int, try_index: int,
        slower: float,
    ) -> Request:  # fmt: skip
        outcome = load.outcomes.get(index, "right") if phase == "measure" else "right"
        sent = due_ns + (load.late.get(index, load.late_ns) if phase == "measure" else load.late_ns)
        local = _prompt_tokens(index)
        common = self._common(pass_id, index, phase, due_ns, load) | {"is_final": True, "try_index": try_index}
        if outcome == "too_long":
            return Request(
                finish_reason="not_started", request_outcome="too_long", failure_cause="too_long",
                token_count_source="none", **common,
            )  # fmt: skip
        if outcome == "failed":
            return Request(
                sent_ns=sent, headers_ns=sent + 4 * MS, done_ns=sent + 6 * MS, finish_reason="error",
                request_outcome="failed", failure_cause="engine_error", http_status=503, token_count_source="none",
                missing={"first_token_ns": "failed"}, **common,
            )  # fmt: skip
        prompt = local + load.server_prompt_gap
        has_usage = load.count_source == "usage" and index not in load.estimated
        told: dict[str, Any] = {
            "connection_wait_ns": 0, "headers_ns": sent + 2 * MS, "first_chunk_ns": sent + 3 * MS, "http_status": 200,
            "token_count_source": "retokenized" if index in load.estimated else load.count_source,
            "prompt_tokens": prompt if has_usage else None,
            "cached_tokens": None if load.cached_share is None else round(prompt * load.cached_share),
        }  # fmt: skip
        if outcome == "empty":
            return Request(
                sent_ns=sent, done_ns=sent + 30 * MS, output_tokens=0, chunk_count=0, finish_reason="end_token",
                request_outcome="empty", missing={"first_token_ns": "not_applicable"}, **told, **common,
            )  # fmt: skip
        request = self._completed(server, load, index, outcome, sent, slower, told | common)
        if outcome == "lost":
            return msgspec.structs.replace(
                request, request_outcome="failed", failure_cause="connection", finish_reason="error"
            )
        return request

    def _completed(
        self, server: ServerScript, load: LoadScript, index: int, outcome: str, sent: int, slower: float,
        fields: dict[str, Any],
    ) -> Request:  # fmt: skip
        is_cut = outcome in ("truncated", "in_reasoning")
        tokens = OUTPUT_LIMIT if is_cut else load.output_tokens or 18 + (index * 7) % 20
        first_ns, gap_ns = _speed(server, load)
        first = sent + round((first_ns + _prompt_tokens(index) * 50_000 + self.random.randrange(2 * MS)) * slower)
        chunks = -(-tokens // load.tokens_per_chunk)
        gaps = [round((gap_ns + self.random.randrange(MS)) * load.tokens_per_chunk * slower) for _ in range(chunks - 1)]
        last = first + sum(gaps)
        thinking = min(load.thinking_tokens, tokens) if outcome != "in_reasoning" else tokens
        answered = first + sum(gaps[: thinking // load.tokens_per_chunk]) if thinking < tokens else None
        queue, prefill, decode = load.engine_ns or (None, None, None)
        words = f"answer {index} {outcome}" + (" in other words" if index in load.other_answers else "")
        answer = "" if outcome == "in_reasoning" else words
        return Request(
            sent_ns=sent, first_token_ns=first, first_answer_ns=answered, last_token_ns=last, done_ns=last + 2 * MS,
            chunk_count=chunks, output_tokens=None if fields["token_count_source"] == "none" else tokens,
            reasoning_tokens=thinking if load.thinking_tokens else None,
            finish_reason="length" if is_cut else "end_token", request_outcome="completed",
            gap_counts=gap_counts(gaps), gap_max_ns=max(gaps, default=None), engine_queue_ns=queue,
            engine_prefill_ns=prefill, engine_decode_ns=decode,
            answer_hmac=self.builder.text("answer", answer, self.builder.own[index]), **fields,
        )  # fmt: skip

    def _of_the_window(self, pass_id: str, load: LoadScript, window: _Window, phase: Any) -> None:
        delays = sorted(r.sent_ns - r.intended_ns for r in window.requests if r.sent_ns is not None) or [0]
        is_measured = phase == "measure"
        fields: dict[str, Any] = {
            "window_ns": window.end_ns - window.begin_ns, "cpu_share": 0.08, "loop_lag_p50_ns": 20_000,
            "loop_lag_p99_ns": 90_000, "loop_lag_max_ns": 200_000, "send_delay_p50_ns": delays[len(delays) // 2],
            "send_delay_p99_ns": delays[-1], "send_delay_max_ns": delays[-1], "connection_count": load.concurrency,
            "reconnect_count": 0, "retry_count": sum(not r.is_final for r in window.requests),
            "in_flight_max": load.concurrency, "is_limit": is_measured and load.is_limit,
            "limit_reasons": list(load.limit_reasons) if is_measured else [],
        }  # fmt: skip
        self.file.add(ClientWindow(pass_id=pass_id, phase=phase, **(fields | dict(load.client if is_measured else {}))))

    def _scrapes(self, pass_id: str, load: LoadScript, window: _Window) -> None:
        middle = (window.begin_ns + window.end_ns) // 2
        places = {"before": window.begin_ns, "during": middle, "after": window.end_ns}
        for moment, at in places.items():
            if moment in load.scrapes:
                self.file.add(Scrape(
                    pass_id=pass_id, scrape_moment=moment, offset_ns=at, engine_metrics=dict(load.scrapes[moment]),
                ))  # fmt: skip

    def _engine_id(self, server: ServerScript) -> str:
        return short_id({"engine": server.engine_name, "version": server.engine_version, "server": server.name})


@dataclass(frozen=True)
class _Peak:
    peak_bytes: int = 0


_ANY = _Peak()


class _Window(NamedTuple):
    """One phase: its requests in the order of completion, tries included."""

    begin_ns: int
    end_ns: int
    requests: list[Request]


def _prompt_tokens(index: int) -> int:
    """The reference's own number: `conftest` gives short, usual and long documents 60, 120 and 260 and a few more."""
    return (260 if index % 6 == 5 else 60 if index % 6 == 0 else 120) + index % 7


def _speed(server: ServerScript, load: LoadScript) -> tuple[int, int]:
    """Return first token and gap under this load: what is not given grows with the requests under way."""
    others = load.concurrency - 1 if load.rate_per_s is None else 0
    first = load.first_token_ns or round(server.first_token_ns * (1 + 0.15 * others))
    return first, load.token_gap_ns or round(server.token_gap_ns * (1 + 0.08 * others))


def _due(load: LoadScript, indices: Sequence[int], begin_ns: int, *, seed: int) -> Any:
    """Yield (index, when it is due, what to call with its end): by arrivals, or whenever a place is free."""
    if load.rate_per_s is not None:
        drawn = random.Random(seed)
        at = float(begin_ns)
        for index in indices:
            yield index, round(at), lambda _: None
            wait = drawn.expovariate(load.rate_per_s) if load.arrivals == "poisson" else 1 / load.rate_per_s
            at += wait * SECOND
        return
    free = [begin_ns] * load.concurrency
    for index in indices:
        at_ns = heapq.heappop(free)
        yield index, at_ns, lambda end: heapq.heappush(free, end)
