"""The lock as a run carries it: the header's part, and the documents from their records, out of a store or a file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.contract.chain import FileReport
from collector.contract.protocol import Lock, LockedDocument
from collector.contract.records import Document, Header, decode_record

from .load import Store

_DOCUMENT = b'{"kind":"document"'
_FIELDS = LockedDocument.__struct_fields__


def stored_documents(store: Store, report: FileReport) -> list[LockedDocument]:
    """Return the documents of one file's lock, sorted by id, from the records that the store holds of it."""
    listed = ", ".join(_FIELDS)
    rows = store.con.execute(
        f"select {listed} from records where kind = 'document' and starts_with(parse_filename(file), ?) "
        "qualify row_number() over (partition by document_id order by seq, file_row) = 1 order by document_id",
        [report.sha256],
    ).fetchall()
    return [LockedDocument(**dict(zip(_FIELDS, row, strict=True))) for row in rows]


def locked_documents(path: Path) -> list[LockedDocument]:
    """Return the documents of a run's lock, sorted by id, from its document records; unreadable lines give none."""
    documents: dict[str, LockedDocument] = {}
    with path.open("rb") as stream:
        for line in stream:
            if not line.startswith(_DOCUMENT):
                continue
            try:
                record = decode_record(line)
            except msgspec.MsgspecError:
                continue
            assert isinstance(record, Document)
            fields = {name: getattr(record, name) for name in _FIELDS}
            documents.setdefault(record.document_id, LockedDocument(**fields))
    return sorted(documents.values(), key=lambda document: document.document_id)


class CarriedLock(NamedTuple):
    """A lock as a run carries it. content: the lock file's bytes."""

    plan_id: str
    content: bytes


def lock_of(path: Path) -> CarriedLock | None:
    """Return the whole lock that a run was made under, null where its header cannot be read.

    It has the fields that it was written with: one that a later version added would not agree with its own digests.
    """
    with path.open("rb") as stream:
        try:
            header = decode_record(stream.readline())
        except msgspec.MsgspecError:
            return None
    if not isinstance(header, Header):
        return None
    try:
        plain = msgspec.json.decode(header.protocol_json, type=dict[str, object])
        lock = msgspec.convert(plain, Lock)
    except msgspec.MsgspecError:
        return None
    documents = [msgspec.to_builtins(document) for document in locked_documents(path)]
    encoded = msgspec.json.encode(plain | {"documents": documents})
    return CarriedLock(lock.plan_id, msgspec.json.format(encoded, indent=2) + b"\n")
