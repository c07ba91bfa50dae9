"""The look at the test documents: what was chosen before it, on which machine, and how many looks came before.

The reference runs once, whatever the plan says: how much changes by itself is known from validation, and the rules
compare first passes. A look is counted when its run begins, not when it ends: what ran may have been seen.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.contract.chain import scan
from collector.contract.digests import JsonValue, json_digest
from collector.contract.errors import DossierError
from collector.contract.protocol import Lock, Model
from collector.contract.records import Decision
from collector.environment import Detected
from collector.plan import Chosen, plans_own, stage_documents
from collector.run_files import looks, resumable

CHOICE_FORMAT = 1
REFERENCE_RUNS = 1
_CHOOSE = "write it again: reporter choose RUNS --campaign campaign.toml -o choice.json"


class ChosenConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration that was chosen, as `reporter choose` names it."""

    label: str
    configuration_key: str
    variant: str
    device: str
    batch: int
    concurrency: int
    environment_id: str | None = None
    model: str | None = None


class ChoiceOverride(msgspec.Struct, frozen=True, kw_only=True):
    """Who chose instead of the rules, when and why; `instead_of` is what the rules recommend, null for nobody."""

    by: str
    on: str
    because: str
    instead_of: str | None = None


class ChoiceContent(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of choice.json; `chosen` is null where nothing was recommended."""

    choice_format: int
    content_digest: str
    dossier_id: str
    as_of: str
    protocol_id: str
    plan_ids: list[str]
    records_digest: str
    chosen: ChosenConfiguration | None
    override: ChoiceOverride | None = None


class Choice(NamedTuple):
    """A choice file that chooses something. file_digest: sha256 of its bytes."""

    path: Path
    file_digest: str
    content: ChoiceContent
    chosen: ChosenConfiguration


class Look(NamedTuple):
    """One look at the test documents, ready to run.

    number: 1 for the first. earlier: run ids of the looks before it. opening: the decisions its file begins with.
    """

    number: int
    earlier: list[str]
    configurations: list[Chosen]
    opening: list[Decision]


def read_choice(path: Path) -> Choice:
    """Return the choice in a file. Raises DossierError where it is unreadable, was edited, or chooses nothing."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DossierError(f"{path} cannot be read: {error.strerror}", next_step=_CHOOSE) from None
    try:
        whole: dict[str, JsonValue] = msgspec.json.decode(raw, type=dict[str, object])
        version = whole.get("choice_format")
        if type(version) is int and version > CHOICE_FORMAT:
            step = "upgrade gpu-dossier, or choose again with this version"
            raise DossierError(f"{path}: choice_format {version} is newer than {CHOICE_FORMAT}", next_step=step)
        content = msgspec.convert(whole, ChoiceContent)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DossierError(f"{path} is no choice file: {error}", next_step=_CHOOSE) from None
    said = json_digest({name: value for name, value in whole.items() if name != "content_digest"})
    if said != content.content_digest:
        raise DossierError(
            f"{path} was edited after it was written: content_digest is {content.content_digest[:12]}…, "
            f"its content has {said[:12]}…",
            next_step=_CHOOSE,
        )
    if content.chosen is None:
        raise DossierError(
            f"{path} recommends no configuration, so there is nothing to confirm",
            next_step="read the `text` of its `reason`; the test documents stay unseen until validation recommends one",
        )
    return Choice(path, hashlib.sha256(raw).hexdigest(), content, content.chosen)


def prepare_look(choice: Choice, lock: Lock, detected: Detected, out_dir: Path, *, is_resuming: bool) -> Look:
    """Return the look that this choice, lock and machine make, counted over the runs in `out_dir`.

    Raises DossierError for a choice of another protocol, plan or machine, a configuration the plan lacks, a protocol
    without test documents, and an open look of another choice or one that should be resumed.
    """
    _same_trial(choice, lock)
    _same_machine(choice, detected)
    if not stage_documents(lock, "test"):
        raise DossierError(
            "the protocol keeps back no documents with role test, so there is nothing to confirm on",
            next_step='give documents that nobody chose by role "test", freeze, and run validation again',
        )
    open_run = _open_look(lock, detected, out_dir, is_resuming=is_resuming)
    if open_run is not None:
        _same_look(open_run, choice, is_resuming=is_resuming)
    before = looks(out_dir, lock.protocol_id)
    earlier = [run_id for run_id, path in before.items() if open_run is None or path.name < open_run.name]
    number = len(earlier) + 1
    return Look(
        number,
        earlier,
        [Chosen(choice.chosen.variant, choice.chosen.batch, choice.chosen.concurrency)],
        _opening(choice, number, earlier),
    )


def _opening(choice: Choice, number: int, earlier: list[str]) -> list[Decision]:
    chosen = choice.chosen
    frozen = {
        "choice_digest": choice.file_digest, "dossier_id": choice.content.dossier_id, "as_of": choice.content.as_of,
        "records_digest": choice.content.records_digest, "label": chosen.label,
        "configuration_key": chosen.configuration_key, "variant": chosen.variant, "batch": str(chosen.batch),
        "reference_runs": f"{REFERENCE_RUNS}: the noise level is known from validation",
    }  # fmt: skip
    looked = {"look": str(number)} | ({"earlier_runs": " ".join(earlier)} if earlier else {})
    return [
        Decision(decision="choice_confirmed", decided_by="collector", detail=frozen),
        Decision(decision="test_set_looked_at", decided_by="collector", detail=looked),
        *_override(choice),
    ]


def _override(choice: Choice) -> list[Decision]:
    """Return the record of a person's choice, so that it is in the look's own file."""
    override = choice.content.override
    if override is None:
        return []
    detail = {"label": choice.chosen.label, "on": override.on, "because": override.because}
    if override.instead_of is not None:
        detail["instead_of"] = override.instead_of
    return [Decision(decision="override", decided_by=override.by, detail=detail)]


def _same_trial(choice: Choice, lock: Lock) -> None:
    content, chosen = choice.content, choice.chosen
    if content.protocol_id != lock.protocol_id:
        raise DossierError(
            f"{choice.path} was made under protocol {content.protocol_id[:12]}…, frozen here is "
            f"{lock.protocol_id[:12]}…",
            next_step="confirm under the protocol of its validation runs, or choose again from runs of this one",
        )
    if lock.plan_id not in content.plan_ids:
        raise DossierError(
            f"{choice.path} was made from runs of other plans: {', '.join(p[:12] + '…' for p in content.plan_ids)}; "
            f"frozen here is {lock.plan_id[:12]}…",
            next_step="undo the change of the plan, or run validation under it and choose again",
        )
    here = model_name(lock.plan.model)
    if chosen.model not in (None, here):
        raise DossierError(
            f"{choice.path} chooses {chosen.variant} of the model {chosen.model}; frozen here is {here}",
            next_step="confirm under the lock of the chosen model",
        )
    plan = lock.plan.plan
    known = [Chosen(plan.reference), *(each for each in plans_own(lock) if each.rate_per_s is None)]
    if Chosen(chosen.variant, chosen.batch, chosen.concurrency) not in known:
        listed = ", ".join(f"{c.variant} with batch {c.batch} and concurrency {c.concurrency}" for c in known)
        raise DossierError(
            f"{choice.path} chooses {chosen.variant} with batch {chosen.batch} and concurrency {chosen.concurrency}; "
            f"the plan has: {listed}",
            next_step=_CHOOSE,
        )


def model_name(model: Model) -> str:
    """Return a model's name as dossiers print it: the last part of its id, and its GGUF file where it names one."""
    name = model.portable_id.rpartition("/")[2]
    return f"{name} {model.gguf_file}" if model.gguf_file is not None else name


def _same_machine(choice: Choice, detected: Detected) -> None:
    chosen = choice.chosen
    wanted = {re.sub(r" x [0-9]+$", "", name) for name in chosen.device.split(" + ")}
    found = [device.device_name for device in detected.devices]
    if not wanted & set(found):
        raise DossierError(
            f'{choice.path} chooses the device "{chosen.device}"; here is "{", ".join(found)}"',
            next_step="confirm on the chosen machine, or name its device with --device",
        )
    environment_id = detected.environment.environment_id
    if chosen.environment_id not in (None, environment_id):
        raise DossierError(
            f"{choice.path} was validated in environment {chosen.environment_id}, this machine is now "
            f"{environment_id}: driver, packages, threads or machine differ",
            next_step="restore what changed (a dossier's section on the environment lists it), or run validation here "
            "and choose again; the test documents were not looked at",
        )


def _open_look(lock: Lock, detected: Detected, out_dir: Path, *, is_resuming: bool) -> Path | None:
    """Return the look that is open on this machine; one that is open on another is a look like any other."""
    try:
        return resumable(out_dir, lock.plan_id, "test", detected.environment, detected.devices)
    except DossierError:
        if is_resuming:
            raise
        return None


def _same_look(open_run: Path, choice: Choice, *, is_resuming: bool) -> None:
    recorded = [
        line.record.detail.get("choice_digest")
        for line in scan(open_run)
        if isinstance(line.record, Decision) and line.record.decision == "choice_confirmed"
    ]
    if recorded and recorded[0] != choice.file_digest:
        raise DossierError(
            f"{open_run} is an open look at the test documents for another choice ({str(recorded[0])[:12]}…)",
            next_step="finish it with its own choice file and --resume first",
        )
    if not is_resuming:
        raise DossierError(
            f"{open_run} is an open look of this choice at the test documents",
            next_step="continue it with --resume; a new start would count as one more look",
        )


def warning_before(look: Look) -> str | None:
    """Return what must be said before a look that is not the first."""
    if look.number == 1:
        return None
    return (
        f"this is look {look.number} at the test documents (before: {', '.join(run[:8] for run in look.earlier)}): "
        "after a second look the test set is validation, and confirms nothing any more"
    )
