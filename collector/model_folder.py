"""Tell a model's folder from a Hub id before anything is looked up: a mistyped path must not become a download."""

from __future__ import annotations

import re
from pathlib import Path

from collector.contract.errors import DossierError
from collector.contract.protocol import Model
from collector.contract.shape import nearest


def absent_folder(model: Model, base_dir: Path) -> Path | None:
    """Return the folder that `model.id` means and that is not there; null where it is there, or where it is a Hub id.

    A path is what begins with `.`, `~` or `/`, has a backslash, a drive or more than one slash, or begins with the name
    of a folder that lies beside the protocol.
    """
    folder = base_dir / Path(model.id).expanduser()
    if folder.is_dir():
        return None
    head, slash, _ = model.id.partition("/")
    is_path = (
        model.id.startswith((".", "~", "/"))
        or model.id.endswith("/")
        or "\\" in model.id
        or re.match(r"[A-Za-z]:", model.id) is not None
        or is_gguf(model.id)
        or model.id.count("/") > 1
        or (bool(slash) and (base_dir / head).is_dir())
    )
    return folder if is_path else None


def is_gguf(name: str) -> bool:
    """Return whether a name is that of a GGUF file, which no folder and no Hub id is."""
    return name.lower().endswith(".gguf")


def require_model_folder(model: Model, base_dir: Path) -> None:
    """Raise DossierError for a folder that is not there: once, before a run file is made, and not pass by pass."""
    if folder := absent_folder(model, base_dir):
        raise DossierError(f"the model folder {folder} does not exist", next_step=next_step(folder))


def next_step(folder: Path) -> str:
    """Return what to do about an absent folder: the one beside it that was probably meant, else where paths start."""
    if is_gguf(folder.name):
        return (
            f'write id = the folder that holds it, and gguf_file = "{folder.name}"; where only a server loads it, any '
            "folder or Hugging Face id with the model's tokenizer and chat template does"
        )
    try:
        beside = [path.name for path in folder.parent.iterdir() if path.is_dir()]
    except OSError:
        beside = []
    if meant := nearest(folder.name, sorted(beside)):
        return f"did you mean {meant!r} in the same folder?"
    where = "in a protocol it starts at the protocol's folder"
    return f"correct the path ({where}), or write a Hugging Face id such as org/model"
