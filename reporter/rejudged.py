"""Files of judgements made again: each takes the place of its source's judgements, and is never pooled with them.

A file that `collector score` wrote names its source by head digest. Where both are given, the run is read as one: its
scores, its scorer's failures, its documents and its protocol come from the newer file, everything measured from the
source. Judgements without their source, and older ones of the same source, are set aside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import duckdb
import msgspec

from collector.contract.chain import FileReport

RULES = {
    "source-missing": "give the run that was judged again as well, or leave this file out",
    "judged-again-later": "nothing to do: of several judgements of one run the newest counts; or leave this file out",
    "judgement-unsealed": "run `collector score` again: it did not end, and half of a judgement is none",
}
"""Why a file of judgements is not used -> next step."""


class Rejudged(NamedTuple):
    """A run and the newest file that judged it again."""

    source: FileReport
    by: FileReport


class Unused(NamedTuple):
    """A file of judgements that is not used, and why: a rule of RULES."""

    report: FileReport
    rule: str
    message: str


def is_rejudging(report: FileReport) -> bool:
    """Return whether the file holds judgements made again."""
    return report.header is not None and report.header.source_head_digest is not None


def pairs(reports: Sequence[FileReport]) -> tuple[list[Rejudged], list[Unused]]:
    """Return each run with the newest sealed file that judged it again, and the files of judgements left over."""
    sources = {report.head_digest: report for report in reports if report.head_digest and not is_rejudging(report)}
    newest: dict[str, FileReport] = {}
    unused: list[Unused] = []
    for report in sorted(filter(is_rejudging, reports), key=_made):
        digest = _source_digest(report)
        if digest not in sources:
            message = f"judges again the run with head digest {digest[:12]}…, which is not among the files"
            unused.append(Unused(report, "source-missing", message))
        elif not report.is_sealed:
            message = f"judges run {sources[digest].run_id} again and has no seal"
            unused.append(Unused(report, "judgement-unsealed", message))
        else:
            if digest in newest:
                message = f"judges run {sources[digest].run_id} again, which was judged once more later"
                unused.append(Unused(newest[digest], "judged-again-later", message))
            newest[digest] = report
    return [Rejudged(sources[digest], report) for digest, report in newest.items()], unused


def runs(reports: Sequence[FileReport], found: Sequence[Rejudged]) -> list[FileReport]:
    """Return the files that are runs; one that was judged again has the header of its present protocol."""
    by = {pair.source.sha256: pair.by.header for pair in found}
    kept: list[FileReport] = []
    for report in reports:
        if is_rejudging(report):
            continue
        if (newer := by.get(report.sha256)) is not None and report.header is not None:
            header = msgspec.structs.replace(
                report.header, protocol_json=newer.protocol_json, protocol_id=newer.protocol_id, plan_id=newer.plan_id
            )
            report = report._replace(header=header)
        kept.append(report)
    return kept


def create_tables(con: duckdb.DuckDBPyConnection, found: Sequence[Rejudged], unused: Sequence[Unused]) -> None:
    """Create `rejudged`, a row per pair, and `rejudging`, a row per file of judgements, used or not."""
    con.execute("""
        create table rejudged (
            run_id varchar, by_run_id varchar, protocol_id varchar, plan_id varchar, protocol_json varchar
        )""")
    con.execute("create table rejudging (run_id varchar, stage varchar, wall_at varchar, plan_id varchar)")
    for pair in found:
        header = pair.by.header
        assert header is not None
        con.execute(
            "insert into rejudged values (?, ?, ?, ?, ?)",
            [pair.source.run_id, pair.by.run_id, header.protocol_id, header.plan_id, header.protocol_json],
        )
    for report in [*(pair.by for pair in found), *(one.report for one in unused)]:
        header = report.header
        assert header is not None
        con.execute(
            "insert into rejudging values (?, ?, ?, ?)", [report.run_id, header.stage, header.wall_at, header.plan_id]
        )


def view(kind: str, plain: str) -> str:
    """Return the query of a kind's view, given the plain one: what was judged again is read from the newer file."""
    measured = f"({plain}) as plain anti join rejudging on plain.run_id = rejudging.run_id"
    if kind in ("header", "pass_begin"):
        columns = ["protocol_id", "plan_id", "protocol_json"] if kind == "header" else ["protocol_id"]
        replaced = ", ".join(f"coalesce(rejudged.{name}, plain.{name}) as {name}" for name in columns)
        return (
            f"select plain.* replace ({replaced}) from {measured} left join rejudged on plain.run_id = rejudged.run_id"
        )
    if kind not in ("document", "score", "failure"):
        return plain
    # Of failures only the scorer's are about a judgement; all others stay what they are.
    kept = "run_id not in (select run_id from rejudged)" + (
        " or failure_cause <> 'scorer'" if kind == "failure" else ""
    )
    return (
        f"select * from (select plain.* from {measured}) where {kept} union all "
        f"select plain.* replace (rejudged.run_id as run_id) from ({plain}) as plain "
        "inner join rejudged on plain.run_id = rejudged.by_run_id"
    )


def changes(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str, int]]:
    """Yield run, the run id of its newer judgements, and how many requests these accept or refuse otherwise.

    A request that had no score before, or has none now, counts as well.
    """
    rows = con.execute("""
        with scores as (
            select run_id, pass_id, document_id, turn, try_index, is_accepted from records where kind = 'score'
        ),
        before as (select scores.* from scores inner join rejudged using (run_id)),
        after as (
            select rejudged.run_id, scores.* exclude (run_id)
            from scores inner join rejudged on scores.run_id = rejudged.by_run_id
        ),
        compared as (
            select run_id, before.is_accepted is distinct from after.is_accepted as is_other
            from before full join after using (run_id, pass_id, document_id, turn, try_index)
        )
        select rejudged.run_id, rejudged.by_run_id, count(*) filter (where compared.is_other)
        from rejudged left join compared using (run_id)
        group by all order by all""").fetchall()
    yield from ((str(run_id), str(by), int(count)) for run_id, by, count in rows)


def is_under_later_rule(found: Sequence[Rejudged], looked_at: str) -> bool:
    """Return whether a run was judged again under another protocol after the first look at the test documents."""
    headers = ((pair.source.header, pair.by.header) for pair in found)
    return any(
        before is not None and after is not None and before.protocol_id != after.protocol_id
        and after.wall_at > looked_at
        for before, after in headers
    )  # fmt: skip


def unjudged(con: duckdb.DuckDBPyConnection) -> int:
    """Return how many answers have no verdict because the protocol's scorer failed on them."""
    found = con.execute("""
        select count(*) from (
            select distinct run_id, pass_id, document_id
            from stg_failure where failure_cause = 'scorer' and failure_scope = 'request'
        )""").fetchone()
    return int(found[0]) if found else 0


def _made(report: FileReport) -> tuple[str, str]:
    header = report.header
    return (header.wall_at, header.run_id) if header is not None else ("", "")


def _source_digest(report: FileReport) -> str:
    return (report.header.source_head_digest or "") if report.header is not None else ""
