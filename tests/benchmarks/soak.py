"""Many streams at a time for minutes: is the client's memory flat after its first minute, and is no stream lost?

    python tests/benchmarks/soak.py [--minutes 10] [--concurrency 500]

Resident memory of the worker and of its load generator, each sampled once a second, from a minute after the first
stream reached the server (four tenths of the time in a shorter run) until the streams run out.

Flat: the straight line through the samples rises by at most 5 % of their median, or 2 MiB, over that time. The replay
server has core 1, the client core 0. Run it on an idle machine: what a starved worker has not read waits in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from peer_clients import OURS, Cell
from peer_run import busy_s
from replay_server import BUSY_LIMIT, ReplayServer, ServerLog, Timetable, compile_server

from collector.starter.demo_model import ensure

TABLE = Timetable(first_ms=100.0, gap_ms=50.0, chunks=64)
SETTLING_S = 60.0
RISE_SHARE, RISE_BYTES = 0.05, 2 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Sample(NamedTuple):
    """Resident bytes of one process at a moment of CLOCK_MONOTONIC, which the server's log has as well."""

    at_s: float
    resident_bytes: int


class Trend(NamedTuple):
    """The straight line through samples: what it rises by over their time, and their median."""

    rise_bytes: float
    median_bytes: float
    span_s: float

    @property
    def is_flat(self) -> bool:
        return self.rise_bytes <= max(RISE_SHARE * self.median_bytes, RISE_BYTES)


def trend(samples: Sequence[Sample], *, from_s: float, to_s: float) -> Trend | None:
    """Return the trend of the samples in that time; null of fewer than five."""
    kept = [sample for sample in samples if from_s <= sample.at_s <= to_s]
    if len(kept) < 5:
        return None
    line = statistics.linear_regression([each.at_s for each in kept], [each.resident_bytes for each in kept])
    span_s = kept[-1].at_s - kept[0].at_s
    return Trend(line.slope * span_s, statistics.median(each.resident_bytes for each in kept), span_s)


def resident_bytes(pid: int) -> int | None:
    """Return a process's resident memory; null where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return None


def children_of(pid: int) -> list[int]:
    """Return the process ids that a process started and that run."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []


def watched(process: subprocess.Popen[bytes]) -> dict[str, list[Sample]]:
    """Sample the worker and its child once a second until the worker ends."""
    samples: dict[str, list[Sample]] = {"worker": [], "load generator": []}
    while process.poll() is None:
        named = [("worker", process.pid), *(("load generator", pid) for pid in children_of(process.pid))]
        for name, pid in named:
            size = resident_bytes(pid)
            if size:
                samples[name].append(Sample(time.perf_counter(), size))
        time.sleep(1.0)
    return samples


def children_cpu_s() -> float:
    """Return the CPU seconds of this process's children that ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--concurrency", type=int, default=500)
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="where the tokenizer's model is kept")
    options = parser.parse_args()
    stream_s = (TABLE.first_ms + TABLE.gap_ms * (TABLE.chunks - 1)) / 1e3
    streams = options.concurrency * max(1, round(options.minutes * 60 / stream_s))
    with tempfile.TemporaryDirectory(prefix="soak-") as scratch:
        folder = Path(scratch)
        with ReplayServer(compile_server(folder), TABLE, folder=folder, core=1) as server:
            os.sched_setaffinity(0, {0})
            cell = Cell(server.url, options.concurrency, streams, TABLE.chunks, ensure(options.cache).resolve(), folder)
            words = OURS.command(Path(sys.prefix), cell)
            began, busy_before, own_before = time.monotonic(), busy_s(), children_cpu_s()
            process = subprocess.Popen(words)
            samples = watched(process)
            log = server.stop()
            spent = busy_s() - busy_before - (children_cpu_s() - own_before)
            others = max(0.0, spent / ((time.monotonic() - began) * (os.cpu_count() or 1)))
        outcomes = _outcomes(folder / "result.jsonl")
        windows = json.loads((folder / "window.json").read_bytes())
    for window in windows:
        reasons = ", ".join(window["limit_reasons"]) or "nothing"
        sys.stdout.write(
            f"load generator: {window['cpu_share']:.0%} of a core; it calls a limit of itself: {reasons}\n"
        )
    sys.stdout.write(f"others took {others:.0%} of the machine; above 5 % the worker may fall behind\n")
    lines, is_good = judged(samples, log, outcomes, asked=streams, concurrency=options.concurrency)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0 if is_good and process.returncode == 0 else 1


def _outcomes(path: Path) -> dict[str, int]:
    """Return how many streams ended each way; complete is one with every token of the timetable."""
    counts: dict[str, int] = {}
    with path.open("rb") as lines:
        for line in lines:
            answer = json.loads(line)
            is_whole = answer["request_outcome"] == "completed" and answer["output_tokens"] == TABLE.chunks
            name = "complete" if is_whole else f"{answer['request_outcome']}, {answer['failure_cause']}"
            counts[name] = counts.get(name, 0) + 1
    return counts


def judged(
    samples: dict[str, list[Sample]], log: ServerLog, outcomes: dict[str, int], *, asked: int, concurrency: int
) -> tuple[list[str], bool]:
    """Return what to print, and whether memory is flat, no stream was lost and the server was not the limit."""
    begin_s = min((each.last_byte_ns for each in log.served), default=0) / 1e9
    end_s = max((each.last_byte_ns for each in log.served), default=0) / 1e9
    span_s = end_s - begin_s
    complete = outcomes.get("complete", 0)
    others = ", ".join(f"{count} {name}" for name, count in outcomes.items() if name != "complete")
    lines = [
        f"streams: {asked} asked, {complete} complete{', ' + others if others else ''}, {asked - complete} lost; "
        f"under way {log.mean_in_progress():.1f} on average, {log.most_in_progress()} at most, of {concurrency}; "
        f"{span_s:.0f} s",
        f"server: {log.busiest_share():.0%} of its core at the busiest, wanted at most {BUSY_LIMIT:.0%}",
    ]
    is_good = complete == asked and log.busiest_share() <= BUSY_LIMIT
    for name, each in samples.items():
        found = trend(each, from_s=begin_s + min(SETTLING_S, 0.4 * span_s), to_s=end_s)
        if found is None:
            lines.append(f"{name}: too few samples for a trend")
            is_good = False
            continue
        is_good = is_good and found.is_flat
        lines.append(
            f"{name}: {found.median_bytes / 2**20:.1f} MiB, rises by {found.rise_bytes / 2**20:+.2f} MiB in "
            f"{found.span_s:.0f} s, wanted at most {RISE_SHARE:.0%} or {RISE_BYTES >> 20} MiB: "
            f"{'flat' if found.is_flat else 'NOT flat'}"
        )
    return [*lines, f"verdict: {'met' if is_good else 'NOT met'}"], is_good


if __name__ == "__main__":
    sys.exit(main())
