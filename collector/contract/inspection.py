"""One record line under the magnifier: what it holds, and each rule of the contract that it breaks.

A line is decoded and encoded again; where the bytes come back equal, nothing can have slipped through. Only where they
differ is the line parsed a second time by a parser that sees duplicate keys, NaN and oversized integers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from .records import FORMAT_MAJOR, KINDS, MAX_LINE_BYTES, AnyRecord, Header, decode_record, encode_record
from .records.base import ENVELOPE, Count, Sha256, UtcStamp
from .row_rules import row_problems
from .rules import Problem

MAX_INTEGER = 2**63 - 1


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What any line of the same major carries, of a known kind or not: enough to follow the chain through it."""

    kind: str
    run_id: str
    seq: Count
    prev: Sha256
    written_at: UtcStamp


class Inspection(NamedTuple):
    """What one line holds. `record` is null where a problem is more than a notice: the line is set aside.

    `envelope` is filled where `record` is null and the envelope alone could still be read.
    """

    record: AnyRecord | None
    problems: tuple[Problem, ...] = ()
    envelope: Envelope | None = None


def inspect_line(line: bytes) -> Inspection:
    """Return the record of one line (without its newline) and every rule it breaks; never raises for bad input."""
    if len(line) >= MAX_LINE_BYTES:
        return Inspection(None, (too_long(len(line)),))
    try:
        record = decode_record(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _look_closer(line, None, error)
    if encode_record(record) != line or (type(record) is Header and record.format > FORMAT_MAJOR):
        return _look_closer(line, record, None)
    problems = row_problems(record)
    if problems:
        return Inspection(None, problems, _envelope(line))
    return Inspection(record)


def too_long(byte_count: int) -> Problem:
    """Return the problem of a line that is not under the limit."""
    return Problem("too-long", f"{byte_count} bytes; a record line is under {MAX_LINE_BYTES}")


def _look_closer(line: bytes, record: AnyRecord | None, error: Exception | None) -> Inspection:
    """Return the inspection of a line that the fast path could not vouch for."""
    parsed, problems = _parse(line)
    if isinstance(parsed, dict):
        problems += _judge(line, parsed, record, error, has_error=bool(problems))
    elif not problems:
        problems.append(Problem("wrong-type", "the line is no JSON object"))
    if record is None or any(not problem.is_notice for problem in problems):
        return Inspection(None, tuple(problems), _envelope(line))
    return Inspection(record, tuple(problems))


def _judge(
    line: bytes, parsed: dict[str, Any], record: AnyRecord | None, error: Exception | None, *, has_error: bool
) -> Iterator[Problem]:
    """Yield what is wrong with a line that is one JSON object; `has_error` where its JSON alone was already refused."""
    kind = parsed.get("kind")
    if kind == "header" and type(parsed.get("format")) is int and parsed["format"] > FORMAT_MAJOR:
        yield Problem("newer-format", f"format {parsed['format']}; this version reads up to {FORMAT_MAJOR}")
        return
    absent = [name for name in ENVELOPE if name not in parsed]
    if absent:
        yield Problem("envelope", f"{', '.join(absent)} absent")
    if isinstance(kind, str) and kind not in KINDS:
        yield Problem("unknown-kind", f"kind {kind!r} is unknown to this version")
        if not absent and not has_error:
            yield from _bad_envelope(line)
    elif record is not None:
        yield from _compare(line, parsed, record, has_error=has_error)
        yield from row_problems(record) if not absent else ()
    elif not absent and not has_error:
        yield _explain(error)


def _parse(line: bytes) -> tuple[Any, list[Problem]]:
    """Return the line's JSON value as Python reads it, and what a lenient reader would have let through."""
    problems: list[Problem] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            names = [name for name, _ in items]
            twice = sorted({name for name in names if names.count(name) > 1})
            problems.append(Problem("duplicate-key", f"key {', '.join(map(repr, twice))} stands more than once"))
        return found

    def constant(literal: str) -> None:
        problems.append(Problem("not-finite", f"{literal} is no JSON number"))

    def integer(digits: str) -> int:
        if len(digits) > 20 or not -MAX_INTEGER - 1 <= int(digits) <= MAX_INTEGER:
            problems.append(Problem("integer-range", f"{digits[:30]} does not fit into 64 bits"))
            return 0
        return int(digits)

    def number(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            problems.append(Problem("not-finite", f"{digits[:30]} is beyond the largest double"))
        return value

    try:
        text = line.decode("utf-8")
        parsed = json.loads(
            text, object_pairs_hook=pairs, parse_constant=constant, parse_int=integer, parse_float=number
        )
        json.dumps(parsed, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        return None, [Problem("encoding", f"not UTF-8 at byte {error.start}")]
    except UnicodeEncodeError:
        return parsed, [*problems, Problem("encoding", "a lone surrogate, which no UTF-8 text can hold")]
    except json.JSONDecodeError as error:
        rule = "trailing-data" if error.msg == "Extra data" else "not-json"
        return None, [*problems, Problem(rule, f"{error.msg} at character {error.pos}")]
    except RecursionError:
        return None, [Problem("not-json", "nested too deeply")]
    return parsed, problems


def _bad_envelope(line: bytes) -> list[Problem]:
    try:
        msgspec.json.decode(line, type=Envelope)
    except msgspec.MsgspecError as error:
        return [Problem("envelope", str(error))]
    return []


def _envelope(line: bytes) -> Envelope | None:
    try:
        return msgspec.json.decode(line, type=Envelope)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


_RULE_OF_MESSAGE = (
    (re.compile(r"^Object missing required field"), "missing-field"),
    (re.compile(r"^Invalid enum value"), "vocabulary"),
    (re.compile(r"matching regex"), "pattern"),
    (re.compile(r"of length|^Expected `(int|float)` (<=|>=|<|>)"), "bound"),
    (re.compile(r"out of range"), "not-finite"),
    (re.compile(r"^Expected|^Invalid value"), "wrong-type"),
)


def _explain(error: Exception | None) -> Problem:
    """Return the rule behind msgspec's message."""
    message = str(error)
    path = re.search(r"at `\$\.(\w+)", message)
    if path and path[1] in ENVELOPE:
        return Problem("envelope", message)
    for pattern, rule in _RULE_OF_MESSAGE:
        if pattern.search(message):
            return Problem(rule, message)
    return Problem("not-json", message)


def _compare(line: bytes, parsed: dict[str, Any], record: AnyRecord, *, has_error: bool) -> Iterator[Problem]:
    """Yield what differs between the line as parsed and the record as decoded.

    A field that the line lacks reads as its default: that is how older files of one major stay readable.
    """
    read_back: dict[str, Any] = msgspec.to_builtins(record)
    unknown = sorted(set(parsed) - set(read_back))
    changed = sorted(name for name in set(parsed) & set(read_back) if parsed[name] != read_back[name])
    if unknown:
        yield Problem("unknown-field", f"{', '.join(unknown)}: unknown to this version, not read")
    if changed and not has_error:
        yield Problem("value-changed", f"{', '.join(changed)}: the value read back is not the value written")
    if not unknown and not changed and not has_error:
        written = {name: value for name, value in read_back.items() if name in parsed}
        if msgspec.json.encode(written) != line:
            yield Problem("not-canonical", "spacing, key order, escapes or number form differ from the contract's")
