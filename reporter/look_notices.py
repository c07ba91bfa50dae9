"""What a reader must know of the looks at the test documents: how many, and whether a frozen choice preceded each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .book import ref
from .case import Case
from .confirmation import looked_at
from .dossier import Sentence
from .load import Store
from .record_digest import records_digest
from .wording import sentence


def look_notices(case: Case, store: Store) -> Iterator[Sentence]:
    """Return the notices, the count first; none where nothing was looked at."""
    said = looked_at(case.book)
    if said is None:
        return
    yield said
    yield from _numbers(case)
    yield from _choice(case, store)


def _numbers(case: Case) -> Iterator[Sentence]:
    looks = [row.labels for row in case.book.rows("looks")]
    recorded = [labels["look"] for labels in looks if labels["look"]]
    highest = max((int(look) for look in recorded if look.isdigit()), default=0)
    if highest > len(looks):
        runs = case.book.given("notices/all/look_runs", len(looks), "count", "measured")
        yield sentence("notice_looks_missing", look=str(highest), runs=ref(runs))
    for look, times in sorted(Counter(recorded).items()):
        if times > 1:
            runs = case.book.given(f"notices/look~{look}/runs", times, "count", "measured")
            yield sentence("notice_look_repeated", look=look, runs=ref(runs))
    for labels in looks:
        if labels["is_recorded_before"] == "no" and labels["configuration_key"]:
            yield sentence("notice_look_unrecorded", run=labels["run_id"][:8])


def _choice(case: Case, store: Store) -> Iterator[Sentence]:
    looks = [row.labels for row in case.book.rows("looks")]
    last = looks[-1]
    if case.choice_digest is not None and last["choice_digest"] != case.choice_digest:
        yield sentence("notice_choice_file")
    chosen_from = last["choice_records_digest"]
    if case.stage != "test" and chosen_from and chosen_from != records_digest(store, with_test=False):
        yield sentence("notice_choice_records")
    headers = [report.header for report in store.runs if report.header is not None]
    if any(header.stage == "validation" and header.wall_at > looks[0]["at"] for header in headers):
        yield sentence("notice_validation_after_look")
