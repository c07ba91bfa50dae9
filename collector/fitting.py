"""Makes whatever a producer put into a record fit the contract, or says what could not be kept."""

from __future__ import annotations

import datetime as dt
import enum
import math
import os
from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

import msgspec

from collector.contract.records import Record, decode_record, encode_record
from collector.contract.records.base import MissingReason
from collector.contract.times import utc_stamp


class Fitted(NamedTuple):
    """A record that the contract can hold (null where none could be made), and what it could not take over.

    `losses` are `place: what stood there`; a NaN that became a null with its reason is no loss.
    """

    record: Record | None
    losses: tuple[str, ...] = ()


def fit(record: Record) -> Fitted:
    """Return the record with every value turned into what its field's type asks for. The envelope must be filled.

    NumPy scalars, enums, paths, bytes, date-times and sets are converted; NaN and infinity become null with the reason
    `failed` in `missing` (inside a list or map the entry is left out). Any other value becomes its repr where the field
    holds text, else null or an empty list or map, and is named in `losses`. Where a field needs a value and none can
    be made, the record is null. Never raises for a value.
    """
    if _is_faithful(record):
        return Fitted(record)
    values: dict[str, Any] = {}
    conversion = _Conversion()
    for field in msgspec.structs.fields(type(record)):
        held = getattr(record, field.name)
        plain = conversion.plain(held, field.name)
        try:
            values[field.name] = msgspec.convert(plain, field.type)
        except msgspec.ValidationError:
            conversion.losses.append(f"{field.name}: {safe_repr(held)}")
            if field.default is None:
                values[field.name] = None
            elif field.default_factory is not msgspec.NODEFAULT:
                values[field.name] = field.default_factory()
            else:
                return Fitted(None, tuple(conversion.losses))
            conversion.reasons[field.name] = "failed"
    values["missing"] = {**values["missing"], **conversion.reasons}
    return Fitted(type(record)(**values), tuple(conversion.losses))


def _is_faithful(record: Record) -> bool:
    """Return whether the record's line, read back, is the record: then nothing was dropped or bent on the way."""
    try:
        return decode_record(encode_record(record)) == record
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False


class _Conversion:
    """One record's values on their way to plain JSON types.

    reasons: place -> why nothing stands there; the place is the field, or `field.key` for an entry of a map or list.
    losses: what became its repr.
    """

    def __init__(self) -> None:
        self.reasons: dict[str, MissingReason] = {}
        self.losses: list[str] = []

    def plain(self, value: Any, place: str) -> Any:
        if isinstance(value, Mapping):
            return self._entries(((str(self._scalar(key, place)), item) for key, item in value.items()), place)
        if isinstance(value, Set):
            value = sorted(value, key=lambda item: (type(item).__name__, safe_repr(item)))
        if isinstance(value, list | tuple) or getattr(value, "ndim", None):
            return list(self._entries(enumerate(value), place).values())
        scalar = self._scalar(value, place)
        if isinstance(scalar, float) and not math.isfinite(scalar):
            self.reasons[place] = "failed"
            return None
        return scalar

    def _entries(self, entries: Iterable[tuple[Any, Any]], place: str) -> dict[Any, Any]:
        kept = {key: self.plain(item, f"{place}.{key}") for key, item in entries}
        return {key: item for key, item in kept.items() if f"{place}.{key}" not in self.reasons}

    def _scalar(self, value: Any, place: str) -> Any:
        """Return one value as a JSON scalar; what has none becomes its repr."""
        if isinstance(value, enum.Enum):
            value = value.value
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value)
        if isinstance(value, bytes | bytearray):
            return bytes(value).hex()
        if isinstance(value, dt.datetime) and value.utcoffset() is not None:
            return utc_stamp(value)
        if isinstance(value, dt.date | dt.time):
            return value.isoformat()
        if isinstance(value, str | os.PathLike):
            return _utf8(os.fsdecode(value))
        if getattr(value, "ndim", None) == 0 and not isinstance(item := value.item(), type(value)):
            return self._scalar(item, place)
        self.losses.append(f"{place}: {safe_repr(value)}")
        return safe_repr(value)


def _utf8(text: str) -> str:
    """Return the text with each lone surrogate, which UTF-8 cannot hold, as an escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def safe_repr(value: object, *, limit_characters: int = 2000) -> str:
    """Return the repr, cut to a length, lone surrogates escaped; never raises."""
    try:
        return _utf8(repr(value))[:limit_characters]
    except Exception as error:
        return f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
