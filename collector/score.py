"""Judge recorded answers again: by the protocol's present rules and scorer, into a new file that names its source.

Nothing is asked of a model again. The answers come from the texts file beside the run; the new file holds a header, the
protocol's documents, one score or failure per measured request, and the seal. The source stays as it is.

What was asked must be the same: prompt, system text, worked examples, generation, and each document's text and role.
What may differ is what was expected and how it is judged. Where anything of the protocol differs, its id does too: the
answers are then judged under a new protocol, and the dossier reads the run as one of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import collector
from collector.clock import Clock
from collector.contract import chain
from collector.contract.digests import text_hmac
from collector.contract.errors import DossierError
from collector.contract.protocol import lock_digests
from collector.contract.records import Document, Failure, Header, Record, Request, Score
from collector.contract.texts import Text, inspect_texts, is_run_file, read_texts, texts_path
from collector.freeze import FrozenProtocol
from collector.journal import Journal
from collector.judgement import Judging, built_in_verdict, judging_of, require_allowed, score_record
from collector.judging_rules import require_scorable
from collector.scorers import Asked

_SAME = ("format", "task_kind", "prompt_hmac", "system_hmac", "examples_hmac", "generation")
"""What of a protocol was asked, and so cannot change for answers that are there already."""
_GROUP = 512


class Rescored(NamedTuple):
    """One run judged again. changed: requests whose acceptance is another one than before, or that had no score."""

    source: Path
    path: Path
    head_digest: str
    is_new_protocol: bool
    scores: int
    failures: int
    changed: int


class LeftOut(NamedTuple):
    """A run file that was not judged again, and why."""

    path: Path
    reason: str


class ScoreReport(NamedTuple):
    """What was judged again and what was not."""

    rescored: list[Rescored]
    left_out: list[LeftOut]


class _Source(NamedTuple):
    path: Path
    header: Header
    head_digest: str
    documents: dict[str, Document]
    requests: dict[str, list[Request]]
    """Pass -> its measured requests, in the order of the file."""
    accepted: dict[tuple[str, str, int, int], bool]


def score_runs(
    paths: Sequence[Path], frozen: FrozenProtocol, out_dir: Path, *, clock: Clock, allow_commands: bool = False
) -> ScoreReport:
    """Judge every finished run of the paths again; one new file per run in `out_dir`.

    Files judged again and open runs in a folder are left out and named. Raises DossierError before anything is written:
    for a run that was asked something else, whose texts were deleted or keyed with another salt, that is damaged, and
    where nothing is left to judge.
    """
    require_scorable(frozen.lock.trial)
    require_allowed(frozen, allow_commands=allow_commands)
    left_out: list[LeftOut] = []
    sources = [source for path in _files(paths) if (source := _source(path, left_out)) is not None]
    if not sources:
        reasons = "; ".join(f"{one.path}: {one.reason}" for one in left_out) or "no run file is there"
        raise DossierError(
            f"nothing to judge again: {reasons}", next_step="name finished run files, or folders that hold them"
        )
    answers = [_answers(source, frozen) for source in sources]
    judging = judging_of(frozen)
    if judging.scorer is not None:
        judging.scorer.require_working()
    rescored = [
        _rescored(source, texts, frozen, judging, out_dir, clock)
        for source, texts in zip(sources, answers, strict=True)
    ]
    return ScoreReport(rescored, left_out)


def _files(paths: Sequence[Path]) -> list[Path]:
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise DossierError(f"{path} does not exist", next_step="name run files or folders that hold them")
        for file in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            if is_run_file(file) and (not path.is_dir() or _starts_like_a_record(file)):
                found.setdefault(file.resolve(), file)
    return sorted(found.values(), key=lambda file: (file.name, str(file)))


def _starts_like_a_record(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(8) == b'{"kind":'


def _source(path: Path, left_out: list[LeftOut]) -> _Source | None:
    documents: dict[str, Document] = {}
    requests: dict[str, list[Request]] = {}
    accepted: dict[tuple[str, str, int, int], bool] = {}
    lines = chain.scan(path)
    for line in lines:
        match line.record:
            case Document() as document:
                documents[document.document_id] = document
            case Request(phase="measure") as request:
                requests.setdefault(request.pass_id, []).append(request)
            case Score() as score:
                accepted[score.pass_id, score.document_id, score.turn, score.try_index] = score.is_accepted
            case _:
                pass
    report = lines.report()
    if report.header is not None and report.header.source_head_digest is not None:
        left_out.append(LeftOut(path, "holds judgements made again itself; name the run that it judged"))
        return None
    if report.errors or report.header is None:
        line_number, problem = report.errors[0] if report.errors else (1, None)
        what = problem.message if problem else "no readable header"
        raise DossierError(
            f"{path}:{line_number}: {what}", next_step="`reporter check` says what is wrong; restore it from a copy"
        )
    if report.head_digest is None:
        left_out.append(LeftOut(path, "is open and has no head digest to be named by; finish it with --resume first"))
        return None
    return _Source(path, report.header, report.head_digest, documents, requests, accepted)


def _answers(source: _Source, frozen: FrozenProtocol) -> dict[str, str]:
    """Return HMAC -> text of every answer. Raises DossierError where one is gone or something else was asked."""
    texts = texts_path(source.path)
    if not texts.exists():
        raise DossierError(
            f"{source.path} has no texts beside it: without {texts.name} no answer can be judged again",
            next_step="put its texts file back from a copy; where it was deleted, only the recorded scores are left",
        )
    tail = inspect_texts(texts)
    if tail.header is None or tail.header.salt_hex != frozen.salt.hex():
        raise DossierError(
            f"{texts} was keyed with another salt than this protocol's",
            next_step="judge it with the protocol that it was run under: its salt lies beside that lock",
        )
    _require_same_question(source, frozen)
    held = {text.hmac: text.text for text in read_texts(texts) if text.text_kind == "answer"}
    wanted = [request for listed in source.requests.values() for request in listed if request.answer_hmac]
    absent = [request.document_id for request in wanted if request.answer_hmac not in held]
    if absent:
        raise DossierError(
            f"{texts} lacks {len(absent)} of {len(wanted)} answers, that of {absent[0]} first",
            next_step="put the texts file back from a copy: some answers alone would be another measurement",
        )
    return held


def _require_same_question(source: _Source, frozen: FrozenProtocol) -> None:
    before = _trial(source.header)
    now = msgspec.to_builtins(frozen.lock.trial)
    differing = [name.removesuffix("_hmac") for name in _SAME if before.get(name) != now[name]]
    known = {one.document_id: (one.role, one.text_hmac) for one in source.documents.values()}
    wanted = {one.document_id: (one.role, one.text_hmac) for one in frozen.lock.documents}
    others = sorted(name for name in known.keys() | wanted.keys() if known.get(name) != wanted.get(name))
    if others:
        differing.append(f"documents ({len(others)}, {others[0]} first)")
    if differing:
        raise DossierError(
            f"{source.path} answers other questions than this protocol asks: {', '.join(differing)} differ",
            next_step="what was asked cannot change afterwards: run the protocol, or judge by the one of the run",
        )


def _trial(header: Header) -> dict[str, Any]:
    trial: dict[str, Any] = msgspec.json.decode(header.protocol_json)["trial"]
    return trial


def _header(source: _Source, frozen: FrozenProtocol, clock: Clock) -> Header:
    """Return the new file's header: the protocol's present lock over the plan that the source was measured by."""
    before, lock = source.header, frozen.lock
    if lock.protocol_id == before.protocol_id:
        text, protocol_id, plan_id = before.protocol_json, before.protocol_id, before.plan_id
    else:
        plain: dict[str, Any] = msgspec.json.decode(frozen.lock_json)
        plan = msgspec.json.decode(before.protocol_json)["plan"]
        plan_id = lock_digests(msgspec.json.encode(plain | {"plan": plan})).plan_id
        text = msgspec.json.encode(plain | {"plan": plan, "plan_id": plan_id}).decode()
        protocol_id = lock.protocol_id
    return Header(
        format=1, stage=before.stage, protocol_json=text, protocol_id=protocol_id, plan_id=plan_id,
        objective_digest=before.objective_digest, collector_version=collector.__version__, wall_at=clock.utc(),
        monotonic_ns=clock.monotonic_ns(), source_head_digest=source.head_digest,
    )  # fmt: skip


def _rescored(
    source: _Source, texts: dict[str, str], frozen: FrozenProtocol, judging: Judging, out_dir: Path, clock: Clock
) -> Rescored:
    header = _header(source, frozen, clock)
    counts = {Score: 0, Failure: 0}
    changed = 0
    with Journal.create(out_dir, header=header, salt=frozen.salt, clock=clock) as journal:
        for locked in frozen.lock.documents:
            journal.append(Document(**{name: getattr(locked, name) for name in locked.__struct_fields__}))
        for listed in source.requests.values():
            asked = [Asked(request, texts.get(request.answer_hmac or "")) for request in listed]
            for place, record in enumerate(_judged(asked, judging, journal, frozen.salt), start=1):
                journal.append(record)
                counts[type(record)] = counts.get(type(record), 0) + 1
                if isinstance(record, Score):
                    key = (record.pass_id, record.document_id, record.turn, record.try_index)
                    changed += source.accepted.get(key) is not record.is_accepted
                if place % _GROUP == 0:
                    journal.flush()
        head_digest = journal.seal()
    return Rescored(
        source.path, journal.path, head_digest, header.protocol_id != source.header.protocol_id, counts[Score],
        counts[Failure], changed,
    )  # fmt: skip


def _judged(asked: list[Asked], judging: Judging, journal: Journal, salt: bytes) -> list[Record]:
    """Return a score per request, or the failure that says why it has none."""
    if judging.scorer is None:
        return [score_record(judging, one.request, built_in_verdict(judging, one.request, one.answer)) for one in asked]
    judged = judging.scorer.judge(asked, judging.documents)
    records: list[Record] = []
    for one in asked:
        name = one.request.document_id
        if (verdict := judged.verdicts.get(name)) is not None:
            records.append(score_record(judging, one.request, verdict))
            continue
        hmac = text_hmac(salt, judged.faults[name])
        journal.text(Text(hmac=hmac, text_kind="message", text=judged.faults[name]))
        records.append(
            Failure(
                failure_scope="request", failure_cause="scorer", pass_id=one.request.pass_id, document_id=name,
                phase="measure", exit_code=judged.exit_code or None, message_hmac=hmac,
            )
        )  # fmt: skip
    return records
