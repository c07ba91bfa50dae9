"""The peer table as Markdown, and the goal: at most half the best peer's CPU per stream and half its p99 error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from peer_run import CellResult, Results, ToolResult
from replay_server import BUSY_LIMIT

OURS_NAME = "ours"
GOAL = 0.5
IDLE_SHARE = 0.05
"""Share of the machine above which what others took is said on the row."""


def quantile(ascending: Sequence[float], share: float) -> float | None:
    """Return the nearest-rank quantile; null of nothing."""
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)] if ascending else None


def table(results: Results) -> str:
    """Return the whole page."""
    levels = sorted({cell.concurrency for tool in results.tools for cell in tool.timed})
    parts = [
        "# Load clients beside each other\n",
        f"Machine: {results.machine}. This project at {results.commit}. The tool on one core, the replay server on the "
        f"other; every stream has its first content after {results.first_ms:g} ms and one token each "
        f"{results.gap_ms:g} ms, {results.chunks} in all. Made by tests/benchmarks/peer_table.py.\n",
        "CPU: user and system seconds of all processes of the tool per 1,000 streams, from the first stream's arrival "
        "at the server to the tool's end, beyond those of a run of one stream for each place (two for one place; at 1 "
        "and 16 the median of three such runs). That run as a whole is the fixed cost. Added: the tool's time to first "
        "token less the server's own of that stream; where fewer than 100 streams ran, p99 is the largest. Under way: "
        "streams at once by the server's log, in the middle of the run. Lost: asked for and not reported as "
        "finished.\n",
        *(_level(results, level) for level in levels),
        _saturation(results),
        _tools(results),
        "## Goal\n",
        *(f"- {line}" for line in verdicts(results)),
    ]
    if results.profile:
        parts += ["", "Where the time of our own client goes (cProfile, which itself slows calls):\n", "```",
                  *results.profile, "```"]  # fmt: skip
    return "\n".join(parts) + "\n"


def verdicts(results: Results) -> list[str]:
    """Return one sentence per concurrency and measure: ours, the best peer, the ratio, met or not."""
    lines = []
    for level in sorted({cell.concurrency for tool in results.tools for cell in tool.timed}):
        for name, unit, measure in _MEASURES:
            lines.append(_verdict(results, level, name, unit, measure))
    return lines


def is_missed(results: Results) -> bool:
    """True where ours was held against a peer and is above the goal somewhere."""
    return any("NOT met" in line for line in verdicts(results))


def _cpu(tool: ToolResult, cell: CellResult) -> float | None:
    return tool.cpu_s_per_1000(cell)


def _p99(_: ToolResult, cell: CellResult) -> float | None:
    return quantile(cell.added_ms, 0.99)


_MEASURES: tuple[tuple[str, str, Callable[[ToolResult, CellResult], float | None]], ...] = (
    ("CPU per 1,000 streams", "s", _cpu),
    ("added time to first token, p99", "ms", _p99),
)


def _verdict(
    results: Results, level: int, name: str, unit: str, measure: Callable[[ToolResult, CellResult], float | None]
) -> str:
    values = {
        tool.name: value
        for tool in results.tools
        for cell in tool.timed
        if cell.concurrency == level and cell.is_valid and (value := measure(tool, cell)) is not None
    }
    ours = values.pop(OURS_NAME, None)
    head = f"concurrency {level}, {name}: "
    if ours is None or not values:
        return head + "nothing to compare"
    best = min(values, key=lambda peer: abs(values[peer]))
    ratio = abs(ours) / abs(values[best]) if values[best] else math.inf
    return (
        f"{head}ours {ours:.2f} {unit}, best peer {best} {values[best]:.2f} {unit}, ratio {ratio:.2f}, wanted at most "
        f"{GOAL}: {'met' if ratio <= GOAL else 'NOT met'}"
    )


def _level(results: Results, level: int) -> str:
    rows = [
        _row(tool, cell) for tool in results.tools for cell in tool.timed if cell.concurrency == level
    ]  # fmt: skip
    head = ["tool", "streams", "CPU s per 1,000", "fixed CPU s", "added median ms", "added p99 ms",
            "under way mean (most)", "lost", "server busiest", "remarks"]  # fmt: skip
    return f"## Concurrency {level}\n\n{_markdown(head, rows)}"


def _row(tool: ToolResult, cell: CellResult) -> list[str]:
    few = tool.fixed(cell)
    return [
        tool.name, str(cell.finished), _number(tool.cpu_s_per_1000(cell)), _number(few.cpu_s if few else None),
        _number(quantile(cell.added_ms, 0.5), 3), _number(quantile(cell.added_ms, 0.99), 3),
        f"{cell.mean_in_progress:.1f} ({cell.most_in_progress})", str(cell.lost), f"{cell.server_share:.0%}",
        "; ".join(_remarks(cell)),
    ]  # fmt: skip


def _remarks(cell: CellResult) -> list[str]:
    said = []
    if cell.exit_code:
        said.append(
            "FAILED, the time limit ended it" if cell.exit_code == -1 else f"FAILED, exit code {cell.exit_code}"
        )
    if cell.server_share > BUSY_LIMIT:
        said.append(f"INVALID: the server took more than {BUSY_LIMIT:.0%} of its core")
    if cell.added_ms and not cell.is_matched:
        said.append("not matched by stream: sorted against sorted")
    if cell.others_share > IDLE_SHARE:
        said.append(f"others took {cell.others_share:.0%} of the machine")
    return said


def _saturation(results: Results) -> str:
    rows = []
    for tool in results.tools:
        best = tool.saturation()
        reached = ", ".join(f"{cell.concurrency}: {tool.sustained_per_s(cell):.0f}" for cell in tool.untimed)
        limit = "client" if best and best.server_share <= BUSY_LIMIT else "server" if best else ""
        lost = str(sum(cell.lost for cell in tool.untimed))
        rows.append([tool.name, f"{tool.sustained_per_s(best):.0f}" if best else "none", reached,
                     f"{best.server_share:.0%}" if best else "", limit, lost])  # fmt: skip
    head = ["tool", "most streams per s", "at concurrency", "server busiest", "limited by", "lost"]
    words = (
        "Every chunk at once, each in a write of its own; the concurrency grows until the rate does not (by 5 %). The "
        "rate is the server's, or what the tool's CPU time allows on one core where it puts work off.\n"
    )
    return f"## Where the client saturates\n\n{words}\n{_markdown(head, rows)}"


def _tools(results: Results) -> str:
    rows = [[tool.name, tool.version, tool.python, "; ".join(_notes(tool))] for tool in results.tools]
    commands = "\n".join(f"# {tool.name}\n{tool.command}" for tool in results.tools)
    return (
        f"## Versions and commands\n\n{_markdown(['tool', 'version', 'Python', 'note'], rows)}\nPackages of each "
        f"environment: tests/benchmarks/peers/TOOL/requirements.txt. Commands, for concurrency 64:\n\n"
        f"```sh\n{commands}\n```\n"
    )


def _notes(tool: ToolResult) -> list[str]:
    is_broken = bool(tool.few) and all(cell.exit_code for cell in tool.few)
    broken = f"FAILED, nothing measured: {tool.few[0].words.splitlines()[-1:]}" if is_broken else ""
    return [words for words in (tool.note, broken) if words]


def _number(value: float | None, decimals: int = 2) -> str:
    return "not measured" if value is None else f"{value:.{decimals}f}"


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
