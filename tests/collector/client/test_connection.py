"""One connection: what HTTP says a body is, stamps at receipt, TLS, addresses, and the head of a request."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import uvloop
from certificates import self_signed_certificate
from client_load import PATH, body_of, job_for, run_here
from stub_server import StubServer, chat, stream

from collector.client.connection import Connection, Reply
from collector.client.messages import Sending, Target
from collector.client.request_head import get_of, post_of
from collector.client.retry import asked_wait_s, is_tried_again, wait_before_s

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'


def exchanged(*scripts: Sequence[bytes | None], request_s: float = 5.0) -> list[tuple[Reply, bool]]:
    """Send a request per script over one connection to a server that writes the script's parts, null for its close.

    Return each reply and whether the connection may be used again; ends early where it may not.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for script in scripts:
                await reader.readuntil(b"\r\n\r\n")
                for part in script:
                    if part is None:
                        writer.close()
                        return
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0.001 if len(script) < 9 else 0)
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def talk() -> list[tuple[Reply, bool]]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(lambda _: None), "127.0.0.1", port
        )
        found: list[tuple[Reply, bool]] = []
        for _ in scripts:
            request = b"POST / HTTP/1.1\r\n\r\n"
            reply = await connection.send(request, reasoning_fields=(), first_token_s=request_s, request_s=request_s)
            found.append((reply, connection.is_reusable))
            if not connection.is_reusable:
                break
        connection.close()
        server.close()
        await asyncio.sleep(0.01)
        return found

    return uvloop.run(talk())


def whole(reply: Reply) -> bytes:
    return b"".join(part for _, part in reply.pieces)


def test_a_chunked_answer_cut_at_every_byte_is_one_body_and_the_connection_serves_on() -> None:
    raw = CHUNKED + b"4;x=y\r\nab\r\n\r\n6\r\ncdefgh\r\n0\r\nTrailer: t\r\n\r\n"
    for cut in range(1, len(raw)):
        ((reply, is_reusable),) = exchanged([raw[:cut], raw[cut:]])
        assert (reply.ending, whole(reply), reply.http_status, is_reusable) == ("complete", b"ab\r\ncdefgh", 200, True)


def test_one_byte_at_a_time_gives_the_same_and_never_falling_stamps() -> None:
    raw = CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(TEXT), TEXT)
    began_ns = time.perf_counter_ns()
    ((reply, _),) = exchanged([raw[at : at + 1] for at in range(len(raw))])
    stamps = [reply.sent_ns or 0, reply.headers_ns or 0, *(stamp for stamp, _ in reply.pieces), reply.done_ns]
    assert whole(reply) == TEXT
    assert stamps == sorted(stamps)
    assert began_ns < stamps[0]
    assert stamps[-1] < time.perf_counter_ns()
    assert reply.has_content


def test_what_arrives_together_has_one_stamp_and_what_arrives_apart_has_two() -> None:
    together = b"2\r\nab\r\n2\r\ncd\r\n"
    ((reply, _),) = exchanged([CHUNKED, together, b"2\r\nef\r\n0\r\n\r\n"])
    assert [part for _, part in reply.pieces] == [b"abcd", b"ef"]
    assert reply.pieces[0][0] < reply.pieces[1][0]


def test_a_length_ends_a_body_and_three_answers_share_one_connection() -> None:
    script = [HEAD + b"Content-Length: 3\r\n\r\n", b"ab", b"c"]
    assert [(whole(reply), is_reusable) for reply, is_reusable in exchanged(script, script, script)] == [
        (b"abc", True)
    ] * 3


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
def test_without_a_length_the_body_ends_with_the_connection(version: bytes) -> None:
    head = HEAD.replace(b"HTTP/1.1", version) + b"\r\n"
    ((reply, is_reusable),) = exchanged([head, b"abc", b"def", None])
    assert (reply.ending, whole(reply), reply.fault, is_reusable) == ("complete", b"abcdef", None, False)


@pytest.mark.parametrize(
    "begun",
    [CHUNKED + b"3\r\nabc\r\n", HEAD + b"Content-Length: 9\r\n\r\nabc"],
    ids=["chunked", "length"],
)
def test_a_body_that_the_connection_cuts_off_is_closed_with_its_part_kept(begun: bytes) -> None:
    ((reply, is_reusable),) = exchanged([begun, None])
    assert (reply.ending, whole(reply), is_reusable) == ("closed", b"abc", False)
    assert reply.fault == "the server closed the connection"


def test_a_connection_closed_without_a_byte_has_no_stamp_of_an_answer() -> None:
    ((reply, _),) = exchanged([None])
    assert (reply.ending, reply.headers_ns, reply.http_status, reply.has_bytes) == ("closed", None, None, False)


def test_answers_that_have_no_body_and_informational_ones_before_are_understood() -> None:
    found = exchanged(
        [
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 103 Early Hints\r\nContent-Length: 99\r\n\r\n",
            CHUNKED,
            b"0\r\n\r\n",
        ],
        [b"HTTP/1.1 204 No Content\r\n\r\n"],
        [HEAD + b"Content-Length: 0\r\n\r\n"],
    )
    assert [(reply.http_status, reply.ending, whole(reply), is_reusable) for reply, is_reusable in found] == [
        (200, "complete", b"", True), (204, "complete", b"", True), (200, "complete", b"", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "raw", [b"SSH-2.0-OpenSSH_9\r\n", CHUNKED + b"3\r\nabc\r\nzz\r\n", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"]
)
def test_what_is_no_http_is_a_fault_with_the_parsers_words_and_ends_the_connection(raw: bytes) -> None:
    ((reply, is_reusable),) = exchanged([raw], request_s=0.3)
    assert (reply.ending, is_reusable) == ("not_http", False)
    assert reply.fault
    assert whole(reply) in (b"", b"abc")


def test_bytes_after_an_answer_end_the_connection_but_not_the_answer() -> None:
    ((reply, is_reusable),) = exchanged([HEAD + b"Content-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n"])
    assert (reply.ending, whole(reply), is_reusable) == ("complete", b"abc", False)


def test_connection_close_ends_it_after_the_answer() -> None:
    ((reply, is_reusable),) = exchanged([HEAD + b"Connection: close\r\nContent-Length: 3\r\n\r\nabc"])
    assert (reply.ending, is_reusable) == ("complete", False)


def test_a_body_that_is_compressed_although_nobody_asked_says_so() -> None:
    ((reply, _),) = exchanged([HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"])
    assert reply.ending == "complete"
    assert "gzip" in (reply.fault or "")


# the head


def test_a_request_asks_for_a_stream_without_compression_and_names_host_and_length() -> None:
    with StubServer([stream(chat("Hi"))]) as stub:
        target = Target(host="127.0.0.1", port=stub.port, is_tls=False, headers=[("Authorization", "Bearer x")])
        run_here(job_for(stub.port, 1, target=target, sendings=[Sending(number=0, path=PATH, body=b'{"a":1}')]))
    (seen,) = stub.posts
    assert seen.body == b'{"a":1}'
    assert seen.headers == {
        "host": f"127.0.0.1:{stub.port}", "user-agent": "gpu-dossier", "accept": "text/event-stream",
        "accept-encoding": "identity", "content-type": "application/json", "authorization": "Bearer x",
        "content-length": "7",
    }  # fmt: skip


def test_the_protocols_own_headers_win_over_ours_but_never_over_the_length() -> None:
    headers = [("user-agent", "mine"), ("host", "model.example"), ("Content-Length", "9"), ("Connection", "close")]
    head = post_of(Target(host="::1", port=80, is_tls=False, headers=headers), "/x", b"ab")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /x HTTP/1.1"
    assert {"user-agent: mine", "host: model.example", "Content-Length: 2"} < set(lines)
    assert not any(
        line.lower().startswith(("user-agent: gpu", "host: [", "connection", "content-length: 9")) for line in lines
    )


def test_the_host_names_the_port_only_where_it_is_not_the_schemes_own() -> None:
    def host(**where: object) -> str:
        target = Target(headers=[], **where)  # type: ignore[arg-type]
        return get_of(target, "/").decode().split("\r\n")[1]

    assert host(host="a.example", port=443, is_tls=True) == "Host: a.example"
    assert host(host="a.example", port=443, is_tls=False) == "Host: a.example:443"
    assert host(host="::1", port=8000, is_tls=False) == "Host: [::1]:8000"


def test_a_header_that_would_begin_another_is_refused_without_showing_its_value() -> None:
    target = Target(host="h", port=80, is_tls=False, headers=[("X-Key", "secret\r\nX: y")])
    with pytest.raises(ValueError, match="X-Key") as refused:
        post_of(target, "/", b"")
    assert "secret" not in str(refused.value)
    with pytest.raises(ValueError, match="no path"):
        get_of(Target(host="h", port=80, is_tls=False, headers=[]), "/a b")


# when to ask again


def test_only_a_lost_connection_or_a_busy_server_without_content_is_asked_again() -> None:
    def again(ending: str, status: int | None = None, *, has_content: bool = False) -> bool:
        return is_tried_again(ending=ending, http_status=status, has_content=has_content)  # type: ignore[arg-type]

    assert all(again("complete", status) for status in (429, 502, 503, 504))
    assert all(again(ending) for ending in ("closed", "connect_failed", "connect_timeout"))
    assert not any(again("complete", status) for status in (200, 400, 401, 404, 413, 500, 501))
    assert not any(again(ending, 200) for ending in ("first_token_timeout", "total_timeout", "not_http"))
    assert not again("closed", 200, has_content=True)


def test_waits_double_a_longer_wish_of_the_server_counts_and_a_bound_holds() -> None:
    assert [wait_before_s(n, retry_wait_s=0.5, asked_s=None, most_s=60) for n in range(4)] == [0.5, 1, 2, 4]
    assert wait_before_s(0, retry_wait_s=0.5, asked_s=3, most_s=60) == 3
    assert wait_before_s(3, retry_wait_s=0.5, asked_s=3, most_s=60) == 4
    assert wait_before_s(0, retry_wait_s=0.5, asked_s=3600, most_s=60) == 60


def test_retry_after_is_read_as_seconds_or_against_the_servers_own_date() -> None:
    date = b"Wed, 21 Oct 2026 07:28:00 GMT"
    assert asked_wait_s(b"7", date=None) == 7
    assert asked_wait_s(b"Wed, 21 Oct 2026 07:28:09 GMT", date=date) == 9
    assert asked_wait_s(b"Wed, 21 Oct 2026 07:27:00 GMT", date=date) == 0
    for odd, its_date in ((b"soon", date), (b"-1", date), (b"Wed, 21 Oct 2026 07:28:09 GMT", None), (b"\xb2", date)):
        assert asked_wait_s(odd, date=its_date) is None
    assert asked_wait_s(None, date=date) is None


# where to connect


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed_certificate(tmp_path_factory.mktemp("certificate"))


ANSWER = chat(*(f"{number} " * 500 for number in range(40)))
"""Several TLS records at once, and more than one read of the socket."""


def tls_server(certificate: Path) -> StubServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return StubServer([stream(ANSWER)], tls=context)


def test_https_is_trusted_by_the_file_that_the_environment_names(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with tls_server(certificate) as stub:
        target = Target(host="127.0.0.1", port=stub.port, is_tls=True, headers=[])
        ran = run_here(job_for(stub.port, 3, target=target, scrape_path=None))
        assert [each.ending for each in ran.finals] == ["complete"] * 3
        assert {body_of(each) for each in ran.finals} == {b"".join(ANSWER)}
        assert ran.window.connection_count == 1


def test_https_that_nobody_vouches_for_gets_no_request_and_the_words_say_so(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with tls_server(certificate) as stub:
        target = Target(host="127.0.0.1", port=stub.port, is_tls=True, headers=[])
        (exchange,) = run_here(job_for(stub.port, 1, target=target)).finals
    assert exchange.ending == "connect_failed"
    assert "certificate" in (exchange.fault or "")
    assert (exchange.sent_ns, exchange.connection_wait_ns) == (None, None)
    assert not stub.seen


def listening(family: socket.AddressFamily, address: str) -> socket.socket:
    listener = socket.socket(family)
    listener.bind((address, 0))
    listener.listen()
    return listener


def test_ipv6_and_names_with_several_addresses_are_reached() -> None:
    """`localhost` may be ::1 first while the server listens on 127.0.0.1 only, and the other way round."""
    try:
        listener = listening(socket.AF_INET6, "::1")
    except OSError as fault:
        pytest.skip(f"this machine has no IPv6 loopback: {fault}")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def both() -> None:
        from collector.client.connection_pool import ConnectionPool

        server = await asyncio.start_server(serve, sock=listener)
        port = listener.getsockname()[1]
        for host in ("::1", "localhost"):
            pool = ConnectionPool(Target(host=host, port=port, is_tls=False, headers=[]), connect_s=5, spares=0)
            pool._addresses = (
                [] if host == "::1" else [(socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port, 0, 0))]
            )
            connection = await pool.fresh()
            request = get_of(Target(host=host, port=port, is_tls=False, headers=[]), "/")
            reply = await connection.send(request, reasoning_fields=(), first_token_s=5, request_s=5)
            assert whole(reply) == b"ok"
            pool.close()
        assert pool._addresses[0][0] is socket.AF_INET6, "the address that answered is asked first from then on"
        server.close()

    uvloop.run(both())


def test_nothing_listens_there() -> None:
    listener = listening(socket.AF_INET, "127.0.0.1")
    port = listener.getsockname()[1]
    listener.close()
    ran = run_here(job_for(port, 2))
    assert [each.ending for each in ran.finals] == ["connect_failed"] * 2
    assert all("Refused" in (each.fault or "") for each in ran.finals)
    assert ran.window.connection_count == 0
    assert ran.window.missing["send_delay_p99_ns"] == "too_few_samples"


def test_a_name_that_leads_nowhere_is_a_failed_connection() -> None:
    target = Target(host="no-such-host.invalid", port=80, is_tls=False, headers=[])
    (exchange,) = run_here(job_for(80, 1, target=target)).finals
    assert exchange.ending == "connect_failed"
    assert "gaierror" in (exchange.fault or "")
