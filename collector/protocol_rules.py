"""What a protocol of the right shape may still not say: rules that cannot be judged, met or failed."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path

from collector.contract.errors import Finding
from collector.contract.judging import fold_label
from collector.contract.protocol import DocumentLine, Gates, Protocol, Task
from collector.contract.shape import nearest, shown
from collector.documents import CANDIDATES_PLACEHOLDER, PLACEHOLDER
from collector.model_folder import absent_folder
from collector.model_folder import next_step as folder_step
from collector.starter import starter_text

Say = Callable[[str, str, str, str], Finding]
"""(path in the file, rule, message, next step) -> finding with its line."""

_VARIANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLACEHOLDER_WORDS = frozenset({"", "todo", "tbd", "fixme", "xxx", "n/a", "none", "unknown", "...", "…", "-", "?"})


def protocol_findings(
    path: Path,
    protocol: Protocol,
    documents: Sequence[DocumentLine] | None,
    line_of: Callable[[str], int | None],
    *,
    is_sheet: bool = False,
) -> list[Finding]:
    """Return every finding about the protocol; those about subsets only where the documents are known.

    `is_sheet`: the documents stand in a CSV file, so advice speaks of its columns.
    """

    def say(place: str, rule: str, message: str, next_step: str) -> Finding:
        return Finding(path, line_of(place) or 1, rule, message, next_step)

    findings = [
        *_task(protocol, say),
        *_statements(protocol, say),
        *_variants(protocol, say),
        *_batches(protocol, say),
        *_engine(path, protocol, say),
        *_model(path, protocol, say),
        *_thresholds(protocol.gates, say),
        *_output_limit(protocol, say),
    ]
    if documents is not None:
        findings += _subsets(protocol.gates, documents, say, is_sheet=is_sheet)
        findings += _starter_statements(protocol, documents, say)
    return findings


def _task(protocol: Protocol, say: Say) -> Iterable[Finding]:
    task = protocol.task
    yield from _placeholders(task, say, is_embedding=protocol.engine.answers_by == "embedding")
    if task.kind != "extraction":
        if task.fields:
            message = f"the task is of kind {task.kind} and has {len(task.fields)} field(s), which are for extraction"
            yield say("task.field[0]", "wrong-kind", message, 'remove them, or write kind = "extraction"')
        return
    if not task.fields:
        next_step = "add a [[task.field]] with name and type for each value to extract"
        yield say("task", "no-fields", "the task is of kind extraction and names no field to extract", next_step)
        return
    for index in _repeated([rule.name for rule in task.fields]):
        message = f"two fields are named {task.fields[index].name!r}"
        yield say(f"task.field[{index}].name", "duplicate-name", message, "give each field its own name")
    if not any(rule.is_required for rule in task.fields):
        message = "no field is required, so every readable answer would be accepted"
        yield say("task.field[0]", "no-required-field", message, "make at least one field required")
    for index, rule in enumerate(task.fields):
        place = f"task.field[{index}].labels"
        if rule.type == "label" and len(rule.labels) < 2:
            message = f"field {rule.name!r} has {len(rule.labels)} label(s), so there is nothing to choose from"
            yield say(place, "labels", message, 'add labels = ["...", "..."]')
        elif rule.type != "label" and rule.labels:
            message = f"field {rule.name!r} is of type {rule.type} and has labels {shown(rule.labels)}"
            yield say(place, "labels", message, 'remove them, or write type = "label"')
        for again in _repeated([fold_label(label) for label in rule.labels]):
            message = f"label {rule.labels[again]!r} of {rule.name!r} equals another one when case is ignored"
            yield say(place, "labels", message, "keep one of them")


def _placeholders(task: Task, say: Say, *, is_embedding: bool) -> Iterable[Finding]:
    """An embedding has the prompt for its query alone: each candidate becomes a vector of its own."""
    is_ranking = task.kind == "ranking"
    for placeholder, wanted, what in (
        (PLACEHOLDER, 1, "the query" if is_ranking else "the document's text"),
        (CANDIDATES_PLACEHOLDER, int(is_ranking and not is_embedding), "the list of candidates"),
    ):
        if (count := task.prompt.count(placeholder)) == wanted:
            continue
        if wanted:
            message = f"`task.prompt` contains {placeholder} {count} times, not once"
            next_step = f"write {placeholder} where {what} goes"
        elif is_ranking:
            message = (
                f"`task.prompt` contains {placeholder}, and by embedding each candidate becomes a vector by itself"
            )
            next_step = 'remove it, or write answers_by = "generation" under [engine]'
        else:
            message = f"`task.prompt` contains {placeholder}, and a task of kind {task.kind} has no candidates"
            next_step = 'remove it, or write kind = "ranking"'
        yield say("task.prompt", "prompt-placeholder", message, next_step)


def _statements(protocol: Protocol, say: Say) -> Iterable[Finding]:
    for name, text, next_step in (
        (
            "permission",
            protocol.workload.permission,
            "name who permits this use of the documents, and where it is written",
        ),
        ("review", protocol.workload.review, "say how the expected values were reviewed: by whom or what, and when"),
    ):
        is_to_be_written = text.strip().casefold().startswith("todo")
        if is_to_be_written or text.strip().casefold() in _PLACEHOLDER_WORDS:
            yield say(f"workload.{name}", f"missing-{name}", f"`workload.{name}` says {shown(text)}", next_step)


def _starter_statements(protocol: Protocol, documents: Sequence[DocumentLine], say: Say) -> Iterable[Finding]:
    """The starter's statements are true of the starter's documents alone; a lock would carry them on as evidence."""
    kind = protocol.task.kind
    workload = tomllib.loads(starter_text("protocol.toml", kind))["workload"]
    known = {json.loads(line)["text"] for line in starter_text("documents.jsonl", kind).splitlines()}
    other = [document.id for document in documents if document.text not in known]
    if not other:
        return
    for name, next_step in (
        ("permission", "name who permits the use of your documents, and where it is written"),
        ("review", "say how your expected values were reviewed: by whom or what, and when"),
    ):
        if getattr(protocol.workload, name) == workload[name]:
            message = f"`workload.{name}` is the starter's, and {len(other)} document(s) are not, {other[0]!r} first"
            yield say(f"workload.{name}", f"missing-{name}", message, next_step)


def _variants(protocol: Protocol, say: Say) -> Iterable[Finding]:
    names = [variant.name for variant in protocol.variants]
    for index in _repeated(names):
        message = f"two variants are named {names[index]!r}"
        yield say(f"variant[{index}].name", "duplicate-name", message, "give each variant its own name")
    for index, name in enumerate(names):
        if not _VARIANT_NAME.fullmatch(name):
            message = f"variant name {name!r} cannot stand in keys and file names"
            yield say(f"variant[{index}].name", "variant-name", message, "use letters, digits, `.`, `_` and `-`")
    if protocol.plan.reference not in names:
        meant = nearest(protocol.plan.reference, names)
        next_step = f"did you mean {meant!r}?" if meant else f"the variants are {', '.join(names)}"
        message = f"the reference {protocol.plan.reference!r} is not among the variants"
        yield say("plan.reference", "missing-reference", message, next_step)


def _batches(protocol: Protocol, say: Say) -> Iterable[Finding]:
    """A series grows: out of memory at one size says that larger ones need not be tried."""
    batches = protocol.plan.batches
    if batches != sorted(set(batches)):
        grown = ", ".join(str(batch) for batch in sorted(set(batches)))
        message = f"`plan.batches` is {batches}, and each size must be larger than the one before"
        yield say("plan.batches", "batches", message, f"write batches = [{grown}]")


def _engine(path: Path, protocol: Protocol, say: Say) -> Iterable[Finding]:
    engine = protocol.engine
    if engine.name != "scripted":
        if engine.script is not None:
            message = f"`engine.script` is {engine.script!r}, and engine {engine.name} reads no script"
            yield say("engine.script", "script", message, 'remove it, or write name = "scripted"')
    elif engine.script is None:
        yield say("engine", "script", "the scripted engine has no script", 'add script = "script.json" under [engine]')
    elif not (path.parent / engine.script).is_file():
        message = f"`engine.script` is {engine.script!r}, and there is no such file beside the protocol"
        yield say("engine.script", "script", message, "write the script, or correct its path")


def _model(path: Path, protocol: Protocol, say: Say) -> Iterable[Finding]:
    if protocol.engine.name == "scripted":
        return
    if folder := absent_folder(protocol.model, path.parent):
        message = f"`model.id` is {shown(protocol.model.id)}, and there is no such folder: {folder}"
        yield say("model.id", "no-such-folder", message, folder_step(folder))


def _thresholds(gates: Gates, say: Say) -> Iterable[Finding]:
    if gates.max_lost_points is None and gates.min_accepted_percent is None and not gates.subsets:
        message = "no acceptance rule: every configuration would pass"
        yield say("gates", "no-gate", message, "add max_lost_points, min_accepted_percent or a [[gates.subset]]")
    if gates.max_lost_points is not None and Fraction(gates.max_lost_points) > 100:
        message = (
            f"`gates.max_lost_points` is {gates.max_lost_points}: more than all can never be lost, so it never fails"
        )
        yield say("gates.max_lost_points", "threshold", message, "write points between 0 and 100")
    percents = [("gates.min_accepted_percent", gates.min_accepted_percent)]
    percents += [
        (f"gates.subset[{index}].min_accepted_percent", gate.min_accepted_percent)
        for index, gate in enumerate(gates.subsets)
    ]
    for place, percent in percents:
        if percent is not None and Fraction(percent) > 100:
            message = f"`{place}` is {percent}: no outcome can meet it, at most 100 percent can be accepted"
            yield say(place, "threshold", message, "write a percentage between 0 and 100")
    for index in _repeated([gate.subset for gate in gates.subsets]):
        message = f"two rules are about the subset {gates.subsets[index].subset!r}"
        yield say(f"gates.subset[{index}].subset", "duplicate-name", message, "keep one of them")


def _subsets(gates: Gates, documents: Sequence[DocumentLine], say: Say, *, is_sheet: bool) -> Iterable[Finding]:
    roles = Counter(document.role for document in documents)
    if not roles["validation"]:
        message = f"none of the {len(documents)} documents has the role validation, so there is nothing to judge"
        next_step = "write validation into the column `role`" if is_sheet else 'give documents "role": "validation"'
        yield say("workload.documents", "empty-subset", message, next_step)
        return
    known = sorted({subset for document in documents for subset in document.subsets})
    for index, gate in enumerate(gates.subsets):
        members = {document.role for document in documents if gate.subset in document.subsets}
        if empty := [role for role in ("validation", "test") if roles[role] and role not in members]:
            meant = nearest(gate.subset, [name for name in known if name != gate.subset])
            if meant:
                next_step = f"did you mean {meant!r}?"
            elif is_sheet:
                next_step = f"write {gate.subset} into the column `subsets` of {empty[0]} documents"
            else:
                next_step = f'add "subsets": ["{gate.subset}"] to {empty[0]} documents'
            message = f"a rule is about the subset {gate.subset!r}, and no {' or '.join(empty)} document belongs to it"
            yield say(f"gates.subset[{index}].subset", "empty-subset", message, next_step)


def _output_limit(protocol: Protocol, say: Say) -> Iterable[Finding]:
    limit, output = protocol.generation.context_limit_tokens, protocol.generation.max_new_tokens
    if limit is not None and output >= limit:
        message = f"{output} output tokens leave no room for a prompt in a context of {limit} tokens"
        next_step = "lower generation.max_new_tokens, or raise generation.context_limit_tokens"
        yield say("generation.max_new_tokens", "prompt-too-long", message, next_step)


def _repeated(names: Sequence[str]) -> list[int]:
    """Return the positions of names that stand earlier already."""
    return [index for index, name in enumerate(names) if name in names[:index]]
