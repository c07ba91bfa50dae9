"""Selection, allocation and statistics of a generated campaign from the warm cache: seconds, memory, and a ratio.

    python tests/benchmarks/campaign_time.py [--rounds 3] [--keep FOLDER] [--cards 5 --variants 6 ...]

Each round measures two fresh processes one after the other: one that builds the dossier's data (every figure, table,
gate, selection, price, share and sentence; no page is rendered), and one that reads every column of the same Parquet
files with DuckDB and nothing else. Wanted for 5 cards x 6 variants x 4 cells x 5 repetitions x 300 documents: at most
10 s and at most 1 GiB. FOLDER keeps the records for the next call; otherwise they are made anew and removed.
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
from pathlib import Path

WANTED_S = 10.0
WANTED_BYTES = 2**30
SIZES = (("cards", 5), ("variants", 6), ("cells", 4), ("repetitions", 5), ("documents", 300))


def build(folder: Path) -> dict[str, float]:
    """Build the dossier's data in this process, and say how long it took and how large the process became."""
    from reporter.assemble import build_dossier

    began_ns, began_cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    dossier = build_dossier([folder / "runs"], folder / "campaign.toml", cache_dir=folder / "cache")
    return {
        "seconds": (time.perf_counter_ns() - began_ns) / 1e9,
        "processor_seconds": (time.process_time_ns() - began_cpu_ns) / 1e9,
        "peak_bytes": peak_bytes(),
        "figures": len(dossier.figures),
    }


def scan(folder: Path) -> dict[str, float]:
    """Read every value of the cached Parquet files once, with as many threads as the reporter takes."""
    import duckdb

    files = sorted(str(path) for path in (folder / "cache").glob("*.parquet"))
    began_ns = time.perf_counter_ns()
    duckdb.sql("select sum(hash(records) % 1000) from read_parquet(?) as records", params=[files]).fetchall()
    return {"seconds": (time.perf_counter_ns() - began_ns) / 1e9, "peak_bytes": peak_bytes()}


def peak_bytes() -> int:
    """Return the largest resident set that this process has had."""
    status = Path("/proc/self/status")
    if status.exists():
        # what getrusage tells begins, across fork and exec, with the peak of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def fresh(what: str, folder: Path) -> dict[str, float]:
    """Run `build` or `scan` in a process of its own."""
    command = [sys.executable, __file__, "--inside", what, "--keep", str(folder)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def campaign(folder: Path, sizes: dict[str, int]) -> None:
    """Write the records unless the folder holds them."""
    from generate_records import generate
    from generated_grid import Grid

    if not (folder / "campaign.toml").exists():
        generate(folder, Grid.first(*sizes.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--inside", choices=["build", "scan"], help=argparse.SUPPRESS)
    for name, default in SIZES:
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    if given.inside:
        sys.stdout.write(json.dumps({"build": build, "scan": scan}[given.inside](given.keep)))
        return 0
    with tempfile.TemporaryDirectory(prefix="campaign-") as made:
        folder: Path = given.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        campaign(folder, {name: getattr(given, name) for name, _ in SIZES})
        return report(folder, given.rounds)


def report(folder: Path, rounds: int) -> int:
    """Measure and print; returns 1 where a wanted limit was missed."""
    size = sum(path.stat().st_size for path in (folder / "runs").glob("*.jsonl"))
    first = fresh("build", folder)
    sys.stdout.write(f"{size / 1e6:.0f} MB of records; first build, records checked: {first['seconds']:.1f} s\n")
    built, scanned = [], []
    for _ in range(rounds):
        built.append(fresh("build", folder))
        scanned.append(fresh("scan", folder))
    seconds = statistics.median(one["seconds"] for one in built)
    peak = max(one["peak_bytes"] for one in built)
    processor_s = statistics.median(one["processor_seconds"] for one in built)
    ratio = seconds / statistics.median(one["seconds"] for one in scanned)
    is_fast, is_small = seconds <= WANTED_S, peak <= WANTED_BYTES
    low, high = min(one["seconds"] for one in built), max(one["seconds"] for one in built)
    sys.stdout.write(
        f"from the cache: {seconds:.1f} s ({low:.1f} to {high:.1f}), wanted at most {WANTED_S:.0f}: "
        f"{'met' if is_fast else 'NOT met'}; {ratio:.1f} times a bare scan; {processor_s:.1f} s of processor time; "
        f"{first['figures']:.0f} figures\n"
        f"peak memory: {peak / 2**20:.0f} MiB, wanted at most {WANTED_BYTES / 2**20:.0f}: "
        f"{'met' if is_small else 'NOT met'}\n"
    )
    return 0 if is_fast and is_small else 1


if __name__ == "__main__":
    sys.exit(main())
