"""What a started server prints: kept without the folders of this machine, its warnings passed on, each once."""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path

MAX_NOTES = 100
"""Different lines of one server that are noted."""
_NOTABLE = re.compile(r"\b(warning|warn|error|critical|fatal)\b", re.IGNORECASE)
_HARMLESS = re.compile(r"^\W*(\([^)]*\)\W*)?(INFO|DEBUG)\b")
"""A line whose level is told first may have those words in it all the same, as in a printed configuration."""
_PASSING = re.compile(r"\d{4}-\d\d-\d\d[T ]?|\d\d-\d\d (?=\d\d:)|\d\d:\d\d:\d\d([.,]\d+)?Z?|\bpid=\d+\b|\[\d+\]")
"""What makes the same message of a log look new each time."""


class ServerOutput:
    """One server's output, in text; places: folder or key -> what is written instead, first come first."""

    def __init__(self, name: str, places: dict[str, str]) -> None:
        self._logger = logging.getLogger(f"server.{name}")
        self._places = places
        self._noted: set[str] = set()

    def clean(self, text: str) -> str:
        """Return the text without the folders of this machine and without keys."""
        for place, name in self._places.items():
            text = text.replace(place, name)
        return text

    def log(self, text: str) -> None:
        """Pass lines that speak of warnings or errors on to logging, each text once, MAX_NOTES at most."""
        for line in text.splitlines():
            line = " ".join(self.clean(_PASSING.sub("", line)).split())
            if not _NOTABLE.search(line) or _HARMLESS.match(line):
                continue
            if line not in self._noted and len(self._noted) < MAX_NOTES:
                self._noted.add(line)
                self._logger.warning("%s", line)


def places_of(*, model: str, program: str, base_dir: Path) -> dict[str, str]:
    """Return the places that a server's output may name, and what is written instead of each."""
    places = {model: Path(model).name, **_program_places(program), str(base_dir): "<base_dir>"}
    places |= {sys.prefix: "<python>", str(Path.home()): "~"}
    return {place: name for place, name in places.items() if len(place) > 1}


def _program_places(program: str) -> dict[str, str]:
    """Return the folder of a program's environment, as named and as resolved, for taking it out of what it prints."""
    path = Path(program)
    if not path.is_absolute():
        return {}
    folders = {os.path.normpath(path.parent.parent), str(path.parent.parent.resolve()), str(path.parent.parent)}
    return dict.fromkeys(sorted(folders, key=len, reverse=True), "<server>")
