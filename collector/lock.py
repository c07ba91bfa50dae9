"""The lock: what of a protocol is frozen, how it is read back, and what has drifted from it since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from collector.contract.digests import JsonValue, canonical_json, file_sha256, json_digest, read_salt, text_hmac
from collector.contract.errors import Finding, Refused
from collector.contract.protocol import (
    DocumentLine,
    Lock,
    LockedDocument,
    LockedPlan,
    LockedScorer,
    LockedTrial,
    ServerChoice,
    Task,
    as_json,
    documents_digest,
    lock_digests,
    portable,
    portable_url,
)
from collector.contract.shape import shown
from collector.protocol_file import LoadedProtocol


class Content(NamedTuple):
    """What a protocol says now, in the form in which it is frozen."""

    trial: LockedTrial
    plan: LockedPlan
    documents: list[LockedDocument]


def lock_path(protocol: Path) -> Path:
    """Return where a protocol's lock lies: protocol.lock.json beside protocol.toml."""
    return protocol.parent / f"{protocol.stem}.lock.json"


def salt_path(protocol: Path) -> Path:
    """Return where a protocol's salt lies: protocol.salt beside protocol.toml."""
    return protocol.parent / f"{protocol.stem}.salt"


def content_of(loaded: LoadedProtocol, salt: bytes) -> Content:
    """Return what would be frozen. Documents are sorted by id, so their order in the file changes nothing.

    Raises Refused where the scripted engine's script cannot be read.
    """
    protocol = loaded.protocol
    script = protocol.engine.script
    documents = sorted((_locked(document, salt) for document in loaded.documents), key=lambda one: one.document_id)
    trial = LockedTrial(
        format=protocol.format,
        name=protocol.name,
        task_kind=protocol.task.kind,
        prompt_hmac=text_hmac(salt, protocol.task.prompt),
        system_hmac=text_hmac(salt, protocol.task.system),
        examples_hmac=_examples_hmac(protocol.task, salt),
        fields=protocol.task.fields,
        missing_value=protocol.task.missing_value,
        ranking=protocol.task.ranking,
        scorer=_locked_scorer(loaded),
        permission=protocol.workload.permission,
        review=protocol.workload.review,
        generation=protocol.generation,
        gates=protocol.gates,
        limits=protocol.limits,
        reference=protocol.plan.reference,
        documents_digest=documents_digest(documents),
    )
    plan = LockedPlan(
        model=msgspec.structs.replace(protocol.model, id=protocol.model.portable_id),
        engine=msgspec.structs.replace(
            protocol.engine,
            script=script and portable(script),
            server=protocol.engine.server and _locked_server(protocol.engine.server),
        ),
        engine_script_sha256=_script_digest(loaded),
        servers=[_locked_server(server) for server in protocol.servers],
        variants=protocol.variants,
        plan=protocol.plan,
    )
    return Content(trial, plan, documents)


def _locked_server(server: ServerChoice) -> ServerChoice:
    """A server without the folders of this machine, of each path its last name, and without other machines' names."""
    return msgspec.structs.replace(
        server, url=server.url and portable_url(server.url), start=[portable(part) for part in server.start],
        environment={name: portable(value) for name, value in server.environment.items()},
    )  # fmt: skip


def _examples_hmac(task: Task, salt: bytes) -> str | None:
    if not task.examples:
        return None
    examples: list[JsonValue] = [as_json(example) for example in task.examples]
    return text_hmac(salt, canonical_json(examples).decode())


def _script_digest(loaded: LoadedProtocol) -> str | None:
    script = loaded.protocol.engine.script
    if script is None:
        return None
    try:
        return file_sha256(loaded.path.parent / script)
    except OSError as error:
        message = f"`engine.script` is {script!r}, which cannot be read: {error.strerror}"
        finding = Finding(loaded.path, loaded.line_of("engine.script"), "script", message, "correct its path")
        raise Refused([finding]) from None


def _locked_scorer(loaded: LoadedProtocol) -> LockedScorer | None:
    scorer = loaded.protocol.task.scorer
    if scorer is None:
        return None
    try:
        digest = scorer_digest(loaded.path.parent, scorer.files)
    except OSError as error:
        message = f"`task.scorer.files` names {error.filename!r}, which cannot be read: {error.strerror}"
        finding = Finding(loaded.path, loaded.line_of("task.scorer.files"), "scorer", message, "correct its path")
        raise Refused([finding]) from None
    return LockedScorer(
        entry_point=scorer.entry_point, command=[portable(part) for part in scorer.command], files_sha256=digest,
        timeout_s=scorer.timeout_s,
    )  # fmt: skip


def scorer_digest(folder: Path, files: Sequence[str]) -> str:
    """Return the digest of a scorer's files together, by name and content. Raises OSError."""
    return json_digest({name: file_sha256(folder / name) for name in files})


def _locked(document: DocumentLine, salt: bytes) -> LockedDocument:
    return LockedDocument(
        document_id=document.id,
        role=document.role,
        length_class=document.length_class,
        is_hard=document.is_hard,
        subsets=sorted(set(document.subsets)),
        cluster=document.cluster or document.id,
        language=document.language,
        text_hmac=text_hmac(salt, document.text),
        expected_hmac=expected_hmac(salt, document),
    )


def expected_text(document: DocumentLine) -> str:
    """Return what is expected of a document as one text: canonical JSON, as the texts file keeps it.

    extraction: field -> value. answers: the known answers and the tolerance. ranking: the candidates as pairs, because
    their order is what the model sees, and the grades.
    """
    if document.candidates:
        pairs: list[JsonValue] = [[name, text] for name, text in document.candidates.items()]
        return canonical_json({"candidates": pairs, "relevance": {**document.relevance}}).decode()
    if document.answers:
        return canonical_json({"answers": [*document.answers], "tolerance": document.tolerance}).decode()
    return canonical_json({**document.expected}).decode()


def expected_hmac(salt: bytes, document: DocumentLine) -> str:
    """Return the HMAC that stands for a document's expected values."""
    return text_hmac(salt, expected_text(document))


def read_lock(path: Path) -> Lock:
    """Return a lock whose two digests agree with what it holds. Raises Refused otherwise."""
    command = f"`collector freeze {path.with_name(path.name.removesuffix('.lock.json') + '.toml')}`"
    next_step = f"run {command} again, or copy the lock again from the machine that froze the protocol"
    try:
        text = path.read_bytes()
        lock = msgspec.json.decode(text, type=Lock)
    except FileNotFoundError:
        message = "the protocol is not frozen: there is no lock"
        raise Refused([Finding(path, None, "lock", message, f"run {command} first")]) from None
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise Refused([Finding(path, None, "lock", f"the lock cannot be read: {error}", next_step)]) from None
    digests = lock_digests(text)
    for name, recorded, computed in (
        ("documents_digest", lock.trial.documents_digest, documents_digest(lock.documents)),
        ("protocol_id", lock.protocol_id, digests.protocol_id),
        ("plan_id", lock.plan_id, digests.plan_id),
    ):
        if recorded != computed:
            message = f"the lock was edited: its {name} is {recorded[:16]}…, its content has {computed[:16]}…"
            raise Refused([Finding(path, None, "lock-edited", message, next_step)])
    return lock


def frozen_ids(path: Path) -> tuple[str, str] | None:
    """Return protocol_id and plan_id of a lock that is there, null where none can be read."""
    try:
        lock = read_lock(path)
    except Refused:
        return None
    return lock.protocol_id, lock.plan_id


def drift_findings(loaded: LoadedProtocol) -> list[Finding]:
    """Return one finding per thing that differs between a protocol and its lock; empty when they agree.

    Raises Refused for an unreadable lock, DossierError for an absent salt.
    """
    lock = read_lock(lock_path(loaded.path))
    salt = read_salt(salt_path(loaded.path))
    return content_drift(loaded, lock, content_of(loaded, salt))


def content_drift(loaded: LoadedProtocol, lock: Lock, now: Content) -> list[Finding]:
    """Return one finding per difference between a lock and what the protocol says now."""
    if has_other_salt(lock, now):
        message = "no text agrees with the lock: this is not the salt that the protocol was frozen with"
        next_step = "copy protocol.salt again from the machine that froze the protocol"
        return [Finding(salt_path(loaded.path), 1, "drift", message, next_step)]
    findings = list(_document_drift(loaded, _plain_documents(lock.documents), _plain_documents(now.documents)))
    frozen_trial, trial = _plain(lock.trial), _plain(now.trial)
    for part in (frozen_trial, trial):
        part.pop("documents_digest")
    command = f"`collector freeze {loaded.path}`"
    new_protocol = f"undo the change, or run {command}: that is a new protocol, and earlier runs stay with the old one"
    new_plan = f"undo the change, or run {command}: the protocol stays the same, the plan is a new one"
    for frozen_part, part, next_step in (
        (frozen_trial, trial, new_protocol),
        (_plain(lock.plan), _plain(now.plan), new_plan),
    ):
        for path, before, after in _differences(frozen_part, part, ()):
            place = _place(path, is_plan=next_step is new_plan)
            message = f"`{place}` {_change(path, before, after)}"
            findings.append(Finding(loaded.path, loaded.line_of(place) or 1, "drift", message, next_step))
    return findings


_ABSENT = "absent"


def _plain(value: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain


def _plain_documents(documents: Sequence[LockedDocument]) -> list[dict[str, Any]]:
    return [_plain(document) for document in documents]


def has_other_salt(frozen: Lock, now: Content) -> bool:
    """Return whether no text at all, not even an empty one, has the HMAC that the lock knows."""
    return not _hmacs(frozen.trial, frozen.documents) & _hmacs(now.trial, now.documents)


def _hmacs(trial: LockedTrial, documents: Sequence[LockedDocument]) -> set[str]:
    own = {trial.prompt_hmac, trial.system_hmac}
    return own.union(*((document.text_hmac, document.expected_hmac) for document in documents))


def _document_drift(
    loaded: LoadedProtocol, frozen: list[dict[str, Any]], now: list[dict[str, Any]]
) -> Iterator[Finding]:
    lines = {document.id: line for document, line in zip(loaded.documents, loaded.document_lines, strict=True)}
    before = {one["document_id"]: one for one in frozen}
    after = {one["document_id"]: one for one in now}
    next_step = (
        f"undo the change, or run `collector freeze {loaded.path}`: that is a new protocol, and earlier runs stay "
        "with the old one"
    )
    for document_id in sorted(before.keys() | after.keys()):
        if document_id not in after:
            message = f"document {document_id!r} was frozen and is no longer there"
        elif document_id not in before:
            message = f"document {document_id!r} was added"
        else:
            changed = [name for name in after[document_id] if after[document_id][name] != before[document_id].get(name)]
            if not changed:
                continue
            what = ", ".join(name.removesuffix("_hmac").replace("expected", "expected values") for name in changed)
            message = f"document {document_id!r} changed: {what}"
        yield Finding(loaded.documents_path, lines.get(document_id), "drift", message, next_step)


def _differences(
    before: Any, after: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Yield (path, before, after) of each leaf that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _differences(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and any(isinstance(one, dict) for one in before + after):
        for index in range(max(len(before), len(after))):
            left = before[index] if index < len(before) else _ABSENT
            right = after[index] if index < len(after) else _ABSENT
            yield from _differences(left, right, (*path, index))
    elif before != after:
        yield path, before, after


_PLACES: dict[str, str] = {
    "prompt_hmac": "task.prompt", "system_hmac": "task.system", "examples_hmac": "task.example",
    "fields": "task.field", "task_kind": "task.kind", "missing_value": "task.missing_value",
    "permission": "workload.permission", "review": "workload.review", "reference": "plan.reference",
    "variants": "variant", "engine_script_sha256": "engine.script",
    "ranking": "task.ranking", "scorer": "task.scorer",
}  # fmt: skip


def _place(path: tuple[str | int, ...], *, is_plan: bool) -> str:
    """Return where a path of the lock stands in protocol.toml."""
    head = str(path[0])
    steps: list[str | int] = [head if is_plan and head == "plan" else _PLACES.get(head, head), *path[1:]]
    if head == "gates" and len(steps) > 1 and steps[1] == "subsets":
        steps[1] = "subset"
    if steps[1:] == ["files_sha256"]:
        steps[1] = "files"
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _change(path: tuple[str | int, ...], before: Any, after: Any) -> str:
    if str(path[-1]).endswith(("_hmac", "_sha256")) and _ABSENT not in (before, after):
        return "has another content than when frozen"
    if before is _ABSENT:
        return f"was not there when frozen and is {shown(after)} now"
    if after is _ABSENT:
        return f"was {shown(before)} when frozen and is gone"
    return f"was {shown(before)} when frozen and is {shown(after)} now"
