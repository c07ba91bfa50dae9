"""Keeps what libraries warn and log in a worker: each text once, with how often it came."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from collector.contract.digests import text_hmac
from collector.contract.records import Warning as WarningRecord
from collector.contract.records.base import Phase
from collector.events import Recorded, Text

MAX_DIFFERENT = 500
"""Different texts kept per phase; a library that numbers its messages is counted on under one text."""
_OVERFLOW = "further different messages were counted and not kept"


class NoteTaker:
    """Counts messages by class and text until they are taken."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def note(self, warning_class: str, message: str) -> None:
        """Count one message."""
        key = (warning_class[:200] or "unnamed", message)
        if key not in self._counts and len(self._counts) >= MAX_DIFFERENT:
            key = ("overflow", _OVERFLOW)
        self._counts[key] = self._counts.get(key, 0) + 1

    def take(self, pass_id: str | None, phase: Phase | None, salt: bytes) -> list[Recorded]:
        """Return one warning record per different text, and forget them."""
        taken, self._counts = self._counts, {}
        return [_recorded(kind, text, count, pass_id, phase, salt) for (kind, text), count in taken.items()]

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Catch Python warnings and log records from level WARNING up while the block runs.

        Deprecations are left out, as Python does by default: they speak to a library's authors.
        """
        handler = _Handler(self)
        root = logging.getLogger()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", kind)
            warnings.showwarning = self._show
            root.addHandler(handler)
            try:
                yield
            finally:
                root.removeHandler(handler)

    def _show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        self.note(category.__name__, str(message))


class _Handler(logging.Handler):
    def __init__(self, notes: NoteTaker) -> None:
        super().__init__(logging.WARNING)
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:  # a library's broken format string must not end a measurement
            message = str(record.msg)
        self._notes.note(f"log:{record.name}", message)


def without_places(text: str) -> str:
    """Return a library's message without the folders of this machine: they tell nobody anything, and records travel."""
    for place, name in ((sys.prefix, "<python>"), (sys.base_prefix, "<python>"), (str(Path.home()), "~")):
        if len(place) > 1:
            text = text.replace(place, name)
    return text


def storable(text: str) -> str:
    """Return the text with lone surrogates written as escapes: neither JSON nor UTF-8 can hold them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _recorded(kind: str, text: str, count: int, pass_id: str | None, phase: Phase | None, salt: bytes) -> Recorded:
    text = storable(without_places(text))
    hmac = text_hmac(salt, text)
    record = WarningRecord(
        pass_id=pass_id, phase=phase, warning_class=storable(kind), message_hmac=hmac, repeat_count=count
    )
    return Recorded(record=record, texts=[Text(hmac=hmac, text_kind="message", text=text)])
