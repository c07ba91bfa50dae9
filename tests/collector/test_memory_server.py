"""The memory of a server: its process tree without the worker, the card by the driver, nulls with reasons."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from collector import memory_server
from collector.contract.protocol import ServerChoice
from collector.contract.records import Reading
from collector.memory import HostMeter, meter_for
from collector.memory_server import ServerMeter, tree_bytes
from collector.nvidia import DriverReading, NvmlDriver
from collector.server_process import RunningServer, start_server, wait_ready, watched

MIB = 1 << 20
TINY = Path(__file__).parent.parent / "helpers" / "tiny_server.py"
HELD_MIB = 120
Key = tuple[str, str]


def started(tmp_path: Path, *words: str) -> RunningServer:
    choice = ServerChoice(name="tiny", start=["{python}", str(TINY), "{port}", *words])
    server = start_server(choice, base_dir=tmp_path, model="m")
    wait_ready(server, path="/health", ready_s=20)
    return server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server whose child comes to hold 120 MiB."""
    running = started(tmp_path, f"touch={HELD_MIB}")
    yield running
    running.stop()


def values(readings: list[Reading]) -> dict[Key, int | None]:
    return {(each.memory_scope, each.statistic): each.value_bytes for each in readings}


def reasons(readings: list[Reading], scope: str) -> set[str]:
    return {each.missing.get("value_bytes", "a number") for each in readings if each.memory_scope == scope}


def wait_for_the_child(server: RunningServer) -> None:
    deadline = time.monotonic() + 20
    while tree_bytes(server.processes()).value < HELD_MIB * MIB and time.monotonic() < deadline:
        time.sleep(0.02)


def test_host_memory_is_the_servers_tree_without_the_worker_and_its_peak_is_sampled(server: RunningServer) -> None:
    meter = ServerMeter("cpu", lambda: server, shortest_s=0.02)
    meter.begin("measure")
    wait_for_the_child(server)
    own = bytearray(200 * MIB)
    own[::4096] = b"x" * len(own[::4096])
    time.sleep(0.1)
    readings = meter.end("measure")
    found = values(readings)
    end, peak = found["host", "end"], found["host", "peak"]
    assert end is not None
    assert peak is not None
    assert HELD_MIB * MIB < end <= peak < 200 * MIB, "the 200 MiB of this process are none of the server's"
    assert {(each.device_id, each.memory_scope, each.pass_id) for each in readings} == {("cpu", "host", "")}
    by_statistic = {each.statistic: each for each in readings}
    assert by_statistic["peak"].counter_method == "sampled"
    assert (by_statistic["peak"].sample_interval_ns or 0) >= 20_000_000
    assert by_statistic["end"].counter_method == "counter"


def test_the_load_begins_before_the_server_exists_and_that_zero_is_a_fact(tmp_path: Path) -> None:
    there: list[RunningServer] = []
    meter = ServerMeter("cpu", lambda: there[0] if there else None, shortest_s=0.01)
    meter.begin("load")
    there.append(started(tmp_path))
    try:
        found = values(meter.end("load"))
        assert found["host", "start"] == 0
        assert (found["host", "peak"] or 0) >= (found["host", "end"] or 0) > MIB
    finally:
        there[0].stop()


def test_a_server_that_ended_leaves_a_peak_and_a_null_with_a_reason(server: RunningServer) -> None:
    wait_for_the_child(server)
    meter = ServerMeter("cpu", lambda: server, shortest_s=0.01)
    meter.begin("measure")
    time.sleep(0.05)
    for each in server.processes():
        each.kill()
    deadline = time.monotonic() + 20
    while server.processes() and time.monotonic() < deadline:
        time.sleep(0.01)
    readings = meter.end("measure")
    end = next(each for each in readings if each.statistic == "end")
    assert (end.value_bytes, end.missing) == (None, {"value_bytes": "failed"})
    assert (values(readings)["host", "peak"] or 0) > HELD_MIB * MIB


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_of_a_server_that_was_there_nothing_is_known_and_nothing_is_zero(device: str) -> None:
    meter = ServerMeter(device, lambda: None, is_started=False, driver=FakeDriver())
    meter.begin("load")
    readings = meter.end("load")
    assert {each.value_bytes for each in readings} == {None}
    assert {each.missing["value_bytes"] for each in readings} == {"not_exposed_by_engine"}


def test_where_shared_pages_cannot_be_told_resident_sets_are_added_and_a_warning_says_so_once(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wait_for_the_child(server)
    once = tree_bytes(server.processes())
    monkeypatch.setattr(memory_server, "_proportional", lambda pid: None)
    resident = tree_bytes(server.processes())
    assert once.is_shared_once is (sys.platform == "linux")
    assert not resident.is_shared_once
    assert resident.value >= once.value
    meter = ServerMeter("cpu", lambda: server)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            meter.begin("measure")
            assert (values(meter.end("measure"))["host", "end"] or 0) > HELD_MIB * MIB
    assert [record.getMessage().count("resident sets") for record in caplog.records] == [1]


class FakeDriver:
    """520 MiB of context, then 9,000 MiB at the peak, while another process holds 100 MiB of the card."""

    def __init__(self) -> None:
        self.used = 0
        self.pids: set[int] = set()

    def read_tree(self, uuid: str | None, pids: Iterable[int]) -> DriverReading:
        self.pids.update(pids)
        return DriverReading(self.used, self.used + 100 * MIB)


def test_b02_a_servers_card_is_read_before_after_and_at_its_peak_and_torchs_counters_are_null(
    server: RunningServer,
) -> None:
    driver = FakeDriver()
    there: list[RunningServer] = []
    meter = ServerMeter("cuda:0", lambda: there[0] if there else None, driver=driver, shortest_s=0.01)
    meter.begin("load")
    there.append(server)
    driver.used = 9_000 * MIB
    time.sleep(0.1)
    driver.used = 520 * MIB
    readings = meter.end("load")
    found = values(readings)
    assert (found["device", "start"], found["process", "start"]) == (100 * MIB, 0), "before the server has a context"
    assert (found["device", "end"], found["process", "end"]) == (620 * MIB, 520 * MIB)
    assert (found["device", "peak"], found["process", "peak"]) == (9_100 * MIB, 9_000 * MIB)
    assert driver.pids == {each.pid for each in server.processes()}
    assert os.getpid() not in driver.pids
    for scope in ("allocated", "reserved"):
        assert reasons(readings, scope) == {"not_exposed_by_engine"}, "not available, not 0"


def test_a_tree_that_the_driver_does_not_list_has_no_number_and_no_zero(server: RunningServer) -> None:
    class Container(FakeDriver):
        def read_tree(self, uuid: str | None, pids: Iterable[int]) -> DriverReading:
            return DriverReading("not_permitted", 700 * MIB)

    there: list[RunningServer] = []
    meter = ServerMeter("cuda:0", lambda: there[0] if there else None, driver=Container())
    meter.begin("load")
    there.append(server)
    readings = meter.end("load")
    found = values(readings)
    assert found["process", "start"] == 0
    assert (found["process", "peak"], found["process", "end"]) == (None, None)
    assert found["device", "peak"] == 700 * MIB


class FakeNvml:
    """One card with four processes; 43's memory is not told."""

    class NVMLError(Exception): ...

    def nvmlInit(self) -> None: ...  # noqa: N802

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return uuid

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:  # noqa: N802
        used = {41: 500 * MIB, 42: 7 * MIB, 43: None, 99: 4_000 * MIB}
        return [SimpleNamespace(pid=pid, usedGpuMemory=each) for pid, each in used.items()]

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(total=8_000 * MIB, free=3_000 * MIB)


def test_the_driver_adds_the_processes_of_a_tree_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    driver = NvmlDriver()
    assert driver.read_tree("GPU-a", [41, 42, 7]) == (507 * MIB, 5_000 * MIB)
    assert driver.read_tree("GPU-a", [42, 43]).process == "unsupported"
    assert driver.read_tree("GPU-a", [7]).process == "not_permitted"


def test_the_worker_takes_the_meter_of_the_server_that_its_engine_names(tmp_path: Path) -> None:
    assert isinstance(meter_for("cpu"), HostMeter)
    assert isinstance(meter_for("cpu", ServerChoice(name="vllm", start=["vllm"])), ServerMeter)
    there = meter_for("cpu", ServerChoice(name="away", url="http://127.0.0.1:1"))
    there.begin("measure")
    assert {each.value_bytes for each in there.end("measure")} == {None}


def test_the_meter_learns_of_the_server_when_it_starts(tmp_path: Path) -> None:
    meter = meter_for("cpu", ServerChoice(name="tiny", start=["x"]))
    server = started(tmp_path)
    try:
        assert watched() is server
        meter.begin("warmup")
        assert (values(meter.end("warmup"))["host", "start"] or 0) > MIB
    finally:
        server.stop()


def test_one_sample_costs_little_beside_the_time_between_two(server: RunningServer) -> None:
    """A ratio within one run: reading this tree, over the shortest time between two samples."""
    processes = server.processes()
    began = time.process_time()
    for _ in range(10):
        tree_bytes(processes)
    assert (time.process_time() - began) / 10 < memory_server.SHORTEST_S / 2
    assert psutil.pid_exists(server.pid or 0)
