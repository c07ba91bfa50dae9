"""Write a trial around the user's own documents: a folder of texts gets a labelling sheet, a file is taken over.

Nothing in the trial claims more than is known: who permits the use of the documents and how they were reviewed stands
there as something to write, which `check` refuses until it is written.
"""

from __future__ import annotations

import datetime as dt
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.campaign_draft import CAMPAIGN, own_campaign
from collector.contract.errors import DossierError, Finding, Refused
from collector.contract.protocol import DocumentLine, Protocol, Task
from collector.documents import SHEET, TEXT_SUFFIXES, read_documents
from collector.documents_table import read_sheet
from collector.init import campaign_text, protocol_text
from collector.labelling import read_texts, sheet_bytes, with_files_in
from collector.protocol_edit import (
    with_examples,
    with_fields,
    with_tables_commented,
    with_values,
    without_comment_above,
)
from collector.task_draft import draft_task

TEXTS = "documents"
LINES = "documents.jsonl"
TO_WRITE = {
    "permission": "TODO: write who permits this use of the documents, and where that is written",
    "review": "TODO: write how the expected values were reviewed: by whom or what, and when",
}
_CAMPAIGN_NOTICE = (
    f"{CAMPAIGN}: question, volume, deadline and hours are yours to write; `collector check` names the lines"
)


class OwnDocuments(NamedTuple):
    """The user's documents as they will lie in the trial: the file that the protocol names, and the texts beside it.

    texts: name in the trial -> the file to copy. notices: what the user should know.
    """

    name: str
    content: bytes
    texts: Mapping[str, Path]
    labelled: Sequence[DocumentLine]
    notices: Sequence[str]


class Written(NamedTuple):
    """The files that were written, texts counted as their folder, and what the user should know."""

    paths: list[Path]
    notices: list[str]


def init_from(
    folder: Path,
    source: Path,
    *,
    statements: Mapping[str, str | None],
    kind: str = "extraction",
    model: str | None = None,
    device: str | None = None,
    today: dt.date | None = None,
) -> Written:
    """Write a trial over the documents of `source`: a folder of .txt and .md files, a .csv or a .jsonl file.

    `statements`: permission and review, where the user gives them now. Raises Refused for documents that cannot be
    read, DossierError where something is in the way or the folder cannot be written; nothing is written then.
    """
    if not source.exists():
        raise DossierError(f"{source} does not exist", next_step="name a folder of texts, a .csv or a .jsonl file")
    names = ("protocol.toml", CAMPAIGN)
    in_the_way = [path for path in (folder / name for name in names) if path.exists()] + existing_files(folder, source)
    if in_the_way:
        raise DossierError(f"{in_the_way[0]} is there already", next_step="name another folder; nothing was written")
    starter = protocol_text(folder, model, kind=kind)
    own = own_documents(source, msgspec.convert(tomllib.loads(starter), Protocol).task)
    protocol, drafted = own_protocol(starter, own, name=folder.resolve().name or "trial", statements=statements)
    campaign = own_campaign(
        campaign_text(device, today, kind=kind),
        name=folder.resolve().name or "trial",
        documents=max(1, len(own.labelled) or len(own.texts)),
    )
    texts = dict(zip(names, (protocol, campaign), strict=True))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copy_texts(folder, own)
        for name, text in texts.items():
            with (folder / name).open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
    except OSError as error:
        raise DossierError(f"{folder} cannot be written: {error.strerror}", next_step="name another folder") from None
    beside = [folder / TEXTS] if own.texts else []
    notices = [*own.notices, *drafted, _CAMPAIGN_NOTICE]
    return Written([*(folder / name for name in (*names, own.name)), *beside], notices)


def own_documents(source: Path, task: Task) -> OwnDocuments:
    """Return the documents of a folder of texts, a .csv or a .jsonl file.

    Raises Refused where they cannot be read at all; what is wrong with single ones `check` tells afterwards.
    """
    if source.is_dir():
        sheet = source / SHEET
        return _sheet(sheet) if sheet.is_file() else _folder(source, task)
    if source.suffix.lower() == ".csv":
        return _sheet(source)
    found = read_documents(source)
    return OwnDocuments(LINES, source.read_bytes(), {}, [entry.document for entry in found.entries], [])


def _folder(source: Path, task: Task) -> OwnDocuments:
    if task.kind == "ranking":
        step = "write the queries with their candidates as JSON-lines, and name that file"
        raise Refused([Finding(source, None, "ranking-format", "rankings have no labelling sheet", step)])
    texts = read_texts(source)
    others = sorted(
        path.name for path in source.rglob("*") if path.is_file() and path.suffix.lower() not in TEXT_SUFFIXES
    )
    notices = [f"{len(texts)} texts; label them in {SHEET}, then `collector check` says what is left"]
    if others:
        notices.append(f"{len(others)} file(s) are neither .txt nor .md and were left out, {others[0]} first")
    content = sheet_bytes(texts, task, folder=TEXTS)
    return OwnDocuments(SHEET, content, {f"{TEXTS}/{text.name}": text.path for text in texts}, [], notices)


def _sheet(source: Path) -> OwnDocuments:
    documents = read_documents(source)
    table = read_sheet(source, source.read_bytes())
    if table.findings:  # what cannot be read could not be copied either
        raise Refused(table.findings)
    content, texts = source.read_bytes(), dict[str, Path]()
    if "file" in table.header:
        content, texts = with_files_in(table, TEXTS)
    return OwnDocuments(SHEET, content, texts, [entry.document for entry in documents.entries], [])


def own_protocol(
    text: str, own: OwnDocuments, *, name: str, statements: Mapping[str, str | None]
) -> tuple[str, list[str]]:
    """Return the starter's protocol changed to these documents, and what was drafted and must be read.

    `statements`: permission and review, where the user gave them.
    """
    task = msgspec.convert(tomllib.loads(text), Protocol).task
    values: dict[str, str | int] = {
        "name": name,
        "workload.documents": own.name,
        **{f"workload.{key}": statements.get(key) or placeholder for key, placeholder in TO_WRITE.items()},
    }
    notices: list[str] = []
    labels = {field for document in own.labelled for field in document.expected}
    if task.kind == "extraction" and labels and labels != {rule.name for rule in task.fields}:
        draft = draft_task(own.labelled)
        text = with_examples(with_fields(text, draft.fields), draft.examples)
        values |= {"task.system": draft.system, "task.prompt": draft.prompt}
        values["generation.max_new_tokens"] = max(
            draft.max_new_tokens, tomllib.loads(text)["generation"]["max_new_tokens"]
        )
        notices.append(
            f"prompt and fields ({', '.join(rule.name for rule in draft.fields)}) are drafts from the expected values: "
            "read [task] before freezing"
        )
    text = with_values(text, values)
    place = "task.system" if "system" in tomllib.loads(text)["task"] else "task.prompt"
    text = without_comment_above(
        text, place, instead="`{document}` stands for a document's text. Tune the prompt on development documents only."
    )
    rule = "The acceptance rules, judged in whole documents: write yours before the first run."
    text = without_comment_above(text, "gates", instead=rule)
    known = {subset for document in own.labelled for subset in document.subsets}
    gated = [gate["subset"] for gate in tomllib.loads(text)["gates"].get("subset", [])]
    if not set(gated) <= known:
        why = "A rule for a subset: take it back once documents name it in `subsets`."
        text = with_tables_commented(text, "gates.subset", why=why)
    return text, notices


def existing_files(folder: Path, source: Path) -> list[Path]:
    """Return what the trial's files would fall on; texts that lie where they belong already are no hindrance."""
    names = [SHEET, LINES, *([] if source.resolve() == (folder / TEXTS).resolve() else [TEXTS])]
    if source.resolve() == (folder / SHEET).resolve() or source.resolve() == (folder / LINES).resolve():
        raise DossierError(f"{source} is in the new trial's own folder", next_step="name another folder for the trial")
    return [folder / name for name in names if (folder / name).exists()]


def copy_texts(folder: Path, own: OwnDocuments) -> None:
    """Copy the texts into the trial, byte by byte, and write the file that names them. Raises OSError."""
    for name, source in own.texts.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.exists() and target.samefile(source)):
            shutil.copyfile(source, target)
    with (folder / own.name).open("xb") as stream:
        stream.write(own.content)
