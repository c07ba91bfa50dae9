"""Freeze a protocol into its lock, and read it back only where nothing has drifted since."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from collector.contract.protocol import DocumentLine, Lock, Protocol


class FrozenProtocol(NamedTuple):
    """A protocol that agrees with its lock. `documents` are in the lock's order: by id."""

    lock: Lock
    salt: bytes
    protocol: Protocol
    documents: list[DocumentLine]
    base_dir: Path


def read_frozen(path: Path, campaign: Path | None = None) -> FrozenProtocol:
    """Return the frozen protocol. Raises Refused naming what drifted."""
    raise NotImplementedError
