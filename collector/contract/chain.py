"""Record files: the hash chain from line to line, the seal that ends it, and the torn tail of a file still open."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from .errors import DossierError
from .inspection import Envelope, inspect_line, too_long
from .records import MAX_LINE_BYTES, AnyRecord, Header, Seal, encode_record
from .records.base import Record
from .rules import Problem

ZERO = "0" * 64
"""`prev` of a file's first line, and what a seal's own digest is computed with."""

_HEAD = re.compile(rb'"head_digest":"([0-9a-f]{64})"')
_MARK_OF_SEAL = re.compile(rb'^\{"kind":"seal"|"head_digest":')
_KIND = re.compile(rb'^\{"kind":"(\w+)"')
_UNDECODABLE = frozenset({"not-json", "encoding"})


def line_digest(line: bytes) -> str:
    """Return the sha256 of a line without its newline: what the next line's `prev` must be."""
    return hashlib.sha256(line).hexdigest()


def seal_line(seal: Seal) -> bytes:
    """Return the seal's line with its `head_digest`, the sha256 of this very line with 64 zeros in its place."""
    digest = line_digest(encode_record(msgspec.structs.replace(seal, head_digest=ZERO)))
    return encode_record(msgspec.structs.replace(seal, head_digest=digest))


def seal_digest(line: bytes) -> str | None:
    """Return the head digest that a seal line states, or null where the line's own bytes contradict it."""
    stated = _HEAD.findall(line)
    if len(stated) != 1:
        return None
    unsealed = line.replace(b'"head_digest":"' + stated[0] + b'"', b'"head_digest":"' + ZERO.encode() + b'"')
    return stated[0].decode() if line_digest(unsealed).encode() == stated[0] else None


class ScannedLine(NamedTuple):
    """One line of a file, newline excluded. `record` is null where the line is to be set aside.

    A problem of rule `chain` alone leaves `record` filled: the line is well formed, but it or a neighbour was changed.
    """

    line_number: int
    raw: bytes
    record: AnyRecord | None
    problems: tuple[Problem, ...]


class FileReport(NamedTuple):
    """What a whole file is.

    sha256: of all bytes. head_digest: set only where the file ends in a seal that agrees with its own line.
    record_count: lines that were read as records. kind_counts: kind -> lines that state it, read or not.
    good_byte_count: bytes before the torn tail; all bytes where there is none.
    last_line_digest: what the next line's `prev` would be.
    """

    path: Path
    run_id: str | None
    sha256: str
    head_digest: str | None
    is_sealed: bool
    has_torn_tail: bool
    is_newer_format: bool
    record_count: int
    kind_counts: dict[str, int]
    problems: list[tuple[int, Problem]]
    header: Header | None
    line_count: int
    good_byte_count: int
    last_line_digest: str

    @property
    def errors(self) -> list[tuple[int, Problem]]:
        """The problems that are more than notices, each with its line."""
        return [(line, problem) for line, problem in self.problems if not problem.is_notice]


class _RawLine(NamedTuple):
    line: bytes
    digest: str
    byte_count: int
    is_complete: bool


class Scan(Iterator[ScannedLine]):
    """Reads a file once, in order, in flat memory; `report()` says what the file is once the iteration has ended.

    A file of a newer major yields its first line alone, with rule `newer-format`: nothing else in it is interpreted.

    Raises DossierError where the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._whole = hashlib.sha256()
        self._line_count = self._record_count = self._good_byte_count = self._expected_seq = 0
        self._prev = ZERO
        self._run_id: str | None = None
        self._header: Header | None = None
        self._head_digest: str | None = None
        self._has_seal = self._has_torn_tail = self._is_newer = False
        self._kinds: dict[str, int] = {}
        self._problems: list[tuple[int, Problem]] = []
        self._lines = self._run()

    def __next__(self) -> ScannedLine:
        return next(self._lines)

    def report(self) -> FileReport:
        """Return what the file is, as far as it has been read."""
        return FileReport(
            path=self._path,
            run_id=self._run_id,
            sha256=self._whole.hexdigest(),
            head_digest=self._head_digest,
            is_sealed=self._head_digest is not None,
            has_torn_tail=self._has_torn_tail,
            is_newer_format=self._is_newer,
            record_count=self._record_count,
            kind_counts=dict(self._kinds),
            problems=list(self._problems),
            header=self._header,
            line_count=self._line_count,
            good_byte_count=self._good_byte_count,
            last_line_digest=self._prev,
        )

    def _run(self) -> Iterator[ScannedLine]:
        try:
            with self._path.open("rb") as stream:
                lines = self._raw_lines(stream)
                current = next(lines, None)
                if current is None:
                    self._has_torn_tail = True
                    self._problems.append(
                        (1, Problem("torn-tail", "the file is empty: not even its header was written"))
                    )
                while current is not None:
                    following = next(lines, None)
                    self._line_count += 1
                    if not self._is_newer:
                        yield self._scanned(current, is_last=following is None)
                    current = following
        except OSError as error:
            raise DossierError(
                f"{self._path} cannot be read: {error.strerror}", next_step="name a run file or a folder of run files"
            ) from None

    def _raw_lines(self, stream: BinaryIO) -> Iterator[_RawLine]:
        while piece := stream.readline(MAX_LINE_BYTES + 1):
            self._whole.update(piece)
            line = piece.removesuffix(b"\n")
            digest, byte_count, is_complete = hashlib.sha256(line), len(line), len(line) < len(piece)
            while byte_count > MAX_LINE_BYTES and not is_complete and (rest := stream.readline(MAX_LINE_BYTES)):
                self._whole.update(rest)
                body = rest.removesuffix(b"\n")
                digest.update(body)
                byte_count, is_complete = byte_count + len(body), len(body) < len(rest)
            yield _RawLine(line, digest.hexdigest(), byte_count, is_complete)

    def _scanned(self, raw: _RawLine, *, is_last: bool) -> ScannedLine:
        if raw.byte_count < MAX_LINE_BYTES:
            record, problems, envelope = inspect_line(raw.line)
        else:
            record, problems, envelope = None, (too_long(raw.byte_count),), None
        if is_last and not self._has_seal and _is_torn(raw, problems):
            self._has_torn_tail = True
            record, problems = None, (_torn(raw, problems),)
        else:
            self._good_byte_count += raw.byte_count + raw.is_complete
            of_file = [
                *self._of_place(record, problems),
                *self._of_chain(record or envelope),
                *self._of_seal(raw, record),
            ]
            self._count_kind(raw, record, envelope)
            self._prev = raw.digest
            if of_file:
                problems = (*problems, *of_file)
                record = record if all(problem.rule == "chain" or problem.is_notice for problem in problems) else None
        self._record_count += record is not None
        self._problems.extend((self._line_count, problem) for problem in problems)
        return ScannedLine(self._line_count, raw.line, record, problems)

    def _of_place(self, record: AnyRecord | None, problems: tuple[Problem, ...]) -> Iterator[Problem]:
        """Yield what is wrong with the line's place: the header first and only there, the seal last."""
        if self._line_count == 1:
            self._is_newer = any(problem.rule == "newer-format" for problem in problems)
            self._header = record if isinstance(record, Header) else None
            if self._header is None and not self._is_newer:
                yield Problem("header", "the first line is no readable header")
        elif isinstance(record, Header):
            yield Problem("header", "a second header")
        if self._has_seal:
            self._head_digest = None
            yield Problem("after-seal", "a line after the seal")

    def _of_chain(self, carrier: Record | Envelope | None) -> Iterator[Problem]:
        """Yield the breaks between this line and those before it."""
        expected_seq, self._expected_seq = self._expected_seq, self._expected_seq + 1
        if carrier is None:
            return
        if carrier.prev != self._prev:
            yield Problem("chain", "`prev` is not the digest of the line before: one of the two was changed")
        if carrier.seq != expected_seq:
            yield Problem("chain", f"seq {carrier.seq} where {expected_seq} was due: lines are missing, added or moved")
            self._expected_seq = carrier.seq + 1
        if self._run_id is None:
            self._run_id = carrier.run_id
        elif carrier.run_id != self._run_id:
            yield Problem("chain", f"run_id {carrier.run_id} in a file of run {self._run_id}")

    def _of_seal(self, raw: _RawLine, record: AnyRecord | None) -> Iterator[Problem]:
        """Yield where a seal contradicts its own line or the lines before it."""
        if not isinstance(record, Seal):
            if record is None and _MARK_OF_SEAL.search(raw.line):
                yield Problem("seal", "a seal that was changed")
            return
        self._has_seal = True
        digest = seal_digest(raw.line)
        if digest is None:
            yield Problem("seal", "head_digest is not the digest of the seal's own line")
        if record.record_counts != self._kinds:
            yield Problem("seal", f"the seal counts {record.record_counts}, the file holds {self._kinds}")
        self._head_digest = digest

    def _count_kind(self, raw: _RawLine, record: AnyRecord | None, envelope: Envelope | None) -> None:
        """Count the kind that the line states, so that a line set aside does not also contradict the seal."""
        if record is not None:
            kind = str(record.__struct_config__.tag)
        elif envelope is not None:
            kind = envelope.kind
        elif found := _KIND.match(raw.line):
            kind = found[1].decode()
        else:
            return
        self._kinds[kind] = self._kinds.get(kind, 0) + 1


def _is_torn(raw: _RawLine, problems: tuple[Problem, ...]) -> bool:
    return not raw.is_complete or any(problem.rule in _UNDECODABLE for problem in problems)


def _torn(raw: _RawLine, problems: tuple[Problem, ...]) -> Problem:
    """Return what a torn last line is: harmless in a file still open, a fault where it was the seal."""
    what = f": {problems[0].message}" if problems else ""
    if _MARK_OF_SEAL.search(raw.line):
        return Problem("seal", f"the seal is cut off or changed, so the file counts as open{what}")
    return Problem("torn-tail", f"the last line is cut off after {raw.byte_count} bytes{what}")


def scan(path: Path) -> Scan:
    """Return an iterator over the file's lines that checks each line, the chain and the seal as it goes."""
    return Scan(path)


def verify(path: Path) -> FileReport:
    """Return the report on a whole file, read once in flat memory.

    Raises DossierError where the file cannot be read.
    """
    lines = scan(path)
    for _ in lines:
        pass
    return lines.report()
