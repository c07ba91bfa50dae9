"""What may be done with a memory peak: the maximum over phases, and how far it rose above its own start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from .records.passes import MemoryScope


class Peak:
    """The highest reading of one counter window: one device, one scope, one phase. Bytes.

    Peaks of different windows happen at different moments, so they are neither added nor subtracted (mission C5):
    both are a TypeError here. `peak_bytes` is for printing and for comparing with a capacity.
    """

    __slots__ = ("_device_id", "_memory_scope", "_peak_bytes", "_start_bytes")

    def __init__(
        self, *, device_id: str, memory_scope: MemoryScope, peak_bytes: int, start_bytes: int | None = None
    ) -> None:
        if start_bytes is not None and start_bytes > peak_bytes:
            raise ValueError(f"a window that starts at {start_bytes} bytes cannot peak at {peak_bytes}")
        self._device_id = device_id
        self._memory_scope = memory_scope
        self._peak_bytes = peak_bytes
        self._start_bytes = start_bytes

    @property
    def device_id(self) -> str:
        """The device the counter belongs to."""
        return self._device_id

    @property
    def memory_scope(self) -> MemoryScope:
        """What the counter counts."""
        return self._memory_scope

    @property
    def peak_bytes(self) -> int:
        """The reading itself."""
        return self._peak_bytes

    def above_start(self) -> int | None:
        """Return the bytes by which this window's peak exceeds its own start; null where the start was not read."""
        return None if self._start_bytes is None else self._peak_bytes - self._start_bytes

    @staticmethod
    def max_over_phases(peaks: Iterable[Peak]) -> Peak:
        """Return the highest of the phases' peaks.

        Raises ValueError when there is none, or when they are not of one device and one scope.
        """
        windows = list(peaks)
        if len({(peak.device_id, peak.memory_scope) for peak in windows}) != 1:
            raise ValueError("a maximum over phases needs peaks of one device and one memory scope")
        return max(windows, key=lambda peak: peak.peak_bytes)

    def _refuse(self, other: object) -> NoReturn:
        raise TypeError("peaks of different windows happen at different moments: they are not added or subtracted")

    __add__ = __radd__ = __sub__ = __rsub__ = _refuse

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Peak):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str, int, int | None]:
        return self._device_id, self._memory_scope, self._peak_bytes, self._start_bytes

    def __repr__(self) -> str:
        return f"Peak({self._device_id}, {self._memory_scope}, {self._peak_bytes} bytes)"
