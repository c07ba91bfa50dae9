"""The one digest that names a set of record files."""

from __future__ import annotations

import hashlib

from .load import Store


def records_digest(store: Store, *, with_test: bool = True) -> str:
    """Return the sha256 over the sorted head digests (of open files, the digests of their bytes), one a line.

    with_test: false leaves out the runs on test documents, as the choice that they confirm did.
    """
    digests = sorted(
        report.head_digest or report.sha256
        for report in store.files
        if with_test or report.header is None or report.header.stage != "test"
    )
    return hashlib.sha256("".join(digest + "\n" for digest in digests).encode()).hexdigest()
