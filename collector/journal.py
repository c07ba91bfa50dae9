"""Appends records to the one file of a run: a group at a time, on the disk before it counts as acknowledged."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from collector.append_file import AppendFile, refusal
from collector.clock import Clock
from collector.contract.chain import ZERO, FileReport, line_digest, seal_digest, seal_line, verify
from collector.contract.digests import text_hmac
from collector.contract.errors import DossierError
from collector.contract.records import (
    MAX_LINE_BYTES,
    Decision,
    Failure,
    Header,
    Record,
    Seal,
    Warning,
    encode_record,
)
from collector.contract.steps import inspect_steps, steps_path
from collector.contract.texts import Text, TextsHeader, encode_text, inspect_texts, texts_path
from collector.fitting import fit, safe_repr


class Journal:
    """The one writer of a run file, its texts file and, where steps are captured, its steps file.

    Records, texts and steps are gathered by `append`, `text` and `steps`; `flush` puts them on the disk, texts and
    steps before the lines that cite them, and then calls `on_acknowledged` with the seq of the last line. POSIX only:
    the lock is flock's.
    """

    def __init__(
        self,
        *,
        main: AppendFile,
        texts: AppendFile,
        run_id: str,
        salt: bytes,
        clock: Clock,
        on_acknowledged: Callable[[int], None] | None,
    ) -> None:
        """Use `create` or `resume`."""
        self.path = main.path
        self.run_id = run_id
        self._main, self._texts = main, texts
        self._salt, self._clock, self._on_acknowledged = salt, clock, on_acknowledged
        self._next_seq, self._prev = 0, ZERO
        self._counts: dict[str, int] = {}
        self._known_texts: set[str] = set()
        self._lines: list[bytes] = []
        self._text_lines: list[bytes] = []
        self._steps: AppendFile | None = None
        self._step_lines: list[bytes] = []
        self._is_sealed = False

    @classmethod
    def create(
        cls,
        out_dir: Path,
        *,
        header: Header,
        salt: bytes,
        clock: Clock,
        on_acknowledged: Callable[[int], None] | None = None,
    ) -> Journal:
        """Start a new run file, `<UTC compact>-<run id>.jsonl`, locked; its header is on the disk on return.

        Raises DossierError where the folder cannot be written; then no file is left behind.
        """
        run_id = secrets.token_hex(16)
        compact = clock.utc()[:19].replace("-", "").replace(":", "")
        path = out_dir / f"{compact}Z-{run_id}.jsonl"
        try:
            out_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refusal("cannot be made a folder for runs", out_dir, error) from None
        main = AppendFile.create(path)
        texts: AppendFile | None = None
        try:
            main.lock()
            texts = AppendFile.create(texts_path(path))
            texts.append(_texts_header(run_id, salt))
            journal = cls(
                main=main, texts=texts, run_id=run_id, salt=salt, clock=clock, on_acknowledged=on_acknowledged
            )
            journal._append_header(header)
            journal.flush()
            _sync_folder(out_dir)
        except BaseException:
            for opened in (main, texts):
                if opened is not None:
                    opened.close()
                    opened.path.unlink(missing_ok=True)
            raise
        return journal

    @classmethod
    def resume(
        cls,
        path: Path,
        *,
        salt: bytes,
        clock: Clock,
        on_acknowledged: Callable[[int], None] | None = None,
    ) -> Journal:
        """Continue an unsealed run file: cuts a torn tail of it, its texts and its steps, and records that it did.

        Raises DossierError where another process writes it, where it is sealed or damaged before its tail, or where
        the salt is not the one that its texts were keyed with.
        """
        main = AppendFile.reopen(path)
        texts: AppendFile | None = None
        try:
            main.lock()
            report = verify(path)
            _refuse_unusable(report)
            texts = AppendFile.reopen(texts_path(path), or_create=True)
            journal = cls(
                main=main,
                texts=texts,
                run_id=str(report.run_id),
                salt=salt,
                clock=clock,
                on_acknowledged=on_acknowledged,
            )
            journal._continue(report)
        except BaseException:
            for opened in (main, texts):
                if opened is not None:
                    opened.close()
            raise
        return journal

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        with contextlib.suppress(DossierError):
            self.close()

    def append(self, record: Record) -> None:
        """Take over one record; its envelope is filled here. It counts as written only after `flush`.

        A value that JSON cannot hold is converted. A record that the contract cannot hold at all is kept as text: a
        `failure` record of cause `format` stands for it.

        Raises DossierError for a record of 1 MB or more, and for any record once the file is sealed.
        """
        fitted, losses = fit(self._enveloped(record))
        if fitted is None:
            self._push(encode_record(self._enveloped(self._unfit(record, losses))), Failure)
            return
        self._push(encode_record(fitted), type(record))
        if losses:
            message = self._message(f"values that a {_kind(type(record))} record cannot hold: {'; '.join(losses)}")
            pass_id = getattr(fitted, "pass_id", None)
            warning = Warning(pass_id=pass_id, warning_class="unwritable_value", message_hmac=message)
            self._push(encode_record(self._enveloped(warning)), Warning)

    def text(self, text: Text) -> None:
        """Take over one text; each is written once per file, found again by its HMAC."""
        if text.hmac not in self._known_texts:
            self._known_texts.add(text.hmac)
            self._text_lines.append(encode_text(text) + b"\n")

    def steps(self, line: str) -> None:
        """Take over one line of the steps file; the file is made when there is one to write."""
        self._step_lines.append(line.encode() + b"\n")

    def flush(self) -> None:
        """Write what was taken over, in one group, and return when it is on the disk.

        Raises DossierError where the disk refuses: the files are as they were, and what was taken over is kept for
        another `flush`.
        """
        if self._text_lines:
            self._texts.append(b"".join(self._text_lines))
            self._text_lines.clear()
        if self._step_lines:
            if self._steps is None:
                self._steps = AppendFile.reopen(steps_path(self.path), or_create=True)
                _sync_folder(self.path.parent)
            self._steps.append(b"".join(self._step_lines))
            self._step_lines.clear()
        if self._lines:
            self._main.append(b"".join(self._lines))
            self._lines.clear()
            if self._on_acknowledged is not None:
                self._on_acknowledged(self._next_seq - 1)

    def seal(self) -> str:
        """End the file for good: its seal is on the disk on return. Returns the head digest, which names the file."""
        line = seal_line(self._enveloped(Seal(record_counts=dict(self._counts), head_digest=ZERO)))
        self._push(line, Seal)
        self._is_sealed = True
        self.flush()
        return str(seal_digest(line))

    def close(self) -> None:
        """Flush, release the lock and close both files; a file that was not sealed stays open to `resume`."""
        try:
            self.flush()
        finally:
            self._main.close()
            self._texts.close()
            if self._steps is not None:
                self._steps.close()

    def _enveloped(self, record: Any) -> Any:
        return msgspec.structs.replace(
            record, run_id=self.run_id, seq=self._next_seq, prev=self._prev, written_at=self._clock.utc()
        )

    def _push(self, line: bytes, kind: type[Record]) -> None:
        if self._is_sealed:
            raise DossierError(f"{self.path} is sealed", next_step="start a new run: a sealed file never grows")
        if len(line) >= MAX_LINE_BYTES:
            raise DossierError(
                f"a {_kind(kind)} record of {len(line):,} bytes; a line is under {MAX_LINE_BYTES:,}",
                next_step="put fewer documents into one protocol; long content belongs into the texts file",
            )
        self._lines.append(line + b"\n")
        self._prev = line_digest(line)
        self._next_seq += 1
        self._counts[_kind(kind)] = self._counts.get(_kind(kind), 0) + 1

    def _append_header(self, header: Header) -> None:
        fitted, losses = fit(self._enveloped(header))
        if fitted is None or losses:
            raise DossierError(
                f"the header cannot be written: {'; '.join(losses)}",
                next_step="freeze the protocol again and report this: the lock was read, so its values should fit",
            )
        self._push(encode_record(fitted), Header)

    def _unfit(self, record: Record, losses: tuple[str, ...]) -> Failure:
        """Return the failure that stands for a record which the contract cannot hold."""
        kind = _kind(type(record))
        whole = safe_repr(record, limit_characters=MAX_LINE_BYTES)
        message = self._message(f"a {kind} record that the contract cannot hold: {'; '.join(losses)}\n{whole}")
        stand_in = Failure(
            failure_scope="run",
            failure_cause="format",
            pass_id=getattr(record, "pass_id", None),
            document_id=getattr(record, "document_id", None),
            phase=getattr(record, "phase", None),
            exception_class=f"unfit {kind} record",
            message_hmac=message,
        )
        fitted = fit(self._enveloped(stand_in)).record
        return fitted if isinstance(fitted, Failure) else stand_in

    def _message(self, message: str) -> str:
        hmac = text_hmac(self._salt, message)
        self.text(Text(hmac=hmac, text_kind="message", text=message))
        return hmac

    def _continue(self, report: FileReport) -> None:
        """Cut torn tails, take up the chain where it stands, and record both."""
        self._next_seq, self._prev = report.line_count - report.has_torn_tail, report.last_line_digest
        self._counts = dict(report.kind_counts)
        texts_cut, steps_cut = self._take_up_texts(), self._take_up_steps()
        if report.has_torn_tail or texts_cut or steps_cut:
            cut = self._main.cut(report.good_byte_count) if report.has_torn_tail else 0
            detail = {"cut_bytes": str(cut), "texts_cut_bytes": str(texts_cut)}
            detail |= {"steps_cut_bytes": str(steps_cut)} if steps_cut else {}
            self.append(Decision(decision="tail_cut", decided_by="collector", detail=detail))
        self.append(Decision(decision="resumed", decided_by="collector", detail={"from_line": str(report.line_count)}))
        self.flush()

    def _take_up_texts(self) -> int:
        """Return the bytes cut from the texts file; a deleted one is started again with the same salt."""
        tail = inspect_texts(self._texts.path)
        if tail.header is None and tail.good_byte_count:
            raise DossierError(
                f"{self._texts.path}:1 is no readable header of texts",
                next_step="move that file away and resume: the chain does not need it",
            )
        if tail.header is not None and tail.header.salt_hex != self._salt.hex():
            raise DossierError(
                f"{self._texts.path} was keyed with another salt",
                next_step="resume with the protocol.salt that the run was started with",
            )
        cut = self._texts.cut(tail.good_byte_count) if tail.good_byte_count < tail.byte_count else 0
        self._known_texts = tail.hmacs
        if tail.header is None:
            self._texts.append(_texts_header(self.run_id, self._salt))
        return cut

    def _take_up_steps(self) -> int:
        """Return the bytes cut from the steps file; where there is none, none is made."""
        path = steps_path(self.path)
        if not path.exists():
            return 0
        tail = inspect_steps(path)
        if tail.good_byte_count == tail.byte_count:
            return 0
        with contextlib.closing(AppendFile.reopen(path)) as steps:
            return steps.cut(tail.good_byte_count)


def _refuse_unusable(report: FileReport) -> None:
    if report.is_sealed:
        raise DossierError(f"{report.path} is sealed", next_step="start a new run: nothing is left to resume")
    tail = report.line_count if report.has_torn_tail else None
    for line, problem in report.errors:
        if line != tail:
            raise DossierError(
                f"{report.path}:{line}: [{problem.rule}] {problem.message}",
                next_step="keep this file as it is and start a new run without --resume",
            )
    if report.header is None:
        raise DossierError(f"{report.path} has no header", next_step="start a new run; this file holds nothing")


def _texts_header(run_id: str, salt: bytes) -> bytes:
    return msgspec.json.encode(TextsHeader(run_id=run_id, salt_hex=salt.hex())) + b"\n"


def _kind(kind: type[Record]) -> str:
    return str(kind.__struct_config__.tag)


def _sync_folder(folder: Path) -> None:
    """Put the folder's entries on the disk: a file whose name is lost is lost too."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
