"""The figures and tables of one stage: the judged one as they are, the test stage under its own names."""

from __future__ import annotations

from collections.abc import Sequence

from collector.contract.records.base import Stage

from .book import Book
from .dossier import Row
from .sql_files import TEST_PREFIX

_OF_ALL_STAGES = ("passes", "failures")


class StageBook(Book):
    """A book that shows one stage; what is added to it stands in the whole book."""

    def __init__(self, book: Book, stage: Stage, *, prefix: str = "") -> None:
        """`prefix` stands before the names of the stage's own tables."""
        super().__init__({}, {})
        self.figures = book.figures
        self.tables = book.tables
        self._stage = stage
        self._own: dict[str, tuple[Sequence[Row], list[Row]]] = {}
        self._prefix = prefix

    def rows(self, table: str) -> Sequence[Row]:
        """Return the rows of a table in this stage; failures that belong to no pass count in each."""
        if table in _OF_ALL_STAGES:
            every = super().rows(table)
            if table not in self._own or self._own[table][0] is not every:
                self._own[table] = every, [row for row in every if row.labels.get("stage") in (self._stage, "")]
            return self._own[table][1]
        return super().rows(self._prefix + table if self._prefix + table in self.tables else table)


def of_test_stage(book: Book) -> StageBook:
    """Return the test stage of a book whose judged stage is another."""
    return StageBook(book, "test", prefix=TEST_PREFIX)
