"""The table of engines: one line each; a module is imported only when its engine is used."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from .base import EngineModule

ENGINES: dict[str, str] = {
    "openai": "collector.engines.openai_engine",
    "scripted": "collector.engines.scripted_engine",
    "transformers": "collector.engines.transformers_engine",
}


def engine_module(name: str) -> EngineModule:
    """Return the module of a named engine.

    Raises KeyError for an unknown name; the protocol's vocabulary refuses one before.
    """
    return cast(EngineModule, import_module(ENGINES[name]))
