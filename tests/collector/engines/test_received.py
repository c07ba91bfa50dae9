"""The short way of events that hold a text alone finds in any stream what the long way finds."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from collector.client.chunks import read_chunk
from collector.client.messages import Exchange
from collector.engines import _received

FIELDS = ("reasoning_content", "reasoning")
_DELTAS = st.sampled_from(
    [{"content": "a"}, {"content": "b"}, {"content": ""}, {"role": "assistant", "content": ""}, {},
     {"reasoning_content": "t"}, {"content": "c", "role": "assistant"}]
)  # fmt: skip
_CHOICES = st.one_of(
    st.builds(lambda delta: {"index": 0, "delta": delta}, _DELTAS),
    st.builds(lambda delta: {"index": 0, "delta": delta, "token_ids": [1, 2]}, _DELTAS),
    st.builds(lambda text: {"text": text}, st.sampled_from(["", "a"])),
    st.just({"index": 0, "delta": {}, "finish_reason": "stop"}),
)
_EVENTS = st.one_of(
    st.builds(lambda choice: {"choices": [choice]}, _CHOICES),
    st.builds(
        lambda choice, count: {"choices": [choice], "usage": {"completion_tokens": count}}, _CHOICES, st.integers(0, 9)
    ),
    st.builds(lambda count: {"choices": [], "usage": {"completion_tokens": count}}, st.integers(0, 9)),
    st.builds(lambda choice: {"choices": [choice], "timings": {"predicted_n": 3}}, _CHOICES),
    st.just({"error": {"message": "broken"}}),
)


def _exchange(events: list[Any]) -> Exchange:
    pieces = [(number, b"data: " + json.dumps(event).encode() + b"\n\n") for number, event in enumerate(events)]
    return Exchange(
        number=0, try_index=0, is_final=True, intended_ns=0, connection_wait_ns=0, sent_ns=0, headers_ns=0,
        http_status=200, content_type="text/event-stream", pieces=pieces, done_ns=len(pieces), ending="complete",
        fault=None, retry_after_s=None,
    )  # fmt: skip


@given(st.lists(_EVENTS, max_size=8))
def test_any_stream_reads_alike_the_short_and_the_long_way(events: list[Any]) -> None:
    short = vars(_received.received(_exchange(events), FIELDS))
    with patch.object(_received, "read_event", read_chunk):
        long = vars(_received.received(_exchange(events), FIELDS))
    assert short == long
