"""From a frozen protocol to a checked summary through a server: a reference in process, and a variant behind HTTP."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from command_line import done
from served_trial import collector_in_process, reading, records, write_trial
from stub_server import StubServer, metrics_text, plain
from tiny_tokenizer import tiny_tokenizer

from reporter import cli as reporter_cli

STUB = Path(__file__).parent / "helpers" / "stub_server.py"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_tokenizer()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    return collector_in_process(monkeypatch)


def test_one_protocol_runs_in_process_and_through_a_server_at_each_load(
    tmp_path: Path, collector: Callable[..., Result], tokenizer: Any
) -> None:
    pages: dict[str, Any] = {
        "/metrics": plain(200, metrics_text({"vllm:num_requests_running": 0.0})),
        "/tokenize": lambda seen: plain(
            200,
            {"tokens": list(tokenizer.apply_chat_template(
                seen.json["messages"], add_generation_prompt=True, return_dict=False
            ))},
        ),
    }  # fmt: skip
    with StubServer(reading(tokenizer), pages=pages) as stub:
        path = write_trial(
            tmp_path, f'url = "{stub.base_url}"', "concurrencies = [3]\nrates = [50.0]", is_scripted=False
        )
        planned = collector("plan", path).stdout
        assert "served, 3 requests at a time, series: 6 documents" in planned
        assert "served at 50 arrivals per second (poisson), series: 6 documents" in planned
        ran = collector("run", path, "--out", tmp_path / "runs", "--device", "cpu")
        assert ran.exit_code == 0, ran.output
        assert ran.stdout.splitlines()[1:6] == [
            f"{label}: completed" for label in ("fp32/1/1", "fp32/2/1", "served/1/1", "served~c3/1/1", "served~r50/1/1")
        ]
        assert stub.most_in_flight == 3
    assert "sealed" in done(reporter_cli.main, "check", tmp_path / "runs")
    done(reporter_cli.main, "summary", tmp_path / "runs", "--json")
    served = {each.pass_id for each in records(tmp_path, "pass_begin") if each.variant_name == "served"}
    whole = records(tmp_path, "request")
    requests = [each for each in whole if each.pass_id in served]
    assert {each.prompt_evidence for each in requests} == {"server_tokenizer"}
    assert {each.prompt_tokens == each.local_prompt_tokens for each in requests} == {True}
    hmacs = {(each.document_id, each.prompt_token_hmac) for each in whole if each.phase == "measure"}
    assert len(hmacs) == 6, "in process and through the server every document is the same tokens"
    accepted = Counter(each.pass_id for each in records(tmp_path, "score") if each.is_accepted)
    assert [accepted[pass_id] for pass_id in served] == [6, 6, 6]
    windows = [(each.pass_id, each.phase) for each in records(tmp_path, "client_window")]
    assert sorted(windows) == sorted((pass_id, phase) for pass_id in served for phase in ("warmup", "measure"))
    scrapes = records(tmp_path, "scrape")
    assert {each.scrape_moment for each in scrapes} == {"before", "after"}
    ends = {each.pass_id: each.pass_ns for each in records(tmp_path, "pass_end")}
    assert all(each.offset_ns < ends[each.pass_id] for each in scrapes)
    begun = {each.pass_id: each for each in records(tmp_path, "pass_begin")}
    assert {begun[pass_id].cache_state for pass_id in served} == {"cold"}
    assert {begun[pass_id].factor for pass_id in served} == {"several"}


def test_a_series_of_concurrency_is_run_alone(tmp_path: Path, collector: Callable[..., Result], tokenizer: Any) -> None:
    with StubServer(reading(tokenizer)) as stub:
        path = write_trial(tmp_path, f'url = "{stub.base_url}"', "concurrencies = [2]\nrates = [50.0]", documents=2)
        ran = collector("run", path, "--out", tmp_path / "runs", "--device", "cpu", "--series", "concurrency")
    assert ran.stdout.splitlines()[1:2] == ["served~c2/1/1: completed"]
    assert {each.prompt_evidence for each in records(tmp_path, "request")} == {"count"}


def test_a_server_killed_in_a_pass_leaves_causes_partial_texts_and_a_run_that_resumes(
    tmp_path: Path, collector: Callable[..., Result], texts_of: Callable[[Path], dict[str, str]]
) -> None:
    text = '{"date": "2026-03-01", "amount": "10.50"}'
    start = [sys.executable, str(STUB), "--port", "{port}", "--text", text, "--exit-after", "14"]
    path = write_trial(tmp_path, f"start = {json.dumps(start)}", "warmup_requests = 1", documents=10)
    refused = collector("run", path, "--out", tmp_path / "runs", "--device", "cpu")
    assert refused.exit_code == 2
    assert "is started by a command of the protocol" in refused.output
    assert not (tmp_path / "runs").exists()
    command = ("run", path, "--out", tmp_path / "runs", "--device", "cpu", "--allow-commands")
    ran = collector(*command)
    assert ran.exit_code == 5, ran.output
    assert "served/1/1: failed, crashed" in ran.stdout
    assert "not measured: served/1" in ran.stdout
    assert "open, a server was lost or answered nothing; continue with --resume" in ran.stdout
    run_file = next(each for each in (tmp_path / "runs").glob("*.jsonl") if each.suffixes == [".jsonl"])
    texts = texts_of(run_file)
    failed = [each for each in records(tmp_path, "request") if each.request_outcome == "failed"]
    assert failed
    assert {each.failure_cause for each in failed} == {"connection"}
    partial = [texts[each.answer_hmac] for each in failed if each.answer_hmac is not None]
    assert [text.startswith(each) for each in partial] == [True]
    [lost] = [each for each in records(tmp_path, "failure") if each.failure_scope == "pass"]
    assert (lost.exception_class, lost.phase, lost.failure_cause) == ("ServerLost", "measure", "crashed")
    again = collector(*command, "--resume")
    assert "served/1/2: failed, crashed" in again.stdout
    assert "sealed" in again.stdout, "lost twice, that is the result"
