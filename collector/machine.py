"""The machine as a run sees it: what it is, who is busy on it, and a monitor for each phase. Tests give another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from collector import contention, environment, nvidia
from collector.clock import Clock
from collector.contention import BusyReport, DeviceMonitor, Monitor
from collector.contract.records import Device
from collector.environment import Detected


class Machine(Protocol):
    """What the runner asks of a machine."""

    def detect(self, device: str, *, threads: int | None) -> Detected:
        """Return environment and devices of a run on this device."""
        ...

    def look_around(self, devices: list[Device], server_ports: Sequence[int] = ()) -> BusyReport:
        """Return who else is busy here now. server_ports: of servers to be asked that run here already."""
        ...

    def monitor(self, devices: list[Device], clock: Clock) -> Monitor:
        """Return what watches the phases."""
        ...


class ThisMachine:
    """The machine that the collector runs on. NVML is opened only for a run on a card."""

    def __init__(self) -> None:
        self._nvml: nvidia.Nvml | None = None

    def detect(self, device: str, *, threads: int | None) -> Detected:
        if device.startswith("cuda"):
            self._nvml = nvidia.Nvml()
        return environment.detect(device, threads=threads, nvml=self._nvml)

    def look_around(self, devices: list[Device], server_ports: Sequence[int] = ()) -> BusyReport:
        return contention.look_around(devices, self._nvml, server_ports=server_ports)

    def monitor(self, devices: list[Device], clock: Clock) -> Monitor:
        return DeviceMonitor(devices, clock, self._nvml)
