"""Stopping, killing and resuming: what was acknowledged stays, and the result is that of an uninterrupted run."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from collector.clock import FakeClock
from collector.contract import chain
from collector.contract.errors import DossierError
from collector.contract.records import Decision, Engine, Environment, PassBegin, PassEnd, Record, Request, Score
from collector.events import Event, PassJob, PhaseBegan, WorkerFailed
from collector.run_options import RunOptions
from collector.workers import InProcessWorker, InProcessWorkerFactory

SCRIPT = {
    "load_ms": 20,
    "defaults": {"first_token_ms": 4, "gap_ms": 1, "output_tokens": 4},
    "passes": [{"match": "bf16/*", "documents": {"d1": {"replace": {"amount": "1"}}, "d4": {"text": "no object"}}}],
}
KEY = (
    "protocol_id", "stage", "environment_id", "engine_id", "variant_id", "batch", "concurrency", "rate_per_s",
    "context_tokens", "cache_kind", "output_limit_tokens", "repetition",
)  # fmt: skip


@pytest.fixture
def in_process(fixed_meter: Any, fixed_machine: Any) -> Callable[..., Any]:
    def run(trial: Any, clock: FakeClock | None = None, **more: Any) -> Any:
        clock = clock or FakeClock()
        options = RunOptions(device="cpu", **{k: more.pop(k) for k in list(more) if k in RunOptions._fields})
        factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
        return trial.run(options, clock=clock, factory=factory, machine=fixed_machine, **more)

    return run


def verdicts(records: list[Record]) -> dict[tuple[Any, ...], Any]:
    """Key without run and attempt -> what the last complete attempt says of each document."""
    begun = {r.pass_id: r for r in records if isinstance(r, PassBegin)}
    last: dict[tuple[Any, ...], PassBegin] = {}
    for end in (r for r in records if isinstance(r, PassEnd) and r.pass_outcome == "completed"):
        begin = begun[end.pass_id]
        last[tuple(getattr(begin, name) for name in KEY)] = begin
    found: dict[tuple[Any, ...], Any] = {}
    for key, begin in last.items():
        scores = [r for r in records if isinstance(r, Score) and r.pass_id == begin.pass_id]
        requests = [
            r for r in records if isinstance(r, Request) and r.pass_id == begin.pass_id and r.phase == "measure"
        ]
        assert len({r.document_id for r in requests}) == len(requests), "a document was answered twice in one attempt"
        found[key] = (
            begin.purpose, begin.document_order,
            sorted((r.document_id, r.answer_hmac, r.output_tokens, r.finish_reason) for r in requests),
            sorted((r.document_id, r.score_outcome, r.is_accepted, tuple(r.fields_wrong)) for r in scores),
        )  # fmt: skip
    return found


def decisions(records: list[Record]) -> list[str]:
    return [record.decision for record in records if isinstance(record, Decision)]


def test_a_stopped_run_stays_open_and_resumes_to_the_result_of_an_uninterrupted_one(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    """Stopped in the middle of the second pass: it runs again as attempt 2, the first is not repeated."""
    trial = make_trial(SCRIPT, documents=6)
    whole = records_of(in_process(trial).path)
    pass_ns = next(record for record in whole if isinstance(record, PassEnd)).pass_ns
    out = trial.folder / "stopped"
    report = in_process(trial, out=out, stop_after_s=1.5 * pass_ns / 1e9)
    stopped = records_of(report.path)
    assert report.head_digest is None
    assert report.stopped_by is not None
    assert decisions(stopped) == ["stopped"]
    assert [r.pass_outcome for r in stopped if isinstance(r, PassEnd)] == ["completed", "interrupted"]
    again = in_process(trial, out=out, is_resuming=True)
    assert again.path == report.path
    assert again.head_digest is not None
    records = records_of(again.path)
    assert decisions(records) == ["stopped", "resumed", "restarted"]
    assert [(r.variant_name, r.repetition, r.attempt) for r in records if isinstance(r, PassBegin)] == [
        ("fp32", 1, 1), ("fp32", 2, 1), ("fp32", 2, 2), ("bf16", 1, 1),
    ]  # fmt: skip
    assert verdicts(records) == verdicts(whole)
    for kind in (Environment, Engine):
        assert sum(isinstance(record, kind) for record in records) == 1


def test_d19_resuming_a_finished_plan_adds_nothing_to_it(
    make_trial: Callable[..., Any], in_process: Callable[..., Any]
) -> None:
    """Nor does it measure, and pay for, all of it again: that takes a run without --resume."""
    trial = make_trial(SCRIPT)
    first = in_process(trial)
    before = first.path.read_bytes()
    with pytest.raises(DossierError, match=f"nothing is left to resume: .*{first.path.name}") as refused:
        in_process(trial, is_resuming=True)
    assert "run without --resume" in refused.value.next_step
    assert first.path.read_bytes() == before
    assert {path.name for path in trial.out.iterdir()} == {first.path.name, first.path.stem + ".texts.jsonl"}
    again = in_process(trial)
    assert again.path != first.path


def test_resuming_where_nothing_was_begun_starts_a_run_and_says_so(
    make_trial: Callable[..., Any], in_process: Callable[..., Any]
) -> None:
    trial = make_trial(SCRIPT)
    assert in_process(trial, is_resuming=True).head_digest is not None
    assert "starting a new one" in trial.watcher.notices[-1]


def test_a_run_killed_before_its_seal_is_sealed_by_resuming(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(SCRIPT)
    path = in_process(trial).path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    report = in_process(trial, is_resuming=True)
    assert (report.path, report.endings) == (path, {})
    assert report.head_digest is not None
    assert decisions(records_of(path)) == ["tail_cut", "resumed"]


def test_a_failed_pass_is_a_result_and_is_not_run_again(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    script = {**SCRIPT, "passes": [{"match": "fp32/1/*", "events": [{"at": "load", "do": "raise"}]}]}
    trial = make_trial(script)
    in_process(trial, only=["fp32"])
    report = in_process(trial, is_resuming=True)
    assert list(report.endings) == ["bf16/1/1"]
    assert [r.pass_outcome for r in records_of(report.path) if isinstance(r, PassEnd)] == [
        "failed", "completed", "completed",
    ]  # fmt: skip


class NoServer:
    """Workers whose server is not there in a phase."""

    def __init__(self, clock: FakeClock, phase: Any) -> None:
        self._clock, self._phase = clock, phase

    def start(self, job: PassJob) -> InProcessWorker:
        lost = WorkerFailed(
            phase=self._phase, failure_cause="connection", exception_class="ServerLost", message="nobody there"
        )
        events: list[Event] = [PhaseBegan(phase=self._phase), lost]
        return InProcessWorker(iter(events), self._clock)


@pytest.mark.parametrize(("phase", "times"), [("load", 3), ("warmup", 2), ("measure", 2)])
def test_passes_without_a_server_stay_open_and_resuming_measures_each_of_them(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], fixed_machine: Any, phase: str, times: int
) -> None:
    """One that is not there when a pass begins is nobody's result; lost twice on the way, that is the result."""
    trial, clock = make_trial(SCRIPT, documents=2), FakeClock()
    passes = ["fp32/1", "fp32/2", "bf16/1"]
    for attempt in range(1, times + 1):
        options = RunOptions(device="cpu", is_resuming=attempt > 1)
        report = trial.run(options, clock=clock, factory=NoServer(clock, phase), machine=fixed_machine)
        assert [(label, ending.is_lost) for label, ending in report.endings.items()] == [
            (f"{each}/{attempt}", True) for each in passes
        ]
        is_result = phase != "load" and attempt == 2
        assert (report.head_digest is not None) is is_result
        assert report.left[:3] == (() if is_result else tuple(passes)), "not sealed, whenever it was lost"
    if phase == "load":
        again = in_process(trial, is_resuming=True)
        assert {label: ending.outcome for label, ending in again.endings.items()} == {
            f"{each}/4": "completed" for each in passes
        }
        assert again.head_digest is not None


def test_a_run_of_some_variants_says_which_it_left_out_and_the_rest_can_follow(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    trial = make_trial(SCRIPT)
    report = in_process(trial, only=["bf16"])
    records = records_of(report.path)
    (skipped,) = [record for record in records if isinstance(record, Decision)]
    assert (skipped.decision, skipped.detail["variants"]) == ("skipped", "fp32")
    assert (report.head_digest, list(report.endings)) == (None, ["bf16/1/1"])
    again = in_process(trial, is_resuming=True)
    assert list(again.endings) == ["fp32/1/1", "fp32/2/1"]
    assert again.head_digest is not None


def test_an_unknown_variant_is_refused_with_the_names_there_are(
    make_trial: Callable[..., Any], in_process: Callable[..., Any]
) -> None:
    trial = make_trial(SCRIPT)
    with pytest.raises(DossierError, match="name one of: fp32, bf16"):
        in_process(trial, only=["int4"])
    assert not trial.out.exists()


def test_a_stage_without_documents_is_refused_before_anything_is_written(
    make_trial: Callable[..., Any], in_process: Callable[..., Any]
) -> None:
    trial = make_trial(SCRIPT)
    with pytest.raises(DossierError, match="no documents with role test"):
        in_process(trial, stage="test")
    assert not trial.out.exists()


def collector_run(trial: Any, out: Path, acknowledged: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "collector.cli", "run", str(trial.protocol), "--out", str(out), "--device", "cpu",
        "--acknowledged", str(acknowledged), *more,
    ]  # fmt: skip


def await_no_worker_of(pid: int) -> None:
    give_up = time.monotonic() + 20
    while True:
        left = []
        for process in psutil.process_iter(["cmdline", "status"]):
            command = process.info["cmdline"] or []
            is_worker = "collector.worker_process" in command and str(pid) in command
            if is_worker and process.info["status"] != psutil.STATUS_ZOMBIE:
                left.append(process.pid)
        if not left:
            return
        assert time.monotonic() < give_up, f"workers outlived the collector: {left}"
        time.sleep(0.02)


def run_file(folder: Path) -> Path:
    (path,) = (path for path in folder.glob("*Z-*.jsonl") if not path.name.endswith(".texts.jsonl"))
    return path


class KilledRun:
    """One run in a folder of its own, started again and again, and what it has acknowledged so far."""

    def __init__(self, trial: Any, folder: Path) -> None:
        self.trial, self.folder = trial, folder
        self.acknowledged = folder / "acknowledged"
        self.kept: list[bytes] = []
        folder.mkdir()

    def start(self, kill_after_s: float | None) -> bool:
        """Start with --resume; kill it this long after its first acknowledgement. Returns whether it was killed."""
        before = len(self._numbers())
        command = collector_run(self.trial, self.folder, self.acknowledged, "--resume")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up = time.monotonic() + 30
        while process.poll() is None and len(self._numbers()) == before:
            assert time.monotonic() < give_up
            time.sleep(0.005)
        was_killed = False
        try:
            process.wait(timeout=kill_after_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            was_killed = True
        await_no_worker_of(process.pid)
        self._check()
        return was_killed

    def _numbers(self) -> list[int]:
        return [int(n) for n in self.acknowledged.read_text().split()] if self.acknowledged.exists() else []

    def _check(self) -> None:
        lines = run_file(self.folder).read_bytes().split(b"\n")
        assert lines[: len(self.kept)] == self.kept, "an acknowledged record was lost or changed"
        last = max(self._numbers())
        assert last < len(lines) - 1, "an acknowledged record is not in the file"
        self.kept = lines[: last + 1]


@pytest.mark.slow
def test_twenty_kills_at_random_moments_lose_nothing_acknowledged_and_change_no_verdict(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]], tmp_path: Path
) -> None:
    """`kill -9` of the collector at 20 seeded random moments, each followed by --resume, until the plan is finished.

    A run that finishes before its twentieth kill is compared, and the next one is killed on.
    """
    script = {**SCRIPT, "load_ms": 100, "defaults": {"first_token_ms": 60, "gap_ms": 5, "output_tokens": 4}}
    trial = make_trial(script, documents=8)
    whole = KilledRun(trial, tmp_path / "whole")
    assert not whole.start(kill_after_s=None)
    expected = verdicts(records_of(run_file(whole.folder)))
    assert len(expected) == 3
    rng = random.Random(20260501)
    kills = finished = 0
    while kills < 20:
        killed = KilledRun(trial, tmp_path / f"killed-{finished}")
        while killed.start(kill_after_s=rng.uniform(0.0, 1.8) if kills < 20 else None):
            kills += 1
        report = chain.verify(run_file(killed.folder))
        assert report.is_sealed
        assert report.problems == []
        assert verdicts(records_of(report.path)) == expected
        finished += 1


def test_ctrl_c_leaves_the_file_open_with_a_decision_and_exit_code_130(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]], tmp_path: Path
) -> None:
    trial = make_trial({"defaults": {"first_token_ms": 500}})
    acknowledged = tmp_path / "acknowledged"
    process = subprocess.Popen(
        collector_run(trial, trial.out, acknowledged), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not acknowledged.exists() or len(acknowledged.read_text().split()) < 4:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "continue with --resume" in output
    *_, interrupted, command = errors.splitlines()
    assert interrupted.endswith("fp32/1/1, reference: interrupted")
    assert command.startswith("to go on: ")
    assert command.endswith(f"{trial.protocol} --out {trial.out} --device cpu --acknowledged {acknowledged} --resume")
    records = records_of(run_file(trial.out))
    stopped = [record for record in records if isinstance(record, Decision)]
    left = "fp32/1, fp32/2, bf16/1, fp32~reload, bf16~reload"
    assert [(record.decision, record.detail) for record in stopped] == [("stopped", {"reason": "SIGINT", "left": left})]
    assert isinstance(records[-2], PassEnd)
    assert records[-2].pass_outcome == "interrupted"
    await_no_worker_of(process.pid)


def test_a_run_stopped_at_any_time_leaves_the_most_useful_passes_and_says_what_is_missing(
    make_trial: Callable[..., Any], in_process: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    """What is complete is a beginning of the plan: the reference, its repeat, each variant once, then the rest."""
    more = "repetitions = 2\nbatches = [2]\n"
    third = '[[variant]]\nname = "fp16"\ndtype = "float16"\n\n[plan]'
    trial = make_trial(SCRIPT, edit=lambda text: text.replace("[plan]", third) + more)
    whole = [record for record in records_of(in_process(trial).path) if isinstance(record, PassEnd)]
    order = [
        "fp32/1", "fp32/2", "bf16/1", "fp16/1", "fp16/2", "bf16/2", "fp32~b2/1", "fp32~b2/2",
        "fp32~reload", "bf16~reload", "fp16~reload",
    ]  # fmt: skip
    assert len(whole) == 8
    for count in range(len(whole)):
        until_ns = sum(end.pass_ns for end in whole[:count]) + whole[count].pass_ns // 2
        report = in_process(trial, out=trial.folder / f"stopped-{count}", stop_after_s=until_ns / 1e9)
        records = records_of(report.path)
        complete = [r for r in records if isinstance(r, PassEnd) and r.pass_outcome == "completed"]
        begun = {r.pass_id: f"{r.variant_name}{'~b2' * (r.batch > 1)}/{r.repetition}"
                 for r in records if isinstance(r, PassBegin)}  # fmt: skip
        assert [begun[end.pass_id] for end in complete] == order[:count]
        assert report.left == tuple(order[count:])
        (stopped,) = [r for r in records if isinstance(r, Decision) and r.decision == "stopped"]
        assert stopped.detail["left"] == ", ".join(order[count:])
