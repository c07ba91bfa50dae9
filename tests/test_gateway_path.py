"""Edges of passes behind a server, from a protocol to its records: keys, TLS, a place that is not ours to restart."""

from __future__ import annotations

import html
import json
import re
import ssl
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from certificates import self_signed_certificate
from click.testing import Result
from command_line import done, run
from served_trial import collector_in_process, reading, records, write_trial
from stub_server import Reply, Seen, StubServer, plain
from tiny_tokenizer import tiny_tokenizer

from collector.client.schedule import due_offsets_ns
from reporter import cli as reporter_cli

STUB = Path(__file__).parent / "helpers" / "stub_server.py"
KEY, TEAM = "sk-never-to-be-written", "team-never-to-be-written"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_tokenizer()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    return collector_in_process(monkeypatch)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed_certificate(tmp_path_factory.mktemp("certificate"))


def tls_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def files_with(folder: Path, secret: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def words_of(page: Path) -> str:
    """A page's text, its marks left out."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))).split())


def gateway(stub: StubServer) -> str:
    return (
        f'url = "{stub.base_url}/llm"\nkey_env = "TRIAL_KEY"\nheader_env = {{ X-Team = "TRIAL_TEAM" }}\n'
        "has_chunk_capture = true"
    )


def test_a_gateway_s_key_and_secret_header_travel_over_tls_and_stand_in_no_file_and_no_message(
    tmp_path: Path, collector: Callable[..., Result], tokenizer: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TRIAL_KEY": KEY, "TRIAL_TEAM": TEAM, "SSL_CERT_FILE": str(certificate)}.items():
        monkeypatch.setenv(name, value)
    right = reading(tokenizer)

    def reply(seen: Seen) -> Reply:
        if "Bill 3 " in seen.json["messages"][-1]["content"]:
            said = f"quota of {seen.headers['authorization']} in {seen.headers['x-team']} is used up"
            return plain(500, {"error": {"message": said}})
        return right(seen)

    with StubServer(reply, tls=tls_context(certificate)) as stub:
        path = write_trial(tmp_path, gateway(stub), "warmup_requests = 1", documents=4, kind="other", reference="stub")
        ran = collector("run", path, "--out", tmp_path / "runs", "--device", "cpu")
        assert ran.exit_code == 0, ran.output
        assert {seen.path for seen in stub.posts} == {"/llm/v1/chat/completions"}
        assert {(seen.headers["authorization"], seen.headers["x-team"]) for seen in stub.posts} == {
            (f"Bearer {KEY}", TEAM)
        }
    page = tmp_path / "dossier.html"
    said = run(reporter_cli.main, "check", tmp_path / "runs").output
    said += done(reporter_cli.main, "html", tmp_path / "runs", "--campaign", tmp_path / "campaign.toml", "-o", page)
    failed = [each for each in records(tmp_path, "request") if each.request_outcome == "failed"]
    assert [(each.document_id, each.failure_cause) for each in failed] == [("d03", "engine_error")] * 3
    texts = "".join(each.read_text() for each in (tmp_path / "runs").glob("*.texts.jsonl"))
    assert "quota of Bearer [TRIAL_KEY] in [TRIAL_TEAM] is used up" in texts
    [steps] = (tmp_path / "runs").glob("*.steps.jsonl")
    cited = [each.steps_sha256 for each in records(tmp_path, "request") if each.steps_sha256 is not None]
    assert len(steps.read_text().splitlines()) == len(cited) > 8
    for secret in (KEY, TEAM):
        assert files_with(tmp_path, secret) == []
        assert secret not in ran.output + said
    assert files_with(tmp_path, "TRIAL_KEY"), "the variable is named"


def test_a_key_that_is_refused_stops_the_pass_early_and_names_its_variable_and_a_resumed_run_measures_it(
    tmp_path: Path, collector: Callable[..., Result], tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIAL_KEY", KEY)
    monkeypatch.setenv("TRIAL_TEAM", TEAM)
    right = reading(tokenizer)

    def reply(seen: Seen) -> Reply:
        is_known = seen.headers["authorization"] == "Bearer sk-good"
        refusal = plain(401, {"error": {"message": f"no: {seen.headers['authorization']}"}})
        return right(seen) if is_known else replace(refusal, head_delay_ms=50)

    with StubServer(reply) as stub:
        path = write_trial(
            tmp_path, gateway(stub), "warmup_requests = 2\nreference_runs = 1", documents=16, reference="stub"
        )
        command = ("run", path, "--out", tmp_path / "runs", "--device", "cpu")
        ran = collector(*command)
        assert ran.exit_code == 5, ran.output
        assert "served/1/1: failed, protocol" in ran.stdout
        asked = len(stub.posts)
        assert asked == 4, "the warm-up of each of two passes, of 36 that they would have sent"
        texts = "".join(each.read_text() for each in (tmp_path / "runs").glob("*.texts.jsonl"))
        advice = "check the value of TRIAL_KEY and TRIAL_TEAM in the shell that starts the run"
        assert advice in texts
        assert advice in ran.stderr
        assert 'HTTP 401: {"error": {"message": "no: Bearer [TRIAL_KEY]"}} (POST ' in ran.stderr
        monkeypatch.setenv("TRIAL_KEY", "sk-good")
        again = collector(*command, "--resume")
        assert again.exit_code == 0, again.output
        assert "served/1/2: completed" in again.stdout
    assert files_with(tmp_path, KEY) == files_with(tmp_path, "sk-good") == []
    assert "sealed" in run(reporter_cli.main, "check", tmp_path / "runs").output


def two_servers(stub: StubServer) -> str:
    """The first is named `stub`, of the kind that is given; the second keeps its requests cold by a field."""
    return (
        f'url = "{stub.base_url}"\n\n[[server]]\nname = "field"\nkind = "vllm"\nmodel = "stub"\nurl = "{stub.base_url}"'
    )


def test_a_server_that_runs_already_is_not_restarted_and_a_nonce_makes_its_answers_none_to_compare(
    tmp_path: Path, collector: Callable[..., Result], tokenizer: Any
) -> None:
    with StubServer(reading(tokenizer)) as stub:
        path = write_trial(
            tmp_path, two_servers(stub), "warmup_requests = 1\nconcurrencies = [2]", documents=4, kind="other",
            reference="field",
        )  # fmt: skip
        ran = collector("run", path, "--out", tmp_path / "runs", "--device", "cpu")
        assert ran.exit_code == 0, ran.output
    claims = records(tmp_path, "server_claim")
    assert len(claims) == 5
    assert {(each.is_started, each.start_ns) for each in claims} == {(False, None)}
    passes = {each.pass_id: each for each in records(tmp_path, "pass_begin")}
    measured = [each for each in records(tmp_path, "request") if each.phase == "measure"]
    own = {each.prompt_token_hmac for each in measured if passes[each.pass_id].variant_name == "fp32"}
    nonced = [each for each in measured if passes[each.pass_id].variant_name == "served"]
    assert len(own) == 4, "a request field leaves the tokens as they are"
    assert all(each.nonce_tokens for each in nonced)
    assert len({each.prompt_token_hmac for each in nonced} - own) == len(nonced) == 8
    assert len({each.prompt_hmac for each in measured}) == 4, "the rendered prompt of a document is one"
    page = tmp_path / "dossier.html"
    done(reporter_cli.main, "check", tmp_path / "runs")
    done(reporter_cli.main, "html", tmp_path / "runs", "--campaign", tmp_path / "campaign.toml", "-o", page)
    said = words_of(page)
    assert "4 of 4 prompts are not the reference's by their tokens: these answers are compared with none" in said
    assert "4 of 4 prompts had a line in front that no other request had" in said
    assert 'cache_state = "warm"' in said
    assert "The server saw other prompts than the reference" in said


@pytest.mark.parametrize("arrivals", ["poisson", pytest.param("constant", marks=pytest.mark.slow)])
def test_an_open_loop_that_loses_its_server_goes_on_with_the_same_arrivals_and_reaches_the_dossier(
    tmp_path: Path, collector: Callable[..., Result], tokenizer: Any, arrivals: str
) -> None:
    right = reading(tokenizer)
    plan = (
        f'warmup_requests = 0\nreference_runs = 1\nrates = [20.0, 40.0]\narrivals = "{arrivals}"\nin_flight_limit = 3'
    )
    lost: list[StubServer] = []

    def reply(seen: Seen) -> Reply:
        if lost and len(stub.posts) > 40:  # in the middle of the first open loop
            threading.Thread(target=lost.pop().stop_now).start()  # this runs in the stub's own loop
        answer = right(seen)
        return replace(answer, head_delay_ms=100)  # three at a time take 30 a second: 40 are too many

    with StubServer(reply) as stub:
        port = stub.port
        lost.append(stub)
        path = write_trial(tmp_path, two_servers(stub), plan, documents=16, kind="vllm", reference="field")
        command = ("run", path, "--out", tmp_path / "runs", "--device", "cpu")
        ran = collector(*command)
        assert ran.exit_code == 5, ran.output
    lost_passes = ["served~r20", "served~r40", "fp32~r40"]
    for label in ("fp32~r20", *lost_passes):
        assert f"{label}/1/1: failed, connection" in ran.stdout, "the first in its middle, the others found nobody"
    with StubServer(reply, port=port) as stub:
        again = collector(*command, "--resume")
        assert again.exit_code == 0, again.output
    for label in ("fp32~r20", *lost_passes):
        assert f"{label}/1/2: completed" in again.stdout
    begun = [each for each in records(tmp_path, "pass_begin") if each.rate_per_s is not None]
    assert len(begun) == 8
    assert {each.arrivals for each in begun} == {arrivals}
    assert len({each.arrival_seed for each in begun}) == 1
    assert len({tuple(each.document_order) for each in begun}) == 1
    last = [each for each in begun if each.attempt == 2]
    windows = {each.pass_id: each for each in records(tmp_path, "client_window") if each.phase == "measure"}
    for each in last:
        sent = sorted(
            one.intended_ns
            for one in records(tmp_path, "request")
            if one.pass_id == each.pass_id and one.phase == "measure"
        )
        due = due_offsets_ns(16, rate_per_s=each.rate_per_s, arrivals=arrivals, seed=each.arrival_seed)
        assert [one - sent[0] for one in sent] == [one - due[0] for one in due], (
            "latency counts from the plan's arrivals"
        )
    assert any("in_flight_limit" in windows[each.pass_id].limit_reasons for each in last), "a rate beyond what 3 take"
    page = tmp_path / "dossier.html"
    done(reporter_cli.main, "check", tmp_path / "runs")
    done(reporter_cli.main, "html", tmp_path / "runs", "--campaign", tmp_path / "campaign.toml", "-o", page)
    said = words_of(page)
    assert "Arrivals asked for and reached, open loop" in said
    assert "as many requests were under way as are allowed" in said


_OFFER = """[[candidate]]
id = "served"
label = "Our server, four at a time"
variant = "served"
device = "{device}"
concurrency = 4
offers = ["box"]
[[offer]]
id = "box"
provider = "Example Cloud"
device = "{device}"
pricing_class = "quote"
currency = "EUR"
price_3_days = "100"
tax_percent = "19"
basis = "example"
source = "made up"
retrieved = 2026-11-05
valid_until = 2026-12-14
"""


@pytest.mark.slow
def test_a_server_chosen_at_a_concurrency_is_confirmed_beside_the_reference_in_process(
    tmp_path: Path, collector: Callable[..., Result]
) -> None:
    text = '{"date": "2026-03-01", "amount": "10.50"}'
    start = [sys.executable, str(STUB), "--port", "{port}", "--text", text, "--first-ms", "20"]
    start += ["--prompt-tokens", "43"]  # of every document: `Bill 0` to `Bill 9`
    path = write_trial(
        tmp_path, f"start = {json.dumps(start)}", "reference_runs = 1\nwarmup_requests = 0\nconcurrencies = [4]",
        documents=6, is_scripted=False, of_test=4, expected={"date": "2026-03-01", "amount": "10.50"},
    )  # fmt: skip
    runs = ("--out", tmp_path / "runs", "--device", "cpu")
    ran = collector("run", path, *runs, "--allow-commands")
    assert ran.exit_code == 0, ran.output
    device = records(tmp_path, "device")[0].device_name
    campaign = tmp_path / "campaign.toml"
    campaign.write_text(campaign.read_text() + _OFFER.format(device=device))
    done(reporter_cli.main, "choose", tmp_path / "runs", "--campaign", campaign, "-o", tmp_path / "choice.json")
    assert json.loads((tmp_path / "choice.json").read_text())["chosen"]["concurrency"] == 4
    confirming = ("confirm", path, "--choice", tmp_path / "choice.json", *runs)
    refused = collector(*confirming)
    assert refused.exit_code == 2
    assert "give --allow-commands" in refused.output
    assert len(list((tmp_path / "runs").glob("*.texts.jsonl"))) == 1, "the test documents were not looked at"
    confirmed = collector(*confirming, "--allow-commands")
    assert confirmed.exit_code == 0, confirmed.output
    assert confirmed.stdout.splitlines()[1:3] == ["fp32/1/1: completed", "served~c4/1/1: completed"]
    [client] = [each for each in records(tmp_path, "client_window")[-1:] if each.phase == "measure"]
    assert client.in_flight_max == 4
    said = done(
        reporter_cli.main, "summary", tmp_path / "runs", "--campaign", campaign, "--choice", tmp_path / "choice.json"
    )
    assert "Confirmed on 4 test documents that had no part in the choice: 4 accepted" in said
