"""Freeze a protocol into its lock, and read it back only where nothing has drifted since."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.clock import Clock
from collector.contract.campaign import objective_digest
from collector.contract.campaign_file import read_campaign
from collector.contract.digests import new_salt, read_salt, write_salt
from collector.contract.errors import DossierError, Finding, Refused
from collector.contract.protocol import DocumentLine, Lock, Protocol, lock_bytes, plan_digest, protocol_digest
from collector.contract.texts import is_run_file
from collector.lock import content_drift, content_of, has_other_salt, lock_path, read_lock, salt_path
from collector.protocol_check import examine, load_protocol

_WRITE_STEP = "make room, or give yourself the right to write there; nothing was changed"


class FrozenProtocol(NamedTuple):
    """A protocol that agrees with its lock. `documents` are in the lock's order: by id.

    lock_json: the lock's own JSON without its documents, as the header carries it. Written again by a later version it
    could have fields that its digests do not cover.
    """

    lock: Lock
    salt: bytes
    protocol: Protocol
    documents: list[DocumentLine]
    base_dir: Path
    lock_json: str


def freeze(path: Path, *, campaign: Path | None, clock: Clock, with_tokenizer: bool = True) -> Lock:
    """Check a protocol, write protocol.lock.json and, the first time, protocol.salt beside it; return the lock.

    The same protocol freezes to the same ids, and to the same bytes while nothing changed: the salt is drawn once and
    the time of the first freeze stays. `campaign` (by default campaign.toml beside the protocol, where there is one)
    gives the objective's digest.

    Raises Refused with every finding of the check, DossierError where the folder cannot be written or the salt is not
    the one of the lock that is there.
    """
    report = examine(path, with_tokenizer=with_tokenizer, with_lock=False)
    if report.findings:
        raise Refused(report.findings)
    loaded = load_protocol(path)
    objective = campaign_objective(path, campaign)
    content = content_of(loaded, _salt(path))
    protocol_id = protocol_digest(content.trial)
    lock = Lock(
        lock_format=1,
        frozen_at=clock.utc(),
        protocol_id=protocol_id,
        plan_id=plan_digest(protocol_id, content.plan),
        objective_digest=objective,
        trial=content.trial,
        plan=content.plan,
        documents=content.documents,
    )
    target = lock_path(path)
    earlier: Lock | None = None
    with contextlib.suppress(Refused):  # an unreadable or edited lock is replaced: freezing is its next step
        earlier = read_lock(target)
    if earlier is not None:
        if msgspec.structs.replace(lock, frozen_at=earlier.frozen_at) == earlier:
            return earlier
        if has_other_salt(earlier, content):
            raise DossierError(
                f"{salt_path(path)} is not the salt of {target}: with it this would be another protocol",
                next_step=f"copy the salt again that belongs to the lock; or remove {target.name} to begin anew",
            )
    _write_atomically(target, lock_bytes(lock))
    return lock


def judging_again(path: Path, lock: Lock, before: tuple[str, str] | None) -> str | None:
    """Return how runs beside the protocol are judged by it, null without runs and where it judges as it did before.

    before: protocol_id and plan_id of the lock that was there.
    """
    runs = path.parent / "runs"
    is_new = before is not None and before[0] != lock.protocol_id
    if not (is_new or lock.trial.scorer is not None) or not any(is_run_file(file) for file in runs.glob("*.jsonl")):
        return None
    allowed = " --allow-commands" if lock.trial.scorer is not None else ""
    return (
        f"{runs} holds runs: where they asked the same, their answers can be judged by this protocol without a model: "
        f"collector score {runs} --protocol {path} --out {runs}{allowed}"
    )


def read_frozen(path: Path, campaign: Path | None = None) -> FrozenProtocol:
    """Return the protocol with its lock and salt.

    Raises Refused naming each thing that drifted from the lock with file, line and next step: a changed protocol,
    document or script, or an objective declared differently. DossierError where the salt is missing.
    """
    loaded = load_protocol(path)
    lock = read_lock(lock_path(path))
    salt = read_salt(salt_path(path))
    findings = content_drift(loaded, lock, content_of(loaded, salt))
    findings += _objective_drift(path, campaign, lock)
    if findings:
        raise Refused(findings)
    documents = sorted(loaded.documents, key=lambda document: document.id)
    bare = msgspec.json.decode(lock_path(path).read_bytes()) | {"documents": []}
    return FrozenProtocol(lock, salt, loaded.protocol, documents, path.parent, msgspec.json.encode(bare).decode())


def campaign_path(path: Path, campaign: Path | None) -> Path | None:
    """Return the campaign file meant: the one given, else campaign.toml beside the protocol where there is one."""
    if campaign is not None:
        return campaign
    beside = path.parent / "campaign.toml"
    return beside if beside.exists() else None


def campaign_objective(path: Path, campaign: Path | None) -> str | None:
    """Return the digest of the campaign's objective, null without a campaign. Raises Refused for a broken file."""
    source = campaign_path(path, campaign)
    return objective_digest(read_campaign(source).campaign.objective) if source is not None else None


def _objective_drift(path: Path, campaign: Path | None, lock: Lock) -> list[Finding]:
    """A campaign that appeared after freezing is no drift: the dossier says that its objective was declared later."""
    source = campaign_path(path, campaign)
    if source is None or (campaign is None and lock.objective_digest is None):
        return []
    loaded = read_campaign(source)
    if lock.objective_digest is None or objective_digest(loaded.campaign.objective) == lock.objective_digest:
        return []
    message = "the objective is not the one that was frozen"
    next_step = f"undo the change, or run `collector freeze {path}`: protocol and plan stay the same"
    return [Finding(source, loaded.line_of("objective"), "drift", message, next_step)]


def _salt(path: Path) -> bytes:
    """Return the protocol's salt, drawn the first time; a lock without its salt is refused, it would be orphaned."""
    target = salt_path(path)
    if target.exists():
        return read_salt(target)
    if lock_path(path).exists():
        raise DossierError(
            f"{lock_path(path)} is there and {target} is not: with a new salt this would be another protocol",
            next_step=f"copy {target.name} back beside the lock; or remove {lock_path(path).name} to begin anew",
        )
    salt = new_salt()
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".freeze-") as folder:
            fresh = Path(folder) / target.name
            write_salt(fresh, salt)
            fresh.rename(target)
    except OSError as error:
        raise DossierError(f"{target} cannot be written: {error.strerror}", next_step=_WRITE_STEP) from None
    return salt


def _write_atomically(target: Path, content: bytes) -> None:
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(name, 0o644)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DossierError(f"{target} cannot be written: {error.strerror}", next_step=_WRITE_STEP) from None
