"""Which files RUNS means: record files named outright, or found in a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from collector.contract.errors import DossierError
from collector.contract.texts import STEPS_SUFFIX, TEXTS_SUFFIX

from .other_files import other_file

_RUN_NAME = re.compile(r"^\d{8}T\d{6}Z-[0-9a-f]{32}\.jsonl$")
_FIRST_BYTES = b'{"kind":'


def record_files(paths: Sequence[Path]) -> list[Path]:
    """Return the record files of the paths, each once, in one order whatever the order of the paths.

    A file named outright is taken unless it is a texts or steps file. In a folder, at any depth, a `.jsonl` file is
    taken when it is named like a run or starts like a record: a documents file beside the runs is left alone, and a
    run with a damaged first line or another name is not.

    Raises DossierError for a path that does not exist, a pipe or device, a campaign, protocol, lock or choice, a name
    that no dossier can print, and where nothing was found.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise DossierError(f"{path} does not exist", next_step="name run files or folders that hold them")
        if not path.is_dir() and not path.is_file():
            raise DossierError(f"{path} is no file", next_step="name run files or folders that hold them")
        if path.is_file() and (other := other_file(path)) is not None:
            raise DossierError(f"{path} is {other.what} and holds no records", next_step=other.next_step)
        for file in _in_folder(path) if path.is_dir() else [path]:
            if not file.name.endswith((TEXTS_SUFFIX, STEPS_SUFFIX)):
                place = file.resolve()
                found[place] = min(_printable(file), found.get(place, file), key=_by_name)
    if not found:
        given = ", ".join(map(str, paths))
        raise DossierError(f"no run file in {given}", next_step="run `collector run protocol.toml --out runs/` first")
    return sorted(found.values(), key=_by_name)


def _by_name(file: Path) -> tuple[str, str]:
    return file.name, str(file)


def _in_folder(folder: Path) -> list[Path]:
    files = [file for file in sorted(folder.rglob("*.jsonl")) if not _is_hidden(file.relative_to(folder))]
    return [file for file in files if _is_named_like_a_run(file) or (file.is_file() and _starts_like_a_record(file))]


def _is_named_like_a_run(file: Path) -> bool:
    """A link to nothing counts: a run that is named and not there is a fault, not an absence."""
    return bool(_RUN_NAME.match(file.name)) and (file.is_file() or file.is_symlink())


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _starts_like_a_record(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    except OSError:
        return True  # reading it as a run tells why it cannot be read


def _printable(file: Path) -> Path:
    try:
        str(file).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(file).decode("utf-8", "backslashreplace")
        raise DossierError(
            f"the name of {shown} is not UTF-8", next_step="rename it: records and dossier name their files"
        ) from None
    return file
