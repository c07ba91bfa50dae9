"""What an event of a completion stream means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.client import chunks
from collector.client.chunks import Chunk, ServerError, UnreadableEvent, Usage, has_content, read_chunk

FIELDS = ("reasoning_content", "reasoning")


def _chunk(body: Any) -> Chunk:
    return read_chunk(json.dumps(body).encode(), FIELDS)


def _delta(delta: dict[str, Any], **choice: Any) -> Chunk:
    return _chunk({"choices": [{"index": 0, "delta": delta, **choice}]})


@pytest.mark.parametrize(
    "delta",
    [
        {"role": "assistant"}, {"role": "assistant", "content": ""}, {"role": "assistant", "content": None},
        {"content": None}, {"content": ""}, {}, {"reasoning_content": None}, {"reasoning": ""}, {"tool_calls": []},
        {"content": []}, {"function_call": None},
    ],
)  # fmt: skip
def test_a01_role_empty_and_null_deltas_carry_no_content(delta: dict[str, Any]) -> None:
    assert not _delta(delta).has_content
    assert not has_content(json.dumps({"choices": [{"delta": delta}]}).encode(), FIELDS)


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"content": "x"}, ("x", "", "")),
        ({"reasoning_content": "t", "content": None}, ("", "t", "")),
        ({"reasoning": "t", "content": ""}, ("", "t", "")),
        ({"reasoning": "t", "reasoning_content": "t"}, ("", "t", "")),
        (
            {"content": [{"type": "thinking", "thinking": [{"text": "t"}]}, {"type": "text", "text": "x"}]},
            ("x", "t", ""),
        ),
        ({"tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}, ("", "", "f{")),
        ({"function_call": {"arguments": "1}"}}, ("", "", "1}")),
        ({"refusal": "no"}, ("no", "", "")),
    ],
)
def test_content_of_each_channel_is_content(delta: dict[str, Any], expected: tuple[str, str, str]) -> None:
    chunk = _delta(delta)
    assert (chunk.answer, chunk.thinking, chunk.tool_text) == expected
    assert has_content(json.dumps({"choices": [{"delta": delta}]}).encode(), FIELDS)


def test_a04_only_the_named_fields_are_thinking() -> None:
    data = b'{"choices":[{"delta":{"thoughts":"t"}}]}'
    assert not has_content(data, FIELDS)
    assert has_content(data, ["thoughts"])


def test_an_empty_text_is_told_from_no_text() -> None:
    assert _delta({"content": ""}).has_empty_text
    assert not _delta({"content": "", "role": "assistant"}).has_empty_text
    assert not _delta({"content": ""}, finish_reason="stop").has_empty_text
    assert not _delta({"content": None}).has_empty_text
    assert _chunk({"choices": [{"text": ""}]}).has_empty_text


def test_completions_carry_their_text_in_the_choice() -> None:
    assert _chunk({"choices": [{"index": 0, "text": "x", "finish_reason": "length"}]}).answer == "x"
    assert has_content(b'{"choices":[{"text":"x"}]}', ())


def test_a_whole_answer_is_read_as_one_event() -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}], "usage": {}}
    assert (_chunk(body).answer, _chunk(body).finish_reason) == ("x", "stop")


@pytest.mark.parametrize(
    "data", [b"", b"  ", b"null", b"{}", b'{"type":"ping"}', b'{"choices":null}', b'{"choices":[]}']
)
def test_a26_events_without_choices_say_nothing_of_the_answer(data: bytes) -> None:
    chunk = read_chunk(data, FIELDS)
    assert not chunk.has_content
    assert not chunk.has_choice
    assert chunk.error is None


def test_the_end_marker_is_an_end() -> None:
    assert read_chunk(b"[DONE]", FIELDS).is_end
    assert read_chunk(b" [DONE] ", FIELDS).is_end


def test_of_several_choices_the_first_is_the_answer() -> None:
    body = {"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]}
    assert _chunk(body).answer == "yes"
    assert not _chunk({"choices": [{"index": 1, "delta": {"content": "no"}}]}).has_content


def test_counts_are_read_from_each_place_where_servers_put_them() -> None:
    openai = {
        "prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }  # fmt: skip
    assert _chunk({"usage": openai}).usage == Usage(9, 5, 2, 4)
    sglang = {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": None, "reasoning_tokens": 0}
    assert _chunk({"usage": sglang}).usage == Usage(9, 5, 0, None)
    assert _chunk({"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 3}}).usage == Usage(9, None, None, 3)
    assert _chunk({"usage": None}).usage is None


@pytest.mark.parametrize("sentinel", [-1, -5, 2**63, 1e300, 1.5, "5", None, True, [3]])
def test_a27_a_count_that_no_server_can_mean_is_null(sentinel: Any) -> None:
    assert _chunk({"usage": {"prompt_tokens": sentinel, "completion_tokens": sentinel}}).usage == Usage()


def test_later_counts_win_and_untold_ones_stay() -> None:
    assert Usage(9, 1, None, 4).updated(Usage(9, 5, 2, None)) == Usage(9, 5, 2, 4)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"message": "m", "type": "T", "param": None, "code": 500}}, ServerError("m", 500, "T")),
        (
            {"error": {"message": "m", "code": "context_length_exceeded"}},
            ServerError("m", None, "context_length_exceeded"),
        ),
        ({"object": "error", "message": "m", "type": "T", "code": 400}, ServerError("m", 400, "T")),
        ({"error": "m", "error_type": "overloaded"}, ServerError("m", None, "overloaded")),
        ({"type": "error", "message": "m"}, ServerError("m", None, "error")),
        ({"detail": "m"}, ServerError("m")),
        ({"detail": [{"loc": ["body"]}]}, ServerError('[{"loc": ["body"]}]')),
        ({"error": {"a": 1}}, ServerError('{"a": 1}')),
    ],
)
def test_a23_errors_are_known_in_each_form(body: Any, expected: ServerError) -> None:
    assert _chunk(body).error == expected


def test_a23_an_event_named_error_is_one_whatever_it_holds() -> None:
    assert read_chunk(b'{"message":"m"}', FIELDS, is_error=True).error == ServerError("m")
    assert read_chunk(b"out of memory", FIELDS, is_error=True).error == ServerError("out of memory")


def test_a23_an_error_whose_words_break_the_json_is_an_error() -> None:
    data = b'{"error": "name "x" is not defined"}'
    assert read_chunk(data, FIELDS).error == ServerError(data.decode())


@pytest.mark.parametrize(
    "data",
    [b'{"choices":[{"delta":{"content":"x"', b"ping", b"[1]", b'"text"', b"\xff\xfe", b'{"choices":[1]}', b"[" * 9999],
)
def test_a34_what_is_no_object_of_this_interface_cannot_be_read(data: bytes) -> None:
    with pytest.raises(UnreadableEvent):
        read_chunk(data, FIELDS)
    assert not has_content(data, FIELDS)


def test_what_servers_write_beside_the_rules_of_json_is_read() -> None:
    assert read_chunk(b'{"choices":[{"delta":{"content":"x"},"logprobs":{"p":NaN}}]}', FIELDS).answer == "x"
    assert read_chunk(b'{"choices":[{"delta":{"content":"\\ud83d"}}]}', FIELDS).answer == "\ud83d"


def test_times_keep_their_numbers_only() -> None:
    chunk = _chunk(
        {"choices": [], "timings": {"prompt_ms": 1.5, "predicted_n": 3, "name": "x", "is_on": True}, "metrics": 4}
    )
    assert chunk.timings == {"prompt_ms": 1.5, "predicted_n": 3}
    assert chunk.metrics == {}


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"delta": {}, "finish_reason": "stop", "stop_reason": "}"}]},
        {"choices": [{"delta": {}, "finish_reason": "stop", "matched_stop": "}"}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "__verbose": {"stopping_word": "}"}},
    ],
)
def test_the_stop_text_is_known_where_a_server_names_it(body: Any) -> None:
    assert _chunk(body).stop_text == "}"


@pytest.mark.parametrize("named", [None, 2, "", 128009])
def test_a_stop_token_is_no_stop_text(named: Any) -> None:
    assert _delta({}, finish_reason="stop", stop_reason=named, matched_stop=named).stop_text is None


def test_listed_tokens_are_counted() -> None:
    assert _delta({"content": "ab"}, token_ids=[5, 6]).token_count == 2
    assert _delta({"content": "a"}, logprobs={"content": [{"token": "a"}]}).token_count == 1
    assert _chunk({"choices": [{"text": "a", "logprobs": {"tokens": ["a"]}}]}).token_count == 1
    assert _delta({"content": "a"}).token_count is None


_VALUES = st.sampled_from(
    [None, "", "x", "{", "error", 0, 1, 1.0, -1, 2**40, 2**70, True, [], ["x"], {}, {"content": "x"}]
)
_USAGE = st.dictionaries(
    st.sampled_from(["prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "cached_tokens"]),
    st.one_of(st.integers(0, 9), _VALUES, st.just({"cached_tokens": 3})),
)
_PARTS = ["content", "role", "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content", "thoughts"]
_CHOICE = st.fixed_dictionaries(
    {},
    optional={
        "index": _VALUES, "text": _VALUES, "message": _VALUES, "finish_reason": _VALUES, "stop_reason": _VALUES,
        "matched_stop": _VALUES, "token_ids": _VALUES, "logprobs": _VALUES, "other": _VALUES,
        "delta": st.one_of(
            _VALUES, st.fixed_dictionaries({"content": st.text(max_size=3)}),
            st.dictionaries(st.sampled_from(_PARTS), _VALUES, max_size=3),
        ),
    },
)  # fmt: skip
_FIELDS = [
    "usage",
    "error",
    "object",
    "message",
    "type",
    "code",
    "detail",
    "error_type",
    "timings",
    "metrics",
    "__verbose",
    "id",
]
_BODY = st.one_of(
    st.fixed_dictionaries({"choices": st.lists(_CHOICE, max_size=2)}, optional={"usage": st.one_of(st.none(), _USAGE)}),
    st.fixed_dictionaries(
        {"choices": st.one_of(_VALUES, st.lists(_CHOICE, min_size=1, max_size=1))},
        optional=dict.fromkeys(_FIELDS, _VALUES),
    ),
)  # fmt: skip


def _meaning(data: bytes, fields: tuple[str, ...], *, is_short: bool) -> Chunk | str | None:
    try:
        found = chunks._plain_chunk(data, fields) if is_short else chunks._any_chunk(data, fields, is_error=False)
    except UnreadableEvent:
        return "unreadable"
    return Chunk(answer=found, has_choice=True) if isinstance(found, str) else found


@given(body=_BODY, fields=st.sampled_from([FIELDS, (), ("thoughts",), ("content",), ("role", "refusal")]))
def test_the_short_way_of_plain_events_says_what_the_long_way_says(body: Any, fields: tuple[str, ...]) -> None:
    data = json.dumps(body).encode()
    short = _meaning(data, fields, is_short=True)
    assert short is None or short == _meaning(data, fields, is_short=False)


@given(
    body=_BODY, place=st.integers(0, 300),
    garbage=st.sampled_from([b"", b"\xff", b"\x00", b"}", b"NaN", b"\\ud83d", b"\\", b"\xe2\x80", b"9" * 400, b" "]),
)  # fmt: skip
def test_what_the_long_way_cannot_read_is_never_read_the_short_way(body: Any, place: int, garbage: bytes) -> None:
    data = json.dumps(body).encode()
    broken = data[:place] + garbage + data[place + len(garbage) :]
    short = _meaning(broken, FIELDS, is_short=True)
    assert short is None or short == _meaning(broken, FIELDS, is_short=False)


@pytest.mark.parametrize(
    "body",
    [
        {"id": "a", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]},
        {"choices": [{"index": 0, "delta": {"content": "x", "role": None, "tool_calls": None}, "logprobs": None}],
         "usage": {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}},
        {"object": "text_completion", "choices": [{"index": 0, "text": "x", "finish_reason": None}], "usage": None},
    ],
)  # fmt: skip
def test_the_usual_events_of_servers_take_the_short_way(body: Any) -> None:
    short = _meaning(json.dumps(body).encode(), FIELDS, is_short=True)
    assert isinstance(short, Chunk)
    assert short.answer == "x"
