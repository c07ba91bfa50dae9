"""What one exchange brought: its events in order, each with the stamp of the receipt that completed it.

Measured per stream: the first event of any kind, and every event with generated content, from which first and last
token and the gaps follow. Roles, counts, comments and the end marker are in none of them. A token that decodes to the
empty text is an event with content only where the server's running count says that a token was generated: without that
it cannot be told from an event that says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from collector.client.chunks import Chunk, ServerError, UnreadableEvent, Usage, read_chunk, read_event
from collector.client.messages import Exchange
from collector.client.sse import Event, EventReader

RAW_BYTES = 500
"""How much of what could not be read is kept."""


class Received:
    """One exchange, read to its end. `is_stream` is False for a body that held no event."""

    def __init__(self, reasoning_fields: Sequence[str]) -> None:
        self._reasoning_fields = reasoning_fields
        self._counted = 0
        """The server's running count of tokens at the last event with content."""
        self._has_final_usage = False
        self._answer: list[str] = []
        self._thinking: list[str] = []
        self._tool_text: list[str] = []
        self.first_event_ns: int | None = None
        self.first_answer_ns: int | None = None
        self.content_ns: list[int] = []
        self.content_tokens: list[int] = []
        """Tokens of each event with content; empty where the server did not count for every one of them."""
        self.finish_reason: str | None = None
        self.stop_text: str | None = None
        self.has_end_marker = False
        self.usage = Usage()
        self.timings: dict[str, float] = {}
        """The server's own times of this request, of whatever object carried them."""
        self.error: ServerError | None = None
        self.unreadable: bytes | None = None
        """The first event that could not be read."""
        self.cut_event: bytes | None = None
        """What stood after the last complete event, where it could not be read."""
        self.is_stream = True

    @property
    def answer(self) -> str:
        """The text outside thinking and tool calls."""
        return "".join(self._answer)

    @property
    def answer_before_last_part(self) -> str:
        """The same without what the last event brought of it."""
        return "".join(self._answer[:-1])

    @property
    def thinking(self) -> str:
        return "".join(self._thinking)

    @property
    def tool_text(self) -> str:
        return "".join(self._tool_text)

    @property
    def has_content(self) -> bool:
        """True where anything generated arrived."""
        return bool(self.content_ns or self._answer or self._thinking or self._tool_text)

    @property
    def is_well_ended(self) -> bool:
        """True where the server said that the answer is over, one way or the other."""
        return self.has_end_marker or self.finish_reason is not None

    @property
    def has_token_chunks(self) -> bool:
        """True where the server's counts say that each event with content held one token."""
        return bool(self.content_tokens) and set(self.content_tokens) == {1}

    @property
    def server_tokens(self) -> int | None:
        """The server's count of generated tokens; a count of none for an answer that has content is no count."""
        count = self.usage.output_tokens
        return None if count == 0 and self.has_content else count

    @property
    def has_final_count(self) -> bool:
        """True where the count belongs to the whole answer; False where it is the last of a running one."""
        return self._has_final_usage

    def take(self, event: Event, stamp_ns: int) -> None:
        """Take the next event. Raises UnreadableEvent; the event's stamp counts all the same."""
        if self.has_end_marker:
            return
        if self.first_event_ns is None:
            self.first_event_ns = stamp_ns
        meaning = read_event(event.data, self._reasoning_fields, is_error=event.name == b"error")
        if isinstance(meaning, str):
            self._take_text(meaning, stamp_ns)
        else:
            self.take_chunk(meaning, stamp_ns)

    def _take_text(self, text: str, stamp_ns: int) -> None:
        """What take_chunk does with a text of the answer that nobody counted: nearly every event is one."""
        self._answer.append(text)
        self.content_ns.append(stamp_ns)
        if self.first_answer_ns is None:
            self.first_answer_ns = stamp_ns
        if self.content_tokens:
            self.content_tokens = []

    def take_chunk(self, chunk: Chunk, stamp_ns: int | None) -> None:
        """Take an event's meaning; stamp_ns is null for a body that came as a whole, which times no token."""
        self.has_end_marker = self.has_end_marker or chunk.is_end
        self.error = self.error or chunk.error
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self.stop_text = chunk.stop_text or self.stop_text
        if chunk.timings or chunk.metrics:
            self.timings.update(chunk.timings)
            self.timings.update(chunk.metrics)
        grown = self._count(chunk)
        if chunk.answer:
            self._answer.append(chunk.answer)
        if chunk.thinking:
            self._thinking.append(chunk.thinking)
        if chunk.tool_text:
            self._tool_text.append(chunk.tool_text)
        is_empty_token = chunk.has_empty_text and grown is not None and grown > 0
        if stamp_ns is None or not (chunk.has_content or is_empty_token):
            return
        self.content_ns.append(stamp_ns)
        if chunk.answer and self.first_answer_ns is None:
            self.first_answer_ns = stamp_ns
        self._count_content(chunk, grown)

    def _count(self, chunk: Chunk) -> int | None:
        """Follow the counts; return the tokens since the last event with content, null where nobody counts."""
        running = chunk.usage.output_tokens if chunk.usage is not None else _predicted(chunk)
        if chunk.usage is not None:
            self.usage = self.usage.updated(chunk.usage)
            self._has_final_usage = not chunk.has_choice or self.finish_reason is not None
        if running is None or not chunk.has_choice:
            return None
        return running - self._counted

    def _count_content(self, chunk: Chunk, grown: int | None) -> None:
        tokens = chunk.token_count if grown is None else grown
        self._counted += grown or 0
        if tokens is None or tokens < 0 or len(self.content_tokens) < len(self.content_ns) - 1:
            self.content_tokens = []  # one event that nobody counted spoils the row
            return
        self.content_tokens.append(tokens)


def _predicted(chunk: Chunk) -> int | None:
    """llama.cpp counts in its timings, where it is asked to send them with every token."""
    count = chunk.timings.get("predicted_n")
    return None if count is None or count < 0 else int(count)


def received(exchange: Exchange, reasoning_fields: Sequence[str]) -> Received:
    """Return what an exchange brought, whether it ended well or not."""
    found, reader = Received(reasoning_fields), EventReader()
    for stamp_ns, piece in exchange.pieces:
        for event in reader.events(piece):
            try:
                found.take(event, stamp_ns)
            except UnreadableEvent:
                found.unreadable = found.unreadable or event.data[:RAW_BYTES]
    found.is_stream = reader.has_fields
    if not found.is_stream:
        _take_body(found, exchange)
        return found
    # What stands without its empty line became an event when the stream ended; cut in the middle, it is none.
    for event in reader.last_events():
        try:
            found.take(event, _end_ns(exchange))
        except UnreadableEvent:
            found.cut_event = event.data[:RAW_BYTES]
    return found


def _end_ns(exchange: Exchange) -> int:
    return exchange.done_ns if exchange.done_ns is not None else exchange.pieces[-1][0]


def _take_body(found: Received, exchange: Exchange) -> None:
    """A body that is no stream: a whole answer as JSON, an error as JSON, or something else."""
    body = b"".join(piece for _, piece in exchange.pieces)
    if not body.strip():
        return
    try:
        chunk = read_chunk(body, found._reasoning_fields)
    except UnreadableEvent:
        found.unreadable = body[:RAW_BYTES]
        return
    if not chunk.has_choice and chunk.error is None:
        found.unreadable = body[:RAW_BYTES]
    found.take_chunk(chunk, None)
