"""The one module that asks NVIDIA's libraries: what a card is, and its counters. No call may abort a measurement.

A card is found by the UUID that the CUDA driver gives for an ordinal, since NVML counts all cards in another order and
knows nothing of CUDA_VISIBLE_DEVICES. Asking the driver creates no context and takes no device memory.
"""

from __future__ import annotations

import ctypes
import os
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from collector.contract.records.base import MissingReason
from collector.memory_readings import Value

Answer = TypeVar("Answer")

_POLICIES = {
    "power_cap": "NVML_PERF_POLICY_POWER", "thermal": "NVML_PERF_POLICY_THERMAL",
    "sync_boost": "NVML_PERF_POLICY_SYNC_BOOST", "board_limit": "NVML_PERF_POLICY_BOARD_LIMIT",
    "reliability": "NVML_PERF_POLICY_RELIABILITY",
}  # fmt: skip


class DriverFacts(NamedTuple):
    """What the CUDA driver says of one ordinal."""

    device_uuid: str
    device_name: str
    device_memory_bytes: int
    compute_capability: str


class CardFacts(NamedTuple):
    """What NVML says of one card before a run; null where the call is not possible here."""

    power_limit_mw: int | None
    has_ecc: bool | None
    pcie_generation: int | None
    pcie_width: int | None
    mig_profile: str | None
    driver_version: str | None
    cuda_version: str | None


class Counters(NamedTuple):
    """One reading of a card's counters; deltas are taken between two."""

    throttle_ns: dict[str, int]
    energy_mj: int | None
    clock_sm_mhz: int | None
    clock_memory_mhz: int | None
    temperature_c: int | None


class CardProcess(NamedTuple):
    """A process with memory on the card."""

    pid: int
    used_bytes: int | None


def driver_facts(ordinal: int, library: Any = None) -> DriverFacts | None:
    """Return what the CUDA driver says of an ordinal, or null where there is no driver or no such card."""
    try:
        cuda = library if library is not None else ctypes.CDLL("libcuda.so.1")
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        raw_uuid, name, memory = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(128), ctypes.c_size_t()
        uuid_of = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
        for status in (
            cuda.cuInit(0),
            cuda.cuDeviceGet(ctypes.byref(device), ordinal),
            uuid_of(ctypes.byref(raw_uuid), device),
            cuda.cuDeviceGetName(name, 128, device),
            cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device),
            cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device),
            cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device),
        ):
            if status != 0:
                return None
    except (OSError, AttributeError):
        return None
    text = name.value.decode("utf-8", "replace")
    prefix = "MIG-" if "MIG" in text else "GPU-"
    return DriverFacts(
        prefix + str(uuid.UUID(bytes=bytes(raw_uuid))), text, memory.value, f"{major.value}.{minor.value}"
    )


class DriverReading(NamedTuple):
    """What the driver says of one card at one moment."""

    process: Value
    device: Value


class NvmlDriver:
    """A card's memory in use, of one process and of everybody; every refusal becomes a reason."""

    def __init__(self) -> None:
        self._nvml: Any = None

    def read(self, uuid: str | None, pid: int) -> DriverReading:
        return self.read_tree(uuid, [pid])

    def read_tree(self, uuid: str | None, pids: Iterable[int]) -> DriverReading:
        """Return the bytes in use on the card by these processes together, and by everybody."""
        nvml = self._started()
        if nvml is None:
            return DriverReading("unsupported", "unsupported")
        try:
            if uuid is None and nvml.nvmlDeviceGetCount() != 1:
                return DriverReading("not_measured", "not_measured")
            handle = nvml.nvmlDeviceGetHandleByUUID(_nvml_uuid(uuid)) if uuid else nvml.nvmlDeviceGetHandleByIndex(0)
        except nvml.NVMLError as fault:
            reason = _reason(nvml, fault)
            return DriverReading(reason, reason)
        return DriverReading(self._processes(nvml, handle, set(pids)), self._device(nvml, handle))

    def _started(self) -> Any:
        """Return pynvml, started once and left running: starting it anew for each sample would cost milliseconds."""
        if self._nvml is None:
            try:
                nvml = import_module("pynvml")
                nvml.nvmlInit()
            except Exception:  # absent package, absent library, no driver: all mean that nobody can be asked
                return None
            self._nvml = nvml
        return self._nvml

    def _processes(self, nvml: Any, handle: Any, pids: set[int]) -> Value:
        try:
            listed = {each.pid: each.usedGpuMemory for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
        except nvml.NVMLError as fault:
            return _reason(nvml, fault)
        found = [used for pid, used in listed.items() if pid in pids]
        if not found:
            # Inside a container the driver lists the host's process numbers, which are not ours.
            return "not_permitted"
        return "unsupported" if None in found else sum(int(used) for used in found)

    def _device(self, nvml: Any, handle: Any) -> Value:
        try:
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        except nvml.NVMLError as fault:
            return _reason(nvml, fault)
        # Not `.used`: whether that holds the driver's own reserve depends on the call's version; free and total do not.
        return int(memory.total) - int(memory.free)


class Nvml:
    """NVML with every call wrapped: a value, or null and one line in `unchecked`."""

    def __init__(self, module: Any = None) -> None:
        self.unchecked: list[str] = []
        self._nvml: Any = None
        try:
            self._nvml = module if module is not None else import_module("pynvml")
            self._nvml.nvmlInit()
        except ImportError:
            self.unchecked.append("nvml: nvidia-ml-py is not installed (pip install nvidia-ml-py)")
            self._nvml = None
        except Exception as fault:  # NVML's own errors, and whatever a broken driver raises
            self.unchecked.append(f"nvml: {type(fault).__name__}")
            self._nvml = None

    @property
    def is_available(self) -> bool:
        """Whether NVML answers at all."""
        return self._nvml is not None

    def card(self, device_uuid: str) -> Any:
        """Return the handle of the card with this UUID, or null."""
        return self._ask("card by UUID", lambda nvml: nvml.nvmlDeviceGetHandleByUUID(device_uuid))

    def facts(self, handle: Any) -> CardFacts:
        """Return what does not change during a run."""
        name = self._ask("name", lambda nvml: _text(nvml.nvmlDeviceGetName(handle)))
        cuda = self._ask("cuda version", lambda nvml: int(nvml.nvmlSystemGetCudaDriverVersion_v2()))
        return CardFacts(
            power_limit_mw=self._ask("power limit", lambda nvml: int(nvml.nvmlDeviceGetEnforcedPowerLimit(handle))),
            has_ecc=self._ask("ecc", lambda nvml: bool(nvml.nvmlDeviceGetEccMode(handle)[0])),
            pcie_generation=self._ask("pcie", lambda nvml: int(nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle))),
            pcie_width=self._ask("pcie width", lambda nvml: int(nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))),
            mig_profile=name.split("MIG ", 1)[1] if name and "MIG " in name else None,
            driver_version=self._ask("driver", lambda nvml: _text(nvml.nvmlSystemGetDriverVersion())),
            cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        )

    def counters(self, handle: Any) -> Counters:
        """Return the card's counters now."""
        throttle: dict[str, int] = {}
        for policy, constant in _POLICIES.items():
            spent = self._ask(f"throttling {policy}", partial(_violation_ns, handle, constant))
            if spent is not None:
                throttle[policy] = spent
        return Counters(
            throttle_ns=throttle,
            energy_mj=self._ask("energy", lambda nvml: int(nvml.nvmlDeviceGetTotalEnergyConsumption(handle))),
            clock_sm_mhz=self._ask("sm clock", lambda nvml: int(nvml.nvmlDeviceGetClockInfo(handle, 1))),
            clock_memory_mhz=self._ask("memory clock", lambda nvml: int(nvml.nvmlDeviceGetClockInfo(handle, 2))),
            temperature_c=self._ask("temperature", lambda nvml: int(nvml.nvmlDeviceGetTemperature(handle, 0))),
        )

    def processes(self, handle: Any) -> list[CardProcess] | None:
        """Return who has memory on the card, or null where the list cannot be had.

        In a container the process ids are the host's: ours is among them under a number that we do not know.
        """
        compute = self._ask("processes", lambda nvml: list(nvml.nvmlDeviceGetComputeRunningProcesses(handle)))
        graphics = self._ask(
            "graphics processes", lambda nvml: list(nvml.nvmlDeviceGetGraphicsRunningProcesses(handle))
        )
        if compute is None and graphics is None:
            return None
        found = {int(entry.pid): entry for entry in [*(compute or []), *(graphics or [])]}
        return [
            CardProcess(pid, None if entry.usedGpuMemory is None else int(entry.usedGpuMemory))
            for pid, entry in sorted(found.items())
        ]

    def _ask(self, what: str, call: Callable[[Any], Answer]) -> Answer | None:
        if self._nvml is None:
            return None
        try:
            return call(self._nvml)
        except Exception as fault:  # any NVMLError, an absent function, a string that does not decode
            note = f"nvml {what}: {type(fault).__name__}"
            if note not in self.unchecked:
                self.unchecked.append(note)
            return None


def visible_ordinal(device: str) -> int:
    """Return the CUDA ordinal of `cuda` or `cuda:1`."""
    return int(device.partition(":")[2] or 0)


def has_cuda() -> bool:
    """Return whether a CUDA driver shows a first card to this process."""
    hides_all = os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1", "NoDevFiles")
    return not hides_all and driver_facts(0) is not None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _violation_ns(handle: Any, constant: str, nvml: Any) -> int:
    return int(nvml.nvmlDeviceGetViolationStatus(handle, getattr(nvml, constant)).violationTime)


def _reason(nvml: Any, fault: Exception) -> MissingReason:
    if isinstance(fault, nvml.NVMLError_NotSupported):
        return "unsupported"
    if isinstance(fault, nvml.NVMLError_NoPermission):
        return "not_permitted"
    return "failed"


def _nvml_uuid(uuid: str) -> str:
    """Return the card's name as NVML spells it; torch leaves the prefix out."""
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
