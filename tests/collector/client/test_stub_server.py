"""The scripted server of the tests does what its script says, as bytes on a socket."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import stub_server
from stub_server import DONE, Reply, StubServer, Write, busy, chat, chat_chunk, plain, stream, usage


def _post(stub: StubServer, body: Any = None, path: str = "/v1/chat/completions") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", stub.port, timeout=5)
    try:
        connection.request("POST", path, json.dumps(body or {}), {"X-Test": "yes"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _get(stub: StubServer, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", stub.port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_gives_its_replies_in_order_and_the_last_for_ever() -> None:
    with StubServer([busy(2), stream(chat("a", "b", counts=usage(3, 2)))]) as stub:
        answers = [_post(stub) for _ in range(3)]
    assert [status for status, _ in answers] == [503, 200, 200]
    assert answers[1][1] == answers[2][1] == b"".join(chat("a", "b", counts=usage(3, 2)))


def test_keeps_what_it_was_asked() -> None:
    with StubServer() as stub:
        _post(stub, {"model": "m"})
    assert stub.posts[0].json == {"model": "m"}
    assert stub.posts[0].headers["x-test"] == "yes"
    assert stub.connections == 1
    assert stub.most_in_flight == 1


def test_waits_as_scripted_between_writes() -> None:
    events: list[bytes | Write] = [chat_chunk({"content": "a"}), (60.0, chat_chunk({"content": "b"})), DONE]
    with StubServer([stream(events)]) as stub:
        _post(stub)
    stamps = [stamp for _, stamp in stub.written_ns]
    assert 59e6 <= stamps[1] - stamps[0] < 500e6


def test_writes_one_byte_at_a_time_where_told() -> None:
    with StubServer([stream(chat("é"), split=1)]) as stub:
        _, body = _post(stub)
    assert body == b"".join(chat("é"))
    assert len(stub.written_ns) == len(body)


@pytest.mark.parametrize(("ending", "fault"), [("close", http.client.IncompleteRead), ("reset", ConnectionResetError)])
def test_drops_a_connection_in_the_middle_of_a_body(ending: Any, fault: type[Exception]) -> None:
    with StubServer([stream(chat("a", is_done=False), ending=ending)]) as stub, pytest.raises(fault):
        _post(stub)


def test_never_answers_where_told() -> None:
    with StubServer([Reply(ending="hang")]) as stub:
        connection = http.client.HTTPConnection("127.0.0.1", stub.port, timeout=0.1)
        connection.request("POST", "/v1/completions", "{}")
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()


def test_serves_pages_and_changes_them() -> None:
    with StubServer(pages={"/tokenize": plain(200, {"tokens": [1, 2]})}) as stub:
        assert json.loads(_get(stub, "/v1/models")[1])["data"][0]["id"] == "stub"
        assert _get(stub, "/health")[0] == 200
        assert _get(stub, "/nowhere")[0] == 404
        assert json.loads(_post(stub, path="/tokenize")[1]) == {"tokens": [1, 2]}
        stub.set_page("/tokenize", lambda seen: plain(200, {"tokens": [len(seen.json["prompt"])]}))
        assert json.loads(_post(stub, {"prompt": "abc"}, path="/tokenize?x=1")[1]) == {"tokens": [3]}
        stub.set_page("/health", busy())
        assert _get(stub, "/health")[0] == 503


def test_dies_like_a_killed_server() -> None:
    with StubServer([Reply(ending="hang")]) as stub:
        connection = http.client.HTTPConnection("127.0.0.1", stub.port, timeout=5)
        connection.request("POST", "/v1/completions", "{}")
        while not stub.posts:
            time.sleep(0.01)
        stub.stop_now()
        with pytest.raises(ConnectionError):
            connection.getresponse()
        connection.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", stub.port), timeout=1)


def test_runs_as_a_process_and_is_ready_after_a_while() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = Path(stub_server.__file__)
    process = subprocess.Popen([sys.executable, str(script), "--port", str(port), "--tokens", "3", "--text", "abc"])
    try:
        until = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.02)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("POST", "/v1/chat/completions", "{}")
        body = connection.getresponse().read()
        connection.close()
    finally:
        process.kill()
        process.wait()
    assert body == b"".join(chat("a", "b", "c", counts=usage(10, 3)))
