"""What each kind of server can do and tell, one row a kind: the only home of these facts for both wings.

`None` or an empty value means: this kind does not have it. sglang and tgi are written from their sources and
documentation; vllm 0.32, llama.cpp's server and `transformers serve` 5.17 were run.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from . import engine_metrics
from .engine_metrics import N_, Capability, Metric, Metrics
from .protocol import ServerKind

TokenizeForm = Literal["messages", "template_then_text", "text", "chat_ids"]
"""messages: POST {"model", "messages"} -> {"tokens": ids}. template_then_text: POST {"messages"} to `template_path` ->
{"prompt"}, then {"content", "add_special": true, "parse_special": true} -> {"tokens": ids}. text: POST {"model",
"prompt", "add_special_tokens": false} -> {"tokens": ids}: knows no template. chat_ids: POST {"model", "messages"} ->
{"tokenize_response": [{"id"}]}."""
StreamOption = Literal["include_usage", "continuous_usage_stats"]
PhaseName = Literal["queue", "prefill", "decode"]
Evidence = Literal["run", "documentation"]


class Tokenizer(NamedTuple):
    """Where the server's own tokenizer answers, and in which form."""

    path: str
    form: TokenizeForm
    template_path: str | None = None


class ColdField(NamedTuple):
    """A field of a request's JSON that keeps its prompt out of the cache and leaves the tokens as they are.

    value: null where each request needs a text of its own, unlike any other.
    """

    name: str
    value: bool | None = None


class RequestTimings(NamedTuple):
    """Durations that a response itself carries: the JSON object, and phase -> its field in milliseconds.

    needs: the server's option without which they are not there; null where they always are.
    """

    object_name: str
    fields_ms: Mapping[PhaseName, str]
    boundaries: Mapping[PhaseName, str]
    needs: str | None = None


class Claim(NamedTuple):
    """Something that the server says of itself: a GET of `path`, then the place in its JSON, `data.0.id`."""

    name: str
    path: str
    place: str


class InfoClaim(NamedTuple):
    """Something that stands in a label of a metric whose value says nothing."""

    name: str
    metric: str
    label: str


class ServerKindFacts(NamedTuple):
    """One row. models_path lists the models of every kind with an OpenAI interface.

    takes_token_ids: /v1/completions takes the prompt as token ids. has_prompt_cache: a prompt may find itself in the
    server's cache unless something is done about it. one_rank_label: a label of which only the value 0 counts, since
    every rank tells of the same requests.
    """

    kind: ServerKind
    evidence: Evidence
    ready_path: str
    metrics_path: str | None = None
    metrics: Metrics = engine_metrics.NONE
    tokenizer: Tokenizer | None = None
    cold_field: ColdField | None = None
    has_prompt_cache: bool = True
    takes_token_ids: bool = False
    stream_options: tuple[StreamOption, ...] = ()
    timings: RequestTimings | None = None
    claims: tuple[Claim, ...] = ()
    info_claims: tuple[InfoClaim, ...] = ()
    one_rank_label: str | None = None
    models_path: str = "/v1/models"

    def metric(self, capability: Capability) -> Metric | None:
        """Return what tells this capability; null where the kind does not provide it."""
        return self.metrics.get(capability)


_SERVED = Claim("model", "/v1/models", "data.0.id")

VLLM = ServerKindFacts(
    kind="vllm", evidence="run", ready_path="/health", metrics_path="/metrics", metrics=engine_metrics.VLLM,
    tokenizer=Tokenizer("/tokenize", "messages"), cold_field=ColdField("cache_salt"), takes_token_ids=True,
    stream_options=("include_usage", "continuous_usage_stats"),
    timings=RequestTimings(
        "metrics",
        # its time_to_first_token_ms starts when the request is scheduled: that is prefill, and no time to first token
        {"queue": "queue_time_ms", "prefill": "time_to_first_token_ms", "decode": "generation_time_ms"},
        {
            "queue": engine_metrics.VLLM["queue"].boundary,
            "prefill": N_(
                "the engine core's monotonic clock: from being scheduled to the first token; the server names it time "
                "to first token, but the queue is not in it"
            ),
            "decode": engine_metrics.VLLM["decode"].boundary,
        },
        needs="--enable-per-request-metrics",
    ),
    claims=(
        Claim("version", "/version", "version"), _SERVED, Claim("model_source", "/v1/models", "data.0.root"),
        Claim("context_tokens", "/v1/models", "data.0.max_model_len"),
    ),
    info_claims=(
        InfoClaim("cache_capacity_tokens", "vllm:cache_config_info", "kv_cache_size_tokens"),
        InfoClaim("cache_bytes", "vllm:cache_config_info", "kv_cache_memory_bytes"),
        InfoClaim("cache_block_tokens", "vllm:cache_config_info", "block_size"),
        InfoClaim("cache_dtype", "vllm:cache_config_info", "cache_dtype"),
        InfoClaim("has_prefix_cache", "vllm:cache_config_info", "enable_prefix_caching"),
        InfoClaim("memory_fraction", "vllm:cache_config_info", "gpu_memory_utilization"),
    ),
)  # fmt: skip

SGLANG = ServerKindFacts(
    kind="sglang", evidence="documentation", ready_path="/health", metrics_path="/metrics",
    metrics=engine_metrics.SGLANG, tokenizer=Tokenizer("/tokenize", "text"), cold_field=ColdField("cache_salt"),
    takes_token_ids=True, stream_options=("include_usage", "continuous_usage_stats"),
    claims=(
        # /server_info is the newer name of /get_server_info; what answers first counts.
        *(
            Claim(name, path, place)
            for path in ("/server_info", "/get_server_info")
            for name, place in (
                ("version", "version"), ("memory_fraction", "mem_fraction_static"),
                ("cache_capacity_tokens", "max_total_num_tokens"),
            )
        ),
        _SERVED, Claim("model_source", "/model_info", "model_path"),
        Claim("context_tokens", "/v1/models", "data.0.max_model_len"),
    ),
    one_rank_label="tp_rank",
)  # fmt: skip

LLAMACPP = ServerKindFacts(
    kind="llamacpp", evidence="run", ready_path="/health", metrics_path="/metrics", metrics=engine_metrics.LLAMACPP,
    tokenizer=Tokenizer("/tokenize", "template_then_text", "/apply-template"),
    cold_field=ColdField("cache_prompt", value=False), takes_token_ids=True, stream_options=("include_usage",),
    timings=RequestTimings(
        "timings", {"prefill": "prompt_ms", "decode": "predicted_ms"},
        {phase: engine_metrics.LLAMACPP[phase].boundary for phase in ("prefill", "decode")},
    ),
    claims=(
        Claim("version", "/props", "build_info"), _SERVED, Claim("model_source", "/props", "model_path"),
        Claim("weights_format", "/props", "model_ftype"),
        Claim("slots", "/props", "total_slots"),
        Claim("context_tokens", "/props", "default_generation_settings.n_ctx"),
        Claim("parameters", "/v1/models", "data.0.meta.n_params"),
        Claim("weight_bytes", "/v1/models", "data.0.meta.size"),
    ),
)  # fmt: skip

TGI = ServerKindFacts(
    kind="tgi", evidence="documentation", ready_path="/health", metrics_path="/metrics", metrics=engine_metrics.TGI,
    tokenizer=Tokenizer("/chat_tokenize", "chat_ids"), stream_options=("include_usage",),
    claims=(
        Claim("version", "/info", "version"), Claim("model", "/info", "model_id"),
        Claim("model_revision", "/info", "model_sha"), Claim("weights_format", "/info", "model_dtype"),
        Claim("context_tokens", "/info", "max_total_tokens"),
    ),
)  # fmt: skip

TRANSFORMERS = ServerKindFacts(kind="transformers", evidence="run", ready_path="/health", has_prompt_cache=False)
"""It has no metrics and no version to ask for, lists no model that it was started with, tells usage without being
asked, and takes a prompt only as text."""

OTHER = ServerKindFacts(
    kind="other", evidence="documentation", ready_path="/v1/models", stream_options=("include_usage",),
    claims=(_SERVED,),
)  # fmt: skip

KINDS: Mapping[ServerKind, ServerKindFacts] = MappingProxyType(
    {facts.kind: facts for facts in (VLLM, SGLANG, LLAMACPP, TGI, TRANSFORMERS, OTHER)}
)
