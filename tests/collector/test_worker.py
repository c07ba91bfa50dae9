"""The worker: phases, what it records of requests, causes of failures, notes of libraries, and its death."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from collector.clock import FakeClock
from collector.contract.digests import text_hmac
from collector.contract.errors import MissingDependency
from collector.contract.records import GAP_BUCKET_BOUNDS_NS, AnyRecord, Failure, Reading, Request, TensorGroup, Variant
from collector.contract.records import Warning as WarningRecord
from collector.contract.records.base import ObservedAt, Phase
from collector.engines.base import ONE_AT_A_TIME, Answer, EncodedPrompt, Load, Padding, Prompt
from collector.events import (
    Answered,
    Event,
    Finished,
    PassJob,
    PhaseBegan,
    PhaseEnded,
    Recorded,
    WorkerFailed,
    decode_event,
    encode_event,
)
from collector.request_records import gap_counts
from collector.steady import is_steady
from collector.worker import JobRun, run_job
from collector.worker_faults import cause_of, cause_of_exit
from collector.worker_notes import MAX_DIFFERENT, NoteTaker, storable

SALT = bytes(32)


def job_of(trial: Any, label: str = "fp32/1/1", documents: int = 4) -> PassJob:
    prompts = [Prompt(document_id=f"d{index}", system="", user=f"text {index}") for index in range(documents)]
    return PassJob(
        pass_id="a" * 16, variant_id="b" * 16, setup=trial.setup(label), salt_hex=SALT.hex(),
        warmup=prompts[:1], measure=prompts,
    )  # fmt: skip


def events_of(trial: Any, meter: Any, clock: FakeClock | None = None, **more: Any) -> list[Event]:
    return list(run_job(job_of(trial, **more), clock=clock or FakeClock(1_000), meter=meter()))


def test_phases_follow_each_other_and_the_variant_is_read_back_between_them(
    make_trial: Callable[..., Any], fixed_meter: Any
) -> None:
    seen: list[str] = []
    for event in events_of(make_trial({"load_ms": 7}), fixed_meter):
        match event:
            case PhaseBegan(phase=phase):
                seen.append(f"{phase} begins")
            case PhaseEnded(phase=phase):
                seen.append(f"{phase} ends")
            case Recorded(record=Variant(observed_at=at)):
                seen.append(at)
            case Recorded(record=Reading(value_bytes=value)):
                seen.append(f"reading {value}")
            case Recorded(record=Request(document_id=name)) | Answered(record=Request(document_id=name)):
                seen.append(name)
            case Finished():
                seen.append("finished")
    assert seen == [
        "load begins", "load ends", "reading 1", "loaded",
        "warmup begins", "d0", "warmup ends", "reading 2", "after_warmup",
        "measure begins", "d0", "d1", "d2", "d3", "measure ends", "reading 3", "finished",
    ]  # fmt: skip


def test_stamps_count_from_the_beginning_of_the_pass(make_trial: Callable[..., Any], fixed_meter: Any) -> None:
    """The origin is the worker's first look at its clock, before load; load takes 7 ms here."""
    script = {"load_ms": 7, "defaults": {"first_token_ms": 2, "gap_ms": 1, "output_tokens": 3}}
    events = events_of(make_trial(script), fixed_meter, FakeClock(123_456_789))
    requests = [e.record for e in events if isinstance(e, Answered)]
    assert [r.sent_ns for r in requests] == [11_000_000, 15_000_000, 19_000_000, 23_000_000]
    assert requests[0].first_token_ns == 13_000_000
    assert requests[0].gap_max_ns == 1_000_000
    assert sum(requests[0].gap_counts) == 2
    assert [e.duration_ns for e in events if isinstance(e, PhaseEnded)] == [7_000_000, 4_000_000, 16_000_000]
    assert requests[0].missing == {
        "first_chunk_ns": "not_applicable", "padding_tokens": "not_applicable",
        "reasoning_tokens": "not_exposed_by_engine", "cached_tokens": "not_exposed_by_engine",
    }  # fmt: skip


def test_texts_travel_beside_the_record_under_their_hmac(make_trial: Callable[..., Any], fixed_meter: Any) -> None:
    answered = next(e for e in events_of(make_trial(), fixed_meter) if isinstance(e, Answered))
    kinds = {text.text_kind: text for text in answered.texts}
    assert set(kinds) == {"prompt", "token_ids", "answer"}
    assert answered.record.prompt_hmac == text_hmac(SALT, "text 0")
    assert answered.record.prompt_token_hmac == text_hmac(SALT, kinds["token_ids"].text)
    assert answered.record.answer_hmac == text_hmac(SALT, answered.answer_text or "")
    assert "text 0" not in str(answered.record)


def test_a_failed_request_has_a_failure_with_its_phase_and_the_pass_goes_on(
    make_trial: Callable[..., Any], fixed_meter: Any
) -> None:
    events = events_of(make_trial({"documents": {"d1": {"failure_cause": "connection"}}}), fixed_meter)
    (failure,) = [e.record for e in events if isinstance(e, Recorded) and isinstance(e.record, Failure)]
    assert (failure.failure_scope, failure.failure_cause, failure.phase) == ("request", "connection", "measure")
    assert failure.document_id == "d1"
    failed = next(e.record for e in events if isinstance(e, Answered) and e.record.document_id == "d1")
    assert failed.missing["output_tokens"] == "failed"
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize(
    ("at", "exception", "cause"),
    [
        ("load", "OSError", "load_failure"),
        ("load", "ImportError", "missing_dependency"),
        ("warmup", "OutOfMemoryError", "out_of_memory"),
        ("measure", "ValueError", "engine_error"),
    ],
)
def test_an_exception_ends_the_pass_with_cause_and_phase_after_the_readings_of_the_broken_phase(
    make_trial: Callable[..., Any], fixed_meter: Any, at: str, exception: str, cause: str
) -> None:
    script = {"passes": [{"match": "*", "events": [{"at": at, "do": "raise", "exception": exception}]}]}
    events = events_of(make_trial(script), fixed_meter)
    failed = events[-1]
    assert isinstance(failed, WorkerFailed)
    assert (failed.phase, failed.failure_cause, failed.exception_class) == (at, cause, exception)
    last = events[-2]
    assert isinstance(last, Recorded)
    assert isinstance(last.record, Reading)
    assert last.record.phase == at


class Recorder:
    """An engine that looks at the garbage collector, and answers what it is told to."""

    def __init__(self, order: Sequence[str]) -> None:
        self.order = order
        self.was_collecting: dict[str, bool] = {}

    def load(self) -> None:
        self.was_collecting["load"] = gc.isenabled()

    def observe(self, observed_at: ObservedAt) -> tuple[Variant, list[TensorGroup]]:
        variant = Variant(
            variant_id="", pass_id="", variant_name="v", observed_at=observed_at, model_id="m", requested={},
            observed={}, cache_kind="dynamic",
        )  # fmt: skip
        return variant, []

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        return [
            EncodedPrompt(document_id=p.document_id, rendered=p.user, token_ids=[1], start_token_count=0)
            for p in prompts
        ]

    def padding(self) -> Padding:
        raise AssertionError("requests one at a time are not padded")

    def records(self) -> list[AnyRecord]:
        return []

    def close(self) -> None:
        pass

    def answers(
        self, prompts: Sequence[EncodedPrompt], phase: Phase, load: Load = ONE_AT_A_TIME
    ) -> Iterator[Answer]:  # fmt: skip
        self.was_collecting[phase] = gc.isenabled()
        by_id = {prompt.document_id: prompt for prompt in prompts}
        for name in self.order if phase == "measure" else [p.document_id for p in prompts]:
            yield Answer(
                prompt=by_id.get(name, prompts[0]), intended_ns=0, token_count_source="scripted",
                finish_reason="end_token", request_outcome="completed", text="",
            )  # fmt: skip


def run_recorder(trial: Any, meter: Any, order: Sequence[str]) -> tuple[Recorder, list[Event]]:
    engine = Recorder(order)
    job = job_of(trial, documents=2)
    return engine, list(JobRun(job, clock=FakeClock(), meter=meter(), create=lambda: engine).events())


def test_the_cyclic_collector_is_off_while_measuring_and_on_again_after(
    make_trial: Callable[..., Any], fixed_meter: Any
) -> None:
    engine, _ = run_recorder(make_trial(), fixed_meter, ["d0", "d1"])
    assert engine.was_collecting == {"load": True, "warmup": True, "measure": False}
    assert gc.isenabled()


@pytest.mark.parametrize(("order", "said"), [(["d0", "d0"], "already"), (["d1"], "left 1 of 2 documents")])
def test_d19_an_engine_that_repeats_or_drops_a_document_fails_the_pass(
    make_trial: Callable[..., Any], fixed_meter: Any, order: list[str], said: str
) -> None:
    _, events = run_recorder(make_trial(), fixed_meter, order)
    assert isinstance(events[-1], WorkerFailed)
    assert said in events[-1].message
    answered = [e.record.document_id for e in events if isinstance(e, Answered)]
    assert len(answered) == len(set(answered))


def test_events_survive_the_pipe_without_their_envelope(make_trial: Callable[..., Any], fixed_meter: Any) -> None:
    events = events_of(make_trial(), fixed_meter)
    assert [decode_event(encode_event(event)) for event in events] == events
    assert b"written_at" not in b"".join(map(encode_event, events))


def test_gaps_fall_into_the_bucket_whose_bound_they_do_not_exceed() -> None:
    first, second = GAP_BUCKET_BOUNDS_NS[:2]
    counts = gap_counts([0, first, first + 1, second, GAP_BUCKET_BOUNDS_NS[-1] + 1])
    assert len(counts) == len(GAP_BUCKET_BOUNDS_NS) + 1
    assert (counts[0], counts[1], counts[-1], sum(counts)) == (2, 2, 1, 5)
    assert gap_counts([]) == []


@pytest.mark.parametrize(
    ("error", "phase", "cause"),
    [
        (MemoryError(), "measure", "out_of_memory"),
        (RuntimeError("CUDA error: out of memory"), "load", "out_of_memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "warmup", "out_of_memory"),
        (ModuleNotFoundError("No module named 'gguf'"), "load", "missing_dependency"),
        (MissingDependency("no torch", next_step="pip install torch"), "load", "missing_dependency"),
        (NotImplementedError("Could not run 'aten::mm' with arguments"), "measure", "missing_operator"),
        (RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'"), "warmup", "missing_operator"),
        (OSError("m is not a local folder"), "load", "load_failure"),
        (ConnectionResetError("reset"), "measure", "connection"),
        (TimeoutError("slow"), "measure", "timeout"),
        (KeyError("x"), "measure", "engine_error"),
    ],
)
def test_an_exception_has_one_cause(error: BaseException, phase: Phase, cause: str) -> None:
    assert cause_of(error, phase) == cause


@pytest.mark.parametrize(
    ("code", "words", "for_memory", "cause"),
    [
        (-9, "", False, "killed"),
        (-9, "", True, "out_of_memory"),
        (-6, "terminate called after throwing an instance of 'std::bad_alloc'", False, "out_of_memory"),
        (1, "MemoryError", False, "out_of_memory"),
        (-11, "Fatal Python error: Segmentation fault", False, "crashed"),
        (-15, "", False, "killed"),
        (3, "", True, "crashed"),
        (0, "", False, "crashed"),
    ],
)
def test_an_end_without_exception_has_one_cause(code: int, words: str, for_memory: bool, cause: str) -> None:
    assert cause_of_exit(code, words, was_killed_for_memory=for_memory) == cause


def test_steadiness_needs_samples_and_sees_a_slow_second_half() -> None:
    assert is_steady([100] * 7) is None
    assert is_steady([100] * 8) is True
    assert is_steady([100] * 4 + [110] * 4) is True
    assert is_steady([100] * 4 + [111] * 4) is False
    assert is_steady([150] * 4 + [100] * 5) is False


def test_each_library_message_is_kept_once_with_its_count() -> None:
    notes = NoteTaker()
    with notes.listening():
        for _ in range(3):
            warnings.warn("same", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.getLogger("lib.part").warning("slow %s", "path")
        logging.getLogger("lib.part").info("quiet")
    records = [event.record for event in notes.take("a" * 16, "load", SALT)]
    assert all(isinstance(record, WarningRecord) for record in records)
    found = {(r.warning_class, r.repeat_count) for r in records if isinstance(r, WarningRecord)}
    assert found == {("UserWarning", 3), ("log:lib.part", 1)}
    assert notes.take(None, None, SALT) == []


def test_a_library_message_names_no_folder_of_the_machine() -> None:
    notes = NoteTaker()
    notes.note("log:torchao", f"cannot load {sys.prefix}/lib/_C.so nor {Path.home()}/x.so")
    (event,) = notes.take("0" * 16, "load", SALT)
    assert [text.text for text in event.texts] == ["cannot load <python>/lib/_C.so nor ~/x.so"]


def test_numbered_messages_cannot_fill_the_memory() -> None:
    notes = NoteTaker()
    for index in range(MAX_DIFFERENT + 40):
        notes.note("output", f"step {index}")
    records = [event.record for event in notes.take(None, None, SALT)]
    assert len(records) == MAX_DIFFERENT + 1
    assert isinstance(records[-1], WarningRecord)
    assert (records[-1].warning_class, records[-1].repeat_count) == ("overflow", 40)


def test_a_lone_surrogate_can_be_stored() -> None:
    assert storable("a\ud800b") == "a\\ud800b"
    assert storable("ä €") == "ä €"


def test_the_worker_dies_with_its_parent(make_trial: Callable[..., Any], tmp_path: Path) -> None:
    """The parent is killed with SIGKILL while its worker hangs; nothing is left."""
    trial = make_trial({"passes": [{"match": "*", "events": [{"at": "load", "do": "hang"}]}]})
    job = tmp_path / "job.json"
    job.write_bytes(msgspec.json.encode(job_of(trial)))
    code = f"""
        import msgspec, pathlib, time
        from collector.events import PassJob
        from collector.processes import ProcessWorkerFactory
        job = msgspec.json.decode(pathlib.Path({str(job)!r}).read_bytes(), type=PassJob)
        worker = ProcessWorkerFactory().start(job)
        worker.next_event(time.perf_counter_ns() + 20 * 10**9, lambda: False)
        print(worker.pid, flush=True)
        time.sleep(60)
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker_pid = int(parent.stdout.readline())
    assert psutil.pid_exists(worker_pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    give_up = time.monotonic() + 20
    while psutil.pid_exists(worker_pid) and psutil.Process(worker_pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < give_up, "the worker outlived its parent"
        time.sleep(0.02)
