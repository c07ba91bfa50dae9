"""The scripted engine obeys its script: times, answers, failures, and errors that name the place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.clock import FakeClock
from collector.contract.errors import Refused
from collector.engines import engine_module
from collector.engines._script import EventScript, read_script
from collector.engines.base import Answer, Load, Prompt
from collector.engines.scripted_engine import ScriptedEngine, encoder, identity, perform, script_path

MS = 1_000_000


def engine_of(trial: Any, label: str = "fp32/1/1", clock: FakeClock | None = None) -> ScriptedEngine:
    engine = engine_module("scripted").create(trial.setup(label), clock or FakeClock())
    assert isinstance(engine, ScriptedEngine)
    return engine


def answers(engine: ScriptedEngine, *document_ids: str) -> list[Answer]:
    prompts = [Prompt(document_id=name, system="", user=f"text of {name}") for name in document_ids]
    return list(engine.answers(engine.encode(prompts), "measure"))


def test_stamps_stand_where_the_script_puts_them(make_trial: Callable[..., Any]) -> None:
    clock = FakeClock()
    trial = make_trial({"load_ms": 50, "defaults": {"first_token_ms": 5, "gap_ms": 2, "output_tokens": 3}})
    engine = engine_of(trial, clock=clock)
    engine.load()
    assert clock.monotonic_ns() == 50 * MS
    (answer,) = answers(engine, "d0")
    assert (answer.sent_ns, answer.first_token_ns, answer.last_token_ns) == (50 * MS, 55 * MS, 59 * MS)
    assert answer.gaps_ns == [2 * MS, 2 * MS]
    assert answer.output_tokens == 3


def test_expected_values_are_echoed_unless_a_nearer_layer_says_otherwise(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(
        {
            "defaults": {"gap_ms": 1},
            "documents": {"d1": {"replace": {"amount": "1"}}, "d2": {"text": "whole text"}},
            "passes": [
                {"match": "bf16/*", "defaults": {"gap_ms": 3}, "documents": {"d2": {"text": "of this pass"}}},
            ],
        }
    )
    said = {a.prompt.document_id: a.text for a in answers(engine_of(trial), "d0", "d1", "d2")}
    assert json.loads(said["d0"] or "") == {"date": "2026-03-01", "amount": "10.50"}
    assert json.loads(said["d1"] or "") == {"date": "2026-03-02", "amount": "1"}
    assert said["d2"] == "whole text"
    other = answers(engine_of(trial, "bf16/1/1"), "d0", "d2")
    assert other[0].gaps_ns == [3 * MS] * 3
    assert other[1].text == "of this pass"


def test_an_answer_without_content_is_an_answer_and_no_failure(make_trial: Callable[..., Any]) -> None:
    (answer,) = answers(engine_of(make_trial({"documents": {"d0": {"text": None}}})), "d0")
    assert (answer.text, answer.output_tokens, answer.request_outcome) == (None, 0, "completed")


def test_the_output_limit_cuts_an_answer(make_trial: Callable[..., Any]) -> None:
    (answer,) = answers(engine_of(make_trial({"documents": {"d0": {"text": "w " * 40}}})), "d0")
    assert (answer.output_tokens, answer.finish_reason, len((answer.text or "").split())) == (16, "length", 16)


def test_a_prompt_that_does_not_fit_is_never_sent(make_trial: Callable[..., Any]) -> None:
    trial = make_trial({"context_limit_tokens": 40})
    engine = engine_of(trial)
    (answer,) = engine.answers(engine.encode([Prompt(document_id="d0", system="s", user="w " * 30)]), "measure")
    assert (answer.request_outcome, answer.failure_cause, answer.sent_ns) == ("too_long", "too_long", None)


def test_a_slow_answer_ends_at_the_request_limit(make_trial: Callable[..., Any]) -> None:
    clock = FakeClock()
    trial = make_trial({"defaults": {"gap_ms": 400, "output_tokens": 9}}, limits="request_s = 1.0")
    (answer,) = answers(engine_of(trial, clock=clock), "d0")
    assert (answer.finish_reason, answer.failure_cause, answer.output_tokens) == ("timeout", "timeout", 3)
    assert clock.monotonic_ns() == 1000 * MS


def test_a_scripted_failure_is_an_answer_with_its_cause(make_trial: Callable[..., Any]) -> None:
    trial = make_trial({"documents": {"d0": {"failure_cause": "connection", "failure_message": "reset"}}})
    failed, right = answers(engine_of(trial), "d0", "d1")
    assert (failed.request_outcome, failed.failure_cause, failed.failure_message) == ("failed", "connection", "reset")
    assert right.request_outcome == "completed"


def test_facts_of_a_variant_come_from_the_script(make_trial: Callable[..., Any]) -> None:
    group = {"element_count": 10, "tensor_bytes": 20, "module_group": "embedding"}
    facts = {"parameter_count": 10, "weight_bytes": 20, "tensor_groups": [group]}
    variant, groups = engine_of(make_trial({"variants": {"bf16": facts}}), "bf16/1/1").observe("loaded")
    assert (variant.effective_bits, variant.dtype_bytes, variant.weight_storage) == (16.0, {"bfloat16": 20}, "bfloat16")
    assert [(g.module_group, g.tensor_bytes, g.observed_at) for g in groups] == [("embedding", 20, "loaded")]


@pytest.mark.parametrize(
    ("exception", "is_builtin"), [("ImportError", True), ("OutOfMemoryError", False), ("exit", False)]
)
def test_exceptions_are_builtin_or_carry_a_library_name(exception: str, is_builtin: bool) -> None:
    event = EventScript(at="load", do="raise", exception=exception, message="said")
    with pytest.raises(ImportError if is_builtin else RuntimeError, match="said") as caught:
        perform(event, FakeClock())
    assert type(caught.value).__name__ == exception


def test_memory_is_never_exhausted_without_a_limit() -> None:
    with pytest.raises(RuntimeError, match="address-space limit"):
        perform(EventScript(at="load", do="out_of_memory"), FakeClock())


def test_tokens_are_words_and_the_script_is_the_engine(make_trial: Callable[..., Any]) -> None:
    one, other = make_trial({"context_limit_tokens": 99}), make_trial({"context_limit_tokens": 98}, name="other")
    counter = encoder(one.setup("fp32/1/1"))
    (encoded,) = counter.encode([Prompt(document_id="d", system="be brief", user="two  words two")])
    assert len(encoded.token_ids) == 5
    assert encoded.token_ids[2] == encoded.token_ids[4]
    assert counter.context_limit_tokens() == 99
    assert identity(one.setup("fp32/1/1")) != identity(other.setup("fp32/1/1"))
    assert identity(one.setup("fp32/1/1")) == identity(one.setup("bf16/2/1"))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{"script_format": 1,\n "load_ms": }', "script.json:2: .*is not JSON"),
        ('{"script_format": 1, "answers_from": "\\ud800x"}', r"script\.json: \[script\] "),
        ('{"script_format": 1, "loud": 3}', "unknown field `loud`"),
        ('{"script_format": 1, "passes": [{"match": "*", "load_ms": -1}]}', r"\$\.passes\[0\]\.load_ms"),
        (
            '{"script_format": 1, "passes": [{"match": "*", "events": [{"at": "noon", "do": "hang"}]}]}',
            r"events\[0\].at",
        ),
        ('{"script_format": 1, "answers_from": "absent.json"}', "absent.json: .*No such file"),
    ],
)
def test_a_broken_script_is_refused_with_its_place(tmp_path: Path, content: str, place: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content)
    with pytest.raises(Refused, match=place):
        read_script(path)


def test_a_protocol_without_a_script_is_refused(make_trial: Callable[..., Any]) -> None:
    import msgspec

    setup = make_trial().setup("fp32/1/1")
    bare = msgspec.structs.replace(setup, engine=msgspec.structs.replace(setup.engine, script=None))
    with pytest.raises(Refused, match="has no script"):
        script_path(bare)


# batches


def batch(engine: ScriptedEngine, size: int, **texts: str) -> dict[str, Answer]:
    prompts = [Prompt(document_id=name, system="", user=text) for name, text in texts.items()]
    found = list(engine.answers(engine.encode(prompts), "measure", Load(batch=size)))
    assert len(found) == len(texts)
    return {answer.prompt.document_id: answer for answer in found}


def test_neighbours_in_prompt_length_share_a_batch_and_its_padding_is_counted(make_trial: Callable[..., Any]) -> None:
    engine = engine_of(make_trial(documents=5), "fp32~b2/1/1")
    found = batch(engine, 2, d0="w w w w w", d1="w", d2="w w w w", d3="w w", d4="w w w")
    assert {name: (a.batch_number, a.batch_row, a.padding_tokens) for name, a in found.items()} == {
        "d0": (0, 1, 0), "d2": (0, 0, 1), "d1": (1, 0, 0), "d3": (2, 0, 1), "d4": (2, 1, 0),
    }  # fmt: skip


def test_a_step_lasts_as_long_as_the_slowest_row_that_still_generates(make_trial: Callable[..., Any]) -> None:
    """d0 is slow and ends after two tokens; from then on d1 sets the pace."""
    documents = {
        "d0": {"first_token_ms": 5, "gap_ms": 7, "output_tokens": 2},
        "d1": {"first_token_ms": 3, "gap_ms": 1, "output_tokens": 4},
    }
    found = batch(engine_of(make_trial({"documents": documents}), "fp32~b2/1/1"), 2, d0="w", d1="w")
    assert [(a.first_token_ns, a.last_token_ns, a.done_ns) for a in found.values()] == [
        (5 * MS, 12 * MS, 14 * MS), (5 * MS, 14 * MS, 14 * MS),
    ]  # fmt: skip
    assert found["d1"].gaps_ns == [7 * MS, 1 * MS, 1 * MS]


def test_a_batch_over_its_time_limit_fails_the_rows_that_still_generate(make_trial: Callable[..., Any]) -> None:
    documents = {"d0": {"output_tokens": 1}, "d1": {"output_tokens": 9}}
    script = {"defaults": {"first_token_ms": 400, "gap_ms": 400}, "documents": documents}
    engine = engine_of(make_trial(script, limits="request_s = 1.0"), "fp32~b2/1/1")
    found = batch(engine, 2, d0="w", d1="w")
    assert {name: (a.request_outcome, a.output_tokens, a.finish_reason) for name, a in found.items()} == {
        "d0": ("completed", 1, "end_token"), "d1": ("failed", 2, "timeout"),
    }  # fmt: skip


def test_rows_that_fail_or_do_not_fit_generate_nothing_and_hold_up_no_other(make_trial: Callable[..., Any]) -> None:
    script = {"context_limit_tokens": 24, "documents": {"d1": {"failure_cause": "engine_error", "gap_ms": 900}}}
    found = batch(engine_of(make_trial(script), "fp32~b4/1/1"), 4, d0="w", d1="w", d2="w " * 9, d3="w")
    assert {name: (a.request_outcome, a.batch_row, a.sent_ns) for name, a in found.items()} == {
        "d0": ("completed", 0, 0), "d1": ("failed", 1, 0), "d2": ("too_long", 0, None), "d3": ("completed", 2, 0),
    }  # fmt: skip
    assert found["d3"].done_ns == 0


def test_labels_with_a_batch_are_addressed_apart_and_together(make_trial: Callable[..., Any]) -> None:
    passes = [
        {"match": "fp32~b4/*", "defaults": {"text": "four"}},
        {"match": "fp32~b*", "defaults": {"text": "any batch"}},
        {"match": "fp32/*", "defaults": {"text": "alone"}},
    ]
    trial = make_trial({"passes": passes})
    labels = ("fp32~b4/1/1", "fp32~b8/1/1", "fp32/1/1")
    said = [answers(engine_of(trial, label), "d0")[0].text for label in labels]
    assert said == ["four", "any batch", "alone"]


def test_an_answer_may_change_in_a_batch(make_trial: Callable[..., Any]) -> None:
    engine = engine_of(make_trial({"documents": {"d0": {"text": "one two", "text_in_batch": "one"}}}), "fp32~b2/1/1")
    assert answers(engine, "d0")[0].text == "one two"
    assert batch(engine, 2, d0="w", d1="w")["d0"].text == "one"


def test_an_event_of_a_phase_happens_once_however_often_answers_are_asked_for(make_trial: Callable[..., Any]) -> None:
    events = [{"at": "measure", "do": "raise", "exception": "OSError"}]
    engine = engine_of(make_trial({"passes": [{"match": "*", "events": events}]}))
    with pytest.raises(OSError, match="scripted"):
        answers(engine, "d0")
    assert answers(engine, "d0")[0].request_outcome == "completed"
