"""Compare this project's client with other load tools against one replay server: writes a table, prints a verdict.

    python tests/benchmarks/peer_table.py --environments DIR --cache .cache -o peers.md [--quick] [--tools ours,llmeter]
    python tests/benchmarks/peer_table.py --from peers.json -o peers.md

Per tool and concurrency: CPU per stream of all its processes, beyond what a run of one
stream for each place costs; what the tool
adds to the time to first token (its value less the server's own log of that stream); streams under way by the server's
log; streams lost. Then, without waits in the streams, the rate at which it stops growing. The tool runs on core 0, the
server on core 1. Run it on an idle machine: the table says how busy others were.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import msgspec
import peer_render
import peer_run
from peer_clients import OURS, PEERS

from collector.starter.demo_model import ensure

FULL = {1: 128, 16: 1024, 64: 1280, 256: 2560}
QUICK = {1: 4, 16: 64, 64: 256, 256: 512}
GROWING = (16, 64, 256)
FULL_UNTIMED, QUICK_UNTIMED = 1024, 512


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, help="what peers/environments.sh made; without it only our own")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="where the tokenizer's model is kept")
    parser.add_argument("--from", dest="raw", type=Path, help="write the table of an earlier run again")
    parser.add_argument("--tools", help="names with commas between; default: all whose environment stands")
    parser.add_argument("--quick", action="store_true", help="few streams: shows that it works, measures nothing")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    if options.raw is not None:
        results = msgspec.json.decode(options.raw.read_bytes(), type=peer_run.Results)
    else:
        results = measured(options, options.out.with_suffix(".json"))
    options.out.write_text(peer_render.table(results), "utf-8")
    for line in peer_render.verdicts(results):
        sys.stdout.write(line + "\n")
    return 0


def measured(options: argparse.Namespace, raw_path: Path) -> peer_run.Results:
    """Run every tool through every load; profile ours where it misses the goal. The raw file grows tool by tool."""
    wanted = set(options.tools.split(",")) if options.tools else None
    tools = [
        tool
        for tool in (OURS, *PEERS)
        if (wanted is None or tool.name in wanted)
        and (tool is OURS or (options.environments and (options.environments / tool.folder / ".installed").exists()))
    ]
    if not tools:
        raise SystemExit("none of these tools is there: make them with tests/benchmarks/peers/environments.sh")
    for tool in PEERS:
        if tool not in tools and (wanted is None or tool.name in wanted):
            _progress(f"{tool.name}: left out, no environment of it stands in {options.environments}")
    loads = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(prefix="peers-") as scratch:
        bench = peer_run.Bench(
            folder=Path(scratch),
            environments=options.environments,
            tokenizer=ensure(options.cache).resolve(),
            say=_progress,
        )
        for results in bench.results(tools, loads, GROWING, QUICK_UNTIMED if options.quick else FULL_UNTIMED):
            keep(results, raw_path)
        if any(tool is OURS for tool in tools) and peer_render.is_missed(results):
            results = msgspec.structs.replace(results, profile=bench.profile(OURS, streams=640, concurrency=16))
            keep(results, raw_path)
    return results


def keep(results: peer_run.Results, raw_path: Path) -> None:
    """Write what there is so far."""
    raw_path.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")


def _progress(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
