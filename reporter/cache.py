"""Each run file is checked once and kept as typed Parquet in the user's cache folder, under the digest of its bytes.

Good lines enter DuckDB through one wide typed scan; a line that was set aside never does: one bad line would abort the
scan or change values silently. An entry is named by the file's sha256, the record contract and DuckDB's version, so
it is never stale, and is written beside its place and renamed, so two processes may make the same one at once. The
report names the digest of its Parquet: one that was cut, exchanged or written into is made again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import duckdb
import msgspec

import collector.contract
from collector.contract import chain, columns
from collector.contract.digests import file_sha256, json_digest
from collector.contract.errors import DossierError
from collector.contract.records import MAX_LINE_BYTES

_TAIL_BYTES = 1 << 16


class Entry(NamedTuple):
    """One run file as checked. `parquet` is null where nothing of it may be read (a newer format, no good line)."""

    report: chain.FileReport
    parquet: Path | None


def default_cache_dir() -> Path:
    """Return `gpu-dossier` in the user's cache folder (XDG_CACHE_HOME, otherwise ~/.cache)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gpu-dossier" / "records"


@functools.cache
def contract_digest() -> str:
    """Return 12 digits that change with the code that checks and types records, so no entry outlives its rules."""
    folder = Path(collector.contract.__file__).parent
    digest = hashlib.sha256(json_digest(dict(columns.duckdb_columns())).encode())
    checkers = [folder / name for name in ("chain.py", "inspection.py", "row_rules.py", "rules.py", "columns.py")]
    for path in sorted([*checkers, *(folder / "records").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


class _Kept(msgspec.Struct, frozen=True):
    """What the cache keeps beside a Parquet. parquet_sha256: of its bytes; null where there is none."""

    report: chain.FileReport
    parquet_sha256: str | None


class Cache:
    """A folder of checked run files; a context manager."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _not_writable(folder, error) from None
        self.folder = folder.resolve()
        self._opened: duckdb.DuckDBPyConnection | None = None

    @property
    def _con(self) -> duckdb.DuckDBPyConnection:
        """Opened by the first file that is not kept yet: opening takes longer than finding an entry."""
        if self._opened is None:
            self._opened = duckdb.connect(":memory:")
            self._opened.execute("set temp_directory = ?", [str(self.folder / f"spill-{secrets.token_hex(8)}")])
        return self._opened

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def entry(self, path: Path) -> Entry:
        """Return the file's report and its Parquet, made now unless the cache has both.

        Raises DossierError where the file cannot be read or the cache cannot be written.
        """
        try:
            sha256 = file_sha256(path)
        except OSError as error:
            raise DossierError(f"{path} cannot be read: {error.strerror}", next_step="check the path") from None
        return self._kept(path, sha256) or self._made(path)

    def _stem(self, sha256: str) -> str:
        return f"{sha256}-{contract_digest()}-{duckdb.__version__}"

    def _kept(self, path: Path, sha256: str) -> Entry | None:
        stem = self._stem(sha256)
        try:
            kept = _decode((self.folder / f"{stem}.json").read_bytes())
            report = kept.report._replace(path=path)
            if not report.record_count:
                return Entry(report, None)
            parquet = self.folder / f"{stem}.parquet"
            return Entry(report, parquet) if file_sha256(parquet) == kept.parquet_sha256 else None
        except (OSError, msgspec.MsgspecError):
            return None

    def _made(self, path: Path) -> Entry:
        try:
            with tempfile.TemporaryDirectory(prefix="check-", dir=self.folder) as work:
                return self._checked(path, Path(work))
        except OSError as error:
            raise _not_writable(self.folder, error) from None

    def _checked(self, path: Path, work: Path) -> Entry:
        """Check the file and write its entry. One that may still grow is copied first, so both readers see the same."""
        source = path
        if not _ends_in_seal(path):
            source = work / "snapshot.jsonl"
            shutil.copyfile(path, source)
        report = chain.verify(source)
        stem = self._stem(report.sha256)
        parquet: Path | None = None
        digest: str | None = None
        if report.record_count:
            if report.problems:
                source = _good_lines(source, work / "good.jsonl")
            parquet = self.folder / f"{stem}.parquet"
            digest = _publish(parquet, lambda place: self._to_parquet(source, place))
            if self._row_count(parquet) != report.record_count:
                parquet.unlink(missing_ok=True)
                raise DossierError(f"{path} changed while it was read", next_step="run the command again")
        kept = _Kept(report._replace(path=Path()), digest)
        _publish(
            self.folder / f"{stem}.json",
            lambda place: place.write_bytes(msgspec.json.encode(kept, enc_hook=str)),
        )
        return Entry(report._replace(path=path), parquet)

    def _to_parquet(self, source: Path, target: Path) -> None:
        """Convert good lines in one typed scan; the chain's `prev` was checked and is left behind."""
        types = ", ".join(
            f'"{name}": {_quoted(kind)}' for name, kind in columns.duckdb_columns().items() if name != "prev"
        )
        self._con.execute(
            f"copy (select * from read_json({_quoted(str(source))}, format = 'newline_delimited', "
            f"auto_detect = false, columns = {{{types}}}, maximum_object_size = {2 * MAX_LINE_BYTES})) "
            f"to {_quoted(str(target))} (format parquet, compression zstd)"
        )

    def _row_count(self, parquet: Path) -> int | None:
        """Return the rows of a Parquet file by its own footer; null where it is none."""
        try:
            found = self._con.execute("select count(*) from read_parquet(?)", [str(parquet)]).fetchone()
        except duckdb.Error:
            return None
        return int(found[0]) if found else None


def _ends_in_seal(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        lines = stream.read().splitlines()
    return bool(lines) and lines[-1].startswith(b'{"kind":"seal"')


def _good_lines(source: Path, target: Path) -> Path:
    with target.open("wb") as stream:
        for line in chain.scan(source):
            if line.record is not None:
                stream.write(line.raw + b"\n")
    return target


def _publish(target: Path, write: Callable[[Path], object]) -> str:
    """Write beside the target, read-only, then rename: a reader sees the whole or nothing. Returns its sha256."""
    partial = target.with_name(f"{target.name}.{secrets.token_hex(8)}.partial")
    try:
        write(partial)
        digest = file_sha256(partial)
        partial.chmod(0o444)  # DuckDB lets a query write into a path that it may read
        partial.replace(target)
        return digest
    finally:
        partial.unlink(missing_ok=True)


def _decode(encoded: bytes) -> _Kept:
    return msgspec.json.decode(encoded, type=_Kept, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    return kind(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _not_writable(folder: Path, error: OSError) -> DossierError:
    return DossierError(
        f"the cache folder {folder} cannot be used: {error.strerror}",
        next_step="set XDG_CACHE_HOME to a folder that can be written",
    )
