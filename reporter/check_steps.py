"""Steps files beside run files: each line is what the request record that cites it has the digest of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from collector.contract import chain
from collector.contract.errors import Finding
from collector.contract.steps import decode_steps, steps_digest, steps_path

from .load import Store

_STEPS = "restore the steps file from a copy, or delete it: the records stand without it"

_Key: TypeAlias = "tuple[str, str, str, int]"


def steps_findings(store: Store, report: chain.FileReport) -> tuple[list[Finding], list[Finding]]:
    """Return what is wrong with a run's steps file, and what a reader should know: that it, or lines of it, are gone.

    A line of a request that no record knows is left alone: the run was stopped between the two.
    """
    cited = _cited(store, report)
    if not cited:
        return [], []
    steps = steps_path(report.path)
    if not steps.exists():
        message = f"{len(cited)} request(s) cite steps, and {steps.name} is not beside the run"
        next_step = "copy it beside the run to see the time of each chunk; the records stand without it"
        return [], [Finding(report.path, None, "steps-missing", message, next_step)]
    findings: list[Finding] = []
    found: set[_Key] = set()
    with steps.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                held = decode_steps(line)
            except ValueError as error:
                if line.endswith(b"\n"):
                    findings.append(Finding(steps, number, "steps-line", f"no readable steps: {error}", _STEPS))
                continue
            key = held.pass_id, held.phase, held.document_id, held.try_index
            if key not in cited:
                continue
            found.add(key)
            if steps_digest(line.removesuffix(b"\n")) != cited[key][1]:
                message = f"the steps of {held.document_id!r} are not what the record on line {cited[key][0] + 1} cites"
                findings.append(Finding(steps, number, "steps-differ", message, _STEPS))
    return findings, list(_gone(report, cited, found, steps.name))


def _cited(store: Store, report: chain.FileReport) -> dict[_Key, tuple[int, str]]:
    """Return key of each request that cites steps -> its seq and the digest."""
    rows = store.con.execute(
        "select pass_id, phase, document_id, try_index, seq, steps_sha256 from records "
        "where kind = 'request' and run_id = ? and steps_sha256 is not null order by seq",
        [report.run_id],
    ).fetchall()
    return {(pass_id, phase, name, tries): (seq, digest) for pass_id, phase, name, tries, seq, digest in rows}


def _gone(
    report: chain.FileReport, cited: dict[_Key, tuple[int, str]], found: set[_Key], name: str
) -> Iterator[Finding]:
    absent = [cited[key][0] for key in cited if key not in found]
    if absent:
        message = f"the steps of {len(absent)} request(s) are not in {name}"
        yield Finding(report.path, absent[0] + 1, "steps-missing", message, "restore the steps file from a copy")


__all__ = ["steps_findings"]
