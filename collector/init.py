"""Write a trial that runs as it is: protocol, campaign and documents, copied from the starter."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from pathlib import Path

import msgspec

from collector.contract.errors import DossierError
from collector.contract.protocol import DocumentLine, Model
from collector.corpus_statistics import corpus_page
from collector.model_folder import require_model_folder
from collector.starter import CORPUS_TITLES, KINDS, starter_documents, starter_text

FILES = ("protocol.toml", "campaign.toml", "documents.jsonl", "corpus.md")
PRICES_VALID_DAYS = 90
_QUESTIONS = {
    "answers": "Which variant should answer our 30,000 questions, and for how many days do we rent the machine?",
    "ranking": "Which variant should rank passages for 30,000 queries, and for how many days do we rent the machine?",
}
_MODEL_LINE = re.compile(r'(?<=\n\[model\]\n)id = "[^"\n]*"')


def init_folder(
    folder: Path,
    *,
    kind: str = "extraction",
    tier: str | None = None,
    is_small: bool = False,
    model: str | None = None,
    device: str | None = None,
    today: dt.date | None = None,
) -> list[Path]:
    """Write the starter of this kind into `folder` and return the files written.

    `tier` takes the documents of one tier alone, `is_small` the labelled tier's first ones, of each role a few.

    `device` (default: as detected on this machine) goes into the campaign's candidates and offers, `today` (default:
    the calendar day, UTC) into its dates, `model` into the protocol: a Hugging Face id, or a folder, which is written
    relative to the protocol.

    Raises DossierError where one of the files is there already (nothing is written then) or cannot be written.
    """
    if kind not in KINDS:
        raise DossierError(f"there is no starter of kind {kind!r}", next_step=f"use --kind {', '.join(KINDS)}")
    if kind != "extraction" and (tier or is_small):
        raise DossierError(
            f"the starter of kind {kind} has no tiers and is small", next_step="leave --tier and --small out"
        )
    documents = starter_documents(kind, tier=tier, is_small=is_small)
    existing = [folder / name for name in FILES if (folder / name).exists()]
    if existing:
        raise DossierError(f"{existing[0]} is there already", next_step="name another folder; nothing was written")
    texts = {
        "protocol.toml": protocol_text(folder, model, kind=kind),
        "campaign.toml": campaign_text(device, today, kind=kind),
        "documents.jsonl": documents,
        "corpus.md": corpus_text(kind, documents),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with (folder / name).open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
    except OSError as error:
        raise DossierError(f"{folder} cannot be written: {error.strerror}", next_step="name another folder") from None
    return [folder / name for name in FILES]


def detected_device() -> str:
    """Return the name under which a run on this machine records the device that it uses by default."""
    from collector.environment import detect, resolve_device

    return detect(resolve_device("auto", "transformers")).devices[0].device_name


def corpus_text(kind: str, documents: str) -> str:
    """Return the statistics page of these documents: the starter's own where they are all of its corpus."""
    if kind == "extraction" and documents == starter_text("documents.jsonl"):
        return starter_text("corpus.md")
    lines = [msgspec.json.decode(line, type=DocumentLine) for line in documents.splitlines()]
    return corpus_page(lines, title=CORPUS_TITLES[kind])


def protocol_text(folder: Path, model: str | None, *, kind: str = "extraction") -> str:
    """Return the starter's protocol with this model; a folder is written relative to the trial's.

    Raises DossierError for a path where no folder is.
    """
    text = starter_text("protocol.toml", kind)
    if model is None:
        return text
    require_model_folder(Model(id=model), Path())
    name = os.path.relpath(model, folder) if Path(model).is_dir() else model
    line = f"id = {json.dumps(name, ensure_ascii=False)}"
    return _MODEL_LINE.sub(lambda _: line, text, count=1)


def campaign_text(device: str | None, today: dt.date | None, *, kind: str = "extraction") -> str:
    """Return the starter's campaign with this device (default: as detected) and this day (default: today, UTC)."""
    device, today = device or detected_device(), today or dt.datetime.now(dt.UTC).date()
    values = {
        '"@DEVICE@"': json.dumps(device, ensure_ascii=False),
        '"@TODAY@"': today.isoformat(),
        '"@VALID_UNTIL@"': (today + dt.timedelta(days=PRICES_VALID_DAYS)).isoformat(),
    }
    text = starter_text("campaign.toml")
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    if kind in _QUESTIONS:
        text = re.sub(r"(?m)^question = .*$", f'question = "{_QUESTIONS[kind]}"', text, count=1)
    return text
