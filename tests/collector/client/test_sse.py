"""The event reader gives the events of a stream, however the stream was cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.client.sse import Event, EventReader

LINE_ENDS = ("\n", "\r\n", "\r")


def _read(*fragments: bytes) -> list[bytes]:
    reader = EventReader()
    found = [data for fragment in fragments for data in reader.feed(fragment)]
    return found + reader.finish()


@pytest.mark.parametrize("end", LINE_ENDS)
def test_each_line_end_ends_a_line(end: str) -> None:
    assert _read(f"data: a{end}{end}data: b{end}{end}".encode()) == [b"a", b"b"]


def test_line_ends_may_be_mixed_and_an_event_may_have_several_data_lines() -> None:
    assert _read(b"data: a\r\ndata: b\n\rdata: c\r\n\n") == [b"a\nb", b"c"]


def test_one_blank_after_the_colon_belongs_to_the_field_and_no_more() -> None:
    assert _read(b"data:a\n\ndata: b\n\ndata:  c \n\n") == [b"a", b"b", b" c "]


def test_comments_and_other_fields_are_no_data() -> None:
    assert _read(b": ping\n\nid: 1\nretry: 5\nevent: delta\ndata: a\nother: x\ndatabase: y\n\n: last\n") == [b"a"]


def test_a_data_line_without_a_colon_is_an_empty_line_of_data() -> None:
    assert _read(b"data\n\ndata\ndata\n\n") == [b"", b"\n"]


def test_the_last_event_needs_no_empty_line() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a") == []
    assert reader.finish() == [b"a"]
    assert reader.finish() == []


def test_a_byte_order_mark_is_no_part_of_the_first_field() -> None:
    assert _read(b"\xef", b"\xbb", b"\xbfdata: a\n\n") == [b"a"]
    assert _read(b"data: \xef\xbb\xbfa\n\n") == ["\ufeffa".encode()]


def test_separators_inside_a_text_end_no_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf"
    assert _read(f"data: {text}\n\n".encode()) == [text.encode()]


def test_a_line_end_cut_in_two_is_one_line_end() -> None:
    assert _read(b"data: a\r", b"\n", b"\r", b"\ndata: b\r", b"", b"\n\r\n") == [b"a", b"b"]


def test_an_event_comes_with_the_fragment_that_completes_it() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\n") == []
    assert reader.feed(b"\nda") == [b"a"]
    assert reader.feed(b"ta: b\r\r") == [b"b"]
    assert reader.feed(b"\n") == []


def test_names_are_told_beside_the_data_and_end_with_their_event() -> None:
    reader = EventReader()
    assert reader.events(b"event: error\ndata: x\n\nevent: lost\n\ndata: y\n\n") == [
        Event(b"error", b"x"),
        Event(b"", b"y"),
    ]


@pytest.mark.parametrize(
    ("body", "is_stream"),
    [
        (b": ping\n\n", True),
        (b"data: x", True),
        (b'{"error": "x"}', False),
        (b"<html>\n</html>\n", False),
        (b"", False),
    ],
)
def test_tells_a_stream_from_another_body(body: bytes, is_stream: bool) -> None:
    reader = EventReader()
    reader.feed(body)
    reader.finish()
    assert reader.has_fields == is_stream


def test_time_grows_with_the_bytes_and_not_with_their_square() -> None:
    """One byte at a time, four times the line takes far less than the sixteen times of a search that starts anew."""

    def seconds(size: int) -> float:
        reader, began = EventReader(), time.process_time()
        for _ in range(size):
            reader.feed(b"x")
        return time.process_time() - began

    seconds(1000)
    assert min(seconds(100_000) for _ in range(3)) < 10 * min(seconds(25_000) for _ in range(3))


_TEXT = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=12)


_LINES = st.lists(
    st.tuples(st.one_of(_TEXT.map("data: {}".format), st.sampled_from(["", "", ": ping", "id: 7", "event: x", "data"])),
              st.sampled_from(LINE_ENDS)),
    max_size=20,
)  # fmt: skip


@given(_LINES, st.data())
def test_a22_any_cut_of_any_stream_gives_the_same_events(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    body = "".join(line + end for line, end in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12)))
    fragments = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert _read(*fragments) == _read(body) == _read(*(body[at : at + 1] for at in range(len(body))))


@given(st.lists(st.lists(_TEXT, min_size=1, max_size=3), max_size=5), st.sampled_from(LINE_ENDS), st.integers(1, 7))
def test_what_was_written_is_read(events: list[list[str]], end: str, size: int) -> None:
    body = "".join("".join(f"data: {line}{end}" for line in lines) + end for lines in events).encode()
    fragments = [body[at : at + size] for at in range(0, len(body), size)]
    assert _read(*fragments) == ["\n".join(lines).encode() for lines in events]


_LINES = st.sampled_from(
    [b"data: a\n\n", b"data: \n\n", b"data:b\n\n", b"data: c\r\n\r\n", b"data: d\n", b"\n", b": ping\n\n",
     b"event: error\n", b"\xef\xbb\xbf", b"data: e\r", b"x"]
)  # fmt: skip


@given(st.lists(_LINES, max_size=8))
def test_events_that_arrive_whole_are_those_of_their_bytes_one_by_one(lines: list[bytes]) -> None:
    whole, single = EventReader(), EventReader()
    stream = b"".join(lines)
    found = [event for line in lines for event in whole.events(line)] + whole.last_events()
    at_once = EventReader()
    assert at_once.events(stream) + at_once.last_events() == found
    assert [event for byte in stream for event in single.events(bytes([byte]))] + single.last_events() == found
    assert whole.has_fields == single.has_fields == at_once.has_fields
