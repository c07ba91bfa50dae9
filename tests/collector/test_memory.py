"""The meters: windows per phase, scopes apart, nulls with reasons. The CUDA path runs on a fake of torch.cuda."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from collector.contract.records import Reading
from collector.memory import HostMeter, host_meter, meter_for
from collector.memory_cuda import CudaMeter
from collector.nvidia import DriverReading, NvmlDriver

MIB = 1 << 20


def by_key(readings: list[Reading]) -> dict[tuple[str, str], int | None]:
    """(scope, statistic) -> bytes."""
    return {(each.memory_scope, each.statistic): each.value_bytes for each in readings}


class FakeCuda:
    """Counters as torch keeps them: peaks since the last reset, allocated within reserved."""

    def __init__(self) -> None:
        self.allocated = self.reserved = self.allocated_peak = self.reserved_peak = 0
        self.calls: list[str] = []

    def allocate(self, size: int) -> None:
        self.allocated += size
        self.reserved = max(self.reserved, self.allocated + 2 * MIB)
        self.allocated_peak = max(self.allocated_peak, self.allocated)
        self.reserved_peak = max(self.reserved_peak, self.reserved)

    def free(self, size: int) -> None:
        self.allocated -= size

    def synchronize(self, device: int) -> None:
        self.calls.append(f"synchronize {device}")

    def reset_peak_memory_stats(self, device: int) -> None:
        self.calls.append(f"reset {device}")
        self.allocated_peak, self.reserved_peak = self.allocated, self.reserved

    def memory_allocated(self, device: int) -> int:
        self.calls.append(f"allocated {device}")
        return self.allocated

    def max_memory_allocated(self, device: int) -> int:
        return self.allocated_peak

    def memory_reserved(self, device: int) -> int:
        return self.reserved

    def max_memory_reserved(self, device: int) -> int:
        return self.reserved_peak

    def mem_get_info(self, device: int) -> tuple[int, int]:
        return 1000 * MIB - 300 * MIB - self.reserved, 1000 * MIB

    def get_device_properties(self, device: int) -> SimpleNamespace:
        return SimpleNamespace(uuid=f"card-{device}")


class FakeDriver:
    """A driver that lists one process, with 300 MiB of context around what torch reserved."""

    def __init__(self, cuda: FakeCuda, refusal: str | None = None) -> None:
        self.cuda = cuda
        self.refusal = refusal
        self.asked: set[str | None] = set()

    def read(self, uuid: str | None, pid: int) -> DriverReading:
        self.asked.add(uuid)
        if self.refusal:
            return DriverReading(self.refusal, self.refusal)  # type: ignore[arg-type]
        used = 300 * MIB + self.cuda.reserved
        return DriverReading(used, used + 50 * MIB)


def test_host_peak_sees_an_allocation_of_200_mib_and_the_next_phase_forgets_it() -> None:
    script = """
        import sys
        from collector.memory import host_meter
        meter = host_meter()
        meter.begin("load")
        block = bytearray(200 << 20)
        del block
        first = {r.statistic: r for r in meter.end("load")}
        meter.begin("warmup")
        second = {r.statistic: r for r in meter.end("warmup")}
        grown = first["peak"].value_bytes - first["start"].value_bytes
        print(grown, second["peak"].value_bytes - first["start"].value_bytes, first["peak"].counter_method)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True, timeout=60
    )
    grown, later, method = done.stdout.split()
    if method != "counter":
        pytest.skip("this kernel does not let a process reset VmHWM")
    # The kernel batches its count per processor: a reading is good to some 100 KiB.
    assert 199 * MIB <= int(grown) < 230 * MIB
    assert int(later) < 20 * MIB


def test_host_readings_name_scope_device_phase_and_leave_pass_id_to_the_worker() -> None:
    meter = host_meter()
    meter.begin("measure")
    readings = meter.end("measure")
    assert [each.statistic for each in readings] == ["start", "peak", "end"]
    assert {(each.device_id, each.memory_scope, each.phase, each.pass_id) for each in readings} == {
        ("cpu", "host", "measure", "")
    }
    start, peak, end = (each.value_bytes or 0 for each in readings)
    assert peak >= max(start, end) > 10 * MIB


def test_host_peak_is_sampled_and_says_so_where_the_kernel_peak_cannot_be_reset(tmp_path: Path) -> None:
    meter = HostMeter(proc=tmp_path / "absent", interval_s=0.005)
    meter.begin("load")
    block = bytearray(64 * MIB)
    block[::4096] = b"x" * len(block[::4096])
    time.sleep(0.1)
    del block
    start, peak, end = meter.end("load")
    assert peak.counter_method == "sampled"
    assert peak.sample_interval_ns == 5_000_000
    assert (peak.value_bytes or 0) - (start.value_bytes or 0) > 50 * MIB
    assert start.counter_method == end.counter_method == "counter"


def test_cuda_peaks_belong_to_their_phase_and_scopes_stay_apart() -> None:
    cuda = FakeCuda()
    meter = CudaMeter(1, counters=lambda: cuda, driver=FakeDriver(cuda))
    meter.begin("load")
    cuda.allocate(400 * MIB)
    cuda.free(300 * MIB)
    load = by_key(meter.end("load"))
    meter.begin("measure")
    cuda.allocate(10 * MIB)
    cuda.free(10 * MIB)
    measured = meter.end("measure")
    measure = by_key(measured)
    assert load["allocated", "peak"] == 400 * MIB
    assert load["allocated", "end"] == measure["allocated", "start"] == 100 * MIB
    assert measure["allocated", "peak"] == 110 * MIB
    assert measure["reserved", "peak"] == 402 * MIB
    assert measure["process", "peak"] == 702 * MIB
    assert measure["device", "peak"] == 752 * MIB
    assert {each.device_id for each in measured} == {"cuda:1"}
    sampled = {each.memory_scope for each in measured if each.counter_method == "sampled"}
    assert sampled == {"process", "device"}


def test_cuda_counters_are_read_after_a_synchronize_at_both_boundaries() -> None:
    cuda = FakeCuda()
    meter = CudaMeter(0, counters=lambda: cuda, driver=FakeDriver(cuda))
    meter.begin("measure")
    assert cuda.calls[:3] == ["synchronize 0", "reset 0", "allocated 0"]
    cuda.calls.clear()
    meter.end("measure")
    assert cuda.calls[:2] == ["synchronize 0", "allocated 0"]


def test_before_cuda_starts_allocated_is_zero_and_the_card_is_asked_without_a_number_of_ours() -> None:
    cuda = FakeCuda()
    started: list[FakeCuda] = []
    driver = FakeDriver(cuda)
    meter = CudaMeter(0, counters=lambda: started[0] if started else None, driver=driver)
    meter.begin("load")
    assert driver.asked == {None}
    started.append(cuda)
    cuda.allocate(100 * MIB)
    load = by_key(meter.end("load"))
    assert (load["allocated", "start"], load["process", "start"]) == (0, 0)
    assert load["allocated", "peak"] == 100 * MIB
    assert "card-0" in driver.asked


def test_a_driver_that_hides_processes_gives_nulls_with_the_reason_never_zero() -> None:
    cuda = FakeCuda()
    started: list[FakeCuda] = []
    meter = CudaMeter(
        0, counters=lambda: started[0] if started else None, driver=FakeDriver(cuda, refusal="not_permitted")
    )
    meter.begin("load")
    started.append(cuda)
    cuda.allocate(100 * MIB)
    readings = {(each.memory_scope, each.statistic): each for each in meter.end("load")}
    for statistic in ("peak", "end"):
        assert readings["process", statistic].value_bytes is None
        assert readings["process", statistic].missing == {"value_bytes": "not_permitted"}
    assert readings["device", "end"].value_bytes == 402 * MIB, "torch still knows free and total of the card"


def test_without_a_driver_every_reading_of_it_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert NvmlDriver().read("GPU-1", 1) == ("unsupported", "unsupported")


class FakeNvml:
    """Two cards whose order by the driver is the reverse of CUDA's."""

    class NVMLError(Exception): ...

    class NVMLError_NotSupported(NVMLError): ...  # noqa: N801

    class NVMLError_NoPermission(NVMLError): ...  # noqa: N801

    used = {"GPU-bbb": 7 * MIB, "GPU-aaa": 900 * MIB}

    def nvmlInit(self) -> None: ...  # noqa: N802

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return uuid

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:  # noqa: N802
        return [SimpleNamespace(pid=42, usedGpuMemory=self.used[handle]), SimpleNamespace(pid=43, usedGpuMemory=None)]

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:  # noqa: N802
        reserve = 600 * MIB
        return SimpleNamespace(total=8000 * MIB, free=8000 * MIB - reserve - self.used[handle], used=self.used[handle])


def test_b05_the_card_is_found_by_its_uuid_not_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    driver = NvmlDriver()
    assert driver.read("aaa", 42) == (900 * MIB, 1500 * MIB)
    assert driver.read("GPU-bbb", 42) == (7 * MIB, 607 * MIB)
    assert driver.read(None, 42) == ("not_measured", "not_measured"), "two cards, and CUDA not started: unknown"
    assert driver.read("aaa", 43).process == "unsupported"
    assert driver.read("aaa", 1).process == "not_permitted"


def test_a_cuda_meter_reads_host_and_card_without_importing_torch() -> None:
    script = """
        import sys
        from collector.memory import meter_for
        meter = meter_for("cuda:0")
        meter.begin("load")
        readings = meter.end("load")
        print(sorted({(r.device_id, r.memory_scope) for r in readings}), "torch" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True, timeout=60
    )
    assert (
        done.stdout.strip()
        == str(
            [
                ("cpu", "host"),
                ("cuda:0", "allocated"),
                ("cuda:0", "device"),
                ("cuda:0", "process"),
                ("cuda:0", "reserved"),
            ]
        )
        + " False"
    )


@pytest.mark.gpu
def test_a_real_card_reads_allocated_within_reserved_within_the_card() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    torch.zeros(1, device="cuda:0")
    meter = meter_for("cuda:0")
    meter.begin("measure")
    block = torch.ones(64 * MIB, dtype=torch.uint8, device="cuda:0")
    del block
    read = by_key(meter.end("measure"))
    allocated, reserved, device = (read[scope, "peak"] or 0 for scope in ("allocated", "reserved", "device"))
    assert 64 * MIB <= allocated <= reserved <= device
    meter.begin("measure")
    again = by_key(meter.end("measure"))
    assert (again["allocated", "peak"] or 0) < 64 * MIB
