"""The child: loads one variant, warms up, measures, and streams events to its parent; it writes no file.

Phases have the same boundaries for every engine and variant. load: from creating the engine (its libraries' imports
included) to the end of `load()`. warmup: encoding every prompt and answering the warm-up requests; with batches also
the self-check, whose answers are warm-up requests too. measure: from asking for the first measured request to the last
answer. What was loaded is read back between phases, outside all of them. reload, the only phase of a reload check: both
of load and of asking some documents again, without a warm-up; the two durations are told apart.

All stamps of a pass count from one origin, the worker's first look at its monotonic clock, before load. Encoding an
event and writing it to the pipe happens between an answer's `done` stamp and the next request's `sent` stamp: it is
part of the measure phase's duration and of no request's.

Python's cyclic garbage collector is off while measuring; the young generations are collected between answers, so that
no collection falls into a request and no garbage piles up.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from collector.batch_check import compared, require_answers
from collector.clock import Clock
from collector.contract.records import Reading
from collector.contract.records.base import ObservedAt, Phase
from collector.decode_steps import DecodeSteps, row_steps
from collector.engines.base import ONE_AT_A_TIME, Answer, EncodedPrompt, Engine, Load
from collector.events import (
    Answered,
    Event,
    Finished,
    PassJob,
    PhaseBegan,
    PhaseEnded,
    Recorded,
    Reloaded,
    WorkerFailed,
)
from collector.memory import MemoryMeter
from collector.request_records import MadeRequest, RequestRecords
from collector.steady import is_steady
from collector.worker_faults import cause_of
from collector.worker_notes import NoteTaker, storable


class JobRun:
    """One pass in this process, as an iterator of events; the caller may stop at any of them."""

    def __init__(self, job: PassJob, *, clock: Clock, meter: MemoryMeter, create: Callable[[], Engine]) -> None:
        self._job = job
        self._clock = clock
        self._meter = meter
        self._create = create
        self._salt = bytes.fromhex(job.salt_hex)
        self._notes = NoteTaker()
        self._phase: Phase = "load"
        self._is_phase_open = False
        self._records = RequestRecords(job, origin_ns=0)
        self._steps = DecodeSteps(batch=job.load.batch)
        self._batches_before = 0
        self._tries: Counter[tuple[Phase, str]] = Counter()
        self._engine: Engine | None = None
        self._has_reloaded = False
        self._prompts: list[EncodedPrompt] = []

    def events(self) -> Iterator[Event]:
        """Yield everything that happens, ending with Finished or WorkerFailed."""
        self._records = RequestRecords(self._job, origin_ns=self._clock.monotonic_ns())
        failed: WorkerFailed | None = None
        with self._notes.listening():
            try:
                yield from self._reload() if self._job.reload else self._whole_pass()
                self._close_engine()
            except (Exception, SystemExit) as error:
                failed = self._failed(error)
            # Outside the handler: the exception is gone, and with it the frames that may hold all the memory.
            if failed is not None:
                yield from self._last_words()
                yield failed
                return
        if self._job.setup.engine.answers_by == "embedding":  # no decode step, and no gap that could settle
            yield Finished(is_steady=None, live_row_steps=None)
            return
        steady = is_steady(self._steps.gap_medians_ns())
        if self._job.load.concurrency > 1:  # requests join and leave at any step; stamps alone tell which shared one
            yield Finished(is_steady=steady, live_row_steps=None)
            return
        live_rows = self._steps.live_rows()
        yield Finished(is_steady=steady, live_row_steps=row_steps(live_rows), live_row_histogram=live_rows)

    def _whole_pass(self) -> Iterator[Event]:
        yield from self._in_phase("load", self._load)
        yield from self._observed("loaded")
        yield from self._in_phase("warmup", self._warm_up)
        yield from self._observed("after_warmup")
        yield from self._in_phase("measure", self._measure)

    def _reload(self) -> Iterator[Event]:
        stamps_ns: list[int] = []

        def load_and_ask() -> Iterator[Event]:
            stamps_ns.append(self._clock.monotonic_ns())
            yield from self._load()
            stamps_ns.append(self._clock.monotonic_ns())
            self._has_reloaded = True
            for answer in self._loaded.answers(self._loaded.encode(self._job.reload), "reload", self._job.load):
                yield Recorded(**self._recorded(answer, "reload")._asdict())
                yield from self._records.failure(answer, "reload")
            stamps_ns.append(self._clock.monotonic_ns())

        yield from self._in_phase("reload", load_and_ask)
        variant, _ = self._loaded.observe("loaded")
        record = msgspec.structs.replace(variant, pass_id=self._job.pass_id, variant_id=self._job.variant_id)
        began_ns, loaded_ns, answered_ns = stamps_ns
        yield Reloaded(record=record, load_ns=loaded_ns - began_ns, answer_ns=answered_ns - loaded_ns)

    def _in_phase(self, phase: Phase, work: Callable[[], Iterator[Event]]) -> Iterator[Event]:
        self._phase = phase
        yield PhaseBegan(phase=phase)
        gc.collect()
        self._meter.begin(phase)
        self._is_phase_open = True
        began_ns = self._clock.monotonic_ns()
        yield from work()
        duration_ns = self._clock.monotonic_ns() - began_ns
        self._is_phase_open = False
        readings = self._meter.end(phase)
        yield PhaseEnded(phase=phase, duration_ns=duration_ns)
        yield from self._readings(readings)
        yield from self._engine_records()
        yield from self._notes.take(self._job.pass_id, phase, self._salt)

    def _load(self) -> Iterator[Event]:
        self._engine = self._create()
        self._engine.load()
        if self._job.load.batch > 1:
            self._engine.padding()  # what cannot be padded is refused before anything runs
        yield from ()

    def _observed(self, observed_at: ObservedAt) -> Iterator[Event]:
        variant, groups = self._loaded.observe(observed_at)
        ids = {"pass_id": self._job.pass_id, "variant_id": self._job.variant_id}
        yield Recorded(record=msgspec.structs.replace(variant, **ids))
        for group in groups:
            yield Recorded(record=msgspec.structs.replace(group, **ids))

    def _warm_up(self) -> Iterator[Event]:
        warmup = self._loaded.encode(self._job.warmup)
        self._prompts = self._loaded.encode(self._job.measure)
        if warmup:
            yield from self._kept(warmup, self._job.load, {})
        if self._job.load.batch > 1 and self._job.check:
            yield from self._check_batch()

    def _kept(self, prompts: list[EncodedPrompt], load: Load, found: dict[str, Answer]) -> Iterator[Event]:
        """Answer prompts whose records are kept and never counted, and put the answers into `found`."""
        answered = 0
        for answer in self._loaded.answers(prompts, "warmup", load):
            found[answer.prompt.document_id] = answer
            yield Recorded(**self._recorded(answer, "warmup")._asdict())
            yield from self._records.failure(answer, "warmup")
            answered = answer.batch_number + 1
        if load.batch > 1:
            self._batches_before += answered

    def _check_batch(self) -> Iterator[Event]:
        prompts = self._loaded.encode(self._job.check)
        alone: dict[str, Answer] = {}
        together: dict[str, Answer] = {}
        yield from self._kept(prompts, ONE_AT_A_TIME, alone)
        yield from self._kept(prompts, self._job.load, together)
        check = compared(alone, together, padding=self._loaded.padding(), batch=self._job.load.batch)
        yield Recorded(
            record=msgspec.structs.replace(check, pass_id=self._job.pass_id, variant_id=self._job.variant_id)
        )
        require_answers(check)

    def _measure(self) -> Iterator[Event]:
        was_collecting = gc.isenabled()
        gc.freeze()
        gc.disable()
        try:
            yield from self._measured()
        finally:
            gc.unfreeze()
            if was_collecting:
                gc.enable()

    def _measured(self) -> Iterator[Event]:
        due = {prompt.document_id for prompt in self._prompts}
        self._batches_before = 0
        for answer in self._loaded.answers(self._prompts, "measure", self._job.load):
            document_id = answer.prompt.document_id
            if document_id not in due:
                raise RuntimeError(f"the engine answered {document_id!r}, which was answered already or never asked")
            if not answer.is_final:
                yield Recorded(**self._recorded(answer, "measure")._asdict())
                yield from self._records.failure(answer, "measure")
                continue
            due.remove(document_id)
            self._steps.take(answer)
            yield Answered(answer_text=_clean(answer.text), **self._recorded(answer, "measure")._asdict())
            yield from self._records.failure(answer, "measure")
            gc.collect(1)
        if due:
            raise RuntimeError(f"the engine left {len(due)} of {len(self._prompts)} documents without an answer")

    def _recorded(self, answer: Answer, phase: Phase) -> MadeRequest:
        document_id = answer.prompt.document_id
        try_index = self._tries[phase, document_id]
        self._tries[phase, document_id] += 1
        return self._records.request(
            answer, phase, try_index=try_index, batch_number=self._batches_before + answer.batch_number
        )

    def _failed(self, error: BaseException) -> WorkerFailed:
        is_loading = self._phase == "reload" and not self._has_reloaded
        return WorkerFailed(
            phase=self._phase,
            failure_cause=cause_of(error, "load" if is_loading else self._phase),
            exception_class=type(error).__name__,
            message=storable(str(error)),
        )

    def _last_words(self) -> Iterator[Event]:
        """The readings of the phase that broke, for a peak at an out-of-memory is a result, and its warnings."""
        if self._is_phase_open:
            with suppress(Exception):  # a device that just failed may refuse to be read
                yield from self._readings(self._meter.end(self._phase))
        with suppress(Exception):
            yield from self._engine_records()
            self._close_engine()
        yield from self._notes.take(self._job.pass_id, self._phase, self._salt)

    def _engine_records(self) -> Iterator[Event]:
        """What the engine itself has to say: of a server its claims, scrapes and the client's own measurement."""
        for record in self._engine.records() if self._engine is not None else ():
            yield Recorded(record=self._records.of_engine(record))

    def _close_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _readings(self, readings: list[Reading]) -> Iterator[Event]:
        for reading in readings:
            yield Recorded(record=msgspec.structs.replace(reading, pass_id=self._job.pass_id))

    @property
    def _loaded(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("the engine is not loaded")
        return self._engine


def _clean(text: str | None) -> str | None:
    return None if text is None else storable(text)


def run_job(job: PassJob, *, clock: Clock, meter: MemoryMeter) -> Iterator[Event]:
    """Return the events of a job with the engine that its protocol names."""
    from collector.engines import engine_module

    def create() -> Engine:
        return engine_module(job.setup.engine.name).create(job.setup, clock)

    return JobRun(job, clock=clock, meter=meter, create=create).events()
