"""Messages on a pipe: four bytes of length, big endian, then the message. A message of no bytes is the goodbye."""

from __future__ import annotations

import struct

_LENGTH = struct.Struct(">I")
LENGTH_BYTES = _LENGTH.size
GOODBYE = _LENGTH.pack(0)
STOP = b"\xc0"
"""The message that no job is: msgpack's nil. The job under way begins no further request."""


def frame(message: bytes) -> bytes:
    """Return the message with its length in front. Raises ValueError for one that could be taken for a goodbye."""
    if not message:
        raise ValueError("a message of no bytes is the goodbye")
    return _LENGTH.pack(len(message)) + message


def length_of(head: bytes | bytearray) -> int:
    """Return how many bytes follow a message's first four."""
    length: int = _LENGTH.unpack(head)[0]
    return length


class FrameReader:
    """Takes bytes as they come and gives whole messages."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that these bytes complete, the goodbye as one of no bytes."""
        self._waiting += data
        found: list[bytes] = []
        begin = 0
        while len(self._waiting) - begin >= LENGTH_BYTES:
            end = begin + LENGTH_BYTES + length_of(self._waiting[begin : begin + LENGTH_BYTES])
            if len(self._waiting) < end:
                break
            found.append(bytes(self._waiting[begin + LENGTH_BYTES : end]))
            begin = end
        del self._waiting[:begin]
        return found
