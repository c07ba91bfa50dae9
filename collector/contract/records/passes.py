"""Records about a pass: its key, its end, its memory readings and the engine's own counters."""

from __future__ import annotations

from typing import Literal

from .base import (
    Bytes,
    CacheKind,
    Count,
    Label,
    Nanoseconds,
    OffsetNs,
    Phase,
    Positive,
    Record,
    Sha256,
    ShortId,
    Signed,
    Stage,
    UtcStamp,
)

PassOutcome = Literal["completed", "failed", "interrupted"]
PassPurpose = Literal["reference", "reference_repeat", "variant", "series", "repetition"]
Factor = Literal[
    "none", "weights", "compute", "batch", "concurrency", "rate", "context", "cache", "order", "engine", "several",
]  # fmt: skip
"""`several`: more than one factor differs from the reference, so a difference is attributed to none (mission D2)."""
MemoryScope = Literal["allocated", "reserved", "process", "device", "host"]
Statistic = Literal["start", "peak", "end"]
CounterMethod = Literal["counter", "sampled"]
PaddingSide = Literal["left", "right"]
PadTokenSource = Literal["tokenizer", "unknown_token", "end_token"]
"""Where the pad token came from: the tokenizer's own, else its unknown token, else its end token."""
ScrapeMoment = Literal["before", "during", "after"]
LoopKind = Literal["closed", "constant", "poisson"]
"""closed: the next request is sent when one is answered; the others are open loops, by their arrivals."""
CacheState = Literal["cold", "warm"]


class PassBegin(Record, frozen=True, kw_only=True, tag="pass_begin"):
    """One per attempt: all documents once under one configuration. `pass_id` is the digest of the key fields."""

    pass_id: ShortId
    protocol_id: Sha256
    stage: Stage
    environment_id: ShortId
    engine_id: ShortId
    variant_id: ShortId
    batch: Positive
    concurrency: Positive
    rate_per_s: float | None = None
    """Open-loop arrivals per second; null in a closed loop."""
    arrivals: LoopKind = "closed"
    arrival_seed: Count | None = None
    """Of the drawn arrivals of an open loop; null in a closed one."""
    cache_state: CacheState | None = None
    """Of a request engine: whether a prompt may be found in the server's cache; null in process."""
    context_tokens: Count | None = None
    """Context added before each document; null where the documents are sent as they are."""
    cache_kind: CacheKind
    output_limit_tokens: Positive
    repetition: Positive
    attempt: Positive
    variant_name: Label
    purpose: PassPurpose
    series: Label
    """Passes of one series differ in one factor only."""
    factor: Factor
    document_order: list[str]
    expected_document_count: Count
    began_at: UtcStamp


class PassEnd(Record, frozen=True, kw_only=True, tag="pass_end"):
    """One per attempt that ended, well or badly."""

    pass_id: ShortId
    pass_outcome: PassOutcome
    distinct_document_count: Count
    """Distinct identifiers with a final try."""
    try_count: Count
    completed_request_count: Count
    failed_request_count: Count
    output_token_count: Count
    phase_ns: dict[str, Nanoseconds]
    """Phase -> duration, by the worker's monotonic clock."""
    pass_ns: Nanoseconds
    """From starting the worker to its end, by the parent's monotonic clock."""
    live_row_steps: Count | None = None
    """Sum over decode steps of rows still generating."""
    live_row_histogram: dict[str, Count] = {}
    """Rows still generating -> decode steps of the measure phase with that many."""
    is_steady: bool | None = None
    warmup_request_count: Count = 0


class BatchCheck(Record, frozen=True, kw_only=True, tag="batch_check"):
    """The same documents alone and in one batch, before anything is measured: does padding change the answers?

    The documents are no measured ones where the protocol has development documents.
    """

    pass_id: ShortId
    variant_id: ShortId
    batch: Positive
    checked_document_ids: list[str]
    differing_document_ids: list[str]
    """Documents whose token ids differ."""
    emptied_document_ids: list[str]
    """Documents that had an answer alone and none in the batch: more than one stops the pass."""
    first_difference_tokens: list[Count]
    """Per differing document: how many tokens agree before the first that differs; 0 for more than half of the checked
    documents stops the pass too."""
    padding_side: PaddingSide
    pad_token_source: PadTokenSource


class Reading(Record, frozen=True, kw_only=True, tag="reading"):
    """One memory reading of one pass, phase, device and scope."""

    pass_id: ShortId
    phase: Phase
    device_id: Label
    memory_scope: MemoryScope
    """allocated: tensors; reserved: the allocator; process: device memory of our process; device: whole card;
    host: the worker's resident set; of a started server the memory of its processes, the worker's not included."""
    statistic: Statistic
    value_bytes: Bytes | None = None
    counter_method: CounterMethod
    sample_interval_ns: Nanoseconds | None = None


class Telemetry(Record, frozen=True, kw_only=True, tag="telemetry"):
    """Counter deltas of one device over one window."""

    pass_id: ShortId
    phase: Phase
    device_id: Label
    window_ns: Nanoseconds
    throttle_ns: dict[str, Nanoseconds] = {}
    energy_mj: Count | None = None
    power_mean_mw: Count | None = None
    clock_sm_mhz: Count | None = None
    clock_memory_mhz: Count | None = None
    temperature_c: Signed | None = None
    foreign_process_count: Count | None = None
    host_cpu_share: float | None = None
    """Share of the host's processor time used by others during the window, 0 to 1."""


class ServerClaim(Record, frozen=True, kw_only=True, tag="server_claim"):
    """What a request engine says of itself; nothing here could check it. One per pass."""

    pass_id: ShortId
    server_name: Label
    server_kind: Label
    is_started: bool
    """Started and stopped by this pass; else it ran already."""
    is_loopback: bool
    """On the client's own machine: no network in between, and both share its processors."""
    claims: dict[str, str] = {}
    """Claim -> what was said, e.g. version, model, context_tokens; the endpoint that said it stands in `sources`."""
    sources: dict[str, str] = {}
    """Claim -> path that was asked."""
    start_ns: Nanoseconds | None = None
    """From starting its process to the first answer of its readiness path."""


class ClientWindow(Record, frozen=True, kw_only=True, tag="client_window"):
    """What the load generator measured of itself in one phase; its own process, by its own monotonic clock."""

    pass_id: ShortId
    phase: Phase
    window_ns: Nanoseconds
    """From the first intended send to the end of the last request."""
    cpu_share: float
    """Processor time of the load generator over the window; 1 is one core, the most that it can use."""
    loop_lag_p50_ns: Nanoseconds | None = None
    """How late its timers fire: a stamp can be late by as much."""
    loop_lag_p99_ns: Nanoseconds | None = None
    loop_lag_max_ns: Nanoseconds | None = None
    send_delay_p50_ns: Nanoseconds | None = None
    """From the intended send to the bytes being handed to the socket."""
    send_delay_p99_ns: Nanoseconds | None = None
    send_delay_max_ns: Nanoseconds | None = None
    connection_count: Count
    """Opened before the window and in it."""
    reconnect_count: Count
    """Opened again in it, since a server had closed one."""
    retry_count: Count
    in_flight_max: Count
    is_limit: bool
    """The client, not the server, limited what was measured; `limit_reasons` says by what."""
    limit_reasons: list[str] = []


class Scrape(Record, frozen=True, kw_only=True, tag="scrape"):
    """The engine's own metrics at one moment."""

    pass_id: ShortId
    scrape_moment: ScrapeMoment
    offset_ns: OffsetNs
    engine_metrics: dict[str, float]
