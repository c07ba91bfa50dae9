"""Run one command and measure what it and every process it started cost: user and system CPU seconds, wall seconds.

    python tests/benchmarks/process_tree.py OUT.json [--core 0] [--limit-s 300] -- COMMAND ...

From the start of the command to the end of its last descendant. This process adopts orphans (a subreaper), so that a
child whose parent did not wait for it is counted as well; it costs some 20 ms itself, which are not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_PDEATHSIG = 1
_POLL_S = 0.05
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """What one command took, all its processes together. exit_code: -1 where the time limit ended it.

    curve: (CLOCK_MONOTONIC ns, CPU seconds so far) every 50 ms, in steps of the kernel's ticks for what still runs.
    """

    cpu_s: float
    wall_s: float
    exit_code: int
    curve: list[tuple[int, float]]


def run_measured(command: list[str], *, core: int | None, limit_s: float) -> Cost:
    """Run the command in this process's tree and return its cost; this process may have no other children.

    Whatever ends this function ends the whole tree. The command has the core, watching it goes to the others.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    cores = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    began = time.monotonic()
    first = subprocess.Popen(command, start_new_session=True)
    if core is not None and cores - {core}:
        os.sched_setaffinity(0, cores - {core})
    exit_code: int | None = None
    is_late = False
    curve: list[tuple[int, float]] = []
    try:
        while (reaped := _reaped()) is not None:
            if reaped.pid == first.pid:
                exit_code = first.returncode = os.waitstatus_to_exitcode(reaped.status)
            elif not reaped.pid:
                curve.append((time.perf_counter_ns(), _children_cpu_s() + _running_cpu_s(os.getpid())))
                is_late = is_late or time.monotonic() - began > limit_s
                if is_late:
                    _end_children()
                time.sleep(_POLL_S)
    finally:
        while _reaped() is not None:
            _end_children()
    wall_s = time.monotonic() - began
    return Cost(_children_cpu_s(), wall_s, -1 if is_late or exit_code is None else exit_code, curve)


def _children_cpu_s() -> float:
    """Return what the children of this process took that it has waited for, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _running_cpu_s(pid: int) -> float:
    """Return what the running descendants of a process have taken, with their own children that ended."""
    total = 0.0
    for child in _children(pid):
        with contextlib.suppress(OSError, IndexError):  # it may end while this reads
            fields = Path(f"/proc/{child}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            total += sum(int(ticks) for ticks in fields[11:15]) / _TICKS_PER_S + _running_cpu_s(child)
    return total


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text("ascii").split()]
    return []


class _Reaped(NamedTuple):
    """A child that ended; pid 0 where none has."""

    pid: int
    status: int


def _reaped() -> _Reaped | None:
    """Return a child that ended; null where this process has no children left."""
    try:
        return _Reaped(*os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        return None


def _end_children() -> None:
    """Kill the children of this process; theirs are adopted and follow in the next round."""
    for child in _children(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--core", type=int)
    parser.add_argument("--limit-s", type=float, default=300.0)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    cost = run_measured(options.command, core=options.core, limit_s=options.limit_s)
    options.out.write_text(json.dumps(cost._asdict()), "utf-8")
    return cost.exit_code


if __name__ == "__main__":
    sys.exit(main())
