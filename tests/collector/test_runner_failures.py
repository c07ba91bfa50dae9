"""Each way a worker can fail, with real worker processes: a failure with cause and phase, and the run goes on."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from collector.clock import FakeClock
from collector.contract.chain import verify
from collector.contract.errors import DossierError
from collector.contract.records import Failure, PassBegin, PassEnd, Record, Request, Score, Telemetry, Warning
from collector.events import Answered, Event, Finished, PassJob
from collector.journal import Journal
from collector.processes import ProcessWorker, ProcessWorkerFactory, source_commit
from collector.run_options import RunReport
from collector.worker import run_job
from collector.workers import InProcessWorker, InProcessWorkerFactory, Worker, WorkerBabble

MIB = 2**20


@pytest.fixture(autouse=True)
def no_orphans() -> Any:
    """After each test nothing is left of the workers it started, reaped or not."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    yield
    left = [process for process in psutil.Process().children(recursive=True) if process.pid not in before]
    assert left == []
    workers = [p for p in psutil.process_iter(["cmdline"]) if str(os.getpid()) in (p.info["cmdline"] or [])]
    assert [p for p in workers if "collector.worker_process" in p.info["cmdline"]] == []


def failing(at: str, do: str, **more: Any) -> dict[str, Any]:
    """A script in which the reference's first pass fails and the other passes are well."""
    return {"passes": [{"match": "fp32/1/*", "events": [{"at": at, "do": do, **more}]}]}


def outcomes(report: RunReport) -> list[str]:
    return [ending.outcome for ending in report.endings.values()]


def failure_of(records: list[Record]) -> Failure:
    (failure,) = [record for record in records if isinstance(record, Failure)]
    return failure


@pytest.mark.parametrize(
    ("event", "cause", "phase", "exit_code", "exception"),
    [
        (failing("load", "kill"), "killed", "load", -9, None),
        (failing("measure", "kill", document="d2"), "killed", "measure", -9, None),
        (failing("warmup", "raise", exception="OSError"), "engine_error", "warmup", None, "OSError"),
        (failing("load", "raise", exception="OSError"), "load_failure", "load", None, "OSError"),
        (
            failing("measure", "raise", exception="OutOfMemoryError"),
            "out_of_memory",
            "measure",
            None,
            "OutOfMemoryError",
        ),
        (failing("measure", "exit", exit_code=3), "crashed", "measure", 3, None),
        (failing("load", "exit", exit_code=0), "crashed", "load", 0, None),
        (failing("warmup", "segfault"), "crashed", "warmup", -11, None),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_failed_worker_leaves_cause_and_phase_and_later_passes_run(
    make_trial: Callable[..., Any],
    records_of: Callable[[Path], list[Record]],
    event: dict[str, Any],
    cause: str,
    phase: str,
    exit_code: int | None,
    exception: str | None,
) -> None:
    report = make_trial(event, documents=4).run()
    records = records_of(report.path)
    failure = failure_of(records)
    assert (failure.failure_scope, failure.failure_cause, failure.phase) == ("pass", cause, phase)
    assert (failure.exit_code, failure.exception_class) == (exit_code, exception)
    begin = next(record for record in records if isinstance(record, PassBegin))
    assert (failure.pass_id, failure.variant_id) == (begin.pass_id, begin.variant_id)
    assert outcomes(report) == ["failed", "completed", "completed"]
    assert verify(report.path).is_sealed


def test_memory_exhausted_under_a_limit_is_out_of_memory_with_the_readings_of_its_phase(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(failing("measure", "out_of_memory", document="d0"))
    report = trial.run(factory=ProcessWorkerFactory(address_space_bytes=512 * MIB))
    records = records_of(report.path)
    failure = failure_of(records)
    assert (failure.failure_cause, failure.phase, failure.exception_class) == (
        "out_of_memory",
        "measure",
        "MemoryError",
    )
    peaks = [
        record["value_bytes"]
        for record in map(msgspec.to_builtins, records)
        if record["kind"] == "reading" and record["phase"] == "measure" and record["pass_id"] == failure.pass_id
        and record["statistic"] == "peak" and record["memory_scope"] == "host"
    ]  # fmt: skip
    assert len(peaks) == 1
    assert outcomes(report) == ["failed", "completed", "completed"]


@pytest.mark.parametrize(
    ("phase", "limits"),
    [("load", "load_s = 4.0"), ("warmup", "warmup_s = 1.0"), ("measure", "measure_s = 1.0")],
    ids=["load", "warmup", "measure"],
)
def test_a_hung_worker_is_ended_at_the_limit_of_its_phase_and_says_where_it_hung(
    make_trial: Callable[..., Any],
    records_of: Callable[[Path], list[Record]],
    texts_of: Callable[[Path], dict[str, str]],
    phase: str,
    limits: str,
) -> None:
    report = make_trial(failing(phase, "hang"), limits=limits).run()
    failure = failure_of(records_of(report.path))
    assert (failure.failure_cause, failure.phase, failure.exit_code) == ("timeout", phase, None)
    said = texts_of(report.path)[failure.message_hmac or ""]
    assert "sleep_until_ns" in said
    assert said.startswith(f"the phase {phase} was not over within its limit of {limits.replace('.0', '')} seconds")
    assert f"next: raise {limits.split()[0]} under [limits]" in said
    assert outcomes(report) == ["failed", "completed", "completed"]


def test_a_request_that_never_ends_does_not_wait_for_a_day(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    """measure_s is a day by default; a worker silent for twice the request's limit is ended."""
    report = make_trial(failing("measure", "hang", document="d1"), limits="request_s = 1.0").run()
    assert failure_of(records_of(report.path)).failure_cause == "timeout"
    assert outcomes(report)[0] == "failed"
    assert "request_s = 1: the worker hangs" in (report.endings["fp32/1/1"].message or "")


def test_a_hang_is_seen_by_the_fake_clock_too(
    make_trial: Callable[..., Any], fixed_meter: Any, fixed_machine: Any
) -> None:
    clock = FakeClock()
    trial = make_trial(failing("measure", "hang"))
    report = trial.run(
        clock=clock, factory=InProcessWorkerFactory(clock=clock, meter=fixed_meter), machine=fixed_machine
    )
    assert [ending.cause for ending in report.endings.values()] == ["timeout", None, None]


def test_a_pass_that_answered_nothing_says_so_with_the_last_request_s_words_and_one_with_answers_counts(
    make_trial: Callable[..., Any], fixed_meter: Any, fixed_machine: Any
) -> None:
    refusal = {"failure_cause": "protocol", "failure_message": "HTTP 404: gone"}
    passes = [{"match": "fp32/1/*", "defaults": refusal}, {"match": "bf16/*", "documents": {"d1": refusal}}]
    clock = FakeClock()
    report = make_trial({"passes": passes}).run(
        clock=clock, factory=InProcessWorkerFactory(clock=clock, meter=fixed_meter), machine=fixed_machine
    )
    nothing, whole, some = report.endings.values()
    assert (nothing.words, nothing.message) == ("completed, answered 0, failed 4 (protocol)", "HTTP 404: gone")
    assert (whole.words, whole.message) == ("completed", None)
    assert (some.words, some.message) == ("completed, answered 3, failed 1 (protocol)", None)


def test_what_a_failed_pass_answered_is_kept_and_the_rest_is_missing(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial({})
    order = next(r for r in records_of(trial.run().path) if isinstance(r, PassBegin)).document_order
    broken = make_trial(failing("measure", "kill", document=order[2]), name="broken")
    records = records_of(broken.run().path)
    end = next(record for record in records if isinstance(record, PassEnd))
    requests = [r for r in records if isinstance(r, Request) and r.pass_id == end.pass_id and r.phase == "measure"]
    assert [request.document_id for request in requests] == order[:2]
    assert (end.pass_outcome, end.distinct_document_count, end.try_count) == ("failed", 2, 2)
    assert sum(isinstance(r, Score) and r.pass_id == end.pass_id for r in records) == 2
    assert end.missing == {"live_row_steps": "failed", "is_steady": "failed"}
    assert set(end.phase_ns) == {"load", "warmup"}


def test_what_libraries_print_is_kept_once_per_text_and_never_reaches_the_events(
    make_trial: Callable[..., Any],
    records_of: Callable[[Path], list[Record]],
    texts_of: Callable[[Path], dict[str, str]],
    capfd: pytest.CaptureFixture[str],
) -> None:
    noisy = [
        {"at": "warmup", "do": "print", "message": '{"event": "finished"}', "times": 4},
        {"at": "load", "do": "warn", "message": "slow path", "times": 2},
    ]
    report = make_trial({"passes": [{"match": "bf16/*", "events": noisy}]}).run()
    texts = texts_of(report.path)
    found = {
        (texts[r.message_hmac or ""], r.warning_class): (r.phase, r.repeat_count)
        for r in records_of(report.path)
        if isinstance(r, Warning) and r.phase != "reload"
    }
    assert found['{"event": "finished"}', "output"] == ("warmup", 4)
    assert found["slow path", "UserWarning"] == ("load", 2)
    assert outcomes(report) == ["completed"] * 3
    assert capfd.readouterr() == ("", "")


def test_an_answer_that_cannot_be_judged_ends_no_run(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("collector.attempt.built_in_verdict", broken)
    report = make_trial({}, documents=2).run()
    failures = [record for record in records_of(report.path) if isinstance(record, Failure)]
    assert {(f.failure_scope, f.failure_cause, f.exception_class) for f in failures} == {
        ("request", "format", "RecursionError")
    }
    assert outcomes(report) == ["completed"] * 3


class Garbled(InProcessWorker):
    """A worker whose first answer cannot be read."""

    was_garbled = False

    def next_event(self, deadline_ns: int, is_stopping: Callable[[], bool]) -> Event | None:
        event = super().next_event(deadline_ns, is_stopping)
        if isinstance(event, Answered) and not self.was_garbled:
            self.was_garbled = True
            raise WorkerBabble("Expected `int`: the line")
        return event


class GarblingFactory(InProcessWorkerFactory):
    def start(self, job: PassJob) -> Worker:
        return Garbled(run_job(job, clock=self._clock, meter=self._meter()), self._clock)


def test_a_line_that_is_no_event_costs_one_record_and_not_the_pass(
    make_trial: Callable[..., Any],
    fixed_meter: Any,
    fixed_machine: Any,
    records_of: Callable[[Path], list[Record]],
    texts_of: Callable[[Path], dict[str, str]],
) -> None:
    clock = FakeClock()
    factory = GarblingFactory(clock=clock, meter=fixed_meter)
    report = make_trial({}, documents=3).run(clock=clock, factory=factory, machine=fixed_machine)
    records = records_of(report.path)
    failures = [record for record in records if isinstance(record, Failure)]
    assert [(f.failure_cause, f.phase, f.exception_class) for f in failures] == [
        ("format", "measure", "WorkerBabble")
    ] * 3
    assert texts_of(report.path)[failures[0].message_hmac or ""] == "Expected `int`: the line"
    assert [r.distinct_document_count for r in records if isinstance(r, PassEnd)] == [2, 2, 2]
    assert outcomes(report) == ["completed"] * 3


def test_a_line_that_is_no_event_is_told_with_its_text(make_trial: Callable[..., Any]) -> None:
    job = PassJob(
        pass_id="a" * 16, variant_id="b" * 16, setup=make_trial({}).setup("fp32/1/1"), salt_hex="00" * 32,
        warmup=[], measure=[],
    )  # fmt: skip
    worker = ProcessWorker(job, 0)
    try:
        worker._queue.put(b'{"event": "recorded", "record": {"kind": "reading"}}\n')
        babbled: list[str] = []
        event: Event | None = None
        while not isinstance(event, Finished):
            try:
                event = worker.next_event(time.perf_counter_ns() + 20 * 10**9, lambda: False)
            except WorkerBabble as fault:
                babbled.append(str(fault))
    finally:
        worker.close()
    assert len(babbled) == 1
    assert '"kind": "reading"' in babbled[0]


def test_a_disk_that_fills_up_ends_the_run_with_an_error_and_no_worker_left(
    make_trial: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    flushes = 0
    real = Journal.flush

    def flush(self: Journal) -> None:
        nonlocal flushes
        flushes += 1
        if flushes > 12:
            raise DossierError("no space left", next_step="free space")
        real(self)

    monkeypatch.setattr(Journal, "flush", flush)
    trial = make_trial({"defaults": {"first_token_ms": 20}}, documents=8)
    with pytest.raises(DossierError, match="no space left"):
        trial.run()
    monkeypatch.setattr(Journal, "flush", real)
    (path,) = (path for path in trial.out.glob("*Z-*.jsonl") if not path.name.endswith(".texts.jsonl"))
    assert verify(path).problems == []
    assert not verify(path).is_sealed


def test_a_machine_that_gives_no_process_fails_the_pass_and_not_the_run(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    class Refusing(ProcessWorkerFactory):
        starts = 0

        def start(self, job: PassJob) -> Worker:
            self.starts += 1
            if self.starts == 1:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return super().start(job)

    report = make_trial({}, documents=2).run(factory=Refusing())
    failure = failure_of(records_of(report.path))
    assert (failure.failure_cause, failure.phase, failure.exception_class) == ("crashed", "load", "BlockingIOError")
    assert outcomes(report) == ["failed", "completed", "completed"]


def test_the_telemetry_of_a_phase_that_broke_is_kept(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    records = records_of(make_trial(failing("warmup", "kill"), documents=2).run().path)
    pass_id = failure_of(records).pass_id
    assert [r.phase for r in records if isinstance(r, Telemetry) and r.pass_id == pass_id] == ["load", "warmup"]


def test_the_commit_is_the_collector_s_own_and_not_that_of_a_repository_around_it(tmp_path: Path) -> None:
    """An environment inside somebody's repository is not their commit: the files are not tracked there."""

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    git("init")
    git("commit", "--allow-empty", "-m", "one")
    assert source_commit(package) is None
    git("add", "package")
    git("commit", "-m", "two")
    commit = source_commit(package)
    assert commit is not None
    assert len(commit) == 40
    (package / "__init__.py").write_text("changed")
    assert source_commit(package) == f"{commit}-dirty"
