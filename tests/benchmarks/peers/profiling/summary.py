"""Print in which functions the profiled processes of a folder spent their time: summary.py FOLDER [LINES]."""

import pstats
import sys
from pathlib import Path

LINES = 14


def lines_of(path: Path, count: int) -> list[str]:
    """Return the functions of one process with the most time of their own, waiting left out."""
    entries = pstats.Stats(str(path)).get_stats_profile().func_profiles
    working = {name: entry for name, entry in entries.items() if not _is_waiting(name)}
    total = sum(entry.tottime for entry in working.values())
    if total < 0.05:
        return []
    top = sorted(working.items(), key=lambda each: -each[1].tottime)[:count]
    named = [f"  {entry.tottime / total:6.1%} {entry.ncalls:>9} x {_place(entry.file_name, entry.line_number)}{name}"
             for name, entry in top]  # fmt: skip
    return [f"process {path.stem}: {total:.2f} s in functions under the profiler", *named]


def _is_waiting(name: str) -> bool:
    return "poll" in name or "sleep" in name or "waitpid" in name


def _place(file_name: str, line: int) -> str:
    return "" if file_name.startswith("~") else f"{'/'.join(Path(file_name).parts[-2:])}:{line} "


if __name__ == "__main__":
    shown = int(sys.argv[2]) if len(sys.argv) > 2 else LINES
    for each in sorted(Path(sys.argv[1]).glob("*.prof")):
        sys.stdout.write("".join(f"{line}\n" for line in lines_of(each, shown)))
