"""Says in a record why its empty fields are empty: a null is never a zero, and never without a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from collector.contract.records import Record
from collector.contract.records.base import MissingReason

AnyKind = TypeVar("AnyKind", bound=Record)


def explained(record: AnyKind, reasons: Mapping[str, MissingReason]) -> AnyKind:
    """Return the record with the reason of each named field that is null; reasons already there stay."""
    found = {name: reason for name, reason in reasons.items() if getattr(record, name) is None}
    return msgspec.structs.replace(record, missing={**found, **record.missing}) if found else record
