"""Sentences and words about the engine's side of a request; parts of `wording.SENTENCES` and `vocabulary.WORDS`."""

from __future__ import annotations

from collector.contract.server_kinds import KINDS

from .messages import Wording, say, say_counted
from .translate import N_

PHASE_WORDS: dict[str, Wording] = {
    "phase_queue": say("queue"),
    "phase_prefill": say("prefill"),
    "phase_decode": say("decode"),
    "mean_ttft": say("time to first token"),
    "mean_e2e": say("complete answer"),
    "mean_per_token": say("time per further token"),
}
"""Phases of an engine, and durations that both sides tell, where a sentence names one."""

ENGINE_SIDE: dict[str, Wording] = {
    # findings
    "engine_where": say(
        "{label}: of {whole} for a complete answer in the mean, {decode} go into generating, {prefill} into reading "
        "the prompt, {queue} into waiting in the server and {remainder} into none of these."
    ),
    "engine_where_no_queue": say(
        "{label}: of {whole} for a complete answer in the mean, {decode} go into generating, {prefill} into reading "
        "the prompt and {remainder} into none of these, the server's queue among it."
    ),
    "engine_where_unlike": say(
        "{label}: the server's answers and its counters tell unlike phases of the same requests; both stand below, and "
        "which of them is right is not known here."
    ),
    "engine_farthest": say(
        "Where a server tells its own means, the client's differs from them by {difference} at most: {duration} of "
        "{label}."
    ),
    # remarks
    "engine_foreign": say_counted(
        "{foreign} request of others was answered in the same window: the engine's means hold it",
        "{foreign} requests of others were answered in the same window: the engine's means hold them",
        by="foreign",
    ),
    "engine_foreign_tokens": say(
        "{foreign} of {generated} generated tokens were for others in the same window: the engine's totals hold them"
    ),
    "engine_fewer": say(
        "the server finished {finished} requests in the window, the client had {own} answered: the two sides do not "
        "cover the same requests"
    ),
    "engine_restarted": say(
        "the server's counters went backwards or its process began anew while it was measured: no difference of them "
        "means anything"
    ),
    "engine_no_pages": say("the server's metrics were not read both before and after the measurement"),
    "engine_negative": say(
        "the engine's phases are longer than the client's whole path: the two sides do not cover the same requests"
    ),
    "engine_no_queue": say("the engine does not tell the queue: it stands in the remainder"),
    "engine_accounts_differ": say(
        "{phase}: of the same requests the server's answers tell {answers} and its counters {counters} in the mean; "
        "which of them is right is not known here, and the remainder is as uncertain"
    ),
    "engine_only_some": say("{told} of {answered} answers carried timings: both sides are of these alone"),
    "notice_foreign": say_counted(
        "{label}: the server answered {foreign} request of others while it was measured; every time and rate there "
        "shares the server with it.",
        "{label}: the server answered {foreign} requests of others while it was measured; every time and rate there "
        "shares the server with them.",
        by="foreign",
    ),
    "notice_foreign_tokens": say(
        "{label}: the server generated {foreign} tokens for others while it was measured; every time and rate there "
        "shares the server with them."
    ),
    "notice_server_reuse": say(
        "{label}: the server found {reuse} of the prompt tokens in its cache, though the pass was to find none; its "
        "times are not those of a cold cache."
    ),
    "notice_preemptions": say_counted(
        "{label}: {preemptions} time a request was put back for want of cache while it was measured.",
        "{label}: {preemptions} times a request was put back for want of cache while it was measured.",
        by="preemptions",
    ),
    "notice_server_restarted": say(
        "{label}: the server's counters went backwards or its process began anew while it was measured."
    ),
    "notice_memory_claimed": say(
        "{labels}: an engine behind a server takes its memory at its start, whatever the workload; what was read there "
        "is claimed, not needed, and nothing about the smallest device that would do is concluded from it."
    ),
    "requirement_claimed": say("not shown: the engine takes its memory at its start, so its peak is no need"),
}

_CLIENT_BOUNDARIES = {
    "boundary:client_ttft": N_(
        "the client's monotonic clock: from handing the request to the socket to receiving the first piece with "
        "generated content"
    ),
    "boundary:client_e2e": N_(
        "the client's monotonic clock: from handing the request to the socket to receiving the last piece with "
        "generated content"
    ),
    "boundary:client_per_token": N_(
        "the client's monotonic clock: from the first to the last piece with generated content, divided by the tokens "
        "after the first"
    ),
    "boundary:client_before": N_(
        "the client's monotonic clock: from the intended send to handing the request to the socket"
    ),
}

ENGINE_SIDE_WORDS: dict[str, str] = {
    **_CLIENT_BOUNDARIES,
    **{
        f"boundary:{kind}_{capability}": metric.boundary
        for kind, facts in KINDS.items()
        for capability, metric in facts.metrics.items()
    },
    **{
        f"boundary:{kind}_told_{phase}": sentence
        for kind, facts in KINDS.items()
        if facts.timings is not None
        for phase, sentence in facts.timings.boundaries.items()
    },
    "duration:queue": N_("queue"),
    "duration:prefill": N_("prefill"),
    "duration:decode": N_("decode"),
    "duration:inference": N_("prefill and decode together"),
    "duration:remainder": N_("remainder"),
    "duration:ttft": N_("time to first token"),
    "duration:e2e": N_("complete answer"),
    "duration:per_token": N_("time per further token"),
    "duration:before": N_("before sending"),
    "told_by:window": N_("server's counters"),
    "told_by:responses": N_("each response"),
    "told_by:client": N_("client"),
    "told_by:both": N_("counters and responses"),
    "told_by:none": N_("nobody"),
    "engine_name:vllm": N_("vLLM"),
    "engine_name:llamacpp": N_("llama.cpp"),
    "engine_name:sglang": N_("SGLang"),
    "engine_name:tgi": N_("TGI"),
    "need:claimed": N_("claimed, not needed"),
    "server_restarted": N_("the server was started anew"),
}
"""`boundary:<kind>_<capability>`: the sentences of the contract, which are marked for translation there."""
