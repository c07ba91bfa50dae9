"""The record contract, format 1: one Struct per kind, and the union that decodes any line."""

from __future__ import annotations

import msgspec

from .base import ENVELOPE, FORMAT_MAJOR, MAX_LINE_BYTES, Record
from .passes import BatchCheck, ClientWindow, PassBegin, PassEnd, Reading, Scrape, ServerClaim, Telemetry
from .probes import Probe, ReloadCheck
from .requests import GAP_BUCKET_BOUNDS_NS, Request, Score
from .runs import Decision, Document, Failure, Header, Seal, Warning
from .setups import Device, Engine, Environment, TensorGroup, Variant

AnyRecord = (
    Header | Document | Environment | Device | Engine | Variant | TensorGroup | PassBegin | PassEnd | BatchCheck
    | Reading | Telemetry | ServerClaim | ClientWindow | Scrape | Request | Score | Probe | ReloadCheck | Warning
    | Failure | Decision | Seal
)  # fmt: skip

KINDS: dict[str, type[Record]] = {str(kind.__struct_config__.tag): kind for kind in AnyRecord.__args__}
"""Kind -> Struct, in the order of the contract."""

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(AnyRecord)


def encode_record(record: Record) -> bytes:
    """Return the record's line without its newline."""
    return _encoder.encode(record)


def decode_record(line: bytes) -> AnyRecord:
    """Return the record of one line.

    Raises msgspec.ValidationError or msgspec.DecodeError. Does not see what msgspec lets through (duplicate keys,
    unknown fields, absent envelope fields): `chain.inspect_line` does.
    """
    return _decoder.decode(line)


__all__ = [
    "ENVELOPE", "FORMAT_MAJOR", "GAP_BUCKET_BOUNDS_NS", "KINDS", "MAX_LINE_BYTES", "AnyRecord", "BatchCheck",
    "ClientWindow", "Decision", "Device", "Document", "Engine", "Environment", "Failure", "Header", "PassBegin",
    "PassEnd", "Probe", "Reading", "Record", "ReloadCheck", "Request", "Scrape", "Score", "Seal", "ServerClaim",
    "Telemetry", "TensorGroup", "Variant", "Warning", "decode_record", "encode_record",
]  # fmt: skip
