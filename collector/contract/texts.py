"""The texts file beside a run file: prompts, expected values, answers and messages, each under its HMAC.

The run file holds HMACs only, so deleting a texts file leaves every chain valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

TEXTS_SUFFIX = ".texts.jsonl"
STEPS_SUFFIX = ".steps.jsonl"


class TextsHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a texts file: the run it belongs to, and the key of the HMACs."""

    run_id: str
    salt_hex: str


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """A text under its HMAC."""

    hmac: str
    text_kind: str
    """prompt, answer, expected, document, message or token_ids."""
    text: str
    document_id: str | None = None


class TextsTail(NamedTuple):
    """A texts file as found. `good_byte_count` ends before a torn last line; `header` is null where none is whole."""

    header: TextsHeader | None
    hmacs: set[str]
    good_byte_count: int
    byte_count: int


def texts_path(run_file: Path) -> Path:
    """Return the path of the run file's texts file: the same name with `.texts.jsonl`."""
    return run_file.with_name(run_file.name.removesuffix(".jsonl") + TEXTS_SUFFIX)


def is_run_file(path: Path) -> bool:
    """Return whether the name is that of a run file: `.jsonl`, but neither texts nor steps."""
    return path.name.endswith(".jsonl") and not path.name.endswith((TEXTS_SUFFIX, STEPS_SUFFIX))


def encode_text(text: Text) -> bytes:
    """Return the text's line. A lone surrogate, which UTF-8 cannot hold, is kept as a JSON escape."""
    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError:
        return json.dumps(msgspec.structs.asdict(text), separators=(",", ":")).encode("ascii")


def decode_text(line: bytes) -> Text:
    """Return the text of one line. Raises ValueError for anything else (msgspec's errors are ValueErrors)."""
    try:
        return msgspec.json.decode(line, type=Text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(line.decode("utf-8")), Text)


def read_texts(path: Path) -> Iterator[Text]:
    """Yield the texts of a texts file in order. A line that cannot be read is skipped: its text is lost."""
    with path.open("rb") as stream:
        stream.readline()
        for line in stream:
            try:
                yield decode_text(line)
            except ValueError:
                continue


def inspect_texts(path: Path) -> TextsTail:
    """Return what a texts file holds up to its last whole line."""
    header: TextsHeader | None = None
    hmacs: set[str] = set()
    good = offset = 0
    with path.open("rb") as stream:
        for number, line in enumerate(stream):
            offset += len(line)
            try:
                if number == 0:
                    header = msgspec.json.decode(line, type=TextsHeader)
                else:
                    hmacs.add(decode_text(line).hmac)
            except ValueError:
                continue
            if line.endswith(b"\n"):
                good = offset
    return TextsTail(header if good else None, hmacs, good, offset)
