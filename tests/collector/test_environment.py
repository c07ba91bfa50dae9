"""The environment: container limits, processor, cards by UUID; nothing aborts and nothing heavy is imported."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from collector import contention, environment, host, nvidia
from collector.clock import FakeClock, SystemClock
from collector.contract.errors import DeviceFault, DossierError
from collector.contract.records import Device, decode_record, encode_record

CARD_UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host of 8 processors inside a container of 1.5 processors and 3 GiB, two groups deep."""
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Example  CPU   @ 2.00GHz\nflags\t\t: fpu avx2 amx_bf16 sse\n\n",
        "proc/meminfo": "MemTotal:       16384 kB\nMemFree: 1 kB\n",
        "proc/self/cgroup": "0::/outer/inner\n",
        "proc/1/cgroup": "0::/\n",
        "etc/os-release": 'NAME="Example Linux"\nVERSION_ID="7"\n',
        "sys/fs/cgroup/outer/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/outer/inner/cpu.max": "max 100000\n",
        "sys/fs/cgroup/outer/inner/memory.max": "max\n",
        "sys/fs/cgroup/outer/memory.max": f"{3 * 2**30}\n",
        "sys/fs/cgroup/outer/memory.events": "low 0\noom 4\noom_kill 2\n",
        "sys/fs/cgroup/outer/cpu.stat": "usage_usec 5\nthrottled_usec 1234\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_container_limits_come_before_what_the_host_has(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    files = host.Files(root)
    assert host.usable_cpu_count(files) == 1
    assert host.memory_limit_bytes(files) == 3 * 2**30
    assert host.memory_total_bytes(files) == 16 * 2**20
    assert host.oom_kill_count(files) == 2
    assert host.throttled_ns(files) == 1_234_000
    (root / "sys/fs/cgroup/outer/cpu.max").write_text("max 100000\n")
    assert host.usable_cpu_count(files) == 8
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert host.usable_cpu_count(files) == 2


def test_old_control_groups_are_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for name, text in {
        "cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000",
        "memory/memory.limit_in_bytes": "9223372036854771712",
    }.items():  # fmt: skip
        (tmp_path / "sys/fs/cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/fs/cgroup" / name).write_text(text)
    assert host.usable_cpu_count(host.Files(tmp_path)) == 4
    assert host.memory_limit_bytes(host.Files(tmp_path)) is None


def test_the_processor_is_named_with_its_usable_cores(root: Path) -> None:
    found = environment.detect("cpu", files=host.Files(root), threads=2)
    (device,) = found.devices
    assert device.device_name == "Example CPU @ 2.00GHz (1 core)"
    assert (device.device_kind, device.device_id, device.device_memory_bytes) == ("cpu", "cpu", 3 * 2**30)
    assert found.environment.cpu_flags == ["amx_bf16", "avx2"]
    assert (found.environment.os_name, found.environment.os_version) == ("Example Linux", "7")
    assert found.environment.thread_count == 2
    assert device.environment_id == found.environment.environment_id


def test_a_host_that_says_nothing_is_null_with_reasons_and_never_an_error(tmp_path: Path) -> None:
    found = environment.detect("cpu", files=host.Files(tmp_path)).environment
    assert found.host_memory_bytes is None
    assert found.missing["host_memory_bytes"] == "unsupported"
    optional = ("cpu_model", "host_memory_bytes", "host_memory_limit_bytes", "driver_version", "host_name")
    assert all(name in found.missing for name in optional if getattr(found, name) is None)


def test_the_id_stays_while_load_and_neighbours_change_and_moves_with_the_software(root: Path) -> None:
    found = environment.detect("cpu", files=host.Files(root))
    busier = msgspec.structs.replace(found.environment, load_average_1m=99.0, unchecked=["x"])
    neighbours = [msgspec.structs.replace(found.devices[0], foreign_process_count=7)]
    assert environment.environment_digest(busier, neighbours) == found.environment.environment_id
    newer = msgspec.structs.replace(found.environment, packages={"torch": "99"})
    assert environment.environment_digest(newer, found.devices) != found.environment.environment_id


def test_this_machine_makes_records_that_the_contract_accepts() -> None:
    found = environment.detect("cpu")
    for record in (found.environment, *found.devices):
        stamped = msgspec.structs.replace(
            record, run_id="0" * 32, prev="0" * 64, written_at="2026-01-01T00:00:00.000000Z"
        )
        assert decode_record(encode_record(stamped)) == stamped
    assert found.environment.host_name is None


def test_detecting_imports_no_engine_library() -> None:
    code = (
        "import sys, collector.runner, collector.environment as e; e.detect('cpu'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Driver:
    """A CUDA driver with one visible card, which NVML counts second."""

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return 0

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:  # noqa: N802
        return 0 if ordinal == 0 else 101

    def cuDeviceGetUuid_v2(self, target: Any, device: Any) -> int:  # noqa: N802
        ctypes.memmove(target._obj, CARD_UUID.bytes, 16)
        return 0

    def cuDeviceGetName(self, target: Any, size: int, device: Any) -> int:  # noqa: N802
        target.value = b"Example Card 96GB"
        return 0

    def cuDeviceTotalMem_v2(self, target: Any, device: Any) -> int:  # noqa: N802
        target._obj.value = 96 * 2**30
        return 0

    def cuDeviceGetAttribute(self, target: Any, attribute: int, device: Any) -> int:  # noqa: N802
        target._obj.value = {75: 9, 76: 0}[attribute]
        return 0


class Refusal(Exception):
    """What NVML raises where a call is not supported."""


class Library:
    """NVML whose calls are all refused, except those that a test allows."""

    NVML_PERF_POLICY_POWER = 0
    NVML_PERF_POLICY_THERMAL = 1

    def __init__(self, **allowed: Any) -> None:
        self._allowed = {"nvmlInit": lambda: None, **allowed}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def refuse(*_: object) -> None:
            raise Refusal

        return self._allowed.get(name, refuse)


def by_uuid(text: str) -> str:
    if text != f"GPU-{CARD_UUID}":
        raise Refusal
    return "handle"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    fake = Driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: fake)
    return fake


def test_a_card_is_matched_by_uuid_and_every_call_may_be_refused(driver: Driver, root: Path) -> None:
    """Only the UUID look-up and the power limit are allowed: the rest is null, and listed as unchecked."""
    library = Library(nvmlDeviceGetHandleByUUID=by_uuid, nvmlDeviceGetEnforcedPowerLimit=lambda handle: 400_000)
    found = environment.detect("cuda:0", files=host.Files(root), nvml=nvidia.Nvml(library))
    (card,) = found.devices
    assert (card.device_name, card.device_uuid) == ("Example Card 96GB", f"GPU-{CARD_UUID}")
    assert (card.device_memory_bytes, card.compute_capability, card.power_limit_mw) == (96 * 2**30, "9.0", 400_000)
    assert card.has_ecc is None
    assert card.missing["has_ecc"] == "unsupported"
    assert "nvml ecc: Refusal" in found.environment.unchecked
    assert "nvml power limit: Refusal" not in found.environment.unchecked


def test_a_machine_without_a_driver_is_described_and_not_refused(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", absent)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found = environment.detect("cuda:1", files=host.Files(root), nvml=nvidia.Nvml())
    assert found.devices[0].device_name == "cuda:1 (name not readable)"
    assert found.environment.unchecked == [
        "nvml: nvidia-ml-py is not installed (pip install nvidia-ml-py)", "cuda:1: the CUDA driver does not answer",
    ]  # fmt: skip


def test_another_card_of_the_same_name_is_another_environment(driver: Driver, root: Path) -> None:
    found = environment.detect("cuda:0", files=host.Files(root), nvml=nvidia.Nvml(Library()))
    other = [msgspec.structs.replace(found.devices[0], device_uuid="GPU-other")]
    assert environment.environment_digest(found.environment, other) != found.environment.environment_id


@pytest.mark.parametrize(
    ("asked", "engine", "torch_version", "used"),
    [
        ("auto", "scripted", "2.13.0", "cpu"),
        ("auto", "transformers", "2.13.0", "cuda:0"),
        ("auto", "transformers", "2.13.0+cpu", "cpu"),
        ("cuda", "transformers", "2.13.0", "cuda:0"),
        ("cuda:1", "transformers", "2.13.0", "cuda:1"),
        ("cpu", "transformers", "2.13.0", "cpu"),
    ],
)
def test_the_device_is_known_before_the_worker_starts(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, asked: str, engine: str, torch_version: str, used: str
) -> None:
    monkeypatch.setattr(environment, "package_versions", lambda: {"torch": torch_version})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert environment.resolve_device(asked, engine) == used


@pytest.mark.parametrize("hidden", ["", "-1", " ", "NoDevFiles"])
def test_a_card_hidden_from_this_process_is_not_used(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    monkeypatch.setattr(environment, "package_versions", lambda: {"torch": "2.13.0"})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert environment.resolve_device("auto", "transformers") == "cpu"


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:", "cuda:-1", "CPU", "", "0"])
def test_what_is_no_device_is_refused_by_name(device: str) -> None:
    with pytest.raises(DossierError, match="is no device") as refused:
        environment.require_device(device, "scripted")
    assert "cuda:0" in refused.value.next_step


def test_a_card_that_the_driver_does_not_show_is_refused_before_anything_is_written(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "package_versions", lambda: {"torch": "2.13.0"})
    environment.require_device("cuda:0", "transformers")
    environment.require_device("cpu", "transformers")
    monkeypatch.setattr(nvidia, "driver_facts", lambda _: None)
    with pytest.raises(DeviceFault, match="cuda:1 is not there"):
        environment.require_device("cuda:1", "transformers")
    environment.require_device("cuda:1", "scripted")
    monkeypatch.setattr(environment, "package_versions", lambda: {"torch": "2.13.0+rocm6.4"})
    environment.require_device("cuda:1", "transformers")


def test_without_torch_auto_is_the_processor(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "package_versions", dict)
    assert environment.resolve_device("auto", "transformers") == "cpu"


def card_device() -> Device:
    return Device(
        environment_id="e" * 16, device_id="cuda:0", device_kind="cuda", device_name="Example Card",
        device_uuid=f"GPU-{CARD_UUID}",
    )  # fmt: skip


def test_card_counters_are_recorded_as_deltas_over_the_phase() -> None:
    energy, violation = iter([1_000, 4_000]), iter([5, 7, 1_005, 7])
    library = Library(
        nvmlDeviceGetHandleByUUID=by_uuid,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(energy),
        nvmlDeviceGetViolationStatus=lambda handle, policy: SimpleNamespace(violationTime=next(violation)),
        nvmlDeviceGetTemperature=lambda handle, sensor: 61,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [
            SimpleNamespace(pid=11, usedGpuMemory=1), SimpleNamespace(pid=22, usedGpuMemory=None),
        ],
    )  # fmt: skip
    clock = FakeClock()
    monitor = contention.DeviceMonitor([card_device()], clock, nvidia.Nvml(library))
    monitor.begin("measure", worker_pid=11)
    clock.advance_ns(2 * 10**9)
    _, card = monitor.end("a" * 16)
    assert (card.device_id, card.phase, card.window_ns) == ("cuda:0", "measure", 2 * 10**9)
    assert (card.energy_mj, card.power_mean_mw, card.temperature_c) == (3_000, 1_500, 61)
    assert card.throttle_ns == {"power_cap": 1_000, "thermal": 0}
    assert card.foreign_process_count == 1
    assert card.missing["clock_sm_mhz"] == "unsupported"
    assert monitor.end("a" * 16) == []


@pytest.mark.parametrize(
    ("pids", "own", "foreign"),
    [
        ([], {11}, 0), ([11], {11}, 0), ([11, 22], {11}, 1), ([900], {11}, 0), ([900, 901], {11}, 1), ([900], (), 1),
        ([11, 12], {10, 11, 12}, 0), ([12, 900], {11, 12}, 1),
    ],
)  # fmt: skip
def test_an_unknown_process_is_taken_for_an_own_one_once(pids: list[int], own: set[int], foreign: int) -> None:
    processes = [nvidia.CardProcess(pid, None) for pid in pids]
    assert contention.foreign_count(processes, own) == foreign


@pytest.fixture
def busy_process() -> Any:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield process
    process.kill()
    process.wait()


def test_a_busy_neighbour_is_named_to_the_user_and_not_in_the_summary(busy_process: Any) -> None:
    for _ in range(20):  # a new process takes its share of a busy machine by and by
        report = contention.look_around([])
        if any(f"process {busy_process.pid}" in culprit for culprit in report.culprits):
            break
    assert report.is_busy
    assert "other processes use" in report.summary
    assert any(f"process {busy_process.pid}" in culprit for culprit in report.culprits)
    assert str(busy_process.pid) not in report.summary
    assert "python" not in report.summary


@pytest.mark.usefixtures("busy_process")
def test_a_neighbour_s_processor_time_is_recorded_as_a_share() -> None:
    monitor = contention.DeviceMonitor([], SystemClock())
    monitor.begin("measure", worker_pid=None)
    time.sleep(0.8)
    (record,) = monitor.end("a" * 16)
    assert record.host_cpu_share is not None
    assert record.host_cpu_share >= 0.25 / (os.cpu_count() or 1)


def test_a_short_window_gives_no_share_and_says_why() -> None:
    monitor = contention.DeviceMonitor([], FakeClock())
    monitor.begin("load", worker_pid=None)
    (record,) = monitor.end("a" * 16)
    assert record.host_cpu_share is None
    assert record.missing["host_cpu_share"] == "too_few_samples"
