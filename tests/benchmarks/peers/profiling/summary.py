"""Print in which functions the processes of a run spent their time: summary.py FEW MANY, two folders of profiles.

FEW is of a run of few streams: what it took is what starting takes, and is subtracted function by function. The
processes of both are matched in the order in which they ended.
"""

import pstats
import sys
from pathlib import Path
from typing import NamedTuple

LINES = 14


class Spent(NamedTuple):
    """Calls of one function, and the CPU seconds that were its own."""

    calls: int
    cpu_s: float


def spent(path: Path) -> dict[str, Spent]:
    """Return what each function of one process took."""
    entries = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]  # not in the stubs
    return {_named(*where): Spent(calls, own_s) for where, (_, calls, own_s, *_) in entries.items()}


def lines_of(few: dict[str, Spent], many: dict[str, Spent]) -> list[str]:
    """Return the functions that the streams beyond the few spent most CPU in."""
    zero = Spent(0, 0.0)
    beyond = {
        name: Spent(each.calls - few.get(name, zero).calls, each.cpu_s - few.get(name, zero).cpu_s)
        for name, each in many.items()
    }
    total_s = sum(each.cpu_s for each in beyond.values())
    top = sorted(beyond.items(), key=lambda each: -each[1].cpu_s)[:LINES]
    named = [f"  {each.cpu_s / total_s:6.1%} {each.calls:>9} x {name}" for name, each in top]
    return [f"process: {total_s:.2f} s of CPU under the profiler beyond the run of few streams", *named]


def _named(file_name: str, line: int, name: str) -> str:
    return name if file_name.startswith("~") else f"{'/'.join(Path(file_name).parts[-2:])}:{line} {name}"


if __name__ == "__main__":
    folders = [sorted(Path(folder).glob("*.prof"), key=lambda path: path.stat().st_ctime) for folder in sys.argv[1:3]]
    for shorter, longer in zip(*folders, strict=False):
        sys.stdout.write("".join(f"{line}\n" for line in lines_of(spent(shorter), spent(longer))))
