"""Servers of a pass: started, waited for, stopped with all that they started, with real processes."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from collector.contract.errors import DossierError
from collector.contract.protocol import ServerChoice
from collector.engines.faults import EngineStart, ServerLost
from collector.server_address import HOST, address_of, free_port, is_loopback
from collector.server_process import RunningServer, server_at, start_server, wait_ready
from collector.worker_faults import cause_of

TINY = Path(__file__).parent.parent / "helpers" / "tiny_server.py"
READY_S = 20.0
Starter = Callable[..., RunningServer]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts the tiny server with the words given, and stops it at the end."""
    started: list[RunningServer] = []

    def starting(*words: str, stop_s: float = 5.0, port: int | None = None, **environment: str) -> RunningServer:
        choice = ServerChoice(
            name="tiny", start=["{python}", str(TINY), "{port}", *words], stop_s=stop_s, environment=environment
        )
        started.append(start_server(choice, base_dir=tmp_path, model="m", port=port))
        return started[-1]

    yield starting
    for server in started:
        server.stop()


def pids_of(server: RunningServer) -> list[int]:
    return [each.pid for each in server.processes()]


def are_gone(pids: list[int]) -> bool:
    return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids)


def test_a_server_that_is_ready_late_is_waited_for_and_its_start_is_timed(start: Starter) -> None:
    server = start("late=0.4")
    assert server.start_ns is None
    wait_ready(server, path="/health", ready_s=READY_S)
    assert server.start_ns is not None
    assert server.start_ns > 0.4e9
    assert server.base_url == f"http://127.0.0.1:{server.address.port}"
    assert server.is_started
    assert server.is_loopback
    assert server.died() is None
    assert server.pid is not None
    assert psutil.Process(server.pid).cmdline()[1] == str(TINY), "the process number is the server's own"
    assert os.getpgid(server.pid) == os.getpgid(0), "whoever kills the worker's group ends it too"


def test_a_server_that_is_never_ready_is_a_timeout_and_is_stopped(start: Starter) -> None:
    server = start("never", "says=still loading")
    pid = server.pid or 0
    with pytest.raises(EngineStart, match=r"not ready within 0.6 s; /health: (status 503|.*refused)") as caught:
        wait_ready(server, path="/health", ready_s=0.6)
    assert cause_of(caught.value, "load") == "timeout"
    assert are_gone([pid])


def test_b11_a_failed_start_tells_exit_code_last_words_and_free_memory_and_is_no_out_of_memory(start: Starter) -> None:
    server = start("die", "says=WARNING foreign memory dropped from 60 to 12 GiB while profiling")
    with pytest.raises(EngineStart) as caught:
        wait_ready(server, path="/health", ready_s=READY_S)
    assert type(caught.value).__name__ == "EngineStart", "the class in the failure's record"
    assert "ended with exit code 3 before it was ready" in caught.value.message
    assert "this server dies at once" in caught.value.message
    assert "GiB free; when it failed: " in caught.value.message
    assert cause_of(caught.value, "load") == "load_failure"


def test_b11_a_failed_start_is_out_of_memory_where_the_server_says_so(start: Starter) -> None:
    server = start("die", "says=torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    with pytest.raises(EngineStart) as caught:
        wait_ready(server, path="/health", ready_s=READY_S)
    assert cause_of(caught.value, "load") == "out_of_memory"


def test_a_server_that_dies_later_says_how_and_can_still_be_stopped_twice(start: Starter) -> None:
    server = start("die=0.5", "says=last thing said")
    wait_ready(server, path="/health", ready_s=READY_S)
    deadline = time.monotonic() + READY_S
    while server.died() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.died() == "exit code 7"
    server.stop()
    server.stop()
    assert server.last_words() == "last thing said\n"


def test_a_server_that_was_killed_names_the_signal(start: Starter) -> None:
    server = start("child")
    wait_ready(server, path="/health", ready_s=READY_S)
    pids = pids_of(server)
    assert len(pids) == 2
    os.kill(server.pid or 0, signal.SIGKILL)
    deadline = time.monotonic() + READY_S
    while server.died() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.died() == "signal SIGKILL"
    server.stop()
    assert are_gone(pids), "what it had started ends as well"


def test_a_server_that_ignores_sigterm_is_killed_after_stop_s_with_its_children(start: Starter) -> None:
    server = start("stubborn", "child", stop_s=0.4)
    wait_ready(server, path="/health", ready_s=READY_S)
    pids = pids_of(server)
    began = time.monotonic()
    server.stop()
    assert 0.4 <= time.monotonic() - began < 5
    assert are_gone(pids)


def test_what_a_server_left_behind_is_found_by_its_mark_and_nothing_else_is_touched(start: Starter) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    try:
        server = start("orphan")
        wait_ready(server, path="/health", ready_s=READY_S)
        server._seen.clear()  # as where it was left behind between two looks
        orphans = [each.pid for each in server._marked() if each.pid != server.pid]
        assert len(orphans) == 1
        assert orphans[0] not in pids_of(server), "its parent ended before anybody looked"
        server.stop()
        assert are_gone(orphans)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_port_that_is_in_use_is_refused_before_anything_starts(start: Starter) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineStart, match=f"port {port} of 127.0.0.1 is in use"):
            start(port=port)


def test_an_answer_from_somebody_else_on_the_port_is_not_taken_for_the_server(tmp_path: Path, start: Starter) -> None:
    """The stranger takes the port after the start has looked and before the server listens."""
    port = free_port()
    sleeper = ServerChoice(name="sleeper", start=["{python}", "-c", "import time; time.sleep(300)"])
    server = start_server(sleeper, base_dir=tmp_path, model="m", port=port)
    stranger = subprocess.Popen([sys.executable, str(TINY), str(port)])
    try:
        with pytest.raises(EngineStart, match=f"process {stranger.pid} answers there"):
            wait_ready(server, path="/health", ready_s=READY_S)
        assert stranger.poll() is None
    finally:
        server.stop()
        stranger.kill()
        stranger.wait()


def test_places_are_filled_in_and_other_braces_stay(tmp_path: Path) -> None:
    script = "import os, sys; print(sys.argv[1:], os.environ['WHERE']); sys.exit(1)"
    choice = ServerChoice(
        name="echo",
        start=["{python}", "-c", script, "{host}:{port}", "{model}", "{base_dir}/x", '{"a": {"b": 1}}'],
        environment={"WHERE": "{base_dir}/env"},
    )
    model = str(tmp_path / "somewhere" / "model-folder")
    server = start_server(choice, base_dir=tmp_path, model=model, port=8765)
    with pytest.raises(EngineStart, match="exit code 1"):
        wait_ready(server, path="/", ready_s=READY_S)
    told = server.last_words()
    assert "'127.0.0.1:8765', 'model-folder', '<base_dir>/x', '{\"a\": {\"b\": 1}}'] <base_dir>/env" in told
    assert str(tmp_path) not in told, "a failure's words travel"


def test_what_a_server_prints_of_its_own_environment_is_kept_without_the_place(tmp_path: Path) -> None:
    program = tmp_path / "env" / "bin" / "serve"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$0: cannot load $(dirname $(dirname "$0"))/lib/x.so"; exit 1\n')
    program.chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "env")
    choice = ServerChoice(name="own", start=["{base_dir}/../link/bin/serve"])
    (tmp_path / "base").mkdir()
    server = start_server(choice, base_dir=tmp_path / "base", model="m")
    with pytest.raises(EngineStart):
        wait_ready(server, path="/", ready_s=READY_S)
    assert server.last_words() == "<server>/bin/serve: cannot load <server>/lib/x.so\n"


def test_a_key_that_a_server_prints_is_kept_by_the_name_of_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_KEY", "not-to-be-seen")
    command = ["{python}", "-c", "import os; print('key', os.environ['TINY_KEY'])  # {port}"]
    server = start_server(ServerChoice(name="x", start=command, key_env="TINY_KEY"), base_dir=tmp_path, model="m")
    with pytest.raises(EngineStart) as caught:
        wait_ready(server, path="/health", ready_s=READY_S)
    assert "key [TINY_KEY]" in caught.value.message
    assert "not-to-be-seen" not in caught.value.message


def test_a_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    server = start_server(ServerChoice(name="none", start=["no-such-server-here"]), base_dir=tmp_path, model="m")
    with pytest.raises(EngineStart, match="cannot start no-such-server-here: No such file or directory"):
        wait_ready(server, path="/", ready_s=READY_S)


def test_lines_with_warnings_are_noted_once_each_whatever_their_time_and_process(
    start: Starter, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [
        "(Engine pid=12) WARNING 12-01 03:00:01 [config.py:7] dtype is cast",
        "(Engine pid=12) WARNING 12-01 03:00:02 [config.py:7] dtype is cast",
        "(Engine pid=12) INFO 12-01 03:00:02 [config.py:7] on_error=False, warning='none'",
        "[INFO] 12-01 03:00:02 error",
        "ERROR: a kernel fell back",
    ]
    server = start(f"says={chr(10).join(lines)}")
    with caplog.at_level(logging.WARNING):
        wait_ready(server, path="/health", ready_s=READY_S)
        server.log_notes()
    noted = [record.getMessage() for record in caplog.records if record.name == "server.tiny"]
    assert noted == ["(Engine ) WARNING [config.py:7] dtype is cast", "ERROR: a kernel fell back"]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's kill with the parent is Linux's")
def test_a_server_does_not_survive_a_kill_of_the_process_that_started_it(tmp_path: Path) -> None:
    script = f"""
        import time
        from collector.contract.protocol import ServerChoice
        from collector.server_process import start_server, wait_ready
        choice = ServerChoice(name="tiny", start=["{{python}}", {str(TINY)!r}, "{{port}}"])
        server = start_server(choice, base_dir={str(tmp_path)!r}, model="m")
        wait_ready(server, path="/", ready_s=20)
        print(server.pid, flush=True)
        time.sleep(300)
    """
    starter = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.wait()
    starter.stdout.close()
    deadline = time.monotonic() + READY_S
    while not are_gone([pid]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert are_gone([pid])


def test_a_server_that_was_there_is_asked_once_and_never_stopped(start: Starter) -> None:
    there = start()
    wait_ready(there, path="/health", ready_s=READY_S)
    server = server_at(ServerChoice(name="there", url=there.base_url + "/"))
    wait_ready(server, path="/no-such-path", ready_s=5)
    assert (server.is_started, server.pid, server.start_ns, server.is_loopback) == (False, None, None, True)
    server.stop()
    assert server.processes() == []
    assert there.died() is None


def test_a_url_that_nothing_answers_is_a_connection_fault() -> None:
    server = server_at(ServerChoice(name="away", url=f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(ServerLost, match="nothing answers at http://127") as caught:
        wait_ready(server, path="/health", ready_s=5)
    assert cause_of(caught.value, "load") == "connection"


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://gateway.example/llm/", "gateway.example", 443, "/llm"),
        ("http://[::1]:8000", "::1", 8000, ""),
        ("http://localhost", "localhost", 80, ""),
    ],
)
def test_a_url_has_scheme_host_port_and_path(url: str, host: str, port: int, path: str) -> None:
    assert address_of(url)[1:] == (host, port, path)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "http://", "http://x:99999"])
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(DossierError, match="no address of a server"):
        address_of(url)


def test_loopback_is_told_by_address_and_an_unknown_name_is_not() -> None:
    assert is_loopback("127.0.0.5")
    assert is_loopback("::1")
    assert not is_loopback("10.1.2.3")
    assert not is_loopback("no-such-name.invalid")
