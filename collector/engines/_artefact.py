"""Where a model's files are, what they are (digests), and how they came to be (origin)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from collector.contract.digests import file_sha256
from collector.contract.errors import DossierError

from .base import EngineSetup
from .gguf_files import block_formats, stored_as

ORIGIN = "origin.json"
_HUB_ID = re.compile(r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$")
_BESIDE_WEIGHTS = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json",
    "special_tokens_map.json", "vocab.json", "vocab.txt", "merges.txt", "chat_template.jinja", "chat_template.json",
    "sentence_bert_config.json", "modules.json", ORIGIN,
    "model.safetensors.index.json", "pytorch_model.bin.index.json",
)  # fmt: skip


class Artefact(NamedTuple):
    """What `from_pretrained` is given: a local folder or a Hub id, its revision and a GGUF file of it."""

    source: str
    folder: Path | None
    """None for a Hub id: `local_folder` finds it in the Hub's cache after loading."""
    revision: str | None
    gguf_file: str | None
    is_cached: bool = False
    """True where the Hub's cache alone is read, since the Hub does not answer."""

    def arguments(self) -> dict[str, str | bool]:
        """Return the keyword arguments for `from_pretrained`."""
        asked = {"revision": self.revision, "gguf_file": self.gguf_file, "local_files_only": self.is_cached or None}
        return {name: value for name, value in asked.items() if value is not None}


def find_artefact(setup: EngineSetup) -> Artefact:
    """Return where the model is: a folder (absolute, from `~`, or from the protocol's folder), otherwise a Hub id.

    Raises DossierError for what is neither, and for a GGUF file that its folder does not have.
    """
    model = setup.model
    folder = Path(setup.base_dir) / Path(model.id).expanduser()
    if not folder.is_dir():
        if not _HUB_ID.match(model.id):
            raise DossierError(
                f"the model folder {folder} does not exist",
                next_step="correct [model] id: a folder relative to the protocol, an absolute one, or a Hugging Face "
                "id such as HuggingFaceTB/SmolLM2-135M-Instruct",
            )
        return Artefact(model.id, None, model.revision, model.gguf_file)
    gguf_file = Path(model.gguf_file or "")
    if model.gguf_file is not None and (gguf_file.is_absolute() or not (folder / gguf_file).is_file()):
        raise DossierError(
            f"{folder} has no file {model.gguf_file}", next_step="correct [model] gguf_file: a file name in that folder"
        )
    return Artefact(str(folder), folder, None, model.gguf_file)


def local_folder(artefact: Artefact) -> Path | None:
    """Return the folder that holds the files: the one given, or the snapshot in the Hub's cache. Never downloads."""
    if artefact.folder is not None:
        return artefact.folder
    from transformers.utils.hub import cached_file

    name = artefact.gguf_file or "config.json"
    with contextlib.suppress(OSError):
        found = cached_file(artefact.source, name, revision=artefact.revision, local_files_only=True)
        return Path(found).parent if found else None
    return None


def artefact_files(folder: Path, gguf_file: str | None) -> list[Path]:
    """Return the weight files that a load reads, and what lies beside them: configuration, tokenizer, template."""
    if gguf_file is not None:
        weights = [folder / gguf_file]
    else:
        weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    beside = [folder / name for name in _BESIDE_WEIGHTS]
    return [path for path in [*weights, *beside] if path.is_file()]


def user_cache_dir() -> Path:
    """Return `gpu-dossier` in the user's cache folder (XDG_CACHE_HOME, otherwise ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpu-dossier"


def file_digests(files: list[Path], cache_dir: Path) -> dict[str, str]:
    """Return file name -> sha256. A file of the same path, size and modification time is not read again.

    A cache that cannot be read or written only costs time.
    """
    store = cache_dir / "file-digests.json"
    known: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError):
        known = dict(json.loads(store.read_text(encoding="utf-8")))
    found: dict[str, str] = {}
    fresh: dict[str, str] = {}
    for path in files:
        state = path.stat()
        key = f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"
        digest = known.get(key) or file_sha256(path)
        found[path.name] = digest
        if key not in known:
            fresh[key] = digest
    if fresh:
        with contextlib.suppress(OSError):
            _write_whole(store, json.dumps(known | fresh, indent=0, sort_keys=True))
    return found


def _write_whole(path: Path, text: str) -> None:
    """Write beside, then rename: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as stream:
        stream.write(text)
    os.replace(stream.name, path)


def origin_words(setup: EngineSetup, folder: Path | None, *, is_dequantized: bool) -> str | None:
    """Return how the weights came to be: the folder's origin.json, the GGUF file's formats, the protocol's words."""
    words = []
    if folder is not None:
        words += _written_origin(folder)
        if setup.model.gguf_file is not None:
            formats = stored_as(block_formats(folder / setup.model.gguf_file))
            words.append(
                f"{formats} in {setup.model.gguf_file}, {'dequantized' if is_dequantized else 'kept in blocks'}"
            )
    if setup.model.origin is not None and setup.model.origin not in words:
        words.append(f"the protocol says: {setup.model.origin}" if words else setup.model.origin)
    return "; ".join(words) or None


def _written_origin(folder: Path) -> list[str]:
    path = folder / ORIGIN
    if not path.is_file():
        return []
    try:
        return [str(json.loads(path.read_text(encoding="utf-8"))["origin"])]
    except (ValueError, KeyError, TypeError):
        raise DossierError(
            f"{path} does not say how the weights came to be", next_step='write {"origin": "..."} into it, or remove it'
        ) from None
