"""Whose processor time is a pass's own: its worker's tree, whoever ended meanwhile, and a server that was there."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import psutil
import pytest

from collector import contention, nvidia
from collector.clock import FakeClock, SystemClock
from collector.contract.records import Device
from collector.own_processes import OwnProcess, own_processes, server_pids, spent_between

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"
START = (
    "import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session={new})\n"
)
WAIT = "print(child.pid, flush=True); child.wait(); print('done', flush=True); sys.stdin.read()"
LEAVE = """import os, subprocess, sys
if os.fork() == 0:
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.dup2(2, 1)
        exec(sys.argv[1])
    os._exit(0)
os.wait()
sys.stdin.read()
"""
LISTEN = """import socket, subprocess, sys
child = subprocess.Popen([sys.executable, '-c', sys.argv[1]])
listening = socket.create_server(('127.0.0.1', 0))
print(listening.getsockname()[1], child.pid, flush=True)
sys.stdin.read()
child.kill(); child.wait()
"""
USED_S = 0.3
TICK_S = 0.01
"""Processor times come in such steps."""

Starter = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Starter]:
    """Starts Python code in a session of its own, with an argument."""
    started: list[subprocess.Popen[str]] = []

    def starter(code: str, argument: str = "") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, argument], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield starter
    for process in started:
        below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        for each in below:
            each.kill()
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


def await_used(pid: int, seconds: float = USED_S) -> None:
    times = psutil.Process(pid).cpu_times()
    until = times.user + times.system + seconds
    while (now := psutil.Process(pid).cpu_times()) and now.user + now.system < until:
        time.sleep(0.02)


def spent_s(worker_pid: int, work: Callable[[], None]) -> float:
    before = own_processes(psutil, worker_pid) or {}
    work()
    return spent_between(before, own_processes(psutil, worker_pid) or {})


@pytest.mark.parametrize("new", [False, True], ids=["in its session", "in a session of its own"])
def test_what_the_worker_s_child_uses_is_the_worker_s(start: Starter, new: bool) -> None:
    worker = start(START.format(new=new) + WAIT, BURN.format(seconds=60))
    (child,) = line(worker)
    assert spent_s(worker.pid, lambda: await_used(child)) >= USED_S - TICK_S


def test_what_a_child_used_that_ended_meanwhile_is_the_worker_s(start: Starter) -> None:
    worker = start(START.format(new=False) + WAIT, BURN.format(seconds=USED_S))
    assert worker.stdout is not None
    line(worker)
    before = own_processes(psutil, worker.pid) or {}
    assert worker.stdout.readline() == "done\n"
    after = own_processes(psutil, worker.pid) or {}
    used_before_s = sum(one.processor_s for pid, one in before.items() if pid != worker.pid)
    assert spent_between(before, after) + used_before_s >= USED_S - 3 * TICK_S
    assert set(after) == {worker.pid}


@pytest.mark.skipif(sys.platform != "linux", reason="who leads a session is asked of every process")
def test_a_grandchild_whose_parent_ended_is_still_the_worker_s(start: Starter) -> None:
    worker = start(LEAVE, BURN.format(seconds=60))
    (orphan,) = line(worker)
    try:
        assert psutil.Process(orphan).ppid() != worker.pid
        assert spent_s(worker.pid, lambda: await_used(orphan)) >= USED_S - TICK_S
    finally:
        psutil.Process(orphan).kill()


def test_the_end_of_one_that_nobody_waits_for_takes_nothing_from_the_others() -> None:
    before = {10: OwnProcess(1, 5.0), 11: OwnProcess(1, 40.0), 12: OwnProcess(10, 2.0)}
    after = {10: OwnProcess(1, 9.0)}
    assert spent_between(before, after) == pytest.approx(9.0 - 5.0 - 2.0)  # 12's two seconds are in its parent's nine


def test_the_processor_time_of_a_worker_s_tree_is_not_others(start: Starter) -> None:
    worker = start(START.format(new=False) + WAIT, BURN.format(seconds=60))
    stranger = start("import sys; print(0, flush=True); sys.stdin.read()")
    (child,) = line(worker)
    line(stranger)
    ours, not_ours = (contention.DeviceMonitor([], SystemClock()) for _ in range(2))
    ours.begin("measure", worker.pid)
    not_ours.begin("measure", stranger.pid)
    await_used(child, 0.6)
    (mine,), (others,) = ours.end("a" * 16), not_ours.end("a" * 16)
    assert mine.host_cpu_share is not None
    assert others.host_cpu_share is not None
    machine_s = mine.window_ns / 1e9 * psutil.cpu_count()
    assert others.host_cpu_share - mine.host_cpu_share >= 0.5 * 0.6 / machine_s


def test_a_server_that_was_there_is_no_stranger_where_it_can_be_seen(start: Starter) -> None:
    server = start(LISTEN, BURN.format(seconds=60))
    worker = start("import sys; sys.stdin.read()")
    port, child = line(server)
    assert server_pids(psutil, [port]) == {server.pid, child}
    assert set(own_processes(psutil, worker.pid, [port]) or {}) == {worker.pid, server.pid, child}
    spared = contention.look_around([], server_ports=[port], sample_s=0.2).culprits
    assert not any(f"process {child}," in culprit for culprit in spared)


def card_monitor(pids: list[int]) -> contention.DeviceMonitor:
    library = SimpleNamespace(
        nvmlInit=lambda: None, nvmlDeviceGetHandleByUUID=lambda uuid: "card",
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [
            SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids
        ],
    )  # fmt: skip
    card = Device(
        environment_id="e" * 16, device_id="cuda:0", device_kind="cuda", device_name="Card", device_uuid="GPU-1"
    )  # fmt: skip
    return contention.DeviceMonitor([card], FakeClock(), nvidia.Nvml(library))


def test_a_server_that_cannot_be_seen_is_not_called_busy_and_the_record_says_why(start: Starter) -> None:
    worker = start("import sys; sys.stdin.read()")
    monitor = contention.DeviceMonitor([], SystemClock())
    monitor.begin("measure", worker.pid, [1])  # nobody listens there
    time.sleep(0.55)
    (record,) = monitor.end("a" * 16)
    assert record.host_cpu_share is None
    assert record.missing["host_cpu_share"] == "not_permitted"
    on_card = card_monitor([worker.pid, 4_000_000])
    on_card.begin("measure", worker.pid, [1])
    _, card = on_card.end("a" * 16)
    assert (card.foreign_process_count, card.missing["foreign_process_count"]) == (None, "not_permitted")


def test_the_processes_of_a_started_server_are_not_foreign_on_its_card(start: Starter) -> None:
    worker = start(START.format(new=False) + WAIT, "import sys, time; time.sleep(60)")
    (child,) = line(worker)
    monitor = card_monitor([child, worker.pid, 4_000_000])
    monitor.begin("measure", worker.pid)
    _, card = monitor.end("a" * 16)
    assert card.foreign_process_count == 1
