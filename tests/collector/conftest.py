"""Fixtures of the collector's tests: a scripted trial on disk, a quiet machine, and a reader of run files."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from collector.clock import Clock, FakeClock, SystemClock
from collector.contention import BusyReport
from collector.contract import chain
from collector.contract.records import Device, Environment, Reading, Record, Telemetry
from collector.contract.records.base import Phase
from collector.engines.base import EngineSetup
from collector.environment import Detected
from collector.freeze import FrozenProtocol, freeze, read_frozen
from collector.machine import ThisMachine
from collector.processes import ProcessWorkerFactory
from collector.run_options import RunOptions, RunReport
from collector.runner import Run
from collector.watcher import Ending
from collector.workers import WorkerFactory

PROTOCOL = """format = 1
name = "scripted trial"

[task]
kind = "extraction"
prompt = "Give date and amount: {{document}}"
[[task.field]]
name = "date"
type = "date"
[[task.field]]
name = "amount"
type = "money"

[workload]
documents = "documents.jsonl"
permission = "written for this test"
review = "by its author"

[generation]
max_new_tokens = 16

[gates]
max_lost_points = "50"

[limits]
{limits}

[model]
id = "{model}"

[engine]
name = "scripted"
script = "script.json"

[[variant]]
name = "fp32"
[[variant]]
name = "bf16"
dtype = "bfloat16"

[plan]
reference = "fp32"
warmup_requests = {warmup}
"""


@pytest.fixture(autouse=True)
def small_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the heap of the test session out of the collections that a worker in this process makes."""
    gc.freeze()
    monkeypatch.setattr(gc, "unfreeze", lambda: None)


class SilentWatcher:
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.phases: list[str] = []

    def plan(self, *, passes: int, documents: int) -> None: ...

    def begin_pass(self, *, label: str, purpose: str, documents: int) -> None: ...

    def phase(self, phase: Phase) -> None:
        self.phases.append(phase)

    def answered(self, document_id: str, *, is_failed: bool = False) -> None: ...

    def end_pass(self, *, label: str, ending: Ending) -> None: ...

    def notice(self, message: str) -> None:
        self.notices.append(message)


class QuietMachine(ThisMachine):
    """This machine, taken to be idle: the tests of contention look for real."""

    def look_around(self, devices: list[Device], server_ports: Sequence[int] = ()) -> BusyReport:
        return BusyReport(False, "", [])


class FixedMachine:
    """A machine of fixed facts whose monitor writes one fixed record per phase."""

    def detect(self, device: str, *, threads: int | None) -> Detected:
        environment = Environment(
            environment_id="e" * 16, os_name="Test OS", os_version="1", kernel_version="1", machine_architecture="x",
            python_version="3", packages={},
        )  # fmt: skip
        return Detected(
            environment,
            [Device(environment_id="e" * 16, device_id=device, device_kind="cpu", device_name="Test CPU (1 core)")],
        )

    def look_around(self, devices: list[Device], server_ports: Sequence[int] = ()) -> BusyReport:
        return BusyReport(False, "", [])

    def monitor(self, devices: list[Device], clock: Clock) -> FixedMonitor:
        return FixedMonitor()


class FixedMonitor:
    def __init__(self) -> None:
        self._phase: Phase | None = None

    def begin(self, phase: Phase, worker_pid: int | None, server_ports: Sequence[int] = ()) -> None:
        self._phase = phase

    def end(self, pass_id: str) -> list[Telemetry]:
        phase, self._phase = self._phase, None
        return [Telemetry(pass_id=pass_id, phase=phase, device_id="cpu", window_ns=1)] if phase else []


class FixedMeter:
    """One reading per phase: its peak is the number of phases begun so far."""

    def __init__(self) -> None:
        self.open: Phase | None = None
        self.begun = 0

    def begin(self, phase: Phase) -> None:
        assert self.open is None, "phases do not nest"
        self.open, self.begun = phase, self.begun + 1

    def end(self, phase: Phase) -> list[Reading]:
        assert self.open == phase
        self.open = None
        return [
            Reading(
                pass_id="", phase=phase, device_id="cpu", memory_scope="host", statistic="peak",
                value_bytes=self.begun, counter_method="counter",
            )
        ]  # fmt: skip


class Trial:
    """A frozen scripted protocol in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        script: Mapping[str, Any],
        documents: int,
        limits: str = "",
        model: str = "scripted-model",
        warmup: int = 1,
        development: int = 1,
        edit: Callable[[str], str] = lambda text: text,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.protocol = folder, folder / "protocol.toml"
        lines = [
            {
                "id": f"d{index}", "role": "validation", "text": f"Bill {index} of 2026-03-{index % 28 + 1:02d}",
                "expected": {"date": f"2026-03-{index % 28 + 1:02d}", "amount": f"{index + 10}.50"},
            }
            for index in range(documents)
        ]  # fmt: skip
        lines += [
            {"id": f"dev{number or ''}", "role": "development", "text": f"Another bill{f' {number}' if number else ''}",
             "expected": {"date": None, "amount": None}}
            for number in range(development)
        ]  # fmt: skip
        (folder / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        whole = {"script_format": 1, "answers_from": "documents.jsonl", **script}
        (folder / "script.json").write_text(json.dumps(whole))
        self.protocol.write_text(edit(PROTOCOL.format(limits=limits, model=model, warmup=warmup)))
        freeze(self.protocol, campaign=None, clock=FakeClock())
        self.frozen: FrozenProtocol = read_frozen(self.protocol)
        self.out = folder / "runs"
        self.watcher = SilentWatcher()

    def run(
        self,
        options: RunOptions | None = None,
        *,
        clock: Clock | None = None,
        factory: WorkerFactory | None = None,
        machine: Any = None,
        out: Path | None = None,
        **keywords: Any,
    ) -> RunReport:
        return Run(
            self.frozen,
            options or RunOptions(device="cpu"),
            clock=clock or SystemClock(),
            factory=factory or ProcessWorkerFactory(),
            machine=machine or QuietMachine(),
            watcher=self.watcher,
            **keywords,
        ).run(out or self.out)

    def setup(self, label: str) -> EngineSetup:
        lock, protocol = self.frozen.lock, self.frozen.protocol
        variant = next(v for v in lock.plan.variants if v.name == label.split("/")[0].split("~")[0])
        return EngineSetup(
            base_dir=str(self.folder), model=protocol.model, engine=protocol.engine, variant=variant,
            generation=lock.trial.generation, limits=lock.trial.limits, device="cpu", pass_label=label,
        )  # fmt: skip


@pytest.fixture
def make_trial(tmp_path: Path) -> Callable[..., Trial]:
    """Build a scripted trial: `make_trial(script={...}, documents=4, limits='load_s = 2.0')`."""

    def make(script: Mapping[str, Any] | None = None, *, documents: int = 4, name: str = "trial", **more: Any) -> Trial:
        return Trial(tmp_path / name, script=script or {}, documents=documents, **more)

    return make


@pytest.fixture
def records_of() -> Callable[[Path], list[Record]]:
    """Read a run file's records, its chain verified."""

    def read(path: Path) -> list[Record]:
        records: list[Record] = []
        for line in chain.scan(path):
            assert line.record is not None, line
            assert not line.problems, line
            records.append(line.record)
        return records

    return read


@pytest.fixture
def fixed_machine() -> FixedMachine:
    return FixedMachine()


@pytest.fixture
def fixed_meter() -> Callable[[], FixedMeter]:
    return FixedMeter


def kinds(records: Sequence[Record]) -> list[str]:
    """Return the records' kinds in order."""
    return [str(type(record).__struct_config__.tag) for record in records]
