"""Writes a file whole or not at all."""

from __future__ import annotations

import contextlib
from pathlib import Path

from collector.contract.errors import DossierError


def write_whole(out: Path, content: bytes) -> None:
    """Write beside the place, then rename; folders on the way are made.

    Raises DossierError where the place cannot be written; then nothing half-written is left.
    """
    part = out.with_name(out.name + ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(out)
    except OSError as fault:
        with contextlib.suppress(OSError):
            part.unlink()
        raise unwritable(out, fault) from fault


def unwritable(out: Path, fault: OSError) -> DossierError:
    """Return the error of a place that cannot be written."""
    reason = fault.strerror or str(fault)
    return DossierError(
        f"{out} cannot be written: {reason}", next_step="choose a folder that can be written, with room"
    )
