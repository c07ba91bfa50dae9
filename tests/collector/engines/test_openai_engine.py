"""The request engine against a scripted server: prompts, cold requests, warm-up, records, and a server's end."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from stub_server import Reply, Seen, StubServer, chat, completion, metrics_text, plain, stream, usage
from tiny_tokenizer import tiny_tokenizer, write_tokenizer_folder

from collector.client.messages import Exchange
from collector.client.process import LoadGenerator
from collector.clock import SystemClock
from collector.contract.errors import DossierError
from collector.contract.protocol import EngineChoice, Generation, Limits, Model, ServerChoice, VariantChoice
from collector.contract.records import ClientWindow, Scrape, ServerClaim
from collector.contract.records import Warning as WarningRecord
from collector.engines import openai_engine
from collector.engines._server_watch import ServerWatch
from collector.engines._serving import ROUNDS, is_settled
from collector.engines.base import RELOAD, Answer, EngineSetup, ExampleTurn, Load, Prompt
from collector.engines.faults import EngineFault, ServerLost

STUB = Path(__file__).parents[2] / "helpers" / "stub_server.py"
PROMPTS = [Prompt(document_id=f"d{number}", system="Be short.", user=f"Bill {number}") for number in range(4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A protocol's folder with the models `model` (with a chat template) and `base` (without)."""
    root = tmp_path_factory.mktemp("served")
    write_tokenizer_folder(root / "model")
    write_tokenizer_folder(root / "base", template=None)
    return root


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_tokenizer()


class Shared(LoadGenerator):
    """One load generator for many passes: starting a process for each test says nothing more."""

    def close(self) -> None:
        """It is ended with the module's last test."""


@pytest.fixture(scope="module")
def generator() -> Iterator[Shared]:
    shared = Shared()
    yield shared
    LoadGenerator.close(shared)


@pytest.fixture
def own_generator(monkeypatch: pytest.MonkeyPatch, engines: Any) -> None:
    """For what breaks off in the middle of a job."""
    monkeypatch.setattr(openai_engine, "LoadGenerator", LoadGenerator)


@pytest.fixture
def engines(
    folder: Path, generator: Shared, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., openai_engine.OpenAiEngine]]:
    """Make an engine and load it: `engines(stub, kind="vllm", cold_by="nonce")`; each is closed at the end."""
    made: list[openai_engine.OpenAiEngine] = []
    monkeypatch.setattr(openai_engine, "LoadGenerator", lambda: generator)

    def make(stub: StubServer | None = None, **more: Any) -> openai_engine.OpenAiEngine:
        engine = openai_engine.create(setup_of(folder, stub, **more), SystemClock())
        assert isinstance(engine, openai_engine.OpenAiEngine)
        made.append(engine)
        engine.load()
        return engine

    yield make
    for engine in made:
        engine.close()


def setup_of(
    folder: Path, stub: StubServer | None, *, model_folder: str = "model", label: str = "served/1/1",
    stop_after: list[str] | None = None, request_s: float = 20.0, warmup_s: float = 60.0, **choice: Any,
) -> EngineSetup:  # fmt: skip
    place = {"url": stub.base_url} if stub is not None else {}
    server = ServerChoice(**{"name": "stub", "kind": "vllm", **place, **choice})
    return EngineSetup(
        base_dir=str(folder), model=Model(id=model_folder), engine=EngineChoice(name="openai", server=server),
        variant=VariantChoice(name="served", server="stub"),
        generation=Generation(max_new_tokens=8, stop_after=stop_after or []),
        limits=Limits(request_s=request_s, warmup_s=warmup_s),
        device="cpu", pass_label=label,
    )  # fmt: skip


def asked(engine: openai_engine.OpenAiEngine, phase: Any = "measure", prompts: Any = None, **load: Any) -> list[Answer]:
    """Every answer to the prompts, in order of completion."""
    return list(engine.answers(engine.encode(PROMPTS if prompts is None else prompts), phase, Load(**load)))


def collect(answers: Iterator[Answer], into: list[Answer]) -> None:
    """Keep each answer as it comes, whatever follows."""
    into.extend(each for each in answers)


def evidence(answers: list[Answer]) -> set[str]:
    return {answer.wire.prompt_evidence for answer in answers if answer.wire is not None}


def ids_of(tokenizer: Any, messages: Any) -> list[int]:
    return list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))


def tokenize_page(tokenizer: Any, *, more: list[int] | None = None) -> Any:
    def page(seen: Seen) -> Reply:
        return plain(200, {"tokens": ids_of(tokenizer, seen.json["messages"]) + (more or [])})

    return page


def counted(tokenizer: Any, *, apart: int = 0) -> Callable[[Seen], Reply]:
    """An answer that counts the prompt's tokens as the model's tokenizer does, or so many more."""

    def reply(seen: Seen) -> Reply:
        prompt = len(ids_of(tokenizer, seen.json["messages"])) + apart
        return stream(chat("Hello", " world", counts=usage(prompt, 2)))

    return reply


def test_equal_ids_of_the_server_s_own_tokenizer_are_evidence(engines: Any, tokenizer: Any) -> None:
    with StubServer(pages={"/tokenize": tokenize_page(tokenizer)}) as stub:
        engine = engines(stub)
        answers = asked(engine)
        assert evidence(answers) == {"server_tokenizer"}
        assert {answer.wire.prompt_token_ids is None for answer in answers if answer.wire} == {True}
        assert stub.posts[0].json["messages"] == [
            {"role": "system", "content": "Be short."}, {"role": "user", "content": "Bill 0"},
        ]  # fmt: skip


def test_other_ids_of_the_server_s_tokenizer_are_recorded_as_what_the_model_saw(engines: Any, tokenizer: Any) -> None:
    with StubServer(pages={"/tokenize": tokenize_page(tokenizer, more=[7])}) as stub:
        answers = asked(engines(stub))
    assert evidence(answers) == {"differs"}
    for answer in answers:
        assert answer.wire is not None
        assert answer.wire.prompt_token_ids == [*answer.prompt.token_ids, 7]


def test_a_count_that_agrees_is_evidence_and_no_count_is_none(engines: Any, tokenizer: Any) -> None:
    with StubServer(counted(tokenizer)) as stub:
        assert evidence(asked(engines(stub))) == {"count"}
    with StubServer() as stub:
        assert evidence(asked(engines(stub))) == {"rendered"}


def test_a11_prompt_counts_far_apart_are_warned_of_once_with_both_numbers(
    engines: Any, tokenizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with StubServer(counted(tokenizer, apart=300)) as stub:
        answers = asked(engines(stub))
    assert evidence(answers) == {"differs"}
    local = len(answers[0].prompt.token_ids)
    assert {answer.wire.prompt_tokens for answer in answers if answer.wire} == {local + 300}
    warned = [record.getMessage() for record in caplog.records if record.name == "prompt_count"]
    assert len(warned) == 1
    assert "(vllm 0.0.stub)" in warned[0]
    assert f"(TokenizersBackend of transformers {importlib.metadata.version('transformers')})" in warned[0]
    assert "in 4 of 4 requests" in warned[0]
    assert f"{local + 300} there, {local} here" in warned[0]


def test_a_difference_of_few_tokens_is_no_warning(
    engines: Any, tokenizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    long = [Prompt(document_id="long", system="", user="word " * 100)]
    with StubServer(counted(tokenizer, apart=3)) as stub:
        asked(engines(stub), prompts=long)
    assert [record for record in caplog.records if record.name == "prompt_count"] == []


def test_completions_send_the_very_token_ids(engines: Any) -> None:
    with StubServer() as stub:
        engine = engines(stub, endpoint="completions")
        answers = asked(engine)
        assert evidence(answers) == {"token_ids"}
        assert [post.json["prompt"] for post in stub.posts] == [each.token_ids for each in engine.encode(PROMPTS)]
        assert {post.path for post in stub.posts} == {"/v1/completions"}


def test_a_kind_that_takes_no_ids_gets_the_rendered_text(engines: Any) -> None:
    with StubServer() as stub:
        engine = engines(stub, endpoint="completions", kind="other")
        asked(engine, prompts=PROMPTS[:1])
        assert stub.posts[0].json["prompt"].endswith("<|user|>Bill 0\n<|assistant|>")


def test_worked_examples_are_turns_of_the_chat(engines: Any) -> None:
    prompt = Prompt(document_id="e", system="", user="Bill", examples=[ExampleTurn(user="one", answer="1")])
    with StubServer() as stub:
        asked(engines(stub), prompts=[prompt])
        assert [each["role"] for each in stub.posts[0].json["messages"]] == ["user", "assistant", "user"]


class PrefixCache:
    """A server that finds nine tenths of any prompt that it saw under the same salt."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.known = tokenizer, set[str]()

    def __call__(self, seen: Seen) -> Reply:
        body = seen.json
        key = hashlib.sha256(json.dumps([body["messages"], body.get("cache_salt")]).encode()).hexdigest()
        size = len(ids_of(self.tokenizer, body["messages"]))
        cached = size * 9 // 10 if key in self.known else 0
        self.known.add(key)
        return stream(chat("Hello", counts=usage(size, 1, cached=cached)))


@pytest.mark.parametrize("kind", ["vllm", "other"])
def test_a13_a_second_run_of_the_same_prompts_finds_nothing_in_the_server_s_cache(
    engines: Any, tokenizer: Any, kind: str
) -> None:
    with StubServer(PrefixCache(tokenizer)) as stub:
        first, second = asked(engines(stub, kind=kind)), asked(engines(stub, kind=kind))
    assert {answer.wire.cached_tokens for answer in [*first, *second] if answer.wire} == {0}
    assert evidence(second) == {"count"}


def test_a13_a_warm_server_is_declared_and_its_reuse_is_recorded(engines: Any, tokenizer: Any) -> None:
    with StubServer(PrefixCache(tokenizer)) as stub:
        engine = engines(stub, cache_state="warm")
        asked(engine)
        again = asked(engine)
    shares = [answer.wire.cached_tokens / answer.wire.prompt_tokens for answer in again if answer.wire]
    assert all(0.8 < share <= 0.9 for share in shares)


def test_a_nonce_stands_in_front_of_the_first_message_and_its_tokens_are_told(engines: Any, tokenizer: Any) -> None:
    with StubServer(counted(tokenizer)) as stub:
        answers = asked(engines(stub, kind="other"))
        heads = [post.json["messages"][0]["content"] for post in stub.posts]
        assert all(head.endswith("]\nBe short.") for head in heads)
        assert len({head.split("\n")[0] for head in heads}) == len(PROMPTS)
        assert "cache_salt" not in stub.posts[0].json
    for answer in answers:
        assert answer.wire is not None
        assert answer.wire.nonce_tokens == len(heads[0]) - len("Be short.")
        assert answer.wire.prompt_tokens == len(answer.prompt.token_ids) + answer.wire.nonce_tokens
        assert answer.wire.prompt_token_ids is not None, "the model saw other tokens than the document's own"
        assert len(answer.wire.prompt_token_ids) == answer.wire.prompt_tokens


def test_llama_cpp_and_transformers_need_neither_nonce_nor_salt(engines: Any) -> None:
    for kind, fields in (("llamacpp", {"cache_prompt": False}), ("transformers", {})):
        with StubServer() as stub:
            asked(engines(stub, kind=kind, model="stub"), prompts=PROMPTS[:1])
            body = stub.posts[0].json
        assert body["messages"][0]["content"] == "Be short."
        assert {name: body[name] for name in ("cache_prompt", "cache_salt") if name in body} == fields


def test_a16_a_slow_start_is_over_before_anything_is_measured(engines: Any) -> None:
    slow = [stream(chat("Hello"), first_ms=150)] * 5
    with StubServer([*slow, stream(chat("Hello"), first_ms=3)]) as stub:
        engine = engines(stub)
        warm = asked(engine, "warmup", PROMPTS[:2])
        measured = asked(engine)
    assert len(warm) >= 5
    assert first_ms(warm[0]) > 140
    assert median(map(first_ms, measured)) < 140


def test_a_warm_up_ends_after_its_rounds_and_says_that_it_did_not_settle(
    engines: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rising = [stream(chat("Hello"), first_ms=4 * 2**place) for place in range(ROUNDS)]
    with StubServer([each for each in rising for _ in range(2)]) as stub:
        warm = asked(engines(stub), "warmup", PROMPTS[:1])
    assert len(warm) == 2 * ROUNDS
    assert [record.name for record in caplog.records if "may still change" in record.getMessage()] == ["warmup"]


def test_a_warm_up_ends_at_half_of_its_time_limit(engines: Any, caplog: pytest.LogCaptureFixture) -> None:
    with StubServer() as stub:
        warm = asked(engines(stub, warmup_s=0.001), "warmup", PROMPTS[:2])
    assert len(warm) == 2
    assert ["after 1 rounds" in record.getMessage() for record in caplog.records if record.name == "warmup"] == [True]


def test_a_warm_up_is_settled_when_two_rounds_after_the_first_agree() -> None:
    assert not is_settled([100.0, 100.0])
    assert is_settled([100.0, 50.0, 51.0])
    assert not is_settled([100.0, 50.0, 60.0])


def test_a_warm_up_leaves_one_window_of_the_client(engines: Any) -> None:
    with StubServer() as stub:
        engine = engines(stub)
        asked(engine, "warmup", PROMPTS[:2], concurrency=2)
        windows = [each for each in engine.records() if isinstance(each, ClientWindow)]
        asked(engine, concurrency=2)
        windows += [each for each in engine.records() if isinstance(each, ClientWindow)]
    assert [(each.phase, each.in_flight_max) for each in windows] == [("warmup", 2), ("measure", 2)]


def first_ms(answer: Answer) -> float:
    assert answer.first_token_ns is not None
    assert answer.sent_ns is not None
    return (answer.first_token_ns - answer.sent_ns) / 1e6


def refusing_usage(seen: Seen) -> Reply:
    if "stream_options" in seen.json:
        return plain(400, {"error": {"message": "Extra inputs are not permitted: stream_options", "code": 400}})
    return stream(chat("Hello"))


def test_a27_a_server_that_refuses_stream_options_is_asked_once_more_without_and_it_is_remembered(
    engines: Any,
) -> None:
    with StubServer(refusing_usage) as stub:
        engine = engines(stub, kind="other")
        warm = asked(engine, "warmup", PROMPTS[:2])
        measured = asked(engine)
        refused = [post for post in stub.posts if "stream_options" in post.json]
    assert [answer.request_outcome for answer in warm[:4]] == ["failed", "failed", "completed", "completed"]
    assert [answer.is_final for answer in warm[:4]] == [False, False, True, True]
    assert len(refused) == 2
    assert [answer.request_outcome for answer in measured] == ["completed"] * 4


def test_another_refusal_is_a_failure_and_asked_once_more_only(engines: Any) -> None:
    with StubServer([plain(400, {"error": {"message": "no such model", "code": 400}})]) as stub:
        answers = asked(engines(stub), prompts=PROMPTS[:1])
    assert [answer.is_final for answer in answers] == [False, True]
    assert answers[-1].request_outcome == "failed"
    assert "no such model" in (answers[-1].failure_message or "")


@pytest.mark.usefixtures("own_generator")
def test_a_killed_server_leaves_partial_text_quick_failures_and_its_last_words(engines: Any) -> None:
    engine = engines(
        start=[sys.executable, str(STUB), "--port", "{port}", "--exit-after", "2"], kind="other", model="stub",
        retries=3, retry_wait_s=2.0,
    )  # fmt: skip
    began, answers = time.monotonic(), list[Answer]()
    with pytest.raises(EngineFault, match=r"'stub' ended with exit code \d") as ended:
        collect(engine.answers(engine.encode(PROMPTS), "measure", Load()), answers)
    assert time.monotonic() - began < 8
    assert ended.value.cause == "crashed"
    assert [answer.request_outcome for answer in answers if answer.is_final] == ["completed", *["failed"] * 3]
    cut = next(answer for answer in answers if answer.request_outcome == "failed")
    assert (cut.text, cut.failure_cause) == ("t0 t1 ", "connection")


@pytest.mark.usefixtures("own_generator")
def test_a_server_at_a_url_that_is_gone_ends_the_pass_with_its_cause(engines: Any) -> None:
    with StubServer([stream(chat("Hello"), first_ms=50)]) as stub:
        engine = engines(stub)
        prompts = engine.encode([Prompt(document_id=f"p{n}", system="", user="x") for n in range(12)])
        answers = engine.answers(prompts, "measure", Load())
        assert next(answers).request_outcome == "completed"
        stub.stop_now()
        rest: list[Answer] = []
        with pytest.raises(EngineFault, match="takes no connection any more") as gone:
            collect(answers, rest)
    assert gone.value.cause == "connection"
    assert len(rest) == 11
    assert {answer.failure_cause for answer in rest[1:]} == {"connection"}
    assert "not sent" in (rest[-1].failure_message or "")


def test_one_request_without_a_connection_is_no_lost_server_while_it_answers(engines: Any) -> None:
    with StubServer() as stub:
        engine = engines(stub)
        parts = engine._parts
        watch = ServerWatch(parts[0])
        unconnected = Exchange(number=0, try_index=0, is_final=True, intended_ns=0, ending="connect_failed")
        assert not watch.is_gone(unconnected)
        watch.require_there()
        stub.stop_now()
        with pytest.raises(ServerLost, match="takes no connection any more"):
            watch.require_there()


def status_after(good: int, status: int, tokenizer: Any) -> Callable[[Seen], Reply]:
    """So many answers, and then only a status whose words repeat the key that they were sent."""
    answer, count = counted(tokenizer), iter(range(1000))

    def reply(seen: Seen) -> Reply:
        time.sleep(0.01)
        key = seen.headers.get("authorization", "")
        return answer(seen) if next(count) < good else plain(status, {"error": {"message": f"no such key: {key}"}})

    return reply


MANY = [Prompt(document_id=f"d{number}", system="", user=f"Bill {number}") for number in range(40)]


@pytest.mark.usefixtures("own_generator")
@pytest.mark.parametrize(("good", "status", "needed"), [(0, 401, 5), (0, 403, 5), (3, 401, 8), (3, 403, 40)])
def test_a_refused_key_ends_the_pass_after_few_requests_and_is_told_by_its_variable(
    engines: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch, good: int, status: int, needed: int
) -> None:
    """403 may be said of one document's content: after a complete answer it is that document's result."""
    monkeypatch.setenv("STUB_KEY", "not-to-be-seen")
    answers: list[Answer] = []
    with StubServer(status_after(good, status, tokenizer)) as stub:
        engine = engines(stub, kind="other", model="stub", key_env="STUB_KEY")
        given = engine.answers(engine.encode(MANY), "measure", Load())
        if needed == len(MANY):
            collect(given, answers)
        else:
            with pytest.raises(ServerLost, match=f"refused 5 requests in a row with HTTP {status}") as caught:
                collect(given, answers)
            assert "check the value of STUB_KEY in the shell that starts the run" in caught.value.next_step
            assert caught.value.cause == "protocol"
        sent = len(stub.posts)
    assert sent == needed or needed < sent < len(MANY)
    assert len(answers) == len(MANY), "every document has its row"
    words = [answer.failure_message for answer in answers if answer.failure_message]
    assert any("no such key: Bearer [STUB_KEY]" in each for each in words)
    assert "not-to-be-seen" not in str(words)
    assert sum("not sent" in each for each in words) == len(MANY) - sent, "what was sent is told as it ended"


@pytest.mark.usefixtures("own_generator")
def test_a34_a_pass_ends_after_so_many_failures_in_a_row_as_its_protocol_allows(engines: Any, tokenizer: Any) -> None:
    broken = stream([b"data: {broken\n\n"])
    answer, count = counted(tokenizer), iter(range(1000))

    def reply(seen: Seen) -> Reply:
        time.sleep(0.01)
        return answer(seen) if next(count) == 2 else broken

    for limit, load in ((3, Load()), (3, Load(concurrency=8, rate_per_s=80.0, arrivals="constant")), (None, Load())):
        count, answers = iter(range(1000)), list[Answer]()
        with StubServer(reply) as stub:
            engine = engines(stub, kind="other", model="stub", stop_after_failures=limit)
            given = engine.answers(engine.encode(MANY), "measure", load)
            if limit is None:
                collect(given, answers)
            else:
                with pytest.raises(ServerLost, match=r"3 requests in a row failed, .*cannot be read") as caught:
                    collect(given, answers)
                assert caught.value.cause == "format"
            sent = len(stub.posts)
            assert sent == len(MANY) if limit is None else 6 <= sent < len(MANY)
        outcomes = Counter((each.request_outcome, each.failure_cause, each.sent_ns is None) for each in answers)
        tried = {("completed", None, False): 1, ("failed", "format", False): sent - 1}
        assert outcomes == tried | ({("failed", "format", True): len(MANY) - sent} if limit else {})


_NOT_FOUND = plain(404, {"detail": "Not Found"})
_NO_MODEL = plain(400, {"error": {"message": "no model of this name " + 50 * "wordy "}})


@pytest.mark.usefixtures("own_generator")
@pytest.mark.parametrize(
    ("reply", "cause", "said", "step"),
    [
        (
            _NOT_FOUND,
            "protocol",
            'HTTP 404: {"detail": "Not Found"} (POST',
            "check url (scheme, host and port, without /v",
        ),
        (_NO_MODEL, "protocol", 'HTTP 400: {"error": {"message": "no model of', "check model, endpoint and body under"),
        (plain(422, "what is this?"), "protocol", "HTTP 422: what is this?", "check model, endpoint and body under"),
        (plain(307, ""), "protocol", "HTTP 307: no words", "check url"),
        (plain(500, "boom"), "engine_error", "HTTP 500: boom", "read what the server itself printed"),
        (
            stream([b"data: {broken\n\n"]),
            "format",
            "an event of the stream cannot be read",
            "answers a request by hand",
        ),
    ],
    ids=["404", "400", "422", "307", "500", "unreadable"],
)
def test_a_server_that_answers_no_request_of_the_warm_up_fails_the_pass_there_in_its_own_words(
    engines: Any, reply: Reply, cause: str, said: str, step: str
) -> None:
    with StubServer([reply]) as stub:
        engine = engines(stub, kind="other", model="stub")
        with pytest.raises(ServerLost, match="'stub' answered no request of the warm-up; the last: ") as caught:
            asked(engine, "warmup", PROMPTS[:1])
        url = f"(POST {stub.base_url}/v1/chat/completions)"
    assert caught.value.cause == cause
    assert said in caught.value.message
    assert caught.value.message.endswith(url)
    assert len(caught.value.message) < 200 + len(url) + 90, "of the body only its begin"
    assert step in caught.value.next_step
    assert caught.value.next_step.endswith("and continue the run with --resume")


@pytest.mark.usefixtures("own_generator")
@pytest.mark.parametrize(("good", "status", "needed"), [(0, 404, 5), (0, 422, 5), (1, 404, 40), (0, 429, 40)])
def test_without_a_warm_up_a_server_that_refuses_whatever_it_is_sent_is_asked_few_times(
    engines: Any, tokenizer: Any, good: int, status: int, needed: int
) -> None:
    """After an answer a refusal is about its document, and one that is only busy may answer the next."""
    answers: list[Answer] = []
    with StubServer(status_after(good, status, tokenizer)) as stub:
        engine = engines(stub, kind="other", model="stub")
        engine._parts[2]._writer.has_usage = False  # a 422 may be about that field, and is asked again without
        given = engine.answers(engine.encode(MANY), "measure", Load())
        if needed == len(MANY):
            collect(given, answers)
        else:
            with pytest.raises(ServerLost, match=f"refused 5 requests in a row with HTTP {status}"):
                collect(given, answers)
        sent = len(stub.posts)
    assert sent == needed or needed < sent < len(MANY)
    assert len(answers) == len(MANY), "every document has its row"


def test_a_warm_up_with_some_answers_goes_on_and_its_refusals_are_rows(engines: Any, tokenizer: Any) -> None:
    answer = counted(tokenizer)

    def reply(seen: Seen) -> Reply:
        return plain(400, "not this one") if "Bill 0" in seen.body.decode() else answer(seen)

    with StubServer(reply) as stub:
        engine = engines(stub, kind="other", model="stub")
        warm = [each for each in asked(engine, "warmup", PROMPTS[:2]) if each.is_final]
        measured = [each for each in asked(engine) if each.is_final]
    assert {each.request_outcome for each in warm} == {"completed", "failed"}
    assert Counter(each.request_outcome for each in measured) == {"completed": 3, "failed": 1}


def test_a_gateway_that_refuses_to_list_its_models_is_told_by_the_variable_of_its_key(
    engines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", "not-to-be-seen")
    page = {"/v1/models": plain(401, {"error": {"message": "who are you?"}})}
    with StubServer(pages=page) as stub, pytest.raises(EngineFault, match="HTTP 401: it refuses who asks") as caught:
        engines(stub, kind="other", key_env="STUB_KEY")
    assert "check the value of STUB_KEY" in caught.value.next_step
    assert "not-to-be-seen" not in str(caught.value)


def test_the_model_s_name_is_the_only_one_listed_or_must_be_named(engines: Any) -> None:
    with StubServer() as stub:
        asked(engines(stub), prompts=PROMPTS[:1])
        assert stub.posts[0].json["model"] == "stub"
    two = {"object": "list", "data": [{"id": "a"}, {"id": "b"}]}
    with StubServer(pages={"/v1/models": plain(200, two)}) as stub, pytest.raises(DossierError, match="2 models: a, b"):
        engines(stub)
    none = {"object": "list", "data": []}
    with StubServer(pages={"/v1/models": plain(200, none)}) as stub:
        with pytest.raises(DossierError, match=r"lists no model") as refused:
            engines(stub)
        assert "write model = " in refused.value.next_step
        asked(engines(stub, model="named"), prompts=PROMPTS[:1])
        assert stub.posts[0].json["model"] == "named"


def test_transformers_serve_is_asked_for_the_folder_that_it_was_started_with(folder: Path, engines: Any) -> None:
    engine = engines(
        start=[sys.executable, str(STUB), "--port", "{port}", "--text", "{model}"], kind="transformers"
    )  # fmt: skip
    answers = asked(engine, prompts=PROMPTS[:1])
    assert answers[0].text == str((folder / "model").resolve())
    variant, _ = engine.observe("loaded")
    assert set(variant.file_digests) >= {"tokenizer.json", "config.json"}


def test_a_body_is_greedy_bounded_streamed_and_the_protocol_s_own_fields_win(engines: Any) -> None:
    with StubServer() as stub:
        engine = engines(stub, body={"seed": 7, "max_completion_tokens": 8}, stop_after=["}"])
        asked(engine, prompts=PROMPTS[:1])
        body = stub.posts[0].json
    assert (body["temperature"], body["stream"], body["seed"], body["max_completion_tokens"]) == (0, True, 7, 8)
    assert "max_tokens" not in body
    assert (body["stop"], body["include_stop_str_in_output"]) == (["}"], True)
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


def test_keys_travel_in_headers_and_stand_nowhere_in_the_identity(
    engines: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", "not-to-be-seen")
    monkeypatch.setenv("STUB_TEAM", "hidden-team")
    more: dict[str, Any] = {"key_env": "STUB_KEY", "header_env": {"X-Team": "STUB_TEAM"}, "headers": {"X-Trial": "5"}}
    with StubServer() as stub:
        asked(engines(stub, **more), prompts=PROMPTS[:1])
        headers = stub.posts[0].headers
        told = openai_engine.identity(setup_of(folder, stub, **more))
    assert headers["authorization"] == "Bearer not-to-be-seen"
    assert (headers["x-team"], headers["x-trial"]) == ("hidden-team", "5")
    assert told.engine_flags["key_env"] == "STUB_KEY"
    assert told.engine_flags["header_env.X-Team"] == "STUB_TEAM"
    assert "not-to-be-seen" not in str(told)
    assert "hidden-team" not in str(told)


@pytest.mark.parametrize("value", ["not-to-be-seen\n", "not-to-be-seen\r\nX-More: 1", "not-to-be-seen…"])
def test_a_key_that_no_header_can_hold_is_an_error_that_does_not_repeat_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("STUB_KEY", value)
    with StubServer() as stub:
        with pytest.raises(DossierError, match="holds a character that HTTP does not allow") as refused:
            openai_engine.create(setup_of(folder, stub, key_env="STUB_KEY"), SystemClock())
        assert stub.seen == []
    assert "not-to-be-seen" not in f"{refused.value.message} {refused.value.next_step}"


def test_an_absent_key_is_an_error_before_anything_is_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUB_KEY", raising=False)
    with StubServer() as stub:
        with pytest.raises(DossierError, match="environment variable STUB_KEY, which is not set here"):
            openai_engine.create(setup_of(folder, stub, key_env="STUB_KEY"), SystemClock())
        assert stub.seen == []


def test_an_identity_names_no_folder_and_no_host_of_anybody(folder: Path) -> None:
    started = openai_engine.identity(
        setup_of(folder, None, start=["/home/me/bin/serve", "{model}"], environment={"CACHE": "/home/me/cache"})
    )  # fmt: skip
    assert (started.engine_name, started.engine_flags["start"]) == ("vllm", "serve '{model}'")
    assert started.engine_flags["environment.CACHE"] == "cache"
    away = openai_engine.identity(setup_of(folder, None, url="https://gpu7.example.org:8443/llm", kind="other"))
    assert (away.engine_name, away.engine_flags["url"]) == ("openai", "https://another-machine/llm")


def test_a_pass_leaves_claims_scrapes_and_windows_and_a_reload_none(engines: Any, tokenizer: Any) -> None:
    pages = {"/metrics": plain(200, metrics_text({"vllm:num_requests_running": 1.0}))}
    with StubServer(counted(tokenizer), pages=pages) as stub:
        engine = engines(stub)
        warm = asked(engine, "warmup") and engine.records()
        asked(engine)
        records = engine.records()
        again = engines(stub, label=f"served/1/1{RELOAD}")
        asked(again, "reload")
        assert again.records() == []
    assert [each.claims["version"] for each in warm if isinstance(each, ServerClaim)] == ["0.0.stub"]
    assert [each.scrape_moment for each in records if isinstance(each, Scrape)] == ["before", "after"]
    assert [each.phase for each in records if isinstance(each, ClientWindow)] == ["measure"]
    assert [each for each in records if isinstance(each, WarningRecord)] == []
    assert [each for each in warm if isinstance(each, Scrape)] == [], "the warm-up's pages are of no window"
    assert engine.records() == []


def test_a_server_on_another_machine_is_recorded_as_not_seen(engines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.server_process.is_loopback", lambda host: False)
    with StubServer() as stub:
        warned = [each for each in engines(stub).records() if isinstance(each, WarningRecord)]
    assert [(each.warning_class, each.phase) for each in warned] == [("server_not_seen", "load")]


def test_a_variant_behind_a_server_says_what_is_claimed_and_leaves_unknown_what_nobody_could_see(engines: Any) -> None:
    with StubServer() as stub:
        variant, groups = engines(stub).observe("after_warmup")
    assert groups == []
    assert (variant.cache_kind, variant.weight_bytes, variant.file_digests) == ("engine", None, {})
    assert variant.missing["weight_bytes"] == "not_exposed_by_engine"
    assert variant.observed["claimed_version"] == "0.0.stub"
    assert variant.requested["server"] == "stub"
    assert variant.tokenizer_digest is not None


def test_answers_of_another_model_than_the_asked_one_are_a_deviation_once_the_warm_up_is_over(engines: Any) -> None:
    with StubServer() as stub:
        engine = engines(stub, kind="other", model="asked")
        assert engine.observe("loaded")[0].deviations == ["model: requested asked, the server lists stub"]
        asked(engine, "warmup", prompts=PROMPTS[:1])
        variant, _ = engine.observe("after_warmup")
    assert variant.deviations == ["model: requested asked, answers name stub"]
    assert variant.observed["answering_model"] == "stub"


def test_a_model_that_a_server_does_not_hold_is_refused_before_anything_is_asked(engines: Any) -> None:
    with StubServer() as stub, pytest.raises(DossierError, match="lists stub, and the protocol asks for the model"):
        engines(stub, kind="llamacpp", model="other")
    assert stub.posts == []


def test_a_prompt_that_does_not_fit_is_not_sent(engines: Any) -> None:
    long = Prompt(document_id="long", system="", user="x" * 2050)
    with StubServer() as stub:
        answers = asked(engines(stub), prompts=[PROMPTS[0], long])
        assert len(stub.posts) == 1
    assert {answer.prompt.document_id: answer.request_outcome for answer in answers} == {
        "long": "too_long", "d0": "completed",
    }  # fmt: skip


def models_page(context_tokens: int) -> dict[str, Any]:
    return {"/v1/models": plain(200, {"data": [{"id": "stub", "max_model_len": context_tokens}]})}


def test_the_context_that_a_server_claims_bounds_what_is_sent_to_it(engines: Any) -> None:
    size = 10  # the tokens of start, user and assistant, and one for each byte of "Bill 0\n"
    prompts = [Prompt(document_id=name, system="", user=name) for name in ("Bill 0", "Bill 10")]
    with StubServer(pages=models_page(size + 8)) as stub:
        answers = asked(engines(stub), prompts=prompts)
        assert [post.json["messages"][-1]["content"] for post in stub.posts] == ["Bill 0"]
    [refused] = [answer for answer in answers if answer.request_outcome == "too_long"]
    assert refused.failure_message == (
        f"{size + 1} prompt tokens + 8 output tokens exceed the context of {size + 8} tokens"
    )


def test_a_nonce_and_the_server_s_own_tokens_count_in_what_must_fit(engines: Any, tokenizer: Any) -> None:
    own = [Prompt(document_id="d0", system="", user="Bill 0")]
    with StubServer(counted(tokenizer)) as stub:
        [plainly] = asked(engines(stub), prompts=own)
        [nonced] = asked(engines(stub, cold_by="nonce"), prompts=own)
    assert plainly.wire is not None
    assert nonced.wire is not None
    assert nonced.wire.nonce_tokens
    fits = len(plainly.prompt.token_ids) + 8
    pages = models_page(fits + nonced.wire.nonce_tokens - 1)
    with StubServer(counted(tokenizer), pages=pages) as stub:
        assert [each.request_outcome for each in asked(engines(stub), prompts=own)] == ["completed"]
        assert [each.request_outcome for each in asked(engines(stub, cold_by="nonce"), prompts=own)] == ["too_long"]
    pages = models_page(fits) | {"/tokenize": tokenize_page(tokenizer, more=[7])}
    with StubServer(counted(tokenizer), pages=pages) as stub:
        assert [each.request_outcome for each in asked(engines(stub), prompts=own)] == ["too_long"]
        assert stub.posts == []


def test_batches_are_the_server_s_own_business(engines: Any) -> None:
    with StubServer() as stub:
        engine = engines(stub)
        with pytest.raises(DossierError, match="puts its batches together itself"):
            asked(engine, batch=2)


def test_a_model_without_a_template_is_for_completions(engines: Any) -> None:
    with StubServer([stream(completion("ok"))]) as stub:
        with pytest.raises(DossierError, match="no chat template"):
            engines(stub, model_folder="base")
        answers = asked(engines(stub, model_folder="base", endpoint="completions"), prompts=PROMPTS[:1])
    assert answers[0].text == "ok"


def test_neither_torch_nor_transformers_is_imported_to_plan_check_or_name_a_server() -> None:
    code = (
        "import sys, collector.cli, collector.runner, collector.server_rules, collector.engines.openai_engine as e;"
        "from collector.engines.base import EngineSetup; from collector.contract.protocol import *;"
        "e.identity(EngineSetup(base_dir='.', model=Model(id='m'), engine=EngineChoice(name='openai', "
        "server=ServerChoice(name='s', url='http://127.0.0.1:1')), variant=VariantChoice(name='v'), "
        "generation=Generation(max_new_tokens=1), limits=Limits(), device='cpu', pass_label='v/1/1'));"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
