"""One attempt of one pass, seen from the parent: the worker's events become records, its end becomes an outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from collector import host
from collector.clock import Clock
from collector.contention import Monitor
from collector.contract.digests import text_hmac
from collector.contract.protocol import Limits
from collector.contract.records import Failure, PassEnd, Request
from collector.contract.records.base import FailureCause, Phase
from collector.contract.records.passes import PassOutcome
from collector.contract.records.runs import FailureScope
from collector.contract.texts import Text
from collector.engines.faults import ServerLost
from collector.events import Answered, Event, Finished, PassJob, PhaseBegan, PhaseEnded, Recorded, WorkerFailed
from collector.journal import Journal
from collector.judgement import Judging, built_in_verdict, score_record
from collector.missing import explained
from collector.patience import patience_s
from collector.scorers import Asked
from collector.server_address import ports_here
from collector.watcher import Ending, Watcher
from collector.worker_faults import cause_of_exit
from collector.worker_notes import NoteTaker, storable
from collector.workers import Worker, WorkerBabble, WorkerFactory, WorkerSilent, WorkerStopped

LEAVE_S = 5.0
"""Time that a worker has to leave after its last event, before it is ended."""
GROUP_RECORDS = 64
"""Records are put on the disk when no event waits, and at the latest after this many events."""
_MAX_MESSAGE = 20_000
_LIMIT_OF: Mapping[Phase, str] = {
    "load": "load_s", "warmup": "warmup_s", "measure": "measure_s", "reload": "load_s + warmup_s",
}  # fmt: skip
"""A reload check loads and asks about as many documents as a warm-up does."""


class Surroundings(NamedTuple):
    """What an attempt works with."""

    journal: Journal
    factory: WorkerFactory
    monitor: Monitor
    clock: Clock
    watcher: Watcher
    judging: Judging
    salt: bytes
    is_stopping: Callable[[], bool]


class _Fault(NamedTuple):
    cause: FailureCause
    exception_class: str | None
    exit_code: int | None
    message: str


class Attempt:
    """Runs one job and journals it; the caller has written `pass_begin`."""

    _scope: FailureScope = "pass"

    def __init__(self, job: PassJob, around: Surroundings) -> None:
        self._job = job
        self._around = around
        self._limits = job.setup.limits
        self._patience_s = patience_s(job)
        server = job.setup.engine.server
        self._server_ports = ports_here([server] if server else [])
        self._notes = NoteTaker()
        self._phase: Phase = "load"
        self._phase_ns: dict[str, int] = {}
        self._deadline_ns = 0
        self._limit = "load_s"
        self._answered: set[str] = set()
        self._tries = self._completed = self._failed = self._tokens = self._warmups = 0
        self._failed_by: Counter[str] = Counter()
        self._last_words: str | None = None
        self._finished: Finished | None = None
        self._unwritten = 0
        self._unjudged: list[Asked] = []

    def run(self) -> Ending:
        """Return how the pass ended; its `pass_end`, and a `failure` where it failed, are on the disk."""
        around = self._around
        began_ns = around.clock.monotonic_ns()
        oom_kills = host.oom_kill_count(host.Files())
        self._wait_for("load_s")
        outcome, fault = self._worked(oom_kills)
        pass_ns = around.clock.monotonic_ns() - began_ns
        for telemetry in around.monitor.end(self._job.pass_id):  # of a phase that did not end
            around.journal.append(telemetry)
        if fault is not None:
            self._record_failure(fault)
        if outcome != "interrupted":
            self._ask_scorer()
        around.journal.append(self._pass_end(outcome, pass_ns))
        around.journal.flush()
        return self._ending(outcome, fault)

    def _ending(self, outcome: PassOutcome, fault: _Fault | None) -> Ending:
        answered, failed_by = len(self._answered) - self._failed_by.total(), dict(self._failed_by)
        if fault is None:
            said = self._last_words if failed_by and not answered else None
            return Ending(outcome, None, message=said, answered=answered, failed_by=failed_by)
        is_lost = fault.exception_class == ServerLost.__name__
        return Ending(outcome, fault.cause, self._phase, is_lost, fault.message, answered, failed_by)

    def _worked(self, oom_kills: int | None) -> tuple[PassOutcome, _Fault | None]:
        try:
            worker = self._around.factory.start(self._job)
        except OSError as error:  # no process to be had: the machine is out of memory or processes
            return "failed", _Fault("crashed", type(error).__name__, None, str(error))
        try:
            ended = self._follow(worker, oom_kills)
            self._note_output(worker)
            return ended
        finally:
            worker.close()

    def _follow(self, worker: Worker, oom_kills: int | None) -> tuple[PassOutcome, _Fault | None]:
        """Journal events until the worker is done, fails, dies, falls silent or is stopped."""
        while True:
            try:
                event = worker.next_event(self._silence_deadline_ns(), self._around.is_stopping)
            except WorkerStopped:
                worker.end(grace_s=0)
                return "interrupted", None
            except WorkerSilent:
                late = self._late_words()
                words = worker.end(grace_s=0, with_stack=True).last_words.rstrip()
                return "failed", _Fault("timeout", None, None, f"{late[0]}\n{words}\n    next: {late[1]}")
            except WorkerBabble as fault:  # one record is lost, and kept as text; what follows is not
                self._record_failure(_Fault("format", "WorkerBabble", None, str(fault)))
                continue
            if event is None:
                return "failed", self._death(worker, oom_kills)
            if isinstance(event, WorkerFailed):
                worker.end(grace_s=LEAVE_S)
                self._phase = event.phase
                return "failed", _Fault(event.failure_cause, event.exception_class, None, event.message)
            if isinstance(event, Finished):
                self._finished = event
                worker.end(grace_s=LEAVE_S)
                return "completed", None
            self._take(event, worker)
            self._unwritten += 1
            if self._unwritten >= GROUP_RECORDS or not worker.has_event():
                self._around.journal.flush()
                self._unwritten = 0

    def _take(self, event: Event, worker: Worker) -> None:
        match event:
            case PhaseBegan(phase=phase):
                self._phase = phase
                self._wait_for(_LIMIT_OF[phase])
                self._around.monitor.begin(phase, worker.pid, self._server_ports)
                self._around.watcher.phase(phase)
            case PhaseEnded(phase=phase, duration_ns=duration_ns):
                self._phase_ns[phase] = duration_ns
                self._note_output(worker)  # at once: what the next phase prints is not this one's
                for telemetry in self._around.monitor.end(self._job.pass_id):
                    self._around.journal.append(telemetry)
                # What lies between phases (reading back what was loaded) has the time limit of loading.
                self._wait_for("load_s")
            case Recorded(record=record, texts=texts, steps=steps):
                self._cited(texts, steps)
                self._around.journal.append(record)
                self._warmups += isinstance(record, Request) and record.phase == "warmup"
                self._tries += isinstance(record, Request) and record.phase == "measure"
                if isinstance(record, Failure) and record.phase == "measure" and texts:
                    self._last_words = texts[-1].text
            case Answered(record=Request() as request, answer_text=answer_text, texts=texts, steps=steps):
                self._cited(texts, steps)
                self._around.journal.append(request)
                self._count(request)
                if self._around.judging.scorer is None:
                    self._score(request, answer_text)
                else:
                    self._unjudged.append(Asked(request, answer_text))
                is_failed = request.request_outcome in ("failed", "too_long")
                self._around.watcher.answered(request.document_id, is_failed=is_failed)
            case _:
                raise TypeError(f"unexpected event {type(event).__name__}")

    def _count(self, request: Request) -> None:
        self._tries += 1
        self._answered.add(request.document_id)
        self._completed += request.request_outcome == "completed"
        self._failed += request.request_outcome != "completed"
        if request.request_outcome in ("failed", "too_long"):
            self._failed_by[request.failure_cause or request.request_outcome] += 1
        self._tokens += request.output_tokens or 0

    def _score(self, request: Request, answer_text: str | None) -> None:
        judging = self._around.judging
        try:
            verdict = built_in_verdict(judging, request, answer_text)
        except Exception as fault:  # one answer must not end a run; the answer is kept and can be judged again
            self._record_failure(_Fault("format", type(fault).__name__, None, str(fault)), request.document_id)
            return
        self._around.journal.append(score_record(judging, request, verdict))

    def _ask_scorer(self) -> None:
        """Let the user's scorer judge the pass, now that no worker runs: a slow one distorts no measured time."""
        judging, journal = self._around.judging, self._around.journal
        if judging.scorer is None or not self._unjudged:
            return
        journal.flush()  # a scorer that takes the machine down takes no answer with it
        judged = judging.scorer.judge(self._unjudged, judging.documents)
        for asked in self._unjudged:
            document_id = asked.request.document_id
            if (verdict := judged.verdicts.get(document_id)) is not None:
                journal.append(score_record(judging, asked.request, verdict))
            else:
                fault = _Fault("scorer", None, judged.exit_code or None, judged.faults[document_id])
                self._record_failure(fault, document_id)
        for line in judged.stray:
            self._notes.note("scorer_output", line)
        for event in self._notes.take(self._job.pass_id, self._phase, self._around.salt):
            self._texts(event.texts)
            journal.append(event.record)
        if judged.faults:
            first = next(iter(judged.faults.values())).splitlines()[0]
            self._around.watcher.notice(
                f"the scorer judged {len(judged.verdicts)} of {len(self._unjudged)} answers ({first}); the others have "
                "no score: mend the scorer and judge this run again with `collector score`"
            )

    def _silence_deadline_ns(self) -> int:
        """The end of the phase's limit; sooner while requests run, where silence means that the worker hangs."""
        if self._phase in ("load", "reload"):
            return self._deadline_ns
        return min(self._deadline_ns, self._around.clock.monotonic_ns() + _nanoseconds(self._patience_s))

    def _wait_for(self, limit: str) -> None:
        """Begin the time limit of what comes next."""
        self._limit = limit
        self._deadline_ns = self._around.clock.monotonic_ns() + _nanoseconds(_limit_s(self._limits, limit))

    def _late_words(self) -> tuple[str, str]:
        """Return which limit a silent worker overran, by its name in the protocol, and what to do."""
        if self._around.clock.monotonic_ns() < self._deadline_ns:
            return (
                f"no event for {self._patience_s:g} s in the phase {self._phase}, with requests under way that end at "
                f"request_s = {self._limits.request_s:g}: the worker hangs",
                "the stack above says where it waits",
            )
        value = f"{self._limit} = {_limit_s(self._limits, self._limit):g}"
        return (
            f"the phase {self._phase} was not over within its limit of {value} seconds",
            f"raise {self._limit} under [limits] and freeze again; the stack above says where it waits",
        )

    def _death(self, worker: Worker, oom_kills: int | None) -> _Fault:
        code, words = worker.end(grace_s=LEAVE_S)
        now = host.oom_kill_count(host.Files())
        for_memory = oom_kills is not None and now is not None and now > oom_kills
        cause = cause_of_exit(code, words, was_killed_for_memory=for_memory)
        return _Fault(cause, None, code, words or f"the worker ended with exit code {code} and said nothing")

    def _record_failure(self, fault: _Fault, document_id: str | None = None) -> None:
        message = storable(fault.message)
        if len(message) > _MAX_MESSAGE:
            message = message[: _MAX_MESSAGE // 2] + " ... " + message[-_MAX_MESSAGE // 2 :]
        hmac = text_hmac(self._around.salt, message)
        self._texts([Text(hmac=hmac, text_kind="message", text=message)])
        record = Failure(
            failure_scope=self._scope if document_id is None else "request", failure_cause=fault.cause,
            pass_id=self._job.pass_id, variant_id=self._job.variant_id, document_id=document_id, phase=self._phase,
            exception_class=fault.exception_class, exit_code=fault.exit_code, message_hmac=hmac,
        )  # fmt: skip
        self._around.journal.append(record)

    def _pass_end(self, outcome: PassOutcome, pass_ns: int) -> PassEnd:
        record = PassEnd(
            pass_id=self._job.pass_id, pass_outcome=outcome, distinct_document_count=len(self._answered),
            try_count=self._tries, completed_request_count=self._completed, failed_request_count=self._failed,
            output_token_count=self._tokens, phase_ns=self._phase_ns, pass_ns=pass_ns,
            live_row_steps=self._finished.live_row_steps if self._finished else None,
            live_row_histogram=self._finished.live_row_histogram if self._finished else {},
            is_steady=self._finished.is_steady if self._finished else None, warmup_request_count=self._warmups,
        )  # fmt: skip
        if self._finished is None:
            return explained(record, {"live_row_steps": "failed", "is_steady": "failed"})
        no_steps = self._finished.live_row_steps is None
        return explained(
            record,
            {"live_row_steps": "not_applicable", "is_steady": "not_applicable" if no_steps else "too_few_samples"},
        )

    def _note_output(self, worker: Worker) -> None:
        """Lines that libraries printed since the last look, under the phase that has just ended."""
        for line in worker.output():
            self._notes.note("output", line)
        for event in self._notes.take(self._job.pass_id, self._phase, self._around.salt):
            self._texts(event.texts)
            self._around.journal.append(event.record)

    def _cited(self, texts: list[Text], steps: str | None) -> None:
        self._texts(texts)
        if steps is not None:
            self._around.journal.steps(steps)

    def _texts(self, texts: list[Text]) -> None:
        for text in texts:
            self._around.journal.text(text)


def _limit_s(limits: Limits, limit: str) -> float:
    """The seconds of limits that are named as in the protocol, added where there are several."""
    return sum(float(getattr(limits, name)) for name in limit.split(" + "))


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
