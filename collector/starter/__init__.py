"""What `collector init` copies: a protocol, a campaign and documents, runnable as they are."""

from __future__ import annotations

from importlib.resources import files


def starter_text(name: str) -> str:
    """Return one of the starter's files."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
