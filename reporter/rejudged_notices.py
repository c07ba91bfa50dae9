"""What a reader must know of runs that were judged again: which, when, and how many verdicts changed by it."""

from __future__ import annotations

from collections.abc import Iterator

from .book import ref
from .case import Case
from .dossier import Sentence
from .load import Store
from .rejudged import changes
from .wording import sentence


def rejudged_notices(case: Case, store: Store) -> Iterator[Sentence]:
    """Yield one notice per run judged again, one more where its protocol changed by it, and one per unused file."""
    by_run = {pair.by.run_id: pair for pair in store.judged_again}
    for run_id, by_run_id, changed in changes(store.con):
        pair = by_run[by_run_id]
        before, after = pair.source.header, pair.by.header
        if before is None or after is None:
            continue
        count = case.book.given(f"notices/{run_id[:8]}/changed_verdicts", changed, "requests", "measured")
        yield sentence(
            "notice_rejudged", run=run_id[:8], date="~" + after.wall_at[:10], file=pair.by.path.name,
            changed=ref(count),
        )  # fmt: skip
        if before.protocol_id != after.protocol_id:
            yield sentence(
                "notice_rejudged_protocol", run=run_id[:8], before=before.protocol_id[:12], after=after.protocol_id[:12]
            )
    for unused in store.unused:
        yield sentence(f"notice_{unused.rule.replace('-', '_')}", file=unused.report.path.name)
