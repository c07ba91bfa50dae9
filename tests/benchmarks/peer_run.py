"""Put one tool under one load against a fresh replay server, and hold its values against the server's log.

CPU: user and system seconds of the tool and all it started, from the first stream's arrival at the server to the end of
the last of them, so that importing its libraries is left out and what it does after the last stream is not. Added time
to first token: the tool's value less the time from the request's last byte read by the server to the first content
handed to the socket, stream by stream where the tool keeps the number, else sorted against sorted.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from peer_clients import HERE, Cell, Outcome, Tool
from replay_server import BUSY_LIMIT, ReplayServer, ServerLog, Timetable, compile_server

TOOL_CORE, SERVER_CORE = 0, 1
FEW_STREAMS = 2
FEW_RUNS = {1: 3, 16: 3}
"""By concurrency: ending a tool's processes costs a second, now more, now less, which few streams would drown in."""
TIMED = Timetable()
UNTIMED = Timetable(first_ms=0.0, gap_ms=0.0)
GROWS = 1.05
"""A rate that is not this much above the last level's has stopped growing."""
SATURATION_S = 8.0
MOST_UNTIMED = 20_000
_LIMIT_S = 240.0


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one tool. added_ms: what it adds to the time to first token, stream by stream, ascending.

    serving_cpu_s: from the first stream's arrival at the server to the tool's end; cpu_s: from the tool's start.
    """

    concurrency: int
    asked: int
    exit_code: int
    cpu_s: float
    serving_cpu_s: float
    wall_s: float
    finished: int = 0
    failed: int = 0
    added_ms: list[float] = []
    is_matched: bool = False
    mean_in_progress: float = 0.0
    most_in_progress: int = 0
    streams_per_s: float = 0.0
    server_share: float = 0.0
    others_share: float = 0.0
    """CPU others took meanwhile, as a share of the two cores."""
    words: str = ""
    """The last that the tool printed, where it failed."""

    @property
    def lost(self) -> int:
        return self.asked - self.finished

    @property
    def is_valid(self) -> bool:
        """True where the tool ran through and the server had time to spare."""
        return self.exit_code == 0 and self.server_share <= BUSY_LIMIT and self.finished > 0


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one tool. few: a run of few streams at each concurrency; its cost is what starting the tool costs."""

    name: str
    version: str
    python: str
    command: str
    note: str
    few: list[CellResult]
    timed: list[CellResult]
    untimed: list[CellResult]

    def fixed(self, cell: CellResult) -> CellResult | None:
        """Return the run of few streams at the cell's concurrency; of several that of median cost."""
        few = [each for each in self.few if each.concurrency == cell.concurrency and not each.exit_code]
        return sorted(few, key=lambda each: each.serving_cpu_s)[len(few) // 2] if few else None

    def cpu_s_per_1000(self, cell: CellResult) -> float | None:
        """Return serving CPU seconds per 1,000 streams beyond those of the run of few.

        Null where either run failed, and where the difference drowned in what else the two runs differ by.
        """
        few = self.fixed(cell)
        if few is None or cell.exit_code or cell.finished <= few.finished:
            return None
        beyond_s = cell.serving_cpu_s - few.serving_cpu_s
        return beyond_s * 1000 / (cell.finished - few.finished) if beyond_s > 0 else None

    def sustained_per_s(self, cell: CellResult) -> float:
        """Return the rate the tool can keep up: by the server's log, or by its CPU time where it puts work off."""
        cpu_s_per_1000 = self.cpu_s_per_1000(cell)
        return min(cell.streams_per_s, 1000 / cpu_s_per_1000) if cpu_s_per_1000 else 0.0

    def saturation(self) -> CellResult | None:
        """Return the run without waits that reached the highest rate."""
        return max(
            (cell for cell in self.untimed if self.sustained_per_s(cell)), key=self.sustained_per_s, default=None
        )


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """A whole comparison, as stored."""

    machine: str
    commit: str
    chunks: int
    first_ms: float
    gap_ms: float
    tools: list[ToolResult]
    profile: list[str] = []
    """Where our own client's time went, where it missed the goal."""


def added_ms(outcome: Outcome, log: ServerLog) -> tuple[list[float], bool]:
    """Return what the tool adds to each stream's time to first token, ascending, and whether streams were matched."""
    waited = {
        each.number: each.first_content_after_ns for each in log.served if each.first_content_after_ns is not None
    }
    labels = {each.label: each.number for each in log.served if each.label is not None}
    numbers = [each.number if each.number is not None else labels.get(each.label) for each in outcome.finished]
    if numbers and all(number in waited for number in numbers) and len(set(numbers)) == len(numbers):
        pairs = [(each.first_token_s, waited[number]) for each, number in zip(outcome.finished, numbers, strict=True)
                 if number is not None]  # fmt: skip
        return sorted(1e3 * told - ns / 1e6 for told, ns in pairs), True
    told = sorted(each.first_token_s for each in outcome.finished)
    kept = sorted(list(waited.values())[-len(told) :])  # what a tool sends to try the server comes first
    return sorted(1e3 * value - ns / 1e6 for value, ns in zip(told, kept, strict=False)), False


def serving_cpu_s(cost: dict[str, Any], log: ServerLog) -> float:
    """Return the CPU seconds from the first stream's arrival to the tool's end; what came before is its start."""
    first_ns = min((each.last_byte_ns for each in log.served), default=0)
    before = [cpu_s for stamp_ns, cpu_s in cost["curve"] if stamp_ns <= first_ns]
    return float(cost["cpu_s"]) - (before[-1] if before else 0.0)


class Bench:
    """Where the tools are and where they may write; `results` runs them."""

    def __init__(self, *, folder: Path, environments: Path | None, tokenizer: Path, say: Callable[[str], None]) -> None:
        self._folder, self._environments, self._tokenizer, self._say = folder, environments, tokenizer, say
        self._program = compile_server(folder)
        self._runs = 0

    def results(
        self, tools: Sequence[Tool], loads: dict[int, int], growing: Sequence[int], untimed: int
    ) -> Iterator[Results]:
        """Run each tool through each load, and without waits until its rate stops growing; yield after each tool."""
        results = Results(
            machine=machine(), commit=commit(), chunks=TIMED.chunks, first_ms=TIMED.first_ms, gap_ms=TIMED.gap_ms,
            tools=[],
        )  # fmt: skip
        for tool in tools:
            measured = self._tool(tool, loads, growing, untimed)
            results = msgspec.structs.replace(results, tools=[*results.tools, measured])
            yield results

    def profile(self, tool: Tool, *, streams: int, concurrency: int) -> list[str]:
        """Return lines that say in which functions the tool's processes spent their time, by cProfile."""
        folders = []
        for asked in (concurrency, streams):
            folder = self._folder / f"profile-{asked}"
            folder.mkdir()
            variables = {"PYTHONPATH": str(HERE / "peers/profiling"), "PROFILE_FOLDER": str(folder)}
            self.run(tool, TIMED, concurrency=concurrency, streams=asked, variables=variables)
            folders.append(str(folder))
        command = [sys.executable, str(HERE / "peers/profiling/summary.py"), *folders]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    def run(
        self, tool: Tool, table: Timetable, *, concurrency: int, streams: int, variables: dict[str, str] | None = None
    ) -> CellResult:
        """Run the tool once against a fresh server."""
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        folder.mkdir()
        out, cost_path, words_path = folder / "out", folder / "cost.json", folder / "words.txt"
        out.mkdir()
        streams = max(1, streams // concurrency) * concurrency
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **tool.variables}
        given = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
        began, busy_before = time.monotonic(), busy_s()
        with (
            ReplayServer(self._program, table, folder=folder, core=SERVER_CORE) as server,
            words_path.open("wb") as words,
        ):
            cell = Cell(server.url, concurrency, streams, table.chunks, self._tokenizer, out)
            asked = tool.command(self._environment(tool), cell)
            measured = [sys.executable, str(HERE / "process_tree.py"), str(cost_path), "--core", str(TOOL_CORE),
                        "--limit-s", str(_LIMIT_S), "--", *given, *asked]  # fmt: skip
            subprocess.run(measured, check=False, env=environment, stdout=words, stderr=words, cwd=out)
            log = server.stop()
        cost = json.loads(cost_path.read_text("utf-8"))
        server_cpu_s = log.cpu[-1][1] / 1e9 if log.cpu else 0.0
        elapsed_s = time.monotonic() - began
        others = (busy_s() - busy_before - cost["cpu_s"] - server_cpu_s) / (elapsed_s * len(os.sched_getaffinity(0)))
        result = self._judged(tool, cell, cost, log, max(0.0, others), words_path)
        self._say(
            f"{tool.name} c={concurrency} {'timed' if table.gap_ms else 'untimed'}: {result.finished} of {streams}, "
            f"{cost['cpu_s']:.1f} s CPU, {cost['wall_s']:.0f} s, server {result.server_share:.0%}"
            + (f", FAILED ({result.exit_code}): {result.words[-300:]}" if result.exit_code else "")
        )
        return result

    def _judged(
        self, tool: Tool, cell: Cell, cost: dict[str, Any], log: ServerLog, others: float, words_path: Path
    ) -> CellResult:
        exit_code, words = int(cost["exit_code"]), ""
        outcome = Outcome([], 0)
        try:
            outcome = tool.read(cell)
        except (OSError, LookupError, ValueError, TypeError) as error:
            exit_code, words = exit_code or 1, f"{error!r}; "
        if exit_code:
            words += words_path.read_text("utf-8", "replace")[-1500:]
        added, is_matched = added_ms(outcome, log)
        return CellResult(
            concurrency=cell.concurrency, asked=cell.streams, exit_code=exit_code, cpu_s=cost["cpu_s"],
            serving_cpu_s=serving_cpu_s(cost, log), wall_s=cost["wall_s"], finished=len(outcome.finished),
            failed=outcome.failed, added_ms=added,
            is_matched=is_matched, mean_in_progress=log.mean_in_progress(), most_in_progress=log.most_in_progress(),
            streams_per_s=log.streams_per_s(), server_share=log.busiest_share(), others_share=others, words=words,
        )  # fmt: skip

    def _tool(self, tool: Tool, loads: dict[int, int], growing: Sequence[int], untimed: int) -> ToolResult:
        few = [
            self.run(tool, TIMED, concurrency=level, streams=max(FEW_STREAMS, level))
            for level in loads for _ in range(FEW_RUNS.get(level, 1))
        ]  # fmt: skip
        does_run = any(not cell.exit_code for cell in few)
        timed = [
            self.run(tool, TIMED, concurrency=level, streams=streams) for level, streams in loads.items() if does_run
        ]
        shell = ToolResult(name=tool.name, version="", python="", note="", command="", few=few, timed=timed, untimed=[])
        costs = [cost for cell in timed if (cost := shell.cpu_s_per_1000(cell))]
        enough = round(SATURATION_S * 1000 / min(costs)) if costs else 0
        saturating: list[CellResult] = []
        for level in growing if does_run else ():
            cell = self.run(tool, UNTIMED, concurrency=level, streams=min(max(untimed, enough), MOST_UNTIMED))
            saturating.append(cell)
            if len(saturating) > 1 and cell.streams_per_s < GROWS * saturating[-2].streams_per_s:
                break
        environment = self._environment(tool)
        version, python = versions(environment, tool.package)
        return ToolResult(
            name=tool.name, version=version, python=python, note=tool.note, few=few, timed=timed, untimed=saturating,
            command=shown(tool),
        )  # fmt: skip

    def _environment(self, tool: Tool) -> Path:
        if tool.folder is None:
            return Path(sys.prefix)
        assert self._environments is not None
        return (self._environments / tool.folder).absolute()


def shown(tool: Tool) -> str:
    """Return the tool's command for one load, with names in place of this machine's paths."""
    with tempfile.TemporaryDirectory() as folder:
        place = Cell("http://127.0.0.1:PORT", 64, 1280, TIMED.chunks, Path("MODEL"), Path(folder))
        words = tool.command(Path("ENVIRONMENT"), place)
        return shlex.join(words).replace(folder, "OUT").replace(str(HERE.parent.parent) + "/", "")


def versions(environment: Path, package: str) -> tuple[str, str]:
    """Return the package's version in that environment, and the version of its Python."""
    code = f"import platform, importlib.metadata as m; print(m.version({package!r}), platform.python_version())"
    command = [str(environment / "bin/python"), "-c", code]
    version, python = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return version, python


def busy_s() -> float:
    """Return the CPU seconds that all processes of this machine have taken since it started."""
    user, nice, system, _idle, _wait, irq, softirq, *_ = (int(part) for part in _stat_line().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _stat_line() -> str:
    with Path("/proc/stat").open(encoding="ascii") as stat:
        return stat.readline()


def machine() -> str:
    """Return the processor, its cores and the kernel in a line."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


def commit() -> str:
    """Return this checkout's commit, with a mark where files of it differ."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip() or "unknown"
