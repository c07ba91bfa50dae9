"""Which metric of which kind of server tells what: capability -> name, type, unit, and whose clock from where to where.

Read in vLLM 0.32 and 0.33, SGLang 0.5.23, llama.cpp's server and TGI 3; what a kind does not tell is absent. A sentence
says what a duration covers, since the same word means different stretches in different engines, and durations of two
clocks are put side by side, never subtracted stamp by stamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

Capability = Literal[
    "queue", "prefill", "decode", "inference", "ttft", "e2e", "per_token", "running", "waiting", "preemptions",
    "cache_use", "cache_capacity", "prefix_hits", "prefix_queries", "prompt_tokens", "generated_tokens", "finished",
    "cold_start",
]  # fmt: skip
"""inference: prefill and decode together. cold_start: no kind tells it in a form that holds across versions; the time
from starting the process to its readiness is the client's own."""
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
MetricType = Literal["counter", "gauge", "histogram"]
MetricUnit = Literal["seconds", "tokens", "requests", "preemptions", "share"]
Combine = Literal["sum", "max"]


def N_(message: str) -> str:  # noqa: N802 - gettext's own name: the reporter translates what is marked here
    """Mark a message for extraction and return it unchanged."""
    return message


class Metric(NamedTuple):
    """One metric of a kind.

    name: as on the wire, without `_sum`, `_count` and `_bucket` of a histogram. boundary: whose clock, from where to
    where, or what is counted. labels: only samples with these. combine: how samples of several label sets (engines,
    models) become one value. minus: a histogram of the same clock and process whose mean is taken off. plus: a counter
    that belongs to it.
    """

    name: str
    type: MetricType
    unit: MetricUnit
    boundary: str
    labels: Mapping[str, str] = MappingProxyType({})
    combine: Combine = "sum"
    minus: str | None = None
    plus: str | None = None

    def record_keys(self) -> Iterator[str]:
        """Yield the names under which its samples stand in a scrape's record, buckets apart."""
        for name in (self.name, self.minus, self.plus):
            if name is not None:
                ends = ("_sum", "_count") if self.type == "histogram" else ("",)
                yield from (record_key(name + end, self.labels) for end in ends)


def record_key(name: str, labels: Mapping[str, str]) -> str:
    """Return a sample's name in a record: the wire's, with the labels that matter in alphabetical order."""
    inside = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name


Metrics = Mapping[Capability, Metric]

VLLM: Metrics = {
    "queue": Metric(
        "vllm:request_queue_time_seconds", "histogram", "seconds",
        N_("the engine core's monotonic clock: from entering the queue to being scheduled for the first time"),
    ),
    "prefill": Metric(
        "vllm:request_prefill_time_seconds", "histogram", "seconds",
        N_("the engine core's monotonic clock: from being scheduled to the first token, waits between parts of the "
           "prompt and after a preemption included"),
    ),
    "decode": Metric(
        "vllm:request_decode_time_seconds", "histogram", "seconds",
        N_("the engine core's monotonic clock: from the first token to the last"),
    ),
    "inference": Metric(
        "vllm:request_inference_time_seconds", "histogram", "seconds",
        N_("the engine core's monotonic clock: from being scheduled to the last token"),
    ),
    "ttft": Metric(
        "vllm:time_to_first_token_seconds", "histogram", "seconds",
        N_("the API process's wall clock: from the request's arrival there to handling its first token; queue and "
           "prefill are inside, the network is not"),
    ),
    "e2e": Metric(
        "vllm:e2e_request_latency_seconds", "histogram", "seconds",
        N_("the API process's wall clock: from the request's arrival there to handling its last token"),
    ),
    "per_token": Metric(
        "vllm:request_time_per_output_token_seconds", "histogram", "seconds",
        N_("the engine core's monotonic clock: decode time of a request divided by its tokens after the first"),
    ),
    "running": Metric(
        "vllm:num_requests_running", "gauge", "requests", N_("requests in the batch that is being computed")
    ),
    "waiting": Metric("vllm:num_requests_waiting", "gauge", "requests", N_("requests that wait to be scheduled")),
    "preemptions": Metric(
        "vllm:num_preemptions_total", "counter", "preemptions",
        N_("requests put back for want of cache blocks, each time"),
    ),
    "cache_use": Metric(
        "vllm:kv_cache_usage_perc", "gauge", "share",
        N_("blocks of the key-value cache in use, of all; the fullest engine where there are several"), combine="max",
    ),
    "prefix_hits": Metric(
        "vllm:prefix_cache_hits_total", "counter", "tokens",
        N_("prompt tokens found in the cache; requests that were preempted are left out"),
    ),
    "prefix_queries": Metric(
        "vllm:prefix_cache_queries_total", "counter", "tokens",
        N_("prompt tokens looked up in the cache; requests that were preempted are left out"),
    ),
    "prompt_tokens": Metric(
        "vllm:prompt_tokens_total", "counter", "tokens", N_("prompt tokens, cached ones included")
    ),
    "generated_tokens": Metric("vllm:generation_tokens_total", "counter", "tokens", N_("generated tokens")),
    "finished": Metric(
        "vllm:request_success_total", "counter", "requests",
        N_("requests that ended, whatever the reason, aborted ones included"),
    ),
}  # fmt: skip

SGLANG: Metrics = {
    "queue": Metric(
        "sglang:queue_time_seconds", "histogram", "seconds",
        N_("the scheduler's monotonic clock: from entering the waiting queue to the first forward pass"),
    ),
    "prefill": Metric(
        "sglang:per_stage_req_latency_seconds", "histogram", "seconds",
        N_("the scheduler's monotonic clock: from the first forward pass to the end of the prompt's, all its parts "
           "together; a retracted request counts once"),
        labels={"stage": "prefill_forward"},
    ),
    "decode": Metric(
        "sglang:e2e_request_latency_seconds", "histogram", "seconds",
        N_("the API process's monotonic clock: mean from arrival to end less mean from arrival to first token, both of "
           "this clock"),
        minus="sglang:time_to_first_token_seconds",
    ),
    "ttft": Metric(
        "sglang:time_to_first_token_seconds", "histogram", "seconds",
        N_("the API process's monotonic clock: from creating the request there to handling its first token; queue "
           "and prefill are inside, the network is not"),
    ),
    "e2e": Metric(
        "sglang:e2e_request_latency_seconds", "histogram", "seconds",
        N_("the API process's monotonic clock: from creating the request there to its end"),
    ),
    "per_token": Metric(
        "sglang:inter_token_latency_seconds", "histogram", "seconds",
        N_("the API process's monotonic clock: gaps between outputs, each divided by its tokens and counted per token"),
    ),
    "running": Metric(
        "sglang:num_running_reqs", "gauge", "requests", N_("requests in the batch that is being computed")
    ),
    "waiting": Metric("sglang:num_queue_reqs", "gauge", "requests", N_("requests that wait to be scheduled")),
    "preemptions": Metric(
        "sglang:num_retracted_requests_total", "counter", "preemptions",
        N_("requests retracted for want of cache, each time"),
    ),
    "cache_use": Metric(
        "sglang:token_usage", "gauge", "share",
        N_("tokens in the cache's pool, of all it holds; the fullest pool where there are several"), combine="max",
    ),
    "cache_capacity": Metric(
        "sglang:max_total_num_tokens", "gauge", "tokens", N_("tokens that the cache's pool holds"), combine="max"
    ),
    "prefix_hits": Metric(
        "sglang:cached_tokens_total", "counter", "tokens", N_("prompt tokens found in the cache, from every source")
    ),
    "prefix_queries": Metric(
        "sglang:prompt_tokens_total", "counter", "tokens", N_("prompt tokens, cached ones included")
    ),
    "prompt_tokens": Metric(
        "sglang:prompt_tokens_total", "counter", "tokens", N_("prompt tokens, cached ones included")
    ),
    "generated_tokens": Metric("sglang:generation_tokens_total", "counter", "tokens", N_("generated tokens")),
    "finished": Metric(
        "sglang:e2e_request_latency_seconds_count", "counter", "requests", N_("requests that ended well")
    ),
}  # fmt: skip

LLAMACPP: Metrics = {
    "prefill": Metric(
        "llamacpp:prompt_seconds_total", "counter", "seconds",
        N_("the server's monotonic clock: from a slot's start on the prompt to its first token, steps that it shares "
           "with other slots counted whole"),
    ),
    "decode": Metric(
        "llamacpp:tokens_predicted_seconds_total", "counter", "seconds",
        N_("the server's monotonic clock: from a slot's first token to its last, steps that it shares with other slots "
           "counted whole"),
    ),
    "running": Metric("llamacpp:requests_processing", "gauge", "requests", N_("slots at work")),
    "waiting": Metric("llamacpp:requests_deferred", "gauge", "requests", N_("requests that wait for a slot")),
    "prefix_hits": Metric(
        "llamacpp:prompt_tokens_cached_total", "counter", "tokens", N_("prompt tokens reused from a slot's cache")
    ),
    "prefix_queries": Metric(
        "llamacpp:prompt_tokens_total", "counter", "tokens",
        N_("prompt tokens that were computed, and those reused from a slot's cache"),
        plus="llamacpp:prompt_tokens_cached_total",
    ),
    "prompt_tokens": Metric(
        "llamacpp:prompt_tokens_total", "counter", "tokens", N_("prompt tokens that were computed, reused ones not")
    ),
    "generated_tokens": Metric("llamacpp:tokens_predicted_total", "counter", "tokens", N_("generated tokens")),
}  # fmt: skip

TGI: Metrics = {
    "queue": Metric(
        "tgi_request_queue_duration", "histogram", "seconds",
        N_("the router's clock: from entering the queue to being put into a batch"),
    ),
    "inference": Metric(
        "tgi_request_inference_duration", "histogram", "seconds",
        N_("the router's clock: from being put into a batch to the last token, prefill and decode together"),
    ),
    "e2e": Metric(
        "tgi_request_duration", "histogram", "seconds",
        N_("the router's clock: from the request's arrival there to its end, validation and queue included"),
    ),
    "per_token": Metric(
        "tgi_request_mean_time_per_token_duration", "histogram", "seconds",
        N_("the router's clock: inference time divided by all generated tokens; prefill is inside"),
    ),
    "running": Metric(
        "tgi_batch_current_size", "gauge", "requests", N_("requests in the batch that is being computed")
    ),
    "waiting": Metric("tgi_queue_size", "gauge", "requests", N_("requests in the router's queue")),
    "prompt_tokens": Metric(
        "tgi_request_input_length_sum", "counter", "tokens", N_("prompt tokens, by the router's tokenizer")
    ),
    "generated_tokens": Metric(
        "tgi_request_generated_tokens_sum", "counter", "tokens", N_("generated tokens")
    ),
    "finished": Metric("tgi_request_success", "counter", "requests", N_("requests that ended well")),
}  # fmt: skip

NONE: Metrics = {}
