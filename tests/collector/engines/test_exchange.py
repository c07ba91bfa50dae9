"""From what a server sent to an answer: over real sockets, and with stamps set by hand where a time must be exact."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stub_server import (
    DONE,
    Reply,
    StubServer,
    Write,
    busy,
    chat,
    chat_chunk,
    completion,
    completion_chunk,
    error_event,
    event,
    plain,
    stream,
    usage,
    usage_chunk,
)

from collector.client.messages import ClientJob, Exchange, Limits, Sending, Target
from collector.client.process import LoadGenerator
from collector.contract.protocol import ServerKind
from collector.engines._exchange import ReadingRules, SentPrompt, answer_of, has_unknown_stops
from collector.engines.base import Answer, EncodedPrompt, Load

PROMPT = EncodedPrompt(document_id="d1", rendered="<p>", token_ids=list(range(12)), start_token_count=1)
LIMITS = Limits(connect_s=0.5, first_token_s=5, request_s=5, retries=0, retry_wait_s=0)
FIELDS = ("reasoning_content", "reasoning")
MS = 1_000_000


def _rules(**more: Any) -> ReadingRules:
    return ReadingRules(FIELDS, LIMITS, **more)


RULES = _rules()


def _exchange(writes: Sequence[bytes | Write], *, done_ms: float | None = None, **more: Any) -> Exchange:
    """One try, sent at 0; each write arrives as a piece so many milliseconds after the one before."""
    now, pieces = 0.0, []
    for write in writes:
        delay_ms, data = write if isinstance(write, tuple) else (0.0, write)
        now += delay_ms
        pieces.append((round(now * MS), data))
    fields: dict[str, Any] = {
        "number": 0, "try_index": 0, "is_final": True, "intended_ns": 0, "connection_wait_ns": 0, "sent_ns": 0,
        "headers_ns": 0, "http_status": 200, "content_type": "text/event-stream", "pieces": pieces,
        "done_ns": round((now if done_ms is None else done_ms) * MS), "ending": "complete",
    }  # fmt: skip
    return Exchange(**(fields | more))


def _answer(writes: Sequence[bytes | Write], rules: ReadingRules = RULES, **more: Any) -> Answer:
    return answer_of(_exchange(writes, **more), PROMPT, rules)


@pytest.fixture(scope="module")
def generator() -> Iterator[LoadGenerator]:
    made = LoadGenerator()
    yield made
    made.close()


def _asked(
    generator: LoadGenerator, stub: StubServer, count: int = 1, *, path: str = "/v1/chat/completions",
    limits: Limits = LIMITS, load: Load | None = None, rules: ReadingRules = RULES, port: int | None = None,
) -> list[Answer]:  # fmt: skip
    """Put `count` requests to the server through the load generator, and read what came back."""
    job = ClientJob(
        target=Target(host="127.0.0.1", port=port or stub.port, is_tls=False, headers=[]),
        sendings=[Sending(number=number, path=path, body=b"{}") for number in range(count)],
        load=load or Load(), limits=limits, reasoning_fields=list(FIELDS),
    )  # fmt: skip
    found = [message for message in generator.run(job) if isinstance(message, Exchange)]
    return [
        answer_of(each, PROMPT, rules._replace(limits=limits)) for each in sorted(found, key=lambda one: one.number)
    ]


def _ms(later_ns: int | None, earlier_ns: int | None) -> float:
    assert later_ns is not None
    assert earlier_ns is not None
    return (later_ns - earlier_ns) / MS


# First token, last token, gaps


def test_a01_the_first_token_is_the_first_generated_text(generator: LoadGenerator) -> None:
    events: list[bytes | Write] = [
        (5, chat_chunk({"role": "assistant"})), (45, chat_chunk({"role": "assistant", "content": ""})),
        (160, chat_chunk({"content": "x"})), (0, chat_chunk(finish_reason="stop")), DONE,
    ]  # fmt: skip
    exact = _answer(events)
    assert exact.wire is not None
    assert (exact.first_token_ns, exact.wire.first_chunk_ns) == (210 * MS, 5 * MS)
    with StubServer([stream(events)]) as stub:
        (answer,) = _asked(generator, stub)
    assert answer.wire is not None
    _, _, (_, text_written_ns), *_ = stub.written_ns
    assert (answer.wire.first_chunk_ns or 0) < text_written_ns < (answer.first_token_ns or 0)
    assert _ms(answer.first_token_ns, answer.sent_ns) >= 205


@pytest.mark.parametrize("make", [chat_chunk, completion_chunk])
def test_a02_gaps_never_hold_the_time_to_the_first_token(generator: LoadGenerator, make: Any) -> None:
    is_chat = make is chat_chunk
    part = {"content": "x"} if is_chat else "x"
    events = [make(part) for _ in range(10)] + [make(finish_reason="stop"), DONE]
    exact = _answer(stream(events, first_ms=2000, gap_ms=20).writes)
    assert exact.gaps_ns == [20 * MS] * 9
    assert sum(exact.gaps_ns) == (exact.last_token_ns or 0) - (exact.first_token_ns or 0)
    with StubServer([stream(events, first_ms=300, gap_ms=10)]) as stub:
        (answer,) = _asked(generator, stub, path="/v1/chat/completions" if is_chat else "/v1/completions")
    assert len(answer.gaps_ns) == 9
    assert sum(answer.gaps_ns) == (answer.last_token_ns or 0) - (answer.first_token_ns or 0)
    assert _ms(answer.first_token_ns, answer.sent_ns) >= 295


@pytest.mark.parametrize("events", [chat(), completion(), [DONE], [chat_chunk({"content": ""}, finish_reason="stop")]])
def test_a03_a_well_ended_stream_without_content_is_empty_and_has_no_times(events: list[bytes]) -> None:
    answer = _answer(events)
    assert answer.request_outcome == "empty"
    assert (answer.first_token_ns, answer.last_token_ns, answer.output_tokens) == (None, None, None)
    assert answer.failure_cause is None
    assert answer.text == ""


@pytest.mark.parametrize("name", FIELDS)
def test_a04_thinking_is_generated_and_the_answer_has_its_own_first_token(name: str) -> None:
    thoughts = [(200.0 if number == 0 else 20.0, chat_chunk({name: "t"})) for number in range(50)]
    answers = [(20.0, chat_chunk({"content": "x"})) for _ in range(10)]
    role, end = chat_chunk({"role": "assistant", "content": ""}), chat_chunk(finish_reason="stop")
    answer = _answer([role, *thoughts, *answers, end, DONE])
    assert answer.wire is not None
    assert (answer.first_token_ns, answer.wire.first_answer_ns) == (200 * MS, 1200 * MS)
    assert (answer.text, answer.wire.reasoning_text) == ("x" * 10, "t" * 50)
    assert answer.wire.chunk_count == 60


def test_a04_without_thinking_there_is_no_second_first_token() -> None:
    answer = _answer(chat("x"))
    assert answer.wire is not None
    assert answer.wire.first_answer_ns is None


def test_a05_an_answer_cut_while_thinking_has_a_first_token_and_no_first_answer() -> None:
    thoughts = [(20.0, chat_chunk({"reasoning": "t"})) for _ in range(20)]
    answer = _answer([*thoughts, chat_chunk(finish_reason="length"), usage_chunk(usage(12, 20, reasoning=20)), DONE])
    assert answer.wire is not None
    assert (answer.first_token_ns, answer.wire.first_answer_ns) == (20 * MS, None)
    assert (answer.finish_reason, answer.request_outcome, answer.text) == ("length", "completed", "")
    assert (answer.output_tokens, answer.wire.reasoning_tokens) == (20, 20)


def test_a06_counts_and_the_end_marker_are_no_tokens() -> None:
    tokens = [(100.0, chat_chunk({"content": "x"})) for _ in range(10)]
    end: list[bytes | Write] = [
        chat_chunk(finish_reason="stop"), b": ping\n\n", (500, usage_chunk(usage(12, 10))), (500, DONE)
    ]  # fmt: skip
    answer = _answer([*tokens, *end])
    assert answer.wire is not None
    assert (answer.last_token_ns, answer.done_ns, answer.wire.chunk_count) == (1000 * MS, 2000 * MS, 10)
    assert answer.gaps_ns == [100 * MS] * 9


def test_a07_chunks_of_several_tokens_are_called_chunks() -> None:
    events = [(80.0, chat_chunk({"content": "abcd"})) for _ in range(20)]
    answer = _answer([*events, chat_chunk(finish_reason="stop"), usage_chunk(usage(12, 80)), DONE])
    assert answer.wire is not None
    assert (answer.gap_unit, answer.wire.chunk_count, answer.output_tokens) == ("chunk", 20, 80)
    assert answer.token_count_source == "usage"
    assert set(answer.gaps_ns) == {80 * MS}


def _counted(*tokens: int, **more: Any) -> list[bytes]:
    """A stream whose every chunk tells the count so far."""
    total, events = 0, [chat_chunk({"role": "assistant", "content": ""}, usage=usage(12, 0))]
    for count in tokens:
        total += count
        events.append(chat_chunk({"content": "x"}, usage=usage(12, total)))
    return [
        *events,
        chat_chunk({"content": ""}, finish_reason="stop", usage=usage(12, total + 1)),
        *more.get("end", [DONE]),
    ]


def test_a07_gaps_are_between_tokens_only_where_the_server_counts_one_for_each_chunk() -> None:
    single, several = _answer(_counted(1, 1, 1)), _answer(_counted(1, 2, 1))
    assert single.wire is not None
    assert several.wire is not None
    assert (single.gap_unit, single.wire.chunk_tokens, single.output_tokens) == ("token", [1, 1, 1], 4)
    assert (several.gap_unit, several.wire.chunk_tokens, several.output_tokens) == ("chunk", [1, 2, 1], 5)
    assert single.token_count_source == "usage"


def test_a08_tokens_that_speculation_brings_together_are_counted_by_chunk() -> None:
    """The engine's steps are then several tokens long; the stream tells how long, and never by what method."""
    answer = _answer(_counted(4, 3, 4, 1))
    assert answer.wire is not None
    assert (answer.wire.chunk_tokens, answer.gap_unit) == ([4, 3, 4, 1], "chunk")


def test_a_count_of_the_times_is_followed_where_the_server_sends_them_with_each_token() -> None:
    events = [chat_chunk({"content": "x"}, timings={"predicted_n": number}) for number in (1, 2, 4)]
    answer = _answer([*events, chat_chunk(finish_reason="stop"), usage_chunk(usage(12, 5)), DONE])
    assert answer.wire is not None
    assert answer.wire.chunk_tokens == [1, 1, 2]


def test_one_event_that_nobody_counts_leaves_no_counts() -> None:
    events = [chat_chunk({"content": "x"}, usage=usage(12, 1)), chat_chunk({"content": "y"}), *_counted(1)[1:]]
    answer = _answer(events)
    assert answer.wire is not None
    assert (answer.wire.chunk_tokens, answer.gap_unit) == ([], "chunk")


def test_a09_chunks_without_a_visible_token_are_legal() -> None:
    answer = _answer(chat("a", "\n", " ", "", "<|im_end|>", "b"), _rules(count_tokens=lambda text: 0))
    assert answer.wire is not None
    assert (answer.request_outcome, answer.text) == ("completed", "a\n <|im_end|>b")
    assert (answer.wire.chunk_count, answer.output_tokens, answer.token_count_source) == (5, 0, "retokenized")


def test_a09_an_empty_text_is_a_token_where_the_running_count_grew_with_it() -> None:
    events = [chat_chunk({"content": text}, usage=usage(12, count)) for text, count in (("a", 1), ("", 2), ("", 2))]
    answer = _answer([*events, chat_chunk(finish_reason="stop"), DONE])
    assert answer.wire is not None
    assert (answer.wire.chunk_count, answer.wire.chunk_tokens, answer.gap_unit) == (2, [1, 1], "token")


def test_a10_the_servers_count_comes_first_and_an_estimate_is_labelled() -> None:
    blanks, rules = [" "] * 120, _rules(count_tokens=lambda text: 8)
    told, untold = _answer(chat(*blanks, counts=usage(12, 120)), rules), _answer(chat(*blanks), rules)
    assert (told.output_tokens, told.token_count_source) == (120, "usage")
    assert (untold.output_tokens, untold.token_count_source) == (8, "retokenized")


def test_a10_listed_tokens_are_counted_before_the_text_is() -> None:
    events = [
        event({"choices": [{"index": 0, "text": "x", "token_ids": [7, 8]}]}),
        completion_chunk(finish_reason="stop"),
    ]
    answer = _answer([*events, DONE], _rules(count_tokens=lambda text: 99))
    assert (answer.output_tokens, answer.token_count_source) == (2, "token_ids")


def test_a_running_count_without_a_last_one_is_called_so() -> None:
    answer = _answer(_counted(1, 1)[:-2], ending="closed")
    assert (answer.request_outcome, answer.output_tokens, answer.token_count_source) == (
        "failed",
        2,
        "continuous_usage",
    )


# Framing


LANGUAGES = ["Tiếng Việt: đường, ưỡn ẹo", "汉字測試，漢語", "👩‍👩‍👧‍👦🏳️‍🌈😀"]


def test_a21_characters_cut_between_writes_arrive_whole(generator: LoadGenerator) -> None:
    with StubServer([stream(chat(*text), split=1) for text in LANGUAGES]) as stub:
        answers = _asked(generator, stub, len(LANGUAGES))
    assert [answer.text for answer in answers] == LANGUAGES
    assert {answer.request_outcome for answer in answers} == {"completed"}


@pytest.mark.parametrize("text", LANGUAGES)
def test_a21_characters_cut_between_pieces_arrive_whole(text: str) -> None:
    body = b"".join(chat(*text))
    assert _answer([body[at : at + 1] for at in range(len(body))]).text == text


def _two_kilobytes() -> bytes:
    """A stream with everything that a cut could break: line ends of three kinds, blanks, comments, long characters."""
    events = [
        "\ufeff".encode() + b": ping\r\n\r\n", chat_chunk({"role": "assistant", "content": ""}, usage=usage(12, 0)),
        chat_chunk({"reasoning": " thought\u2028 "}, usage=usage(12, 2)),
        *(chat_chunk({"content": text}, usage=usage(12, 3 + number)) for number, text in enumerate(LANGUAGES)),
        event({"choices": [{"index": 0, "delta": {"content": " a  b "}}]}, line_end="\r\n", blank=""),
        b'data: {"choices":\ndata: [{"index":0,"delta":{"content":"two lines"}}]}\n\n',
        chat_chunk({"content": "\n\n"}).replace(b"\n\n", b"\r\r"), chat_chunk(finish_reason="stop"),
    ]  # fmt: skip
    last = [usage_chunk(usage(12, 80, cached=4)), DONE.rstrip(b"\n")]
    missing = 2048 - sum(map(len, [*events, *last]))
    assert missing > 3
    return b"".join([*events, b":" + b"x" * (missing - 3) + b"\n\n", *last])


def test_a22_a_stream_cut_at_any_byte_gives_one_result() -> None:
    body = _two_kilobytes()
    assert len(body) == 2048
    whole = _answer([body])
    assert (whole.request_outcome, whole.output_tokens, whole.finish_reason) == ("completed", 80, "end_token")
    assert whole.text == "".join(LANGUAGES) + " a  b two lines\n\n"
    assert whole.wire is not None
    assert (whole.wire.reasoning_text, whole.wire.chunk_count) == (" thought\u2028 ", 7)
    results = {at for at in range(1, len(body)) if _answer([body[:at], body[at:]]) == whole}
    assert results == set(range(1, len(body)))
    assert _answer([body[at : at + 1] for at in range(len(body))]) == whole


def test_a22_a_stream_in_single_bytes_over_a_socket_gives_the_same_answer(generator: LoadGenerator) -> None:
    body = _two_kilobytes()
    with StubServer([stream([body], split=1), stream([body], split=7)]) as stub:
        answers = _asked(generator, stub, 2)
    whole = _answer([body])
    for answer in answers:
        assert answer.wire is not None
        assert whole.wire is not None
        assert (answer.text, answer.output_tokens, answer.request_outcome) == (whole.text, 80, "completed")
        assert answer.wire.chunk_count == whole.wire.chunk_count


_EVENTS = st.lists(
    st.one_of(
        st.text(max_size=6).map(lambda text: chat_chunk({"content": text})),
        st.text(max_size=6).map(lambda text: chat_chunk({"reasoning": text})),
        st.sampled_from(
            [chat_chunk({"role": "assistant", "content": None}), usage_chunk(None), usage_chunk(usage(5, 9)),
             error_event(), b": ping\n\n", b"data: {broken\n\n", b"\r\n", chat_chunk(finish_reason="length"), DONE]
        ),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(_EVENTS, st.lists(st.integers(0, 2000), max_size=8), st.sampled_from(["complete", "closed", "total_timeout"]))
def test_a22_any_cut_of_any_events_gives_one_result(events: list[bytes], cuts: list[int], ending: str) -> None:
    body = b"".join(events)
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[start:end] for start, end in pairwise(places)]
    assert _answer(pieces, ending=ending) == _answer([body] if body else [], ending=ending)


def _with_counts(place: str) -> list[bytes]:
    counts = usage(12, 3)
    texts = [chat_chunk({"content": text}, usage=counts if place == "every" else None) for text in "abc"]
    end = chat_chunk(finish_reason="stop", usage=counts if place == "every" else None)
    if place == "key missing":
        return [*texts, end, event({"usage": counts}), DONE]
    return {
        "start": [usage_chunk(counts), *texts, end, DONE],
        "end": [*texts, end, usage_chunk(counts), DONE],
        "every": [*texts, end, DONE],
    }[place]


@pytest.mark.parametrize("place", ["start", "end", "every", "key missing"])
def test_a26_counts_are_found_wherever_they_stand(generator: LoadGenerator, place: str) -> None:
    with StubServer([stream(_with_counts(place))]) as stub:
        (answer,) = _asked(generator, stub)
    assert answer.wire is not None
    assert (answer.text, answer.output_tokens, answer.token_count_source) == ("abc", 3, "usage")
    assert (answer.wire.prompt_tokens, answer.wire.chunk_count, answer.request_outcome) == (12, 3, "completed")


@pytest.mark.parametrize(
    "counts", [None, {}, {"prompt_tokens": -1, "completion_tokens": -1}, usage(0, 0) | {"prompt_tokens": None}]
)
def test_a27_counts_that_nobody_told_are_null(counts: dict[str, Any] | None) -> None:
    answer = _answer([*chat("x", is_done=False), usage_chunk(counts), DONE])
    assert answer.wire is not None
    assert (answer.output_tokens, answer.token_count_source) == (None, "none")
    assert (answer.wire.prompt_tokens, answer.wire.cached_tokens, answer.wire.reasoning_tokens) == (None, None, None)
    assert answer.wire.prompt_evidence == "rendered"


# Failures


def test_a23_an_error_inside_a_stream_fails_the_request_and_keeps_its_text(generator: LoadGenerator) -> None:
    cut = chat("a", "b", "c", finish_reason=None, is_done=False)
    replies = [
        stream([*cut, error_event("engine died"), DONE]),
        stream(cut, ending="close"),
        stream(cut, ending="reset"),
    ]
    with StubServer(replies) as stub:
        answers = _asked(generator, stub, 3)
    assert [answer.request_outcome for answer in answers] == ["failed"] * 3
    assert [answer.failure_cause for answer in answers] == ["engine_error", "connection", "connection"]
    assert [answer.text for answer in answers][:2] == ["abc", "abc"]
    assert answers[0].failure_message == "error inside the stream: engine died (InternalServerError)"
    assert answers[0].finish_reason == "error"
    assert answers[0].first_token_ns is not None


def test_a23_a_stream_that_ends_without_saying_why_is_cut(generator: LoadGenerator) -> None:
    with StubServer([stream(chat("a", finish_reason=None, is_done=False))]) as stub:
        (answer,) = _asked(generator, stub)
    assert (answer.request_outcome, answer.failure_cause, answer.text) == ("failed", "truncation", "a")


def test_a23_a_stream_that_ends_inside_an_event_is_cut_there() -> None:
    answer = _answer([b"".join(chat("a", "b"))[:-60]])
    assert (answer.request_outcome, answer.failure_cause, answer.text) == ("failed", "truncation", "ab")
    assert "it ends inside an event: " in (answer.failure_message or "")


@pytest.mark.parametrize("ending", ["complete", "closed"])
@pytest.mark.parametrize(
    "events",
    [chat("a", is_done=False), chat("a", finish_reason=None), chat("a")[:-1], [*chat("a", is_done=False)[:-1], DONE]],
)
def test_either_a_reason_or_the_end_marker_ends_an_answer_well(events: list[bytes], ending: str) -> None:
    answer = _answer(events, ending=ending)
    assert (answer.request_outcome, answer.text, answer.finish_reason) == ("completed", "a", "end_token")


def test_a34_an_event_that_cannot_be_read_fails_its_request_alone(generator: LoadGenerator) -> None:
    broken = chat("a", "b")
    broken.insert(2, b'data: {"choices": [{"delta": {"content": "' + b"x" * 600 + b"\n\n")

    def reply(seen: Any) -> Reply:
        return stream(broken if len(stub.posts) % 10 == 0 else chat("a", "b"))

    with StubServer(reply) as stub:
        answers = _asked(generator, stub, 50)
    failed = [answer for answer in answers if answer.request_outcome == "failed"]
    assert len(failed) == 5
    assert {(answer.failure_cause, answer.text) for answer in failed} == {("format", "ab")}
    kept = (failed[0].failure_message or "").partition("first bytes: ")[2]
    assert kept.startswith('{"choices": [{"delta": {"content": "xxx')
    assert len(kept) == 500


def test_the_three_time_limits_are_told_apart(generator: LoadGenerator) -> None:
    short = msgspec.structs.replace(LIMITS, first_token_s=0.3, request_s=0.5)
    role = [chat_chunk({"role": "assistant", "content": ""})]
    replies = [stream(role, ending="hang"), stream([*role, chat_chunk({"content": "x"})], ending="hang")]
    with StubServer(replies) as stub:
        first, whole = _asked(generator, stub, 2, limits=short)
    connecting = _answer([], ending="connect_timeout", http_status=None)
    assert [each.failure_message for each in (connecting, first, whole)] == [
        "connecting: no connection within 0.5 s",
        "first token: no generated content within 0.3 s of sending",
        "whole answer: not complete within 0.5 s of sending",
    ]
    assert {(each.failure_cause, each.finish_reason) for each in (connecting, first, whole)} == {("timeout", "timeout")}
    assert (first.text, whole.text) == (None, "x")


def test_an_answer_that_was_over_before_the_limit_is_complete() -> None:
    assert _answer(chat("a"), ending="total_timeout").request_outcome == "completed"


def test_what_refuses_connections_or_speaks_no_http_fails_with_its_own_cause() -> None:
    refused = _answer([], ending="connect_failed", http_status=None, fault="ConnectionRefusedError: [Errno 111]")
    assert (refused.failure_cause, refused.exception_class) == ("connection", "ConnectionRefusedError")
    assert refused.failure_message == "no connection to the server: ConnectionRefusedError: [Errno 111]"
    assert _answer([], ending="not_http", http_status=None).failure_cause == "protocol"
    assert _answer([], ending="closed", http_status=None).failure_cause == "connection"


TOO_LONG = [
    {"error": {"message": "This model's maximum context length is 2048 tokens. However, you requested 3000"}},
    {
        "error": {
            "message": "The decoder prompt (length 31) is longer than the maximum model length of 20.",
            "code": 400,
        }
    },
    {"error": {"code": 400, "message": "too big", "type": "exceed_context_size_error", "n_ctx": 1024}},
    {"object": "error", "message": "The input (30 tokens) is longer than the model's context length (20 tokens)."},
    {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 3000", "error_type": "v"},
    {"error": {"message": "too many", "type": "invalid_request_error", "code": "context_length_exceeded"}},
]


@pytest.mark.parametrize("body", TOO_LONG)
def test_a_prompt_that_the_server_calls_too_long_is_too_long(body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    for answer in (_answer([data], http_status=400), _answer([chat_chunk({"role": "assistant"}), event(body), DONE])):
        assert (answer.request_outcome, answer.failure_cause, answer.finish_reason) == (
            "too_long", "too_long", "not_started",
        )  # fmt: skip
        assert answer.text is None


@pytest.mark.parametrize(
    ("status", "body", "cause", "words"),
    [
        (400, {"error": {"message": "bad", "type": "BadRequest"}}, "protocol", "HTTP 400: bad (BadRequest)"),
        (401, {"error": "no key"}, "protocol", "HTTP 401: no key"),
        (404, b"<html>not here</html>", "protocol", "HTTP 404: <html>not here</html>"),
        (422, {"detail": [{"msg": "Field required"}]}, "protocol", 'HTTP 422: [{"msg": "Field required"}]'),
        (302, b"", "protocol", "HTTP 302: without words"),
        (429, {"error": {"message": "slow down"}}, "engine_error", "HTTP 429: slow down"),
        (500, {"error": {"message": "boom", "type": "Internal"}}, "engine_error", "HTTP 500: boom (Internal)"),
        (502, b"", "engine_error", "HTTP 502: without words"),
        (503, {"object": "error", "message": "loading"}, "engine_error", "HTTP 503: loading"),
    ],
)  # fmt: skip
def test_a_refusal_is_told_in_the_servers_words(status: int, body: Any, cause: str, words: str) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = _answer([data] if data else [], http_status=status)
    assert (answer.request_outcome, answer.failure_cause, answer.failure_message) == ("failed", cause, words)
    assert answer.wire is not None
    assert (answer.wire.http_status, answer.wire.chunk_count, answer.text) == (status, None, None)


def test_a_busy_server_over_a_socket_is_a_failure_of_the_engine(generator: LoadGenerator) -> None:
    with StubServer([busy(1)]) as stub:
        (answer,) = _asked(generator, stub)
    assert answer.wire is not None
    assert (answer.failure_cause, answer.wire.http_status) == ("engine_error", 503)


@pytest.mark.parametrize("reason", ["content_filter", "abort", "error", "nobody knows"])
def test_a_reason_that_is_the_servers_own_is_a_failure_that_names_it(reason: str) -> None:
    answer = _answer(chat("a", finish_reason=reason))
    assert (answer.request_outcome, answer.failure_cause, answer.text) == ("failed", "engine_error", "a")
    assert repr(reason) in (answer.failure_message or "")


def test_a_call_of_a_tool_is_content_and_a_complete_turn() -> None:
    call = chat_chunk({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]})
    answer = _answer([(30, call), chat_chunk(finish_reason="tool_calls"), DONE])
    assert (answer.first_token_ns, answer.text, answer.finish_reason) == (30 * MS, "f{}", "end_token")


# Bodies that are no stream


def test_a_server_that_does_not_stream_gives_an_answer_without_times_of_tokens(generator: LoadGenerator) -> None:
    message = {"role": "assistant", "content": "ab", "reasoning": "t"}
    whole = plain(200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage(12, 2)})
    with StubServer([whole]) as stub:
        (answer,) = _asked(generator, stub)
    assert answer.wire is not None
    assert (answer.request_outcome, answer.text, answer.output_tokens) == ("completed", "ab", 2)
    assert (answer.first_token_ns, answer.last_token_ns, answer.wire.first_chunk_ns) == (None, None, None)
    assert (answer.wire.chunk_count, answer.wire.reasoning_text) == (None, "t")
    assert answer.done_ns is not None


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"<!DOCTYPE html><title>portal</title>", "format"), (b'{"object":"list"}', "format"), (b"", "truncation"),
        (b'{"error":{"message":"m"}}', "engine_error"), (b"\x1f\x8b\x08", "format"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_answer_is_a_failure(body: bytes, cause: str) -> None:
    answer = _answer([body] if body else [])
    assert (answer.request_outcome, answer.failure_cause, answer.text) == ("failed", cause, None)


# Stop texts


STOPS = ["}", "END"]


def _stopped(kind: ServerKind, *events: bytes) -> Answer:
    return _answer([*events, DONE], _rules(kind=kind, stop_texts=STOPS))


def test_a_stop_text_that_the_server_kept_stays_once() -> None:
    named = event({"choices": [{"delta": {"content": "}"}, "finish_reason": "stop", "stop_reason": "}"}]})
    for answer in (
        _stopped("vllm", chat_chunk({"content": "{1"}), named),
        _stopped(
            "transformers",
            chat_chunk({"content": "{1"}),
            chat_chunk({"content": "}"}),
            chat_chunk(finish_reason="stop"),
        ),
        _stopped("tgi", completion_chunk("{1"), completion_chunk("}", finish_reason="stop_sequence")),
    ):
        assert (answer.text, answer.finish_reason, answer.request_outcome) == ("{1}", "stop_text", "completed")


def test_a_stop_text_that_the_server_cut_off_and_names_is_put_back() -> None:
    verbose = event({"choices": [{"delta": {}, "finish_reason": "stop"}], "__verbose": {"stopping_word": "END"}})
    answer = _stopped("llamacpp", chat_chunk({"content": "{1"}), verbose)
    assert (answer.text, answer.finish_reason) == ("{1END", "stop_text")


def test_an_answer_of_nothing_but_a_stop_text_is_complete_without_times() -> None:
    verbose = event({"choices": [{"delta": {}, "finish_reason": "stop"}], "__verbose": {"stopping_word": "}"}})
    answer = _stopped("llamacpp", verbose)
    assert (answer.text, answer.request_outcome, answer.first_token_ns) == ("}", "completed", None)


def test_an_answer_that_ended_by_itself_is_left_alone() -> None:
    """vLLM keeps null as stop_reason, llama.cpp names no word; a stop text further up did not end it."""
    plainly = event({"choices": [{"delta": {}, "finish_reason": "stop", "stop_reason": None}]})
    assert _stopped("vllm", chat_chunk({"content": "1"}), plainly).finish_reason == "end_token"
    ignored = _stopped("other", chat_chunk({"content": "{1}"}), chat_chunk({"content": " more"}), plainly)
    assert (ignored.text, ignored.finish_reason) == ("{1} more", "end_token")
    limited = _stopped("vllm", chat_chunk({"content": "{1}"}, finish_reason="length"))
    assert limited.finish_reason == "length"


def test_only_an_unknown_server_may_lose_a_stop_text() -> None:
    assert has_unknown_stops("other", STOPS)
    assert not has_unknown_stops("other", [])
    assert not any(has_unknown_stops(kind, STOPS) for kind in ("vllm", "sglang", "llamacpp", "tgi", "transformers"))


# What else the wire tells


def test_the_servers_count_of_prompt_tokens_is_evidence_and_the_engines_word_wins() -> None:
    same, other = _answer(chat("a", counts=usage(12, 1))), _answer(chat("a", counts=usage(15, 1, cached=3)))
    assert same.wire is not None
    assert other.wire is not None
    assert (same.wire.prompt_evidence, same.wire.cached_tokens) == ("count", None)
    assert (other.wire.prompt_evidence, other.wire.cached_tokens, other.wire.prompt_tokens) == ("differs", 3, 15)
    fronted = answer_of(_exchange(chat("a", counts=usage(15, 1))), PROMPT, RULES, SentPrompt(nonce_tokens=3)).wire
    assert fronted is not None
    assert (fronted.prompt_evidence, fronted.nonce_tokens) == ("count", 3)
    sent = SentPrompt(evidence="server_tokenizer", nonce_tokens=7, server_ids=[1, 2])
    wire = answer_of(_exchange(chat("a", counts=usage(15, 1))), PROMPT, RULES, sent).wire
    assert wire is not None
    assert (wire.prompt_evidence, wire.nonce_tokens, wire.prompt_token_ids) == ("server_tokenizer", 7, [1, 2])


def test_the_servers_own_times_are_read_by_its_kind() -> None:
    timings = {"cache_n": 9, "prompt_ms": 1.5, "predicted_ms": 20.0}
    events = [*chat("a", is_done=False), usage_chunk(usage(12, 1), timings=timings), DONE]
    told, unknown = _answer(events, _rules(kind="llamacpp")).wire, _answer(events).wire
    assert told is not None
    assert unknown is not None
    assert (told.engine_queue_ns, told.engine_prefill_ns, told.engine_decode_ns) == (None, 1_500_000, 20_000_000)
    assert told.cached_tokens == 9
    assert (unknown.engine_prefill_ns, unknown.engine_decode_ns) == (None, None)


def test_a_try_that_another_follows_is_not_final() -> None:
    assert not _answer([], http_status=503, is_final=False).is_final
