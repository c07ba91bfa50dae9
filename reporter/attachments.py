"""The files that a dossier carries so that it can be re-made and re-checked: records, lock, campaign (mission G2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from collector.contract.texts import texts_path

from .locks import CarriedLock, lock_of
from .record_files import record_files


def attachments(
    paths: Sequence[Path],
    campaign: Path | None,
    folder: Path,
    *,
    choice: Path | None = None,
    with_texts: bool = False,
) -> list[Path]:
    """Return the files to attach, campaign and choice where they are given.

    The lock is written into `folder` from the runs' own headers.
    Texts hold prompts, expected values and answers: they are attached only where asked for (mission G6). Copies of one
    file under one name are attached once.
    """
    files: dict[str, Path] = {}
    for file in record_files(paths):
        files.setdefault(file.name, file)
        texts = texts_path(file)
        if with_texts and texts.exists():
            files.setdefault(texts.name, texts)
    return [*files.values(), *_locks(list(files.values()), folder), *filter(None, [campaign, choice])]


def _locks(files: Sequence[Path], folder: Path) -> list[Path]:
    """Write the lock of each plan, as the runs carry it, and return the paths."""
    locks: dict[str, CarriedLock] = {}
    for file in files:
        lock = lock_of(file)
        if lock is not None:
            locks.setdefault(lock.plan_id, lock)
    written = []
    for plan_id, lock in sorted(locks.items()):
        name = "protocol.lock.json" if len(locks) == 1 else f"protocol-{plan_id[:12]}.lock.json"
        path = folder / name
        path.write_bytes(lock.content)
        written.append(path)
    return written
