"""Server-sent events out of a stream of bytes, however it was cut on its way.

Works on bytes: a character or a line end may be split between two fragments, and only CR, LF and CRLF end a line, so
that no separator inside a text (U+2028 and the like) can. An event is handed out with the fragment that completes it:
its caller stamps events with the receipt of that fragment. Time and memory are linear in the bytes, for any cut.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_LF = b"\n"


class Event(NamedTuple):
    """One event: its name (empty where the stream gives none) and its data lines, joined by LF."""

    name: bytes
    data: bytes


def _is_whole_event(data: bytes) -> bool:
    """True of one event of one data line, which is what most servers send at a time."""
    end = len(data) - 2
    return data.startswith(b"data: ") and data.find(_LF) == end and data.endswith(_LF) and data.find(b"\r") < 0


class EventReader:
    """Reads one stream. Comments and fields other than `event` and `data` say nothing about content and are skipped."""

    def __init__(self) -> None:
        self._line = bytearray()
        """The line that has not ended yet."""
        self._data: list[bytes] = []
        self._name = b""
        self._is_first_line = True
        self._is_after_cr = False
        self.has_fields = False
        """True once a line was a field or a comment: what came is an event stream."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the data of each event that these bytes complete."""
        return [event.data for event in self.events(data)]

    def finish(self) -> list[bytes]:
        """Return the data of the event that the stream's end leaves without its empty line, if there is one."""
        return [event.data for event in self.last_events()]

    def events(self, data: bytes) -> list[Event]:
        """Return each event that these bytes complete."""
        if _is_whole_event(data) and not (self._line or self._data or self._name):
            self.has_fields, self._is_first_line, self._is_after_cr = True, False, False
            return [Event(b"", data[6:-2])]
        if self._is_after_cr and data:
            # The CR has ended its line already; this LF is the second half of the same line end.
            data = data[1:] if data.startswith(_LF) else data
            self._is_after_cr = False
        if not data:
            return []
        self._is_after_cr = data.endswith(b"\r")
        lines = data.split(_LF) if b"\r" not in data else _LINE_END.split(data)
        rest = lines.pop()
        found: list[Event] = []
        for line in lines:
            if self._line:
                self._line += line
                line = bytes(self._line)
                self._line.clear()
            self._take(line, found)
        self._line += rest
        return found

    def last_events(self) -> list[Event]:
        """Return the event that the stream's end leaves without its empty line, if there is one."""
        found: list[Event] = []
        if self._line:
            line = bytes(self._line)
            self._line.clear()
            self._take(line, found)
        self._take(b"", found)
        return found

    def _take(self, line: bytes, found: list[Event]) -> None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            if self._data:
                found.append(Event(self._name, self._data[0] if len(self._data) == 1 else _LF.join(self._data)))
                self._data = []
            self._name = b""
            return
        field, colon, value = line.partition(b":")
        if field == b"data":
            self.has_fields = True
            self._data.append(value[1:] if value.startswith(b" ") else value)
        elif field == b"event":
            self.has_fields = True
            self._name = value[1:] if value.startswith(b" ") else value
        elif not field or (colon and field in (b"id", b"retry")):
            self.has_fields = True
