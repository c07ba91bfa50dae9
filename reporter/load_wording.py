"""Sentences about loads: several requests at a time, arrivals, servers; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

LOAD_WORDS: dict[str, Wording] = {
    "limit_processor": say("its processor was busy"),
    "limit_late_sends": say("requests left late"),
    "limit_loop_lag": say("its timers fired late"),
    "limit_in_flight_limit": say("as many requests were under way as are allowed"),
}
"""By what the load generator limited its own measurement."""

LOAD: dict[str, Wording] = {
    # what keeps a configuration out of a comparison
    "verdict_failing": say(
        "{stands} {failed} of its requests were lost: the times of the others say nothing of this load, not ranked"
    ),
    "verdict_cache_reuse": say(
        "{stands} {cached} of its prompt tokens were found in the server's cache in a pass declared cold: not ranked"
    ),
    "verdict_other_prompts": say_counted(
        "not judged: of {documents} prompts, {unlike} is not shown to be the reference's",
        "not judged: of {documents} prompts, {unlike} are not shown to be the reference's",
        by="unlike",
    ),
    "change_failing": say("A run of {label} that loses at most one request in a hundred."),
    "change_cache_reuse": say("A cold run of {label}, or one that is declared warm from the start."),
    "limit_engines": say(
        "What makes the difference between {left} and {right}: other engines differ in kernels, batching and how they "
        "hold weights, so these are complete configurations."
    ),
    # findings
    "load_grows": say(
        "{label}: with {requests_high} requests at a time instead of {requests_low}, {rate_high} instead of "
        "{rate_low}, which is {factor} times as many; a complete answer takes {time_high} in the median instead of "
        "{time_low}, and {lost} of the requests were lost."
    ),
    "load_at_one": say(
        "{label}, measured with {requests} at a time alone: {rate}, a complete answer takes {time} in the median, and "
        "{lost} of the requests were lost."
    ),
    "load_fails": say(
        "{label}: with {requests} requests at a time {lost} of them were lost; times there say nothing of this load."
    ),
    "load_arrivals_fail": say(
        "{label}: with {rate} arriving {lost} of them were lost; times there say nothing of this load."
    ),
    "load_arrivals_grow": say(
        "{label}: with {rate_high} arriving instead of {rate_low}, a complete answer takes {time_high} in the median "
        "instead of {time_low}; {answered} were answered, and {lost} of the requests were lost."
    ),
    "load_arrives": say(
        "{label}: with {rate} arriving, a complete answer takes {time} in the median; {answered} were answered, and "
        "{lost} of the requests were lost."
    ),
    # flags
    "flag_client_limit": say(
        "the load generator was the limit ({reason}): these numbers are its own as much as the server's"
    ),
    "flag_late_sends": say(
        "requests left late: {delay} after they were due for one in a hundred, at {rate} arrivals: the load was not "
        "the one asked for"
    ),
    "flag_cache_reuse": say("declared cold, but {cached} of the prompt tokens were found in the server's cache"),
    "flag_failing": say("{failed} of the requests were lost; above one percent no time is ranked"),
    "flag_chunks": say(
        "{tokens} tokens in one chunk: gaps are between chunks, and no percentile per token is taken from them"
    ),
    "flag_estimated": say(
        "the client counted the tokens of {estimated} of the answers from their text: time per token and output rate "
        "are approximate"
    ),
    "flag_two_counts": say(
        "the server counted the tokens of some answers only; {estimated} were counted by the client from the text and "
        "enter no statistic of tokens"
    ),
    "flag_no_count": say("the server told no number of generated tokens, and none is guessed: no rate of tokens"),
    "flag_prompt_count": say_counted(
        "{server} counts other prompt tokens than the collector's tokenizer{tokenizer}: {unlike} of {told} prompt by "
        "more than two percent or eight tokens, {gap} at most; lengths printed are the server's",
        "{server} counts other prompt tokens than the collector's tokenizer{tokenizer}: {unlike} of {told} prompts by "
        "more than two percent or eight tokens, {gap} at most; lengths printed are the server's",
        by="unlike",
    ),
    "flag_decode_differs": say(
        "mean gap {gap}, but the output rate means {token} per token (factor {factor}): the two do not describe the "
        "same thing; speculative decoding: {speculative}"
    ),
    "flag_cut_thinking": say_counted(
        "{cut} request reached the output limit while the model was thinking: it has a first token and no first answer "
        "token, and counts as not answered",
        "{cut} requests reached the output limit while the model was thinking: they have a first token and no first "
        "answer token, and count as not answered",
        by="cut",
    ),
    "flag_empty": say_counted(
        "{empty} request ended well without a single token: it is in no time",
        "{empty} requests ended well without a single token: they are in no time",
        by="empty",
    ),
    "flag_prompts_differ": say_counted(
        "{unlike} of {documents} prompt is not the reference's by its tokens: these answers are compared with none",
        "{unlike} of {documents} prompts are not the reference's by their tokens: these answers are compared with none",
        by="unlike",
    ),
    "flag_prompts_nonce": say_counted(
        "{nonced} of {documents} prompt had a line in front that no other request had, so that the server could not "
        "find it in its cache: what it answers is not what it answers without. To compare its answers, run it with "
        'cache_state = "warm", or as a kind of server that has a request field for this',
        "{nonced} of {documents} prompts had a line in front that no other request had, so that the server could not "
        "find them in its cache: what it answers is not what it answers without. To compare its answers, run it with "
        'cache_state = "warm", or as a kind of server that has a request field for this',
        by="nonced",
    ),
    "flag_prompts_unknown": say_counted(
        "{unlike} of {documents} prompt has no hash of its tokens, so nothing shows that it is the reference's: these "
        "answers are compared with none",
        "{unlike} of {documents} prompts have no hash of their tokens, so nothing shows that they are the reference's: "
        "these answers are compared with none",
        by="unlike",
    ),
    "flag_never_steady": say(
        "as many requests as were asked for were never under way together: times are those of the whole run"
    ),
    "flag_too_few_steady": say(
        "only {steady} requests fell into the steady time, {needed} are needed: times are those of the whole run"
    ),
    # notices
    "notice_client_limit": say("The load generator, not the server, was the limit of {labels}."),
    "notice_late_sends": say("Requests left late, so that the load was not the one asked for: {labels}."),
    "notice_cache_reuse": say("Declared cold, yet prompts were found in the server's cache: {labels}. Not ranked."),
    "notice_failing": say("More than one request in a hundred was lost: {labels}. No time of theirs is ranked."),
    "notice_decode_differs": say("Mean gap and output rate contradict one another: {labels}."),
    "notice_prompts_differ": say(
        "The server saw other prompts than the reference: {labels}. Their answers are compared with none."
    ),
    "notice_prompts_unknown": say(
        "Nothing shows that the server saw the reference's prompts: {labels}. Their answers are compared with none."
    ),
    "notice_prompt_count": say("Server and collector count other prompt tokens: {labels}."),
    "notice_two_counts": say(
        "Tokens were counted by the server for some answers and by the client for others, and are not added up: "
        "{labels}."
    ),
    "notice_estimated": say("Tokens were counted by the client from the text, and are approximate: {labels}."),
    "notice_drift": say(
        "{label}, run first and again last, differs by {drift} per document: the machine did not stay the same, and "
        "every difference in speed of this campaign may be as wrong."
    ),
    "notice_clock_step": say(
        "The wall clock was set, or the machine slept, while run {run} was under way. Durations are not touched: they "
        "come from a clock that only goes forward."
    ),
}
