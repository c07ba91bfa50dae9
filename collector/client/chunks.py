"""What one event of a completion stream means: generated content by channel, how it ended, counts, errors.

Content is a text that is not empty, in the answer, in thinking or in a tool call. An event that only names the role,
an empty or null text, a keep-alive and an event that only counts carry none, so they stop no clock. A token may decode
to the empty text, though: a delta with `content: ""`, without a role and without a reason to end, is marked
`has_empty_text`, and whoever follows the counts takes it for a token only where the server's running count grew.

Only what is needed is decoded; any further field, and any number of choices from none on, is accepted. Counts that no
server can mean (negative, fractional, beyond 2^40) are null, never zero.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

END = b"[DONE]"
_MOST_TOKENS = 2**40
_MOST = 1e18
_OTHER_CONTENT = (b'"content"', b'"text"', b'"tool_calls"', b'"function_call"', b'"refusal"')


class UnreadableEvent(ValueError):
    """An event's data is no JSON object that this interface could mean."""


class Usage(NamedTuple):
    """The server's counts of a request so far; each null where it did not tell. Output includes reasoning."""

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None

    def updated(self, later: Usage) -> Usage:
        """Return the later counts, with the earlier ones where the later tell nothing."""
        prompt, output, reasoning, cached = later
        return Usage(
            self.prompt_tokens if prompt is None else prompt,
            self.output_tokens if output is None else output,
            self.reasoning_tokens if reasoning is None else reasoning,
            self.cached_tokens if cached is None else cached,
        )


class ServerError(NamedTuple):
    """An error that the server reported in its own words; `code` is its number (of HTTP or its own) or null."""

    message: str
    code: int | None = None
    kind: str = ""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of one event, or of a whole body that is no stream.

    timings and metrics: the server's own times of the request, their numbers as given. token_count: tokens of this
    event where the server lists them. stop_text: the stop text that ended the answer, where the server names it.
    """

    answer: str = ""
    thinking: str = ""
    tool_text: str = ""
    has_empty_text: bool = False
    role: str | None = None
    finish_reason: str | None = None
    stop_text: str | None = None
    usage: Usage | None = None
    token_count: int | None = None
    timings: dict[str, float] = {}
    metrics: dict[str, float] = {}
    error: ServerError | None = None
    has_choice: bool = False
    """False of an event that only counts, or says something else beside the answer."""
    is_end: bool = False

    @property
    def has_content(self) -> bool:
        """True where the event carries at least one generated character of any channel."""
        return bool(self.answer or self.thinking or self.tool_text)


class _Choice(msgspec.Struct):
    index: Any = 0
    delta: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    text: str | None = None
    finish_reason: str | None = None
    stop_reason: Any = None
    matched_stop: Any = None
    token_ids: Any = None
    logprobs: Any = None


class _Body(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    object: Any = None
    message: Any = None
    type: Any = None
    code: Any = None
    detail: Any = None
    error_type: Any = None
    timings: Any = None
    metrics: Any = None
    verbose: Any = msgspec.field(default=None, name="__verbose")


_Tokens = Annotated[int, msgspec.Meta(ge=0, lt=_MOST_TOKENS)]


class _PlainDelta(msgspec.Struct, forbid_unknown_fields=True):
    """A delta that can hold nothing but a text: any further field may be thinking, by a name that the plan chose."""

    content: str | None = None
    role: None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning: None = None
    reasoning_content: None = None


class _PlainUsage(msgspec.Struct, forbid_unknown_fields=True):
    prompt_tokens: _Tokens | None = None
    completion_tokens: _Tokens | None = None
    total_tokens: _Tokens | None = None
    prompt_tokens_details: None = None
    completion_tokens_details: None = None


class _PlainChoice(msgspec.Struct):
    index: Literal[0] | None = 0
    delta: _PlainDelta | None = None
    message: None = None
    text: str | None = None
    finish_reason: None = None
    stop_reason: None = None
    matched_stop: None = None
    token_ids: None = None
    logprobs: None = None


class _PlainBody(msgspec.Struct):
    """Nearly every event of a stream: one choice, a text, perhaps a count, and nothing else that means something.

    Every field that `_Body` has is here, or what cannot be read in one would be passed over in the other.
    """

    choices: tuple[_PlainChoice]
    usage: _PlainUsage | None = None
    error: None = None
    object: str | None = None
    message: None = None
    type: None = None
    code: None = None
    detail: None = None
    error_type: None = None
    timings: None = None
    metrics: None = None
    verbose: None = msgspec.field(default=None, name="__verbose")


_DECODER = msgspec.json.Decoder(_Body)
_PLAIN_DECODER = msgspec.json.Decoder(_PlainBody)
_END = Chunk(is_end=True)
_NOTHING = Chunk()


def read_chunk(data: bytes, reasoning_fields: Sequence[str], *, is_error: bool = False) -> Chunk:
    """Return what an event's data means; of a body that is no stream, the whole answer as if it were one event.

    is_error: the event's name says so. Raises UnreadableEvent for data that is no JSON object of this interface.
    """
    meaning = read_event(data, reasoning_fields, is_error=is_error)
    return Chunk(answer=meaning, has_choice=True) if isinstance(meaning, str) else meaning


def read_event(data: bytes, reasoning_fields: Sequence[str], *, is_error: bool = False) -> Chunk | str:
    """Return the same, but the bare text where an event means a text of the answer and nothing else."""
    if not is_error and (plain := _plain_chunk(data, reasoning_fields)) is not None:
        return plain
    return _any_chunk(data, reasoning_fields, is_error=is_error)


def _plain_chunk(data: bytes, reasoning_fields: Sequence[str]) -> Chunk | str | None:
    """Return what a plain event means, in a fifth of the time; null of any other."""
    try:
        body = _PLAIN_DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if body.object == "error" or "content" in reasoning_fields:
        return None
    choice, usage = body.choices[0], body.usage
    text = choice.text if choice.text is not None or choice.delta is None else choice.delta.content
    if text and usage is None:
        return text
    return Chunk(
        answer=text or "", has_empty_text=text == "", has_choice=True,
        usage=None if usage is None else Usage(usage.prompt_tokens, usage.completion_tokens),
    )  # fmt: skip


def _any_chunk(data: bytes, reasoning_fields: Sequence[str], *, is_error: bool) -> Chunk:
    stripped = data.strip()
    if stripped == END:
        return _END
    if not stripped or stripped == b"null":
        return _NOTHING
    try:
        body = _decoded(stripped)
    except UnreadableEvent:
        error = _spelled_error(stripped, is_error=is_error)
        if error is None:
            raise
        return Chunk(error=error)
    error = _error_of(body, is_error=is_error)
    choice = _first_choice(body)
    if choice is None:
        return Chunk(
            error=error, usage=_usage_of(body.usage), timings=_numbers(body.timings), metrics=_numbers(body.metrics)
        )
    return _chunk(body, choice, error, reasoning_fields)


def has_content(data: bytes, reasoning_fields: Sequence[str]) -> bool:
    """True where an event carries generated content; what cannot be read carries none."""
    if not any(name in data for name in _OTHER_CONTENT) and not any(name.encode() in data for name in reasoning_fields):
        return False
    try:
        return read_chunk(data, reasoning_fields).has_content
    except UnreadableEvent:
        return False


def _decoded(data: bytes) -> _Body:
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        # Python's own reader takes what some servers write and JSON forbids: NaN, and halves of surrogate pairs.
        try:
            return msgspec.convert(json.loads(data), _Body)
        except (ValueError, RecursionError, msgspec.ValidationError):
            raise UnreadableEvent(f"{type(fault).__name__}: {fault}") from fault


def _first_choice(body: _Body) -> _Choice | None:
    """The collector asks for one answer only: of several choices the one numbered 0 is that answer."""
    for choice in body.choices or ():
        if choice.index in (0, None):
            return choice
    return None


def _chunk(body: _Body, choice: _Choice, error: ServerError | None, reasoning_fields: Sequence[str]) -> Chunk:
    parts = choice.delta if choice.delta is not None else choice.message or {}
    spoken = choice.text if choice.text is not None else parts.get("content")
    answer, thinking = _texts(spoken)
    for name in reasoning_fields:
        if thought := parts.get(name):
            thinking += _texts(thought)[0]
            break  # some servers send the same thought under two names
    role = parts.get("role")
    finish_reason = choice.finish_reason or None
    return Chunk(
        answer=answer or _string(parts.get("refusal")), thinking=thinking, tool_text=_tool_text(parts),
        has_empty_text=isinstance(spoken, str) and not spoken and not role and finish_reason is None,
        role=role if isinstance(role, str) else None, finish_reason=finish_reason, stop_text=_stop_text(body, choice),
        usage=_usage_of(body.usage), token_count=_token_count(choice), timings=_numbers(body.timings),
        metrics=_numbers(body.metrics), error=error, has_choice=True,
    )  # fmt: skip


def _texts(content: Any) -> tuple[str, str]:
    """Return answer and thinking of a text, or of a list of typed parts."""
    if isinstance(content, str):
        return content, ""
    answer, thinking = "", ""
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        answer += _string(part.get("text"))
        thought = part.get("thinking")
        thinking += thought if isinstance(thought, str) else _texts(thought)[0]
    return answer, thinking


def _tool_text(parts: dict[str, Any]) -> str:
    """Return what a delta adds to tool calls: names and arguments, both generated."""
    if not parts.get("tool_calls") and not parts.get("function_call"):
        return ""
    calls = parts.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    functions.append(parts.get("function_call"))
    return "".join(
        _string(function.get(key)) for function in functions if isinstance(function, dict)
        for key in ("name", "arguments")
    )  # fmt: skip


def _stop_text(body: _Body, choice: _Choice) -> str | None:
    """vLLM names it as stop_reason, SGLang as matched_stop (a number there is a token), llama.cpp when verbose."""
    if choice.stop_reason is None and choice.matched_stop is None and body.verbose is None:
        return None
    verbose = body.verbose if isinstance(body.verbose, dict) else {}
    for named in (choice.stop_reason, choice.matched_stop, verbose.get("stopping_word")):
        if isinstance(named, str) and named:
            return named
    return None


def _token_count(choice: _Choice) -> int | None:
    if choice.token_ids is None and choice.logprobs is None:
        return None
    if isinstance(choice.token_ids, list):
        return len(choice.token_ids)
    listed = choice.logprobs.get("content") or choice.logprobs.get("tokens") if isinstance(choice.logprobs, dict) else 0
    return len(listed) if isinstance(listed, list) else None


def _usage_of(usage: dict[str, Any] | None) -> Usage | None:
    if usage is None:
        return None
    prompt, output = (usage.get(f"{name}_tokens_details") for name in ("prompt", "completion"))
    cached = _count(prompt.get("cached_tokens")) if isinstance(prompt, dict) else None
    reasoning = _count(output.get("reasoning_tokens")) if isinstance(output, dict) else None
    return Usage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        reasoning_tokens=_count(usage.get("reasoning_tokens")) if reasoning is None else reasoning,
        cached_tokens=_count(usage.get("prompt_cache_hit_tokens")) if cached is None else cached,
    )


def _count(value: Any) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < _MOST_TOKENS and value == int(value) else None


def _numbers(value: Any) -> dict[str, float]:
    if value is None or not isinstance(value, dict):
        return {}
    return {
        key: each for key, each in value.items()
        if isinstance(each, int | float) and not isinstance(each, bool) and abs(each) < _MOST
    }  # fmt: skip


def _error_of(body: _Body, *, is_error: bool) -> ServerError | None:
    """Return the error of `{"error": ...}`, `{"object": "error", ...}`, `{"detail": ...}`, or of a named event."""
    if isinstance(body.error, dict):
        return _named_error(body.error)
    if body.error:
        return ServerError(_string(body.error) or repr(body.error), _count(body.code), _string(body.error_type))
    if body.object == "error" or body.type == "error":
        return _named_error({"message": body.message, "type": body.type, "code": body.code})
    if body.detail is not None and body.choices is None:
        return ServerError(_string(body.detail) or json.dumps(body.detail))
    if is_error:
        return ServerError(_string(body.message) or "an error without words", _count(body.code), _string(body.type))
    return None


def _named_error(error: dict[str, Any]) -> ServerError:
    code = error.get("code")
    words = _string(error.get("message")) or json.dumps(error)
    kind = _string(code) or _string(error.get("type"))  # a code in words is the closer name of the two
    return ServerError(words, _count(code), kind)


def _spelled_error(data: bytes, *, is_error: bool) -> ServerError | None:
    """An error whose words break the JSON around them is an error still."""
    if is_error or data.startswith((b'{"error"', b'{"object":"error"', b'{"object": "error"')):
        return ServerError(data.decode("utf-8", "backslashreplace"))
    return None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
