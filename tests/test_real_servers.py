"""Real servers by the sample's recipes: each starts, answers one streaming request, shows its metrics, and is gone.

Their environments are built by sample_runs/servers/environments.sh into .servers/ of the checkout; a test skips itself
where they are not there. Run one after the other, with -s to read the times.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from collector.contract.protocol import Protocol, ServerChoice
from collector.memory_server import ServerMeter, tree_bytes
from collector.server_claims import server_claim
from collector.server_process import RunningServer, start_server, wait_ready

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "sample_runs" / "engines"
MODEL = ROOT / ".cache" / "SmolLM2-135M-Instruct-Q4_1-as-float32"
METRICS = {
    "vllm": ("vllm:num_requests_running", "vllm:e2e_request_latency_seconds_count"),
    "llamacpp": ("llamacpp:requests_processing", "llamacpp:tokens_predicted_total"),
}
CLAIMED = {
    "vllm": {"version": "0.32.0", "model": "smol", "context_tokens": "2048", "cache_dtype": "auto"},
    "llamacpp": {"model_source": "SmolLM2-135M-Instruct.Q4_1.gguf", "context_tokens": "2048", "slots": "4"},
    "serve": {},
}

pytestmark = [pytest.mark.server, pytest.mark.slow]


def recipe(name: str) -> ServerChoice:
    """Return the recipe of the sample, or skip where its environment is not there."""
    protocol = msgspec.toml.decode((SAMPLE / "protocol.toml").read_bytes(), type=Protocol)
    choice = next(each for each in protocol.servers if each.name == name)
    if not Path(choice.start[0].format(base_dir=SAMPLE)).exists():
        pytest.skip(f".servers/{name} is not there: sample_runs/servers/environments.sh .servers")
    if not MODEL.is_dir():
        pytest.skip("the demo model is not there: make .cache/demo-model.path")
    return choice


@pytest.fixture(params=["vllm", "llamacpp", "serve"])
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    choice = recipe(request.param)
    running = start_server(choice, base_dir=SAMPLE, model=str(MODEL))
    try:
        wait_ready(running, path="/health", ready_s=240)
        yield running
    finally:
        running.stop()


def streamed(server: RunningServer) -> tuple[str, list[str]]:
    """Return the text and the data lines of one streamed chat answer."""
    body = {
        "model": str(MODEL) if server.name == "serve" else "smol",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "max_tokens": 8, "temperature": 0, "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    asked = urllib.request.Request(
        f"{server.base_url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=120) as answer:
        lines = [line.decode()[5:].strip() for line in answer if line.startswith(b"data:")]
    chunks = [json.loads(line) for line in lines if line != "[DONE]"]
    parts = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", [])]
    return "".join(parts), lines


def test_a_real_server_starts_answers_shows_its_metrics_says_what_it_is_and_leaves_no_process(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    processes = server.processes()
    meter = ServerMeter("cpu", lambda: server)
    meter.begin("measure")
    text, lines = streamed(server)
    readings = {(each.memory_scope, each.statistic): each.value_bytes for each in meter.end("measure")}
    # The 4-bit arithmetic of llama.cpp finds no Paris.
    assert "Paris" in text or server.name == "llamacpp"
    assert len(text) > 8
    assert len(lines) >= 5
    peak = readings["host", "peak"]
    assert peak is not None
    assert peak > 100 << 20, "the server's memory, not that of the process that asks"
    if server.name in METRICS:
        with urllib.request.urlopen(f"{server.base_url}/metrics", timeout=30) as page:
            metrics = page.read().decode()
        assert all(name in metrics for name in METRICS[server.name])
    claim = server_claim(server, recipe(server.name))
    assert claim.claims.items() >= CLAIMED[server.name].items()
    assert str(ROOT) not in str(claim.claims)
    assert claim.start_ns == server.start_ns
    listening = {
        connection.laddr.ip
        for each in processes
        for connection in each.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening <= {"127.0.0.1", "::1"}
    held_mib = tree_bytes(processes).value / 2**20
    began = time.monotonic()
    server.stop()
    with capsys.disabled():
        print(  # noqa: T201  # these times are what the test is run for
            f"\n{server.name}: ready after {(server.start_ns or 0) / 1e9:.1f} s, ended after "
            f"{time.monotonic() - began:.1f} s, {len(processes)} processes, {held_mib:.0f} MiB, peak "
            f"{peak / 2**20:.0f} MiB, listened on {sorted(listening)}, {claim.claims}"
        )
    assert not [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    assert not list(server._marked())
