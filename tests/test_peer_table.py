"""The peer table and the soak's verdict on given logs and results; no peer runs here, but the replay server does."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import peer_render
import process_tree
import pytest
import soak
from peer_clients import OURS, PEERS, Cell, Outcome, Reported, number_of
from peer_run import CellResult, Results, ToolResult, added_ms, serving_cpu_s, shown
from replay_server import ReplayServer, Served, ServerLog, Timetable, compile_server, read_log

MS = 1_000_000
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")


def served(
    number: int, *, at_ms: float, first_ms: float = 100, last_ms: float = 400, label: str | None = None
) -> Served:
    begin = round(at_ms * MS)
    return Served(number, begin, begin + round(first_ms * MS), begin + round(last_ms * MS), True, label)


def cell(concurrency: int, *, cpu_s: float, finished: int, asked: int | None = None, **more: object) -> CellResult:
    values: dict[str, object] = {
        "exit_code": 0,
        "serving_cpu_s": cpu_s,
        "wall_s": 1.0,
        "added_ms": [0.1] * finished,
        "is_matched": True,
        **more,
    }
    return CellResult(concurrency=concurrency, asked=asked or finished, cpu_s=cpu_s, finished=finished, **values)  # type: ignore[arg-type]


def tool(
    name: str, *, timed: list[CellResult], few: list[CellResult], untimed: list[CellResult] | None = None
) -> ToolResult:
    return ToolResult(
        name=name, version="1.0", python="3.11.7", note="", command=f"{name} run", few=few, timed=timed,
        untimed=untimed or [],
    )  # fmt: skip


def results(*tools: ToolResult) -> Results:
    return Results(machine="a machine", commit="abc", chunks=32, first_ms=100.0, gap_ms=10.0, tools=list(tools))


def test_cpu_per_stream_is_what_grows_beyond_the_run_of_few_streams_at_that_concurrency() -> None:
    few = [cell(1, cpu_s=5.0, finished=2), cell(16, cpu_s=7.0, finished=16)]
    measured = tool("peer", few=few, timed=[])
    assert measured.cpu_s_per_1000(cell(16, cpu_s=9.0, finished=1016)) == pytest.approx(2.0)
    assert measured.cpu_s_per_1000(cell(64, cpu_s=9.0, finished=1016)) is None
    assert measured.cpu_s_per_1000(cell(16, cpu_s=9.0, finished=1016, exit_code=1)) is None
    assert measured.cpu_s_per_1000(cell(16, cpu_s=6.9, finished=20)) is None


def test_what_a_tool_took_before_its_first_stream_arrived_is_its_start() -> None:
    log = ServerLog([served(0, at_ms=2000), served(1, at_ms=1000)], [])
    curve = [(0, 0.0), (900 * MS, 0.5), (1100 * MS, 0.75)]
    assert serving_cpu_s({"cpu_s": 2.0, "curve": curve}, log) == 1.5


def test_a_rate_is_no_higher_than_the_cpu_time_of_its_streams_allows() -> None:
    measured = tool("peer", few=[cell(16, cpu_s=1.0, finished=16)], timed=[])
    put_off = cell(16, cpu_s=3.0, finished=1016, streams_per_s=900.0)
    assert measured.sustained_per_s(put_off) == pytest.approx(500.0)
    assert measured.sustained_per_s(cell(16, cpu_s=3.0, finished=1016, streams_per_s=300.0)) == 300.0


def test_added_time_is_taken_stream_by_stream_by_the_number_in_the_answer() -> None:
    log = ServerLog([served(0, at_ms=0), served(1, at_ms=10, first_ms=90), served(2, at_ms=20, first_ms=110)], [])
    outcome = Outcome([Reported(2, 0.111), Reported(1, 0.0905)], failed=0)
    added, is_matched = added_ms(outcome, log)
    assert is_matched
    assert added == pytest.approx([0.5, 1.0])


def test_added_time_is_matched_by_the_request_id_that_the_tool_sent() -> None:
    log = ServerLog([served(0, at_ms=0, label="a"), served(1, at_ms=0, first_ms=90, label="b")], [])
    added, is_matched = added_ms(Outcome([Reported(None, 0.093, "b"), Reported(None, 0.101, "a")], failed=0), log)
    assert (added, is_matched) == (pytest.approx([1.0, 3.0]), True)


def test_values_that_name_no_stream_are_held_sorted_against_sorted_and_said_so() -> None:
    log = ServerLog([served(0, at_ms=0, first_ms=500), served(1, at_ms=600), served(2, at_ms=700)], [])
    added, is_matched = added_ms(Outcome([Reported(None, 0.103), Reported(None, 0.102)], failed=0), log)
    assert (added, is_matched) == (pytest.approx([2.0, 3.0]), False)
    page = peer_render.table(results(tool("peer", few=[], timed=[cell(1, cpu_s=1.0, finished=2, is_matched=False)])))
    assert "not matched by stream" in page


def test_a_number_is_found_before_or_after_an_answers_words() -> None:
    assert number_of("00000012 date Nord") == 12
    assert number_of("replay-00000012") == 12
    assert number_of(" date") is None
    assert number_of(None) is None


def test_the_verdict_names_the_best_peer_and_the_ratio() -> None:
    few = [cell(16, cpu_s=1.0, finished=16)]
    ours = tool("ours", few=few, timed=[cell(16, cpu_s=2.0, finished=1016)])
    slow = tool("slow", few=few, timed=[cell(16, cpu_s=9.0, finished=1016)])
    fast = tool("fast", few=few, timed=[cell(16, cpu_s=4.0, finished=1016, added_ms=[0.15])])
    lines = peer_render.verdicts(results(ours, slow, fast))
    assert lines[0].startswith("concurrency 16, CPU per 1,000 streams: ours 1.00 s, best peer fast 3.00 s, ratio 0.33")
    assert lines[0].endswith("wanted at most 0.5: met")
    assert "added time to first token, p99" in lines[1]
    assert lines[1].endswith("best peer slow 0.10 ms, ratio 1.00, wanted at most 0.5: NOT met")
    assert peer_render.is_missed(results(ours, slow, fast))


def test_an_invalid_run_is_no_ones_best_and_is_marked() -> None:
    few = [cell(16, cpu_s=1.0, finished=16)]
    ours = tool("ours", few=few, timed=[cell(16, cpu_s=2.0, finished=1016)])
    busy = tool("busy", few=few, timed=[cell(16, cpu_s=1.1, finished=1016, server_share=0.71)])
    lines = peer_render.verdicts(results(ours, busy))
    assert all(line.endswith("nothing to compare") for line in lines)
    assert "INVALID: the server took more than 70%" in peer_render.table(results(ours, busy))


def test_the_page_shows_failures_losses_versions_and_commands() -> None:
    broken = cell(64, cpu_s=3.0, finished=60, asked=64, exit_code=2, others_share=0.2)
    page = peer_render.table(results(tool("peer", few=[], timed=[broken], untimed=[broken])))
    row = next(line for line in page.splitlines() if line.startswith("| peer | 60 |"))
    assert "| 4 |" in row
    assert "FAILED, exit code 2" in row
    assert "others took 20% of the machine" in row
    assert "not measured" in row
    assert "# peer\npeer run" in page
    assert "| peer | 1.0 | 3.11.7 |" in page


def test_a_tool_that_never_ran_is_named_with_its_last_words() -> None:
    broken = cell(1, cpu_s=1.0, finished=0, exit_code=1, words="Traceback\nno such option")
    assert "FAILED, nothing measured: ['no such option']" in peer_render.table(
        results(tool("peer", few=[broken], timed=[]))
    )


@pytest.mark.parametrize("peer", [OURS, *PEERS], ids=lambda each: each.name)
def test_a_shown_command_holds_no_path_of_this_machine(peer: object) -> None:
    assert str(Path.cwd()) not in shown(peer)  # type: ignore[arg-type]
    assert tempfile.gettempdir() not in shown(peer)  # type: ignore[arg-type]


def test_each_peer_has_its_pinned_packages() -> None:
    for peer in PEERS:
        path = Path(__file__).parent / "benchmarks/peers" / str(peer.folder) / "requirements.txt"
        lines = path.read_text("ascii").split()
        assert all("==" in line for line in lines), peer.name
        assert any(line.startswith(f"{peer.package}==") for line in lines), peer.name


def test_results_of_each_tool_are_read_with_the_streams_it_calls_failed(tmp_path: Path) -> None:
    place = Cell("http://127.0.0.1:1", 1, 2, 32, tmp_path, tmp_path)
    by_name = {peer.name: peer for peer in (OURS, *PEERS)}
    canned: dict[str, tuple[str, object]] = {
        "vllm bench serve": (
            "result.json",
            {"generated_texts": ["00000007 date", ""], "ttfts": [0.1, 0.0], "errors": ["", "refused"]},
        ),
        "guidellm": (
            "result.json",
            {"benchmarks": [{"requests": {
                "successful": [{"output": "00000007 date", "time_to_first_token_ms": 100.0}], "errored": [{}],
                "incomplete": [],
            }}]},
        ),
        "inference-perf": (
            "per_request_lifecycle_metrics.json",
            [
                {"start_time": 5.0, "response": "00000007 date", "error": None, "info": {
                    "response_metrics": {"response_chunks": ['{"id":"replay-00000007","x":1}'], "chunk_times": [5.1]}
                }},
                {"start_time": 5.0, "response": "", "error": {"error_type": "x"}, "info": None},
            ],
        ),
    }  # fmt: skip
    for name, (file_name, content) in canned.items():
        (tmp_path / file_name).write_text(json.dumps(content), "utf-8")
        outcome = by_name[name].read(place)
        assert (outcome.finished[0].number, outcome.failed) == (7, 1), name
        assert outcome.finished[0].first_token_s == pytest.approx(0.1), name


def test_the_servers_log_gives_streams_under_way_rate_and_share() -> None:
    text = (
        "R 0 chat 0 1 100000000 1000000000 1 -\nR 1 chat 0 1 100000000 1000000000 1 id\nC 0 0\nC 500000000 100000000\n"
    )
    log = read_log(text + "C 1000000000 150000000\n")
    assert log.served[1].label == "id"
    assert log.mean_in_progress() == 2.0
    assert log.most_in_progress() == 2
    assert log.busiest_share() == pytest.approx(0.2)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to compile the replay server with")
def test_the_replay_server_keeps_its_timetable_and_numbers_its_answers(tmp_path: Path) -> None:
    body = b'{"stream": true, "messages": []}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    with ReplayServer(compile_server(tmp_path), Timetable(20, 5, 4), folder=tmp_path) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            for _ in range(2):
                connection.sendall(head[:30])
                connection.sendall(head[30:] + body)
                got = b""
                while not got.endswith(b"\r\n0\r\n\r\n"):
                    got += connection.recv(65536)
        log = server.stop()
    assert b'"content":"00000001"' in got
    assert got.count(b"data: ") == 1 + 4 + 2
    assert b'"completion_tokens":4' in got
    assert [each.label for each in log.served] == ["mine", "mine"]
    for each in log.served:
        assert each.is_whole
        assert each.first_content_ns is not None
        assert each.last_content_ns is not None
        assert each.first_content_ns - each.last_byte_ns >= 20 * MS
        assert each.last_content_ns - each.last_byte_ns >= 35 * MS


def test_memory_that_grows_or_a_lost_stream_fails_the_soak() -> None:
    flat = [soak.Sample(float(at), 50 << 20) for at in range(200)]
    growing = [soak.Sample(float(at), (50 << 20) + (at << 16)) for at in range(200)]
    log = ServerLog([served(0, at_ms=0), served(1, at_ms=200_000)], [])
    both = {"worker": flat, "load generator": flat}
    assert soak.judged(both, log, {"complete": 9}, asked=9, concurrency=1)[1]
    assert not soak.judged({**both, "worker": growing}, log, {"complete": 9}, asked=9, concurrency=1)[1]
    assert not soak.judged(both, log, {"complete": 8, "failed, closed": 1}, asked=9, concurrency=1)[1]
    assert not soak.judged({**both, "load generator": []}, log, {"complete": 9}, asked=9, concurrency=1)[1]


def test_the_cost_of_a_command_includes_a_child_that_outlived_its_parent(tmp_path: Path) -> None:
    spin = "import time; until = time.process_time() + 0.3\nwhile time.process_time() < until: pass"
    out = tmp_path / "cost.json"
    command = [sys.executable, str(Path(process_tree.__file__)), str(out), "--", "bash", "-c", '"$0" -c "$1" & exit 3']
    done = subprocess.run([*command, sys.executable, spin], check=False)
    cost = json.loads(out.read_text("utf-8"))
    assert (done.returncode, cost["exit_code"]) == (3, 3)
    assert 0.3 <= cost["cpu_s"] < 3.0
    assert cost["curve"][0][1] < cost["curve"][-1][1] <= cost["cpu_s"] + 0.1
