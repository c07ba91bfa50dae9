"""What a worker tells its parent: one JSON line per event on a private file descriptor."""

from __future__ import annotations

from typing import Any

import msgspec

from collector.contract.records import ENVELOPE, AnyRecord
from collector.contract.records.base import FailureCause, Phase
from collector.contract.texts import Text
from collector.engines.base import ONE_AT_A_TIME, EngineSetup, Load, Prompt


class PassJob(msgspec.Struct, frozen=True, kw_only=True):
    """All a worker needs for one pass. The prompts come in the pass's document order.

    load: how requests are put to the engine. check: what is answered alone and together before measuring; empty for
    requests one at a time. reload: what is asked again of an artefact that was loaded again; such a job does nothing
    else, and `pass_id` is the pass whose answers it asks for again.
    """

    pass_id: str
    variant_id: str
    setup: EngineSetup
    salt_hex: str
    load: Load = ONE_AT_A_TIME
    warmup: list[Prompt]
    check: list[Prompt] = []
    measure: list[Prompt]
    reload: list[Prompt] = []


class PhaseBegan(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="phase_began"):
    """A phase starts; the parent's time limit for it starts with the arrival of this line."""

    phase: Phase


class PhaseEnded(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="phase_ended"):
    """A phase is over, by the worker's monotonic clock."""

    phase: Phase
    duration_ns: int


class Recorded(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="recorded"):
    """A record to journal, with the texts and the line of the steps file that it cites: they are fsynced first."""

    record: AnyRecord
    texts: list[Text] = []
    steps: str | None = None


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="answered"):
    """A request record, and the answer's text for the parent to judge."""

    record: AnyRecord
    answer_text: str | None
    texts: list[Text] = []
    steps: str | None = None


class Reloaded(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="reloaded"):
    """The artefact was loaded again and answered again; `record` is the variant as read back after loading."""

    record: AnyRecord
    load_ns: int
    answer_ns: int


class WorkerFailed(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="worker_failed"):
    """The worker caught what ended it; it exits after this line."""

    phase: Phase
    failure_cause: FailureCause
    exception_class: str
    message: str


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="finished"):
    """Everything was measured; nothing follows."""

    is_steady: bool | None
    live_row_steps: int | None
    """Null where nothing was decoded step by step."""
    live_row_histogram: dict[str, int] = {}


Event = PhaseBegan | PhaseEnded | Recorded | Answered | Reloaded | WorkerFailed | Finished

_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """Return the event's line, newline included. A record travels without its envelope, which the journal fills."""
    plain: dict[str, Any] = msgspec.to_builtins(event, enc_hook=_plain)
    for name in ENVELOPE:
        plain.get("record", {}).pop(name, None)
    return msgspec.json.encode(plain) + b"\n"


def decode_event(line: bytes) -> Event:
    """Return the event of a line. Raises msgspec.DecodeError, also where a record breaks its contract."""
    return _decoder.decode(line)


def _plain(value: Any) -> Any:
    """A library's scalar as Python's, anything else as its text: no value may cost a record."""
    return value.item() if hasattr(value, "item") else str(value)


__all__ = [
    "Answered", "Event", "Finished", "PassJob", "PhaseBegan", "PhaseEnded", "Recorded",
    "Reloaded", "Text", "WorkerFailed", "decode_event", "encode_event",
]  # fmt: skip
