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
_TEXT = {"choices": [{"index": 0, "delta": {"content": "a"}}]}
_EVENTS = st.sampled_from(
    [
        _TEXT,
        {"choices": [{"text": "a"}]},
        {"choices": [{"index": 0, "delta": {"content": ""}}]},
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": "t"}}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}, "token_ids": [1]}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"completion_tokens": 3}},
        _TEXT | {"usage": {"completion_tokens": 1}},
        _TEXT | {"usage": {"completion_tokens": 2}},
        _TEXT | {"timings": {"predicted_n": 3}},
        {"error": {"message": "broken"}},
    ]
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
