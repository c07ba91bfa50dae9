"""Write a trial that runs as it is: protocol, campaign and documents, copied from the starter."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path

from collector.contract.errors import DossierError
from collector.starter import starter_text

FILES = ("protocol.toml", "campaign.toml", "documents.jsonl")
PRICES_VALID_DAYS = 90
_MODEL_LINE = 'id = "HuggingFaceTB/SmolLM2-135M-Instruct"'


def init_folder(
    folder: Path,
    *,
    kind: str = "extraction",
    model: str | None = None,
    device: str | None = None,
    today: dt.date | None = None,
) -> list[Path]:
    """Write the starter into `folder` and return the files written.

    `device` (default: as detected on this machine) goes into the campaign's candidates and offers, `today` (default:
    the calendar day, UTC) into its dates, `model` into the protocol: a Hugging Face id, or a folder, which is written
    relative to the protocol.

    Raises DossierError where one of the files is there already (nothing is written then) or cannot be written.
    """
    if kind != "extraction":
        raise DossierError(f"there is no starter of kind {kind!r}", next_step="use --kind extraction")
    existing = [folder / name for name in FILES if (folder / name).exists()]
    if existing:
        raise DossierError(f"{existing[0]} is there already", next_step="name another folder; nothing was written")
    texts = {
        "protocol.toml": protocol_text(folder, model),
        "campaign.toml": campaign_text(device, today),
        "documents.jsonl": starter_text("documents.jsonl"),
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


def protocol_text(folder: Path, model: str | None) -> str:
    """Return the starter's protocol with this model; a folder is written relative to the trial's."""
    text = starter_text("protocol.toml")
    if model is None:
        return text
    name = os.path.relpath(model, folder) if Path(model).is_dir() else model
    return text.replace(_MODEL_LINE, f"id = {json.dumps(name, ensure_ascii=False)}")


def campaign_text(device: str | None, today: dt.date | None) -> str:
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
    return text
