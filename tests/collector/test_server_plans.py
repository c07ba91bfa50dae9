"""What plan, check, doctor and device know of servers before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from collector import environment, nvidia
from collector.contract.protocol import EngineChoice, Protocol, ServerChoice, VariantChoice
from collector.doctor import examine_machine
from collector.environment import ELSEWHERE, SERVED, deciding_engine, require_device, resolve_device
from collector.estimate import Cost, Measured, Span
from collector.pilot import plan_report
from collector.plan import Chosen, is_loaded_anew
from collector.plan_text import load_lines, plan_lines, plan_values
from collector.protocol_file import load_protocol

STARTED = ServerChoice(name="own", kind="vllm", start=["vllm", "--port", "{port}"])
FOUND = ServerChoice(name="gateway", url="http://127.0.0.1:9")
SERVERS = """
[[server]]
name = "own"
kind = "vllm"
start = ["vllm", "serve", "{model}", "--port", "{port}"]
[[server]]
name = "gateway"
url = "http://127.0.0.1:9"
[[variant]]
name = "served"
server = "own"
[[variant]]
name = "away"
server = "gateway"
[plan]
concurrencies = [2]
rates = [0.5]
"""


def with_servers(text: str) -> str:
    return text.replace("[plan]\n", SERVERS)


@pytest.mark.parametrize(
    ("engine", "variants", "decides"),
    [
        (EngineChoice(name="transformers"), ["", "own"], "transformers"),
        (EngineChoice(name="scripted"), ["", "gateway"], "scripted"),
        (EngineChoice(name="openai", server=STARTED), [""], SERVED),
        (EngineChoice(name="openai", server=FOUND), ["", "own"], SERVED),
        (EngineChoice(name="openai", server=FOUND), [""], ELSEWHERE),
        (EngineChoice(name="transformers"), ["own", "gateway"], SERVED),
    ],
)
def test_the_device_is_that_of_what_computes_here(engine: EngineChoice, variants: list[str], decides: str) -> None:
    chosen = [VariantChoice(name=f"v{number}", server=name or None) for number, name in enumerate(variants)]
    assert deciding_engine(engine, [STARTED, FOUND], chosen) == decides


def test_a_started_server_is_on_the_driver_s_card_whatever_torch_is_built_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "has_cuda", lambda: True)
    monkeypatch.setattr(environment, "package_versions", lambda: {"torch": "2.13.0+cpu"})
    assert resolve_device("auto", SERVED) == "cuda:0"
    assert resolve_device("auto", "transformers") == "cpu"
    monkeypatch.setattr(environment, "package_versions", dict)
    assert resolve_device("auto", SERVED) == "cuda:0"
    monkeypatch.setattr(nvidia, "has_cuda", lambda: False)
    assert resolve_device("auto", SERVED) == "cpu"


def test_a_server_elsewhere_needs_no_card_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "has_cuda", lambda: True)
    assert resolve_device("auto", ELSEWHERE) == "cpu"
    require_device("cuda:3", ELSEWHERE)


def test_a_plan_names_each_load_and_estimates_an_open_loop_by_its_last_arrival(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(edit=with_servers)
    quick = Span(Fraction(1), Fraction(2), Fraction(3))
    costs = {Chosen(name): Cost(0, 0, 4, quick) for name in ("fp32", "bf16", "served", "away")}
    report = plan_report(trial.frozen.lock, Measured(costs, 1, 1, 1), wanted=4, folder=trial.folder)
    lines = "\n".join(plan_lines(report))
    assert "served, 2 requests at a time, series: 4 documents" in lines
    assert "away at 0.5 arrivals per second (poisson), series: 4 documents" in lines
    assert "and so do requests submitted together" in lines
    open_loops = [one for one in report.passes if one.planned.load.rate_per_s]
    assert [one.span.expected_ns for one in open_loops if one.span] == [4 * 2 * 10**9] * 2
    loads = {(each["variant"], each["concurrency"], each["rate_per_s"]) for each in plan_values(report)["passes"]}
    assert {("served", 2, None), ("away", 256, 0.5), ("fp32", 1, None)} <= loads
    assert set(report.reloads) == {"fp32", "bf16", "served"}, "what runs already is not loaded again"


def test_only_a_pass_that_starts_its_server_loads_the_variant(make_trial: Callable[..., Any]) -> None:
    lock = make_trial(edit=with_servers).frozen.lock
    assert [variant.name for variant in lock.plan.variants if is_loaded_anew(lock, variant)] == [
        "fp32", "bf16", "served",
    ]  # fmt: skip


def test_a_check_says_who_answers_for_whom_and_at_which_loads(make_trial: Callable[..., Any]) -> None:
    protocol: Protocol = load_protocol(make_trial(edit=with_servers).protocol).protocol
    said = list(load_lines(protocol))
    assert [line for line in said if line.startswith("  ")] == said[2:4], "not asked, and kept cold by a nonce"
    assert [line for line in said if not line.startswith("  ")] == [
        "server: own (vllm, started by each pass, which needs --allow-commands) answers for served",
        "server: gateway (other, which runs already) answers for away",
        "concurrencies: 2 requests at a time, after one at a time",
        "rates: 0.5 arrivals per second (poisson)",
    ]


def test_a_doctor_says_what_asking_a_server_lacks(
    make_trial: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trial = make_trial(edit=with_servers)
    monkeypatch.setattr("collector.engines.openai_engine.NEEDED", ("transformers", "no_such_package"))
    [lack] = examine_machine(tmp_path, protocol=trial.protocol).missing_for_a_run
    assert lack.message == "asking a server needs no_such_package"
