"""Files of a campaign that are no records, and what reads each: so that a mixed-up path is told in one message."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

import msgspec

_RECORD_START = b'{"kind":'


class OtherFile(NamedTuple):
    """What a file is, in words, and the command that reads it."""

    what: str
    next_step: str


def other_file(path: Path) -> OtherFile | None:
    """Return what a file is that holds no records: campaign, protocol, lock or choice. Null for anything else."""
    if path.suffix not in (".toml", ".json"):
        return None
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    if raw.startswith(_RECORD_START):
        return None
    return _in_toml(path, raw) if path.suffix == ".toml" else _in_json(path, raw)


def _in_toml(path: Path, raw: bytes) -> OtherFile | None:
    try:
        keys = set(tomllib.loads(raw.decode()))
    except ValueError:
        keys = set()  # what cannot be read is told by the command that reads it
    if keys & {"objective", "dossier_id"} or (not keys and path.name == "campaign.toml"):
        return OtherFile("a campaign file", f"check it with `reporter check --campaign {path}`")
    if keys & {"task", "workload"} or (not keys and path.name == "protocol.toml"):
        return OtherFile("a protocol", f"check it with `collector check {path}`")
    return None


def _in_json(path: Path, raw: bytes) -> OtherFile | None:
    try:
        keys = set(msgspec.json.decode(raw, type=dict[str, msgspec.Raw]))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        keys = set()
    if "lock_format" in keys or (not keys and path.name.endswith(".lock.json")):
        protocol = path.with_name(f"{path.name.removesuffix('.json').removesuffix('.lock')}.toml")
        return OtherFile("the lock of a protocol", f"check it with `collector check {protocol}`")
    if "choice_format" in keys:
        return OtherFile("a choice", f"confirm it with `collector confirm PROTOCOL --choice {path} --out RUNS`")
    return None
