"""The load generator against a scripted server: order, concurrency, schedules, retries, time limits, connections."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
import weakref

import pytest
import uvloop
from client_load import body_of, job_for, limits, run_here
from stub_server import Reply, Seen, StubServer, busy, chat, chat_chunk, plain, stream

from collector.client.alarm import alarm
from collector.client.connection import Connection
from collector.client.connection_pool import ConnectionPool
from collector.client.generator import LoadRun
from collector.client.messages import Exchange, ScrapeText, Target
from collector.client.schedule import due_offsets_ns
from collector.client.self_measurement import SelfMeasurement, limit_reasons, quantile
from collector.contract.records import ClientWindow
from collector.engines.base import Load

MS = 1_000_000


def number_of(seen: Seen) -> int:
    return int(seen.body)


def numbers(stub: StubServer) -> list[int]:
    return [number_of(seen) for seen in stub.posts]


# closed loop


def test_one_at_a_time_sends_in_the_order_given_over_one_connection_and_keeps_every_body() -> None:
    with StubServer(lambda seen: stream(chat(f"answer {number_of(seen)}"))) as stub:
        ran = run_here(job_for(stub.port, 6))
    assert numbers(stub) == list(range(6))
    assert [each.number for each in ran.tries] == list(range(6))
    assert all(b"answer %d" % each.number in body_of(each) for each in ran.tries)
    assert {(each.ending, each.http_status, each.content_type, each.try_index) for each in ran.tries} == {
        ("complete", 200, "text/event-stream", 0)
    }
    assert stub.connections == 1
    assert (ran.window.connection_count, ran.window.reconnect_count, ran.window.retry_count) == (1, 0, 0)
    assert ran.window.in_flight_max == 1


def test_as_many_requests_as_the_concurrency_are_under_way_never_more_and_the_order_stands() -> None:
    with StubServer([stream(chat("Hi"), first_ms=20)]) as stub:
        ran = run_here(job_for(stub.port, 20, load=Load(concurrency=5)))
    assert stub.most_in_flight == 5
    assert ran.window.in_flight_max == 5
    assert stub.connections == ran.window.connection_count == 5
    sent = sorted(ran.tries, key=lambda each: each.sent_ns or 0)
    assert [each.number for each in sent] == list(range(20))


def test_a_request_is_due_when_the_slot_before_it_became_free() -> None:
    with StubServer([stream(chat("Hi"), first_ms=5)]) as stub:
        ran = run_here(job_for(stub.port, 4))
    for before, after in itertools.pairwise(ran.finals):
        assert after.intended_ns == before.done_ns
        assert (after.sent_ns or 0) >= after.intended_ns
    assert [each.connection_wait_ns for each in ran.finals] == [0] * 4
    assert ran.window.window_ns == (ran.finals[-1].done_ns or 0) - ran.finals[0].intended_ns


def test_fewer_requests_than_slots_open_no_more_connections_than_requests() -> None:
    with StubServer() as stub:
        ran = run_here(job_for(stub.port, 2, load=Load(concurrency=50)))
    assert ran.window.connection_count == 2
    assert run_here(job_for(1, 0)).tries == []


# open loop


@pytest.mark.parametrize("arrivals", ["constant", "poisson", "poisson by the loop's own timers"])
def test_requests_of_an_open_loop_are_due_by_the_schedule_whatever_was_answered(
    arrivals: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrivals, _, without_clocks = arrivals.partition(" ")
    if without_clocks:  # as on a system that has no timerfd
        monkeypatch.setattr("collector.client.alarm._libc", lambda: None)
    load = Load(concurrency=256, rate_per_s=100, arrivals=arrivals, seed=4)  # type: ignore[arg-type]
    with StubServer([stream(chat("Hi"), first_ms=100)]) as stub:
        ran = run_here(job_for(stub.port, 30, load=load))
    begin_ns = ran.finals[0].intended_ns
    offsets_ns = due_offsets_ns(30, rate_per_s=100, arrivals=load.arrivals, seed=4)
    assert [each.intended_ns - begin_ns for each in ran.finals] == offsets_ns
    assert all((each.sent_ns or 0) > each.intended_ns for each in ran.finals)
    assert ran.window.in_flight_max > 5
    assert "in_flight_limit" not in ran.window.limit_reasons
    late_ns = sorted((each.sent_ns or 0) - each.intended_ns for each in ran.finals)
    assert late_ns[15] < 50 * MS, "waiting for an answer would make most of them 100 ms late"
    assert ran.window.send_delay_p50_ns == late_ns[14]
    assert ran.window.send_delay_max_ns == late_ns[29]


def test_an_arrival_beyond_the_limit_waits_and_counts_from_when_it_was_due() -> None:
    load = Load(concurrency=2, rate_per_s=200, arrivals="constant")
    with StubServer([stream(chat("Hi"), first_ms=50)]) as stub:
        ran = run_here(job_for(stub.port, 8, load=load))
    assert stub.most_in_flight == ran.window.in_flight_max == 2
    begin_ns = ran.finals[0].intended_ns
    assert [each.intended_ns - begin_ns for each in ran.finals] == [place * 5 * MS for place in range(8)]
    last = ran.finals[-1]
    assert (last.sent_ns or 0) - last.intended_ns > 80 * MS, (
        "three pairs of 50 ms went before it, 35 ms after it was due"
    )
    assert (last.connection_wait_ns or 0) > 80 * MS
    assert ran.window.is_limit
    assert "in_flight_limit" in ran.window.limit_reasons
    assert numbers(stub) == list(range(8))
    assert (ran.window.send_delay_max_ns or 0) < (last.connection_wait_ns or 0), (
        "waiting for the limit is not the client being late"
    )


def test_an_open_loop_opens_what_it_needs_and_no_more() -> None:
    load = Load(concurrency=256, rate_per_s=100, arrivals="constant")
    with StubServer() as stub:
        ran = run_here(job_for(stub.port, 25, load=load))
    assert ran.window.in_flight_max <= ran.window.connection_count < 25
    assert ran.window.connection_count == stub.connections


# what is tried again


def test_a_busy_server_is_asked_again_when_it_says_and_every_try_is_told() -> None:
    with StubServer([busy(0), plain(429, {"error": "slow down"}, retry_after="1"), stream(chat("Hi"))]) as stub:
        ran = run_here(job_for(stub.port, 1, limits=limits(retries=3, retry_wait_s=0.01, request_s=0.2)))
    assert [(each.http_status, each.is_final, each.try_index) for each in ran.tries] == [
        (503, False, 0), (429, False, 1), (200, True, 2),
    ]  # fmt: skip
    assert [each.retry_after_s for each in ran.tries] == [0, 1, None]
    assert b"slow down" in body_of(ran.tries[1])
    assert len({each.intended_ns for each in ran.tries}) == 1, "its user waits from the first intended send on"
    waited_ns = (ran.tries[2].sent_ns or 0) - (ran.tries[1].done_ns or 0)
    assert 200 * MS <= waited_ns < 900 * MS, "the wish of 1 s is bounded by the whole request's limit, 0.2 s"
    assert (ran.tries[1].sent_ns or 0) - (ran.tries[0].done_ns or 0) >= 10 * MS
    assert (ran.window.retry_count, stub.connections) == (2, 1)


def test_retries_run_out_and_the_last_try_is_final() -> None:
    with StubServer([busy()]) as stub:
        ran = run_here(job_for(stub.port, 2, limits=limits(retries=2)))
    assert [(each.number, each.try_index, each.is_final) for each in ran.tries] == [
        (number, index, index == 2) for number in (0, 1) for index in range(3)
    ]
    assert ran.window.retry_count == 4


def test_a_stream_that_broke_after_content_is_never_asked_again_and_its_part_is_kept() -> None:
    broken = stream(chat("Half an", finish_reason=None, is_done=False), ending="reset")
    with StubServer([broken]) as stub:
        (exchange,) = run_here(job_for(stub.port, 1, limits=limits(retries=3))).tries
    assert (exchange.ending, exchange.is_final, len(stub.posts)) == ("closed", True, 1)
    assert b"Half an" in body_of(exchange)
    assert "ConnectionResetError" in (exchange.fault or "")


def test_a_stream_that_broke_before_content_is_asked_again() -> None:
    """Role and empty text are no content, and thinking is."""
    opening = stream([chat_chunk({"role": "assistant", "content": ""})], ending="close")
    thinking = stream([chat_chunk({"reasoning_content": "Hm"})], ending="close")
    with StubServer([opening, thinking]) as stub:
        ran = run_here(job_for(stub.port, 1, limits=limits(retries=3)))
    assert [(each.ending, each.is_final) for each in ran.tries] == [("closed", False), ("closed", True)]
    assert len(stub.posts) == 2


def test_an_error_status_that_is_no_wish_to_wait_is_final() -> None:
    with StubServer([plain(500, {"error": "broken"})]) as stub:
        (exchange,) = run_here(job_for(stub.port, 1, limits=limits(retries=3))).tries
    assert (exchange.http_status, exchange.ending, exchange.is_final) == (500, "complete", True)


# time limits


def test_no_first_content_in_time_ends_the_connection_and_keeps_what_came() -> None:
    quiet = stream([chat_chunk({"role": "assistant", "content": ""})], ending="hang")
    with StubServer([quiet, stream(chat("Hi"))]) as stub:
        ran = run_here(job_for(stub.port, 2, limits=limits(first_token_s=0.15, retries=3)))
    late, fine = ran.finals
    assert (late.ending, late.is_final, late.http_status) == ("first_token_timeout", True, 200)
    assert b"assistant" in body_of(late)
    assert 150 * MS <= (late.done_ns or 0) - (late.sent_ns or 0) < 1000 * MS
    assert fine.ending == "complete"
    assert stub.connections == 2, "a connection with an answer still to come cannot carry another request"
    assert ran.window.reconnect_count == 0, "it was not the server that closed it"


def test_an_answer_that_goes_on_too_long_ends_at_the_limit_of_the_whole() -> None:
    slow = stream([chat_chunk({"content": "a"})] * 100, gap_ms=20)
    with StubServer([slow]) as stub:
        (exchange,) = run_here(job_for(stub.port, 1, limits=limits(first_token_s=0.1, request_s=0.25, retries=2))).tries
    assert (exchange.ending, exchange.fault) == ("total_timeout", "nothing more after 0.25 s")
    assert 250 * MS <= (exchange.done_ns or 0) - (exchange.sent_ns or 0) < 1000 * MS
    assert 3 <= len(exchange.pieces) < 20


def test_a_server_that_accepts_no_connection_is_a_connect_timeout() -> None:
    """A listener whose queue is full answers no handshake (Linux drops it)."""
    import socket

    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        ran = run_here(job_for(full.getsockname()[1], 1, limits=limits(connect_s=0.15)))
        for each in waiting:
            each.close()
    (exchange,) = ran.tries
    assert (exchange.ending, exchange.fault) == ("connect_timeout", "no connection within 0.15 s")
    assert exchange.sent_ns is None


# connections


def test_a_server_that_closes_after_each_answer_costs_reconnects_and_no_request() -> None:
    with StubServer([stream(chat("Hi"), closes=True)]) as stub:
        ran = run_here(job_for(stub.port, 6, load=Load(concurrency=2), limits=limits()))
    assert [each.ending for each in ran.finals] == ["complete"] * 6
    assert stub.connections == ran.window.connection_count == 6
    assert ran.window.reconnect_count == 4
    waits_ns = [each.connection_wait_ns or 0 for each in ran.finals]
    assert waits_ns[:2] == [0, 0]
    assert all(wait_ns > 0 for wait_ns in waits_ns[2:])


def test_bodies_that_end_with_the_connection_are_whole() -> None:
    with StubServer([stream(chat("Hi"), framing="close")]) as stub:
        ran = run_here(job_for(stub.port, 3))
    assert all(each.ending == "complete" and body_of(each).endswith(b"[DONE]\n\n") for each in ran.finals)
    assert ran.window.reconnect_count == 2


def test_a_request_that_met_a_connection_the_server_had_closed_goes_out_again_as_the_same_try() -> None:
    """The server takes the second request of its first connection and closes without a byte, as one does that timed
    out a connection while the request was on its way."""
    answered: set[int] = set()

    def reply(seen: Seen) -> Reply:
        if seen.connection in answered:
            return Reply(ending="reset", framing="close", status=0)
        answered.add(seen.connection)
        return stream(chat("Hi"))

    with RawClose(reply) as stub:
        ran = run_here(job_for(stub.port, 3))
    assert [(each.ending, each.try_index, each.is_final) for each in ran.tries] == [("complete", 0, True)] * 3
    assert (ran.window.reconnect_count, ran.window.retry_count) == (2, 0)
    assert (ran.finals[1].connection_wait_ns or 0) > 0


class RawClose(StubServer):
    """A stub that closes without writing anything where the reply's status is 0."""

    async def _write(self, reply: Reply, place: int, writer: asyncio.StreamWriter, *, is_logged: bool) -> bool:
        return False if reply.status == 0 else await super()._write(reply, place, writer, is_logged=is_logged)


def test_a_fresh_connection_that_closes_without_a_byte_is_a_lost_try() -> None:
    with RawClose([Reply(status=0)]) as stub:
        ran = run_here(job_for(stub.port, 1, limits=limits(retries=1)))
    assert [(each.ending, each.is_final) for each in ran.tries] == [("closed", False), ("closed", True)]
    assert ran.finals[0].fault == "the server closed the connection"
    assert len(stub.posts) == 3, "the first try met a connection opened ahead, and was sent once more on a fresh one"


def test_a_server_that_dies_leaves_each_request_with_its_end_and_its_part() -> None:
    slow = stream([chat_chunk({"content": "a"})] * 200, gap_ms=10)
    with StubServer([slow]) as stub:
        threading.Timer(0.2, stub.stop_now).start()
        ran = run_here(job_for(stub.port, 6, load=Load(concurrency=3)))
    assert [each.ending for each in ran.finals] == ["closed"] * 3 + ["connect_failed"] * 3
    assert all(body_of(each) for each in ran.finals[:3])


# scrapes


def test_metrics_are_read_while_the_window_runs_on_a_connection_of_their_own() -> None:
    with StubServer([stream(chat("Hi"), first_ms=60)]) as stub:
        ran = run_here(job_for(stub.port, 4, scrape_path="/metrics", scrape_every_s=0.05))
        gets = [seen for seen in stub.seen if seen.method == "GET"]
        assert {seen.connection for seen in gets}.isdisjoint({seen.connection for seen in stub.posts})
    assert len(ran.scrapes) >= 3
    assert all("vllm:num_requests_running" in (each.text or "") for each in ran.scrapes)
    stamps_ns = [each.stamp_ns for each in ran.scrapes]
    assert ran.finals[0].intended_ns < stamps_ns[0] < (ran.finals[-1].done_ns or 0)
    assert stamps_ns == sorted(stamps_ns)
    assert ran.window.connection_count == 1


def test_metrics_that_cannot_be_read_are_null_and_stop_nothing() -> None:
    with StubServer([stream(chat("Hi"), first_ms=60)], pages={"/metrics": plain(404, "no")}) as stub:
        ran = run_here(job_for(stub.port, 2, scrape_path="/metrics", scrape_every_s=0.05))
    assert {each.text for each in ran.scrapes} == {None}
    assert [each.ending for each in ran.finals] == ["complete"] * 2


# stamps and self-measurement


@pytest.mark.parametrize("step_s", [-90.0, 3600.0])
def test_a29_a_wall_clock_that_is_set_while_requests_run_changes_no_duration(
    step_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    begin = real()
    monkeypatch.setattr(time, "time", lambda: real() + (step_s if real() - begin > 0.1 else 0.0))
    monkeypatch.setattr(time, "time_ns", lambda: round(time.time() * 1e9))
    before_ns = time.perf_counter_ns()
    with StubServer([stream(chat("a", "b", "c"), first_ms=20, gap_ms=20)]) as stub:
        ran = run_here(job_for(stub.port, 4, limits=limits(first_token_s=2, request_s=5)))
        written_ns = [stamp_ns for _, stamp_ns in stub.written_ns]
    after_ns = time.perf_counter_ns()
    assert real() - begin > 0.2, "the step fell into the requests"
    for each in ran.finals:
        stamps = [each.intended_ns, each.sent_ns or 0, each.headers_ns or 0]
        stamps += [*(stamp for stamp, _ in each.pieces), each.done_ns or 0]
        assert stamps == sorted(stamps)
        assert before_ns < stamps[0] <= stamps[-1] < after_ns
        assert each.ending == "complete"
    received_ns = [stamp_ns for each in ran.finals for stamp_ns, _ in each.pieces]
    assert min(written_ns) <= received_ns[0], "one clock for what the server wrote and what the client received"
    assert 300 * MS < ran.window.window_ns < after_ns - before_ns


@pytest.mark.parametrize("has_clocks", [True, False])
def test_an_alarm_rings_once_never_before_its_time_and_a_later_call_replaces_it(
    has_clocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_clocks:
        monkeypatch.setattr("collector.client.alarm._libc", lambda: None)
    rung_ns: list[int] = []

    async def run() -> int:
        bell = alarm(lambda: rung_ns.append(time.perf_counter_ns()))
        bell.ring_at(time.perf_counter_ns() + 5 * MS)
        due_ns = time.perf_counter_ns() + 40 * MS
        bell.ring_at(due_ns)
        await asyncio.sleep(0.1)
        bell.ring_at(0)
        await asyncio.sleep(0.05)
        bell.ring_at(time.perf_counter_ns() + 10 * MS)
        bell.close()
        await asyncio.sleep(0.03)
        return due_ns

    due_ns = uvloop.run(run())
    assert len(rung_ns) == 2, "the one in 5 ms was replaced, the last one closed"
    assert rung_ns[0] >= due_ns


def test_no_collection_of_garbage_falls_between_bytes_and_their_stamp() -> None:
    with StubServer([stream(chat("Hi"))]) as stub:
        collecting: list[bool] = []

        async def run() -> None:
            await LoadRun(job_for(stub.port, 3), lambda _: collecting.append(gc.isenabled())).run()

        uvloop.run(run())
    assert collecting == [False] * 3
    assert gc.isenabled()


def test_the_window_says_how_late_the_loop_was_also_for_ticks_that_it_swallowed() -> None:
    async def busy_loop() -> ClientWindow:
        measured = SelfMeasurement()
        begin_ns = time.perf_counter_ns()
        measured.begin(begin_ns)
        await asyncio.sleep(0.03)
        time.sleep(0.2)  # a loop that is busy elsewhere
        await asyncio.sleep(0.03)
        return measured.window(time.perf_counter_ns(), mean_gap_ns=None, connection_count=0, reconnect_count=0)

    window = uvloop.run(busy_loop())
    assert 150 * MS < (window.loop_lag_max_ns or 0) < (window.window_ns or 0)
    assert (window.loop_lag_p50_ns or 0) > 20 * MS, "four ticks fell into it"
    assert window.limit_reasons == ["loop_lag"]
    assert window.is_limit
    assert 0 <= window.cpu_share < 1


def test_each_way_of_being_the_limit_has_its_reason() -> None:
    def reasons(**changed: float | None) -> list[str]:
        fine: dict[str, float | None] = {
            "cpu_share": 0.5, "loop_lag_p99_ns": MS, "send_delay_p99_ns": MS, "mean_gap_ns": 100 * MS,
            "limit_wait_count": 0,
        }  # fmt: skip
        return limit_reasons(**fine | changed)  # type: ignore[arg-type]

    assert reasons() == []
    assert reasons(cpu_share=0.81) == ["processor"]
    assert reasons(cpu_share=None) == []
    assert reasons(loop_lag_p99_ns=10 * MS + 1) == ["loop_lag"]
    assert reasons(send_delay_p99_ns=5 * MS + 1) == ["late_sends"]
    assert reasons(send_delay_p99_ns=50 * MS, mean_gap_ns=None) == [], "a closed loop has no schedule to be late for"
    assert reasons(limit_wait_count=1) == ["in_flight_limit"]
    assert reasons(loop_lag_p99_ns=None, send_delay_p99_ns=None) == []


def test_a_quantile_is_a_value_that_was_measured() -> None:
    values = list(range(1, 101))
    assert [quantile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert quantile([7], 0.99) == 7
    assert quantile([], 0.5) is None


@pytest.mark.parametrize("reply", [
    stream(chat("Hi")), stream(chat("Hi"), closes=True), stream(chat("Hi"), ending="reset"), busy(),
], ids=["kept", "closed", "reset", "busy"])  # fmt: skip
def test_a_window_leaves_no_cycles_of_its_own_so_that_it_can_do_without_the_collector(reply: Reply) -> None:
    """What a window of hours would pile up, per request and per lost connection."""
    garbage: list[str] = []

    async def run(port: int) -> None:
        load_run = LoadRun(job_for(port, 12, load=Load(concurrency=4), limits=limits(retries=1)), lambda _: None)
        window = load_run._window

        async def watched() -> ClientWindow:
            measured = await window()
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            gc.set_debug(0)
            garbage.extend(f"{type(each).__module__}.{type(each).__name__}" for each in gc.garbage)
            gc.garbage.clear()
            return measured

        load_run._window = watched  # type: ignore[method-assign]
        await load_run.run()

    with StubServer([reply]) as stub:
        uvloop.run(run(stub.port))
    assert [name for name in garbage if name.startswith(("collector.", "httptools."))] == []


def test_what_ended_connections_leave_is_collected_now_and_then_although_the_collector_is_off() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    async def run() -> None:
        pool = ConnectionPool(Target(host="127.0.0.1", port=1, is_tls=False, headers=[]), connect_s=1, spares=0)
        left = weakref.ref(Cycle())
        gc.disable()
        try:
            for _ in range(255):
                pool._ended(Connection(pool._ended))
            assert left() is not None
            pool._ended(Connection(pool._ended))
            assert left() is None
        finally:
            gc.enable()

    gc.collect()
    uvloop.run(run())


def test_pieces_are_handed_out_with_their_try_and_not_kept() -> None:
    """What is held does not grow with the requests that are over."""
    text = "x" * 50_000
    alive: list[int] = []

    with StubServer([stream(chat(text))]) as stub:
        job = job_for(stub.port, 40)

        async def run() -> None:
            def emit(_: Exchange | ScrapeText) -> None:
                alive.append(sum(len(each) for each in gc.get_objects() if type(each) is list and _is_pieces(each)))

            await LoadRun(job, emit).run()

        uvloop.run(run())
    assert len(alive) == 40
    assert max(alive[5:]) <= max(alive[:5]) + 8


def _is_pieces(held: list[object]) -> bool:
    return bool(held) and isinstance(held[0], tuple) and len(held[0]) == 2 and isinstance(held[0][1], bytes)
