"""Start-up of both commands against importing click alone, interleaved: prints the ratio of medians.

    python tests/benchmarks/help_time.py [--rounds 15]

Wanted: `collector --help` and `reporter --help` take at most twice as long as a Python that imports click.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

WANTED = 2.0


def milliseconds(command: list[str]) -> float:
    """Return the wall time of one run of a command that must succeed."""
    began_ns = time.perf_counter_ns()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter_ns() - began_ns) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    scripts = Path(sys.executable).parent
    commands = {
        "import click": [sys.executable, "-c", "import click"],
        "collector --help": [str(scripts / "collector"), "--help"],
        "reporter --help": [str(scripts / "reporter"), "--help"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for name, command in commands.items():
        milliseconds(command)  # fills the file cache and writes the byte code
        assert not taken[name]
    for index in range(rounds):
        names = list(commands) if index % 2 == 0 else list(reversed(commands))
        for name in names:
            taken[name].append(milliseconds(commands[name]))
    base = statistics.median(taken["import click"])
    for name, times in taken.items():
        middle = statistics.median(times)
        ratio = middle / base
        verdict = "" if ratio == 1 else f", wanted at most {WANTED}: {'met' if ratio <= WANTED else 'NOT met'}"
        sys.stdout.write(
            f"{name}: {middle:.0f} ms ({min(times):.0f} to {max(times):.0f}), ratio {ratio:.2f}{verdict}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
