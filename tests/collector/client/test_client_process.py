"""The load generator as a process: what the worker gets from it, and what it ends when the worker is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from client_load import Ran, body_of, job_for, limits, sorted_out
from stub_server import StubServer, chat, stream

from collector.client.framing import GOODBYE, FrameReader, frame
from collector.client.messages import ClientDone, ClientJob, Exchange, ScrapeText, Target
from collector.client.process import LoadGenerator, LoadGeneratorFault
from collector.engines.base import Load

MS = 1_000_000


def ran(generator: LoadGenerator, job: ClientJob) -> tuple[Ran, ClientDone]:
    """Run a job to its end."""
    said: list[Exchange | ScrapeText] = []
    for message in generator.run(job):
        if isinstance(message, Exchange | ScrapeText):
            said.append(message)
    assert isinstance(message, ClientDone)
    return sorted_out(said, message.window), message


def gone(pid: int, *, within_s: float = 5.0) -> bool:
    """Wait for a process to end; one that nobody has waited for yet has ended too."""
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_a20_150_requests_at_a_time_are_150_at_the_server_and_none_waits_for_a_connection() -> None:
    """A first token that a server sends after 50 ms has taken less than 100 ms at p99, with no wait for a connection.

    The server of this test is Python too and shares its cores with other tests, so its own delay counts as 50 ms: what
    is added to that is from its write to the stamp, where a client with too few connections would add 50 ms and more.
    """
    generator = LoadGenerator()
    try:
        for _ in range(5):
            with StubServer([stream(chat("Hi"), first_ms=50)]) as stub:
                result, _ = ran(generator, job_for(stub.port, 300, load=Load(concurrency=150)))
                first_ns = sorted(50 * MS + each for each in added_ns(stub, result))
            assert result.window.in_flight_max == result.window.connection_count == stub.connections == 150
            assert {each.connection_wait_ns for each in result.finals} == {0}
            if stub.most_in_flight == 150 and first_ns[297] < 100 * MS:
                break
    finally:
        generator.close()
    assert stub.most_in_flight == 150
    assert first_ns[297] < 100 * MS


def added_ns(stub: StubServer, result: Ran) -> list[int]:
    """Return the time from the server's first write of each answer to the stamp of its receipt."""
    written_ns: dict[int, int] = {}
    for place, stamp_ns in stub.written_ns:
        written_ns.setdefault(int(stub.seen[place].body), stamp_ns)
    return [each.pieces[0][0] - written_ns[each.number] for each in result.finals]


def test_two_jobs_run_one_after_the_other_in_one_process_with_stamps_of_this_machines_clock() -> None:
    generator = LoadGenerator()
    try:
        with StubServer([stream(chat("Hi"))]) as stub:
            before_ns = time.perf_counter_ns()
            first, _ = ran(generator, job_for(stub.port, 3, scrape_path="/metrics"))
            second, _ = ran(generator, job_for(stub.port, 5, load=Load(concurrency=2)))
            after_ns = time.perf_counter_ns()
    finally:
        generator.close()
    assert [each.number for each in first.tries] == [0, 1, 2]
    assert len(second.finals) == 5
    assert all(before_ns < each.intended_ns < (each.done_ns or 0) < after_ns for each in first.tries + second.tries)
    assert b"Hi" in body_of(second.finals[4])
    assert gone(generator.pid)


def test_what_the_worker_does_not_read_waits_in_memory_and_delays_no_request() -> None:
    """Answers of 40 kB each, more than a pipe holds, to a worker that reads nothing until all requests are over."""
    with StubServer([stream(chat("x" * 40_000))]) as stub:
        generator = LoadGenerator()
        try:
            messages = generator.run(job_for(stub.port, 20))
            first = next(messages)
            while len(stub.posts) < 20 or stub.in_flight:
                time.sleep(0.01)
            rest = list(messages)
        finally:
            generator.close()
    exchanges = [each for each in [first, *rest] if isinstance(each, Exchange)]
    assert [each.number for each in exchanges] == list(range(20))
    assert all(body_of(each).count(b"x" * 40_000) == 1 for each in exchanges)
    assert isinstance(rest[-1], ClientDone)


def test_a_job_that_nobody_waits_for_ends_with_the_generator_and_no_other_runs_before() -> None:
    with StubServer([stream(chat("Hi"), first_ms=10_000)]) as stub:
        generator = LoadGenerator()
        messages = generator.run(job_for(stub.port, 3, scrape_path="/metrics", scrape_every_s=0.02))
        assert isinstance(next(messages), ScrapeText)
        with pytest.raises(LoadGeneratorFault, match="still has a job"):
            next(generator.run(job_for(stub.port, 1)))
        began = time.monotonic()
        generator.close()
        generator.close()
    assert time.monotonic() - began < 4
    assert gone(generator.pid, within_s=0.1)


def test_a_generator_that_breaks_says_why_and_names_no_key() -> None:
    generator = LoadGenerator()
    target = Target(host="127.0.0.1", port=1, is_tls=False, headers=[("Authorization", "Bearer secret\n")])
    with pytest.raises(LoadGeneratorFault, match="'Authorization' holds a character") as broke:
        list(generator.run(job_for(1, 1, target=target, limits=limits(connect_s=0.1))))
    generator.close()
    assert "secret" not in str(broke.value)


def test_a_generator_that_is_killed_is_a_fault_and_not_a_silence() -> None:
    with StubServer([stream(chat("Hi"), first_ms=10_000)]) as stub:
        generator = LoadGenerator()
        messages = generator.run(job_for(stub.port, 1, scrape_path="/metrics", scrape_every_s=0.02))
        next(messages)
        os.kill(generator.pid, signal.SIGKILL)
        with pytest.raises(LoadGeneratorFault, match="exit code -9"):
            list(messages)
        with pytest.raises(LoadGeneratorFault):
            list(generator.run(job_for(stub.port, 1)))
        generator.close()


WORKER = """
import os, subprocess, sys, time
from collector.client.process import LoadGenerator
from collector.worker_process import _die_with
_die_with(int(sys.argv[1]))
generator = LoadGenerator()
server = subprocess.Popen(["sleep", "600"])
if sys.argv[2] == "busy":
    sys.path.insert(0, sys.argv[3])
    from client_load import job_for
    from stub_server import StubServer, chat, stream
    stub = StubServer([stream(chat("Hi"), first_ms=5)]).__enter__()
    messages = generator.run(job_for(stub.port, 100_000))
    next(messages)
print(server.pid, generator.pid, flush=True)
if sys.argv[2] == "polite":
    generator.close()
    print("closed", flush=True)
time.sleep(600)
"""
COLLECTOR = """
import os, subprocess, sys, time
worker = subprocess.Popen(
    [sys.executable, "-c", sys.argv[1], str(os.getpid()), sys.argv[2], sys.argv[3]], start_new_session=True
)
print(worker.pid, flush=True)
worker.wait()
time.sleep(600)
"""


def started(how: str) -> tuple[subprocess.Popen[str], int, int, int]:
    """Start a collector, its worker in a session of its own, and in that a generator and a `sleep` for a server."""
    helpers = str(Path(__file__).parents[2] / "helpers")
    collector = subprocess.Popen(
        [sys.executable, "-c", COLLECTOR, WORKER, how, helpers], stdout=subprocess.PIPE, text=True
    )
    assert collector.stdout is not None
    worker_pid = int(collector.stdout.readline())
    server_pid, generator_pid = (int(word) for word in collector.stdout.readline().split())
    return collector, worker_pid, server_pid, generator_pid


@pytest.mark.parametrize(("killed", "how"), [("worker", "busy"), ("collector", "idle")])
def test_a_killed_worker_or_collector_leaves_no_started_server_behind(killed: str, how: str) -> None:
    collector, worker_pid, server_pid, generator_pid = started(how)
    try:
        assert psutil.Process(server_pid).name() == "sleep"
        os.kill(worker_pid if killed == "worker" else collector.pid, signal.SIGKILL)
        assert gone(server_pid)
        assert gone(generator_pid)
        assert gone(worker_pid)
    finally:
        collector.kill()
        collector.communicate()
        for pid in (worker_pid, server_pid, generator_pid):
            if not gone(pid, within_s=0.05):
                os.kill(pid, signal.SIGKILL)


def test_a_generator_that_was_closed_ends_nothing_but_itself() -> None:
    collector, worker_pid, server_pid, generator_pid = started("polite")
    assert collector.stdout is not None
    try:
        assert collector.stdout.readline() == "closed\n"
        assert gone(generator_pid)
        time.sleep(0.1)
        assert psutil.Process(server_pid).name() == "sleep"
        assert psutil.pid_exists(worker_pid)
    finally:
        os.killpg(worker_pid, signal.SIGKILL)
        collector.kill()
        collector.communicate()


def test_a_generator_outside_a_workers_own_session_ends_itself_alone() -> None:
    """A command that asks a server something and is killed must not take the user's shell with it."""
    code = (
        "import os, time; from collector.client.process import LoadGenerator;"
        "print(LoadGenerator().pid, flush=True); time.sleep(600)"
    )
    shell = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}]); print('alive')"
    leader = subprocess.Popen(
        [sys.executable, "-c", shell], start_new_session=True, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert leader.stdout is not None
    generator_pid = int(leader.stdout.readline())
    parent = psutil.Process(generator_pid).parent()
    assert parent is not None
    assert parent.pid != leader.pid
    parent.kill()
    assert leader.communicate(timeout=10)[0] == "alive\n"
    assert gone(generator_pid)


def test_messages_cut_anywhere_are_whole_again() -> None:
    raw = frame(b"one") + frame(b"x" * 300) + GOODBYE
    for cut in range(len(raw)):
        reader = FrameReader()
        assert [*reader.feed(raw[:cut]), *reader.feed(raw[cut:])] == [b"one", b"x" * 300, b""]
    with pytest.raises(ValueError, match="goodbye"):
        frame(b"")
