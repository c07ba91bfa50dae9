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
_POLL_S = 0.02


class Cost(NamedTuple):
    """What one command took, all its processes together. exit_code: -1 where the time limit ended it."""

    cpu_s: float
    wall_s: float
    exit_code: int


def run_measured(command: list[str], *, core: int | None, limit_s: float) -> Cost:
    """Run the command in this process's tree and return its cost; this process may have no other children.

    Whatever ends this function ends the whole tree.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if core is not None:
        os.sched_setaffinity(0, {core})
    began = time.monotonic()
    first = subprocess.Popen(command, start_new_session=True)
    exit_code: int | None = None
    is_late = False
    try:
        while (reaped := _reaped()) is not None:
            if reaped.pid == first.pid:
                exit_code = first.returncode = os.waitstatus_to_exitcode(reaped.status)
            elif not reaped.pid:
                is_late = is_late or time.monotonic() - began > limit_s
                if is_late:
                    _end_children()
                time.sleep(_POLL_S)
    finally:
        while _reaped() is not None:
            _end_children()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall_s = time.monotonic() - began
    return Cost(used.ru_utime + used.ru_stime, wall_s, -1 if is_late or exit_code is None else exit_code)


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
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text("ascii").split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)


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
