"""choice.json: the configuration that was chosen and why every other was not, for the collector to confirm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from collector.contract.digests import json_digest
from collector.contract.errors import DossierError
from collector.contract.records import Header, decode_record

from .dossier import Dossier, Row, Sentence, Value
from .record_files import record_files
from .render import View, shipped_words
from .translate import Translator


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of `wording.SENTENCES` with its parameters, the values of the figures they name, and its English."""

    key: str
    text: str
    parameters: dict[str, str]
    values: dict[str, Value]


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration by its keys; `configuration_key` is null for a candidate that was never run."""

    label: str
    status: str
    configuration_key: str | None
    variant: str | None
    device: str | None
    batch: int | None
    concurrency: int | None
    environment_id: str | None
    reasons: list[Reason]
    model: str | None = None
    """The model's name; several models of one protocol may have variants of one name."""


class Overridden(msgspec.Struct, frozen=True, kw_only=True):
    """A person chose otherwise, or the same, and answers for it; `instead_of` is null where the rules chose nobody."""

    by: str
    on: str
    because: str
    instead_of: str | None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """choice.json. `chosen` is null where nothing was recommended, preferred or chosen by a person.

    `reason` is what the rules say; `override` is there where a person chose.
    content_digest: sha256 of the canonical JSON of everything else in the file, so that an edit is noticed.
    """

    choice_format: int = 1
    content_digest: str
    dossier_id: str
    revision: int
    as_of: str
    protocol_id: str
    plan_ids: list[str]
    records_digest: str
    objective_digest: str | None
    objective_declared_before: bool | None
    chosen: Named | None
    reason: Reason
    others: list[Named]
    override: Overridden | None = None


def choose(dossier: Dossier) -> bytes:
    """Return choice.json of a dossier: the recommendation if there is one, and every configuration that is not it.

    Same dossier, same bytes. The dossier is made from `choosing_files`: what confirms a choice never makes it.
    """
    rows = dossier.tables["candidates"].rows
    chosen = chosen_row(rows)
    view = View(dossier, Translator("en"), shipped_words(), "screen", density=0)
    named = {row.key: _named(view, row) for row in rows}
    choice = Choice(
        content_digest="",
        dossier_id=dossier.dossier_id, revision=dossier.revision, as_of=dossier.as_of,
        protocol_id=dossier.protocol_id, plan_ids=dossier.plan_ids, records_digest=dossier.records_digest,
        objective_digest=dossier.objective_digest, objective_declared_before=dossier.objective_declared_before,
        chosen=None if chosen is None else named[chosen.key],
        reason=_reason(view, dossier.decision.recommendation),
        others=[entry for key, entry in named.items() if chosen is None or key != chosen.key],
        override=_override(dossier, rows),
    )  # fmt: skip
    content = msgspec.to_builtins(choice)
    del content["content_digest"]
    choice = msgspec.structs.replace(choice, content_digest=json_digest(content))
    return msgspec.json.format(msgspec.json.encode(choice), indent=1) + b"\n"


def chosen_row(rows: Sequence[Row]) -> Row | None:
    """Return what is to be confirmed: what a person chose, else the recommended one, else the preferred equivalent."""
    for name, value in (("is_chosen", "yes"), ("status", "recommended"), ("is_preferred", "yes")):
        found = next((row for row in rows if row.labels.get(name) == value), None)
        if found is not None:
            return found
    return None


def _override(dossier: Dossier, rows: Sequence[Row]) -> Overridden | None:
    record = next((said.parameters for said in dossier.decision.override if said.key == "override_chosen"), None)
    if record is None:
        return None
    instead = next((row.labels["label"] for row in rows if row.labels["status"] == "recommended"), None)
    return Overridden(
        by=record["by"], on=record["date"].removeprefix("~"), because=record["because"], instead_of=instead
    )


def choosing_files(paths: Sequence[Path]) -> list[Path]:
    """Return the record files of the paths without the runs on test documents.

    Raises DossierError where nothing else is there, or no run file at all.
    """
    files = record_files(paths)
    left = [file for file in files if not _is_of_test_stage(file)]
    if not left:
        raise DossierError(
            f"every run in {', '.join(map(str, paths))} is on test documents: what confirms a choice cannot make it",
            next_step="name the validation runs as well",
        )
    return left


def _is_of_test_stage(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            header = decode_record(stream.readline())
    except (OSError, msgspec.MsgspecError):
        return False  # reading it as a run tells why it cannot be read
    return isinstance(header, Header) and header.stage == "test"


def _named(view: View, row: Row) -> Named:
    labels = row.labels
    return Named(
        label=labels["label"], status=labels["status"], configuration_key=labels.get("configuration_key"),
        variant=labels.get("variant"), device=labels.get("device"), batch=_whole(labels.get("batch")),
        concurrency=_whole(labels.get("concurrency")), environment_id=labels.get("environment_id"),
        reasons=[_reason(view, sentence) for sentence in row.sentences], model=labels.get("model") or None,
    )  # fmt: skip


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


def _reason(view: View, sentence: Sentence) -> Reason:
    values = {
        name: view.dossier.figures[parameter[1:]].value
        for name, parameter in sentence.parameters.items()
        if parameter.startswith("#")
    }
    return Reason(key=sentence.key, text=view.say_plain(sentence), parameters=sentence.parameters, values=values)
