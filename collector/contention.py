"""Who else uses the machine: told to the user before a run, recorded for each phase of a pass.

A window runs from one phase's beginning to its end as the parent hears of them, a few milliseconds after the worker's
own stamps; counters are read in the parent, so that no reading stands inside the worker's timed section. Others are all
but the collector and the pass's own processes: worker, load generator and server, also one that was there, if it can be
seen; where it cannot, its time and its place on a card are in no number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from collector import host, nvidia
from collector.clock import Clock
from collector.contract.records import Device, Telemetry
from collector.contract.records.base import MissingReason, Phase
from collector.missing import explained
from collector.own_processes import OwnProcess, own_processes, server_pids, spent_between

BUSY_SHARE = 0.15
"""Others using more than this share of the usable processors make a machine busy."""
SAMPLE_S = 0.6
_SHORTEST_WINDOW_NS = 500_000_000
"""Processor times come in hundredths of a second; shorter windows would only show their steps."""


class BusyReport(NamedTuple):
    """What was found before a run. `summary` names nobody; `culprits` are for the user's eyes only."""

    is_busy: bool
    summary: str
    culprits: list[str]


class Monitor(Protocol):
    """Watches one phase at a time."""

    def begin(self, phase: Phase, worker_pid: int | None, server_ports: Sequence[int] = ()) -> None:
        """Start the window of a phase. server_ports: of servers on this machine that it asks and did not start."""
        ...

    def end(self, pass_id: str) -> list[Telemetry]:
        """Return one record per watched device for the window; none when no window is open."""
        ...


def look_around(
    devices: list[Device], nvml: nvidia.Nvml | None = None, *, server_ports: Sequence[int] = (),
    sample_s: float = SAMPLE_S,
) -> BusyReport:  # fmt: skip
    """Return who uses processors and cards now, sampled over `sample_s` seconds.

    server_ports: of the servers to be asked that run here already; they are no strangers to be stopped. Where one
    cannot be seen, who uses a card is left out, for that may be the server.
    """
    psutil = _psutil()
    servers = server_pids(psutil, server_ports) if server_ports and psutil else set[int]()
    shares = _process_shares(psutil, sample_s) if psutil else {}
    shares = {who: share for who, share in shares.items() if servers is None or who[0] not in servers}
    usable = host.usable_cpu_count(host.Files())
    others = sum(shares.values()) / usable
    findings: list[str] = []
    culprits: list[str] = []
    if others > BUSY_SHARE:
        findings.append(f"other processes use {others:.0%} of the {usable} usable processors")
        top = sorted(shares.items(), key=lambda entry: -entry[1])[:5]
        culprits += [
            f"{name} (process {pid}, {share:.0%} of one processor)" for (pid, name), share in top if share > 0.02
        ]
    for device in devices:
        foreign = [] if servers is None else [entry for entry in _on_card(device, nvml) if entry.pid not in servers]
        if foreign:
            findings.append(f"{len(foreign)} other processes use {device.device_id}")
            culprits += [f"process {entry.pid} on {device.device_id}" for entry in foreign]
    return BusyReport(bool(findings), "; ".join(findings), culprits)


class _Window(NamedTuple):
    phase: Phase
    began_ns: int
    busy_s: float | None
    total_s: float | None
    collector_s: float
    own: dict[int, OwnProcess] | None
    throttled_ns: int | None
    counters: dict[str, nvidia.Counters]


class DeviceMonitor:
    """Counter deltas of the host's processors and of each card of the run."""

    def __init__(self, devices: list[Device], clock: Clock, nvml: nvidia.Nvml | None = None) -> None:
        self._clock = clock
        self._nvml = nvml
        self._cards = {
            device.device_id: handle
            for device in devices
            if nvml is not None and device.device_uuid and (handle := nvml.card(device.device_uuid)) is not None
        }
        self._files = host.Files()
        self._window: _Window | None = None
        self._worker_pid: int | None = None
        self._server_ports: Sequence[int] = ()

    def begin(self, phase: Phase, worker_pid: int | None, server_ports: Sequence[int] = ()) -> None:
        self._worker_pid = worker_pid
        self._server_ports = server_ports
        self._window = self._read(phase)

    def end(self, pass_id: str) -> list[Telemetry]:
        if self._window is None:
            return []
        before, self._window = self._window, None
        after = self._read(before.phase)
        return [
            self._host(pass_id, before, after),
            *(self._card(pass_id, name, before, after) for name in self._cards),
        ]

    def _read(self, phase: Phase) -> _Window:
        busy_s, total_s = _processor_seconds()
        counters = {name: self._nvml.counters(card) for name, card in self._cards.items()} if self._nvml else {}
        return _Window(
            phase=phase,
            began_ns=self._clock.monotonic_ns(),
            busy_s=busy_s,
            total_s=total_s,
            collector_s=time.process_time(),
            own=self._own(),
            throttled_ns=host.throttled_ns(self._files),
            counters=counters,
        )

    def _own(self) -> dict[int, OwnProcess] | None:
        if self._worker_pid is None or self._worker_pid == os.getpid():
            return {}
        psutil = _psutil()
        if psutil is None:  # nor is there a time to be shared out
            return {self._worker_pid: OwnProcess(0, 0.0)}
        return own_processes(psutil, self._worker_pid, self._server_ports)

    def _strangers(
        self, processes: list[nvidia.CardProcess] | None, before: _Window, after: _Window
    ) -> int | None:  # fmt: skip
        if processes is None or after.own is None:
            return None
        worker = () if self._worker_pid is None else (self._worker_pid,)
        return foreign_count(processes, {*worker, *(before.own or ()), *after.own})

    def _unseen(self, after: _Window) -> MissingReason:
        """Return why there is no number of others."""
        return "not_permitted" if self._server_ports and after.own is None else "unsupported"

    def _host(self, pass_id: str, before: _Window, after: _Window) -> Telemetry:
        window_ns = after.began_ns - before.began_ns
        throttle = {}
        if before.throttled_ns is not None and after.throttled_ns is not None:
            throttle["container_quota"] = max(0, after.throttled_ns - before.throttled_ns)
        share: float | None = None
        reason: MissingReason = "too_few_samples" if window_ns < _SHORTEST_WINDOW_NS else self._unseen(after)
        if window_ns >= _SHORTEST_WINDOW_NS:
            share = _others_share(before, after)
        record = Telemetry(
            pass_id=pass_id, phase=before.phase, device_id="cpu", window_ns=window_ns, throttle_ns=throttle,
            host_cpu_share=share,
        )  # fmt: skip
        return explained(
            record,
            {"host_cpu_share": reason, **dict.fromkeys(
                ("energy_mj", "power_mean_mw", "clock_sm_mhz", "clock_memory_mhz", "temperature_c",
                 "foreign_process_count"), "not_applicable")},
        )  # fmt: skip

    def _card(self, pass_id: str, name: str, before: _Window, after: _Window) -> Telemetry:
        first, last = before.counters[name], after.counters[name]
        window_ns = after.began_ns - before.began_ns
        energy_mj = (
            last.energy_mj - first.energy_mj if last.energy_mj is not None and first.energy_mj is not None else None
        )
        processes = self._nvml.processes(self._cards[name]) if self._nvml else None
        record = Telemetry(
            pass_id=pass_id, phase=before.phase, device_id=name, window_ns=window_ns,
            throttle_ns={
                policy: max(0, spent - first.throttle_ns[policy])
                for policy, spent in last.throttle_ns.items() if policy in first.throttle_ns
            },
            energy_mj=energy_mj,
            power_mean_mw=None if energy_mj is None or window_ns == 0 else energy_mj * 10**9 // window_ns,
            clock_sm_mhz=last.clock_sm_mhz, clock_memory_mhz=last.clock_memory_mhz,
            temperature_c=last.temperature_c,
            foreign_process_count=self._strangers(processes, before, after),
        )  # fmt: skip
        reasons: dict[str, MissingReason] = dict.fromkeys(
            ("energy_mj", "power_mean_mw", "clock_sm_mhz", "clock_memory_mhz", "temperature_c"), "unsupported"
        )
        return explained(
            record,
            {**reasons, "foreign_process_count": self._unseen(after), "host_cpu_share": "not_applicable"},
        )  # fmt: skip


def foreign_count(processes: list[nvidia.CardProcess], own_pids: Collection[int]) -> int:
    """Return how many processes on a card are not the pass's own.

    In a container the ids may be the host's: where none of the own ids is in the list, one unknown process is taken for
    the one that uses the card.
    """
    others = [entry for entry in processes if entry.pid not in own_pids]
    if len(others) == len(processes) and own_pids and others:
        return len(others) - 1
    return len(others)


def _others_share(before: _Window, after: _Window) -> float | None:
    if before.busy_s is None or before.total_s is None or before.own is None:
        return None
    if after.busy_s is None or after.total_s is None or after.own is None:
        return None
    total_s = after.total_s - before.total_s
    if total_s <= 0:
        return None
    others_s = (after.busy_s - before.busy_s) - (after.collector_s - before.collector_s)
    others_s -= spent_between(before.own, after.own)
    return min(1.0, max(0.0, others_s / total_s))


def _processor_seconds() -> tuple[float | None, float | None]:
    psutil = _psutil()
    if psutil is None:
        return None, None
    try:
        times = psutil.cpu_times()
    except (OSError, RuntimeError, ValueError):
        return None, None
    counted = {name: getattr(times, name) for name in times._fields if name not in ("guest", "guest_nice")}
    idle_s = counted.get("idle", 0.0) + counted.get("iowait", 0.0)
    total_s = sum(counted.values())
    return total_s - idle_s, total_s


def _process_shares(psutil: Any, sample_s: float) -> dict[tuple[int, str], float]:
    watched = []
    for process in psutil.process_iter(["name"]):
        if process.pid != os.getpid():
            try:
                watched.append((process, process.cpu_times()))
            except (psutil.Error, OSError):
                continue
    time.sleep(sample_s)
    shares: dict[tuple[int, str], float] = {}
    for process, before in watched:
        try:
            after = process.cpu_times()
        except (psutil.Error, OSError):
            continue
        used_s = after.user + after.system - before.user - before.system
        if used_s > 0:
            shares[process.pid, process.info["name"] or "?"] = used_s / sample_s
    return shares


def _on_card(device: Device, nvml: nvidia.Nvml | None) -> list[nvidia.CardProcess]:
    if nvml is None or not device.device_uuid or (handle := nvml.card(device.device_uuid)) is None:
        return []
    return nvml.processes(handle) or []


def _psutil() -> ModuleType | None:
    try:
        import psutil
    except ImportError:
        return None
    module: ModuleType = psutil
    return module
