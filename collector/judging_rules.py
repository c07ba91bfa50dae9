"""What a protocol may not say about how answers are judged: a measure without a kind, a scorer without its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from collector.contract.errors import DossierError, Finding
from collector.contract.judging.measures import best_value, is_reached
from collector.contract.protocol import LockedTrial, RankingRule, Scorer, Task
from collector.documents import NumberedDocument

_ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_TABLE = '[task.ranking] with metric = "ndcg", k = 10 and accept_from = "0.8"'


class _Fault(NamedTuple):
    place: str
    rule: str
    message: str
    next_step: str


def judging_findings(path: Path, task: Task, line_of: Callable[[str], int | None]) -> Iterator[Finding]:
    """Yield what is wrong with `[task.ranking]` and `[task.scorer]`, and a ranking that has neither."""
    faults = [*_ranking(task)]
    if task.scorer is not None:
        faults += _scorer(path.parent, task.scorer)
    for fault in faults:
        yield Finding(path, line_of(fault.place) or 1, fault.rule, fault.message, fault.next_step)


def unreachable_findings(path: Path, entries: Sequence[NumberedDocument], rule: RankingRule) -> Iterator[Finding]:
    """Yield each query that no order could bring to the threshold: more relevant candidates than recall@k counts."""
    for entry in entries:
        document = entry.document
        grades = [document.relevance.get(name, 0) for name in document.candidates]
        if not any(grades) or is_reached(best := best_value(rule, grades), rule.accept_from):
            continue
        message = (
            f"query {document.id!r} reaches {rule.metric}@{rule.k} = {float(best):.4g} at best, and is accepted from "
            f"{rule.accept_from}"
        )
        yield Finding(path, entry.line, "threshold", message, "raise k or lower accept_from under [task.ranking]")


def require_scorable(trial: LockedTrial) -> None:
    """Raise DossierError where nothing says how answers are judged: measuring them would be paid for nothing."""
    if trial.task_kind == "ranking" and trial.ranking is None and trial.scorer is None:
        raise DossierError(
            "the lock has neither [task.ranking] nor [task.scorer], so no ranking could be judged; nothing was loaded",
            next_step=f"add {_TABLE} to the protocol and freeze it again",
        )


def _ranking(task: Task) -> Iterator[_Fault]:
    rule = task.ranking
    if rule is None:
        if task.kind == "ranking" and task.scorer is None:
            message = "the task is of kind ranking, and nothing says from which value on one is accepted"
            yield _Fault("task", "no-ranking-rule", message, f"add {_TABLE}")
        return
    if task.kind != "ranking":
        message = f"the task is of kind {task.kind} and has [task.ranking], which is for rankings"
        yield _Fault("task.ranking", "wrong-kind", message, 'remove it, or write kind = "ranking"')
    elif task.scorer is not None:
        message = "[task.ranking] and [task.scorer] are both there, and the scorer judges instead of the measure"
        yield _Fault("task.scorer", "scorer", message, "keep one of them")
    if not 0 < Fraction(rule.accept_from) <= 1:
        reason = "every order is accepted" if Fraction(rule.accept_from) == 0 else "no order can meet it, at most 1"
        message = f"`task.ranking.accept_from` is {rule.accept_from}: {reason}"
        yield _Fault("task.ranking.accept_from", "threshold", message, "write a value above 0 and at most 1")


def _scorer(folder: Path, scorer: Scorer) -> Iterator[_Fault]:
    if (scorer.entry_point is None) == (not scorer.command):
        has = "both entry_point and command" if scorer.command else "neither entry_point nor command"
        step = 'write entry_point = "module:function", or command = ["program", "argument"], not both'
        yield _Fault("task.scorer", "scorer", f"[task.scorer] has {has}", step)
    if scorer.entry_point is not None and not _ENTRY_POINT.fullmatch(scorer.entry_point):
        message = f"`task.scorer.entry_point` is {scorer.entry_point!r}, which is not `module:function`"
        yield _Fault("task.scorer.entry_point", "scorer", message, "write the function's module, a colon and its name")
    names = [PurePosixPath(name) for name in scorer.files]
    for index, name in enumerate(names):
        place = f"task.scorer.files[{index}]"
        if name.is_absolute() or ".." in name.parts or "\\" in str(name):
            message = f"`{place}` is {str(name)!r}, which is no path inside the protocol's folder"
            yield _Fault(place, "scorer", message, "put the file into the protocol's folder: it travels with the lock")
        elif not (folder / name).is_file():
            message = f"`{place}` is {str(name)!r}, and there is no such file beside the protocol"
            yield _Fault(place, "scorer", message, "write the file, or correct its path")
        elif name in names[:index]:
            yield _Fault(place, "scorer", f"`{place}` is {str(name)!r}, which stands there twice", "keep one of them")
    if scorer.entry_point is not None and ":" in scorer.entry_point:
        module = scorer.entry_point.partition(":")[0].replace(".", "/")
        if PurePosixPath(f"{module}.py") not in names and PurePosixPath(f"{module}/__init__.py") not in names:
            message = f"`task.scorer.files` does not name {module}.py, which holds {scorer.entry_point}"
            yield _Fault("task.scorer.files", "scorer", message, f"add {module}.py to files, so that its digest counts")
