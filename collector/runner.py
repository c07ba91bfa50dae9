"""The parent: plans the passes of a frozen protocol, runs each in a fresh worker, and alone writes the journal.

A run with `only` or `only_series` (the command's --variant and --series) is a part of its plan: it records a decision
`skipped` naming what is left out and stays unsealed, for only a finished plan is sealed; a later resume without them
completes the same file. A batch that runs out of memory finishes its series: `batch_limits` says which are left out.
When every pass is over, each variant's artefact is loaded again and asked again (`reload_check`): a run that is stopped
loses that last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from collector.attempt import Attempt, Surroundings
from collector.clock import Clock
from collector.contract.digests import short_id
from collector.contract.errors import DossierError
from collector.contract.protocol import Lock, VariantChoice, as_json
from collector.contract.records import Decision, Engine
from collector.documents import render_prompt
from collector.engines import engine_module
from collector.engines.base import RELOAD, EngineSetup, Prompt
from collector.environment import Detected, deciding_engine, require_device, resolve_device
from collector.events import PassJob
from collector.freeze import FrozenProtocol
from collector.journal import Journal
from collector.judgement import judging_of, require_allowed
from collector.judging_rules import require_scorable
from collector.machine import Machine
from collector.missing import explained
from collector.plan import (
    CHECKED,
    ROLE_OF_STAGE,
    PlannedPass,
    check_documents,
    is_loaded_anew,
    plan_passes,
    stage_documents,
    warmup_documents,
)
from collector.reload_check import Judged, Reload, due_reloads, expected_reloads, judged_passes, words
from collector.resume import Progress
from collector.run_description import change_of_rental, describe, header, left_out, pass_begin, warn_of_others
from collector.run_files import newest_sealed, resumable
from collector.run_options import RunOptions, RunReport
from collector.server_address import ports_here
from collector.server_rules import require_startable, used_servers
from collector.watcher import Ending, Watcher
from collector.workers import WorkerFactory

_LOST = "a server was lost or answered nothing"


class Run:
    """One start of a run: new, or the continuation of an open file."""

    def __init__(
        self,
        frozen: FrozenProtocol,
        options: RunOptions,
        *,
        clock: Clock,
        factory: WorkerFactory,
        machine: Machine,
        watcher: Watcher,
        stop_signal: Callable[[], str | None] = lambda: None,
        on_acknowledged: Callable[[int], None] | None = None,
    ) -> None:
        """`stop_signal` returns why the run shall stop now, or null; it is asked about ten times a second."""
        self._frozen = frozen
        self._lock: Lock = frozen.lock
        self._options = options
        self._clock = clock
        self._factory = factory
        self._machine = machine
        self._watcher = watcher
        self._stop_signal = stop_signal
        self._on_acknowledged = on_acknowledged
        self._began_ns = clock.monotonic_ns()
        self._documents = {document.id: document for document in frozen.documents}
        self._judging = judging_of(frozen)
        self._is_reloading = options.is_reloading and self._lock.plan.plan.reload_check
        plan = self._lock.plan
        self._device_engine = deciding_engine(plan.engine, plan.servers, plan.variants)
        self._device = resolve_device(options.device, self._device_engine)

    def run(self, out_dir: Path) -> RunReport:
        """Run what is left of the plan and return what was done.

        Raises DossierError for an unknown variant, no documents for the stage, a missing package, or a folder that
        cannot be written; the file then holds everything acknowledged until there.
        """
        self._check()
        detected = self._machine.detect(self._device, threads=self._lock.plan.engine.threads)
        engines = {variant.name: self._engine(variant) for variant in self._lock.plan.variants}
        passes = plan_passes(
            self._lock,
            stage=self._options.stage,
            environment_id=detected.environment.environment_id,
            engine_ids={name: engine.engine_id for name, engine in engines.items()},
            only=self._options.only,
            only_series=self._options.only_series,
            configurations=self._options.configurations,
            reference_runs=self._options.reference_runs,
            repetitions=self._options.repetitions,
        )
        if not passes:
            raise DossierError(
                f"the plan has no pass of the series {', '.join(self._options.only_series)}",
                next_step="name batches = [2, 4] in [plan] and freeze again, or leave the option out",
            )
        if (limit := self._options.document_limit) is not None:
            passes = [
                msgspec.structs.replace(one, document_order=one.document_order[:limit]) for one in passes
            ]  # fmt: skip
        journal, progress = self._open(out_dir, detected)
        with journal:
            opening = self._options.opening
            if progress.is_continued:
                opening = change_of_rental(progress.rental_id, self._options.rental_id, self._watcher)
            describe(
                journal, progress, self._frozen, detected, engines.values(), stage=self._options.stage,
                decisions=[*left_out(self._lock, self._options.only, self._options.only_series), *opening],
            )  # fmt: skip
            around = self._machine.look_around(detected.devices, ports_here(used_servers(self._frozen.protocol)))
            warn_of_others(journal, around, self._watcher, salt=self._frozen.salt)
            return self._all(journal, progress, passes, detected)

    def _check(self) -> None:
        require_scorable(self._lock.trial)
        require_allowed(self._frozen, allow_commands=self._options.allow_commands)
        require_startable(self._frozen.protocol, allow_commands=self._options.allow_commands)
        require_device(self._device, self._device_engine)
        names = [variant.name for variant in self._lock.plan.variants]
        for name in self._options.only:
            if name not in names:
                raise DossierError(f"no variant is called {name!r}", next_step=f"name one of: {', '.join(names)}")
        if not stage_documents(self._lock, self._options.stage):
            role = ROLE_OF_STAGE[self._options.stage]
            raise DossierError(
                f"the protocol has no documents with role {role}",
                next_step=f'give the documents to measure role "{role}" and freeze again',
            )
        if (scorer := self._judging.scorer) is not None:
            scorer.require_working()

    def _open(self, out_dir: Path, detected: Detected) -> tuple[Journal, Progress]:
        if self._options.is_resuming:
            path = resumable(out_dir, self._lock.plan_id, self._options.stage, *detected)
            if path is not None:
                journal = Journal.resume(
                    path, salt=self._frozen.salt, clock=self._clock, on_acknowledged=self._on_acknowledged
                )
                self._watcher.notice(f"continuing {path}")
                return journal, Progress.of_file(path)
            self._refuse_finished(out_dir)
            self._watcher.notice(f"no open run of this plan in {out_dir}: starting a new one")
        journal = Journal.create(
            out_dir,
            header=header(
                self._frozen,
                stage=self._options.stage,
                rental_id=self._options.rental_id,
                commit=self._options.commit,
                clock=self._clock,
            ),
            salt=self._frozen.salt,
            clock=self._clock,
            on_acknowledged=self._on_acknowledged,
        )
        return journal, Progress()

    def _refuse_finished(self, out_dir: Path) -> None:
        """Resuming a finished plan must not measure, and pay for, all of it once more."""
        sealed = newest_sealed(out_dir, self._lock.plan_id, self._options.stage)
        if sealed is not None:
            raise DossierError(
                f"nothing is left to resume: {sealed} is a finished run of this plan",
                next_step="read it with `reporter`; to measure the whole plan once more, run without --resume",
            )

    def _all(self, journal: Journal, progress: Progress, passes: list[PlannedPass], detected: Detected) -> RunReport:
        self._record_limits(journal, progress, passes)
        left = [planned for planned in passes if self._is_left(planned, progress)]
        reloads = self._expected_reloads(passes, progress)
        self._watcher.plan(
            passes=len(left) + len(reloads),
            documents=sum(len(one.document_order) for one in left)
            + sum(min(CHECKED, len(one.document_order)) for one in reloads),
        )
        around = Surroundings(
            journal=journal,
            factory=self._factory,
            monitor=self._machine.monitor(detected.devices, self._clock),
            clock=self._clock,
            watcher=self._watcher,
            judging=self._judging,
            salt=self._frozen.salt,
            is_stopping=lambda: self._stop_reason() is not None,
        )
        endings: dict[str, Ending] = {}
        checked: dict[str, str] = {}
        reason = self._measure(left, endings, around, progress, passes)
        has_failed = False
        if reason is None:
            reason, has_failed = self._reload_all(checked, around, progress, passes)
        if reason is not None:
            return self._stopped(reason, around, progress, passes, endings)._replace(reloads=checked)
        if lost := [one for one in passes if progress.is_begun(one) and self._is_left(one, progress)]:
            return self._stopped(_LOST, around, progress, lost, endings)._replace(
                reloads=checked, has_failed_reload=has_failed
            )
        is_part = self._options.only or self._options.only_series
        head_digest = None if is_part else journal.seal()
        return RunReport(journal.path, journal.run_id, head_digest, None, endings, checked, has_failed)

    def _measure(
        self, left: list[PlannedPass], endings: dict[str, Ending], around: Surroundings, progress: Progress,
        passes: list[PlannedPass],
    ) -> str | None:  # fmt: skip
        """Run the passes that are left, and put how each attempt ended into `endings`; returns why it stopped."""
        for planned in left:
            if progress.limits.refuses(planned):
                continue
            if (reason := self._stop_reason()) is not None:
                return reason
            attempt = progress.next_attempt(planned)
            ending = endings[planned.label(attempt)] = self._attempt(planned, attempt, around)
            progress.learn(planned, attempt, ending)
            self._record_limits(around.journal, progress, passes)
            if ending.outcome == "interrupted" and (reason := self._stop_reason()) is not None:
                return reason
        return None

    def _reload_all(
        self, checked: dict[str, str], around: Surroundings, progress: Progress, passes: list[PlannedPass]
    ) -> tuple[str | None, bool]:  # fmt: skip
        """Check the reloads that are due, put what is found into `checked`; returns why it stopped, if one failed."""
        due = self._due(passes, progress)
        judged = judged_passes(around.journal.path, [one.key.pass_id(attempt) for one, attempt in due])
        has_failed = False
        for planned, attempt in due:
            if (reason := self._stop_reason()) is not None:
                return reason, has_failed
            of_pass = judged[planned.key.pass_id(attempt)]
            if not of_pass.requests:
                checked[planned.variant.name] = f"{planned.variant.name} completed no answer to ask for again"
                continue
            ending, said = self._reload(planned, attempt, of_pass, around)
            if ending.outcome == "interrupted" and (reason := self._stop_reason()) is not None:
                return reason, has_failed
            progress.reloaded.add(planned.key.variant_id)
            checked[planned.variant.name] = said
            has_failed |= ending.outcome == "failed"
        return None, has_failed

    def _stopped(
        self, reason: str, around: Surroundings, progress: Progress, passes: list[PlannedPass],
        endings: dict[str, Ending],
    ) -> RunReport:  # fmt: skip
        """Record why the run stopped and what is missing, in the order in which a resumed run will measure it."""
        journal = around.journal
        missing = [one for one in passes if self._is_left(one, progress)]
        left = [one.label(1).rpartition("/")[0] for one in missing]
        left += [f"{one.variant.name}{RELOAD}" for one in self._expected_reloads(passes, progress)]
        detail = {"reason": reason, "left": ", ".join(left)}
        journal.append(Decision(decision="stopped", decided_by="collector", detail=detail))
        journal.flush()
        return RunReport(journal.path, journal.run_id, None, reason, endings, left=tuple(left))

    def _due(self, passes: list[PlannedPass], progress: Progress) -> list[tuple[PlannedPass, int]]:
        return due_reloads(self._reloadable(passes), progress) if self._is_reloading else []

    def _expected_reloads(self, passes: list[PlannedPass], progress: Progress) -> list[PlannedPass]:
        return expected_reloads(self._reloadable(passes), progress) if self._is_reloading else []

    def _reloadable(self, passes: list[PlannedPass]) -> list[PlannedPass]:
        return [planned for planned in passes if is_loaded_anew(self._lock, planned.variant)]

    def _reload(
        self, planned: PlannedPass, attempt: int, judged: Judged, around: Surroundings
    ) -> tuple[Ending, str]:  # fmt: skip
        name, label = planned.variant.name, planned.label(attempt) + RELOAD
        documents = judged.documents(planned.key.batch)
        self._watcher.begin_pass(label=label, purpose="reload_check", documents=len(documents))
        job = PassJob(
            pass_id=planned.key.pass_id(attempt), variant_id=planned.key.variant_id,
            setup=self._setup(planned.variant, label), salt_hex=self._frozen.salt.hex(), load=planned.load,
            warmup=[], measure=[], reload=self._prompts(documents),
        )  # fmt: skip
        ending, found = Reload(job, around).check(judged)
        self._watcher.end_pass(label=label, ending=ending)
        return ending, words(name, ending, found)

    def _record_limits(self, journal: Journal, progress: Progress, passes: list[PlannedPass]) -> None:
        is_done = [progress.is_done(planned) for planned in passes]
        for decision in progress.limits.decisions(passes, is_done):
            journal.append(decision)
            detail = decision.detail
            if decision.decision == "batch_reduced":
                self._watcher.notice(
                    f"{detail['variant']} ran out of memory with {detail['from']} requests at a time: larger batches "
                    f"are not tried; the largest that completed is {detail['to']}"
                )
        journal.flush()

    def _attempt(self, planned: PlannedPass, attempt: int, around: Surroundings) -> Ending:
        pass_id = planned.key.pass_id(attempt)
        label = planned.label(attempt)
        if attempt > 1:
            detail = {"attempt": str(attempt), "previous_pass_id": planned.key.pass_id(attempt - 1)}
            around.journal.append(
                Decision(decision="restarted", decided_by="collector", pass_id=pass_id, detail=detail)
            )
        around.journal.append(pass_begin(planned, attempt, self._clock))
        around.journal.flush()
        self._watcher.begin_pass(label=label, purpose=planned.purpose, documents=len(planned.document_order))
        job = PassJob(
            pass_id=pass_id,
            variant_id=planned.key.variant_id,
            setup=self._setup(planned.variant, label),
            salt_hex=self._frozen.salt.hex(),
            load=planned.load,
            warmup=self._prompts(warmup_documents(self._lock, self._options.stage, load=planned.load)),
            check=self._prompts(check_documents(self._lock, self._options.stage)) if planned.key.batch > 1 else [],
            measure=self._prompts(planned.document_order),
        )
        ending = Attempt(job, around).run()
        self._watcher.end_pass(label=label, ending=ending)
        return ending

    def _prompts(self, document_ids: Sequence[str]) -> list[Prompt]:
        task = self._frozen.protocol.task
        return [render_prompt(task, self._documents[document_id]) for document_id in document_ids]

    def _setup(self, variant: VariantChoice, label: str) -> EngineSetup:
        protocol = self._frozen.protocol  # the lock knows an absolute folder by its name alone
        return EngineSetup(
            base_dir=str(self._frozen.base_dir.resolve()), model=protocol.model,
            engine=protocol.engine_of(variant), variant=variant,
            generation=self._lock.trial.generation, limits=self._lock.trial.limits,
            device=self._device, pass_label=label,
        )  # fmt: skip

    def _engine(self, variant: VariantChoice) -> Engine:
        choice = self._lock.plan.engine_of(variant)
        found = engine_module(choice.name).identity(self._setup(variant, f"{variant.name}/1/1"))
        record = Engine(
            engine_id=short_id(as_json(found)), engine_name=found.engine_name, engine_version=found.engine_version,
            engine_flags=found.engine_flags, engine_evidence="claimed" if choice.server else "verified",
        )  # fmt: skip
        return explained(record, {"engine_version": "not_measured"})

    def _is_left(self, planned: PlannedPass, progress: Progress) -> bool:
        return not progress.is_done(planned) and not progress.limits.refuses(planned)

    def _stop_reason(self) -> str | None:
        limit_s = self._options.stop_after_s
        if limit_s is not None and self._clock.monotonic_ns() - self._began_ns >= limit_s * 1e9:
            return f"stopped after {limit_s:g} s"
        return self._stop_signal()
