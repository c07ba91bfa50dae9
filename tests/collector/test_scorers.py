"""User scorers: whatever they do, each document has a verdict or a failure, and no measured time is touched."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from collector.cli import main
from collector.contract.errors import DossierError, Refused
from collector.contract.protocol import DocumentLine, Scorer, rule_digest
from collector.contract.records import Failure, PassEnd, Request, Score
from collector.freeze import read_frozen
from collector.lock import scorer_digest
from collector.processes import CommandEnd, run_command
from collector.protocol_check import check_protocol
from collector.run_options import RunOptions
from collector.scorers import Asked, Judged, UserScorer

ALLOWED = RunOptions(device="cpu", allow_commands=True)
FUNCTION = """
def score(document):
    print("prints do not stand between verdicts")
    expected = document["expected"]
    if document["document_id"] == "d1":
        return False
    right = expected["date"] in (document["answer"] or "")
    return {"is_accepted": right, "graded_value": 1.0 if right else 0.25, "fields_right": ["date"] if right else []}
"""


def table(edit: str) -> Callable[[str], str]:
    return lambda text: text.replace("[workload]", f"[task.scorer]\n{edit}\n\n[workload]", 1)


PYTHON = table('entry_point = "scoring:score"\nfiles = ["scoring.py"]\ntimeout_s = 30')


@pytest.fixture
def make_scored(make_trial: Any, tmp_path: Path) -> Callable[..., Any]:
    """A scripted trial judged by `scoring.py`."""

    def make(source: str = FUNCTION, *, edit: Callable[[str], str] = PYTHON, **more: Any) -> Any:
        folder = tmp_path / "trial"
        folder.mkdir()
        (folder / "scoring.py").write_text(source, encoding="utf-8")
        (folder / "scoring.py").chmod((folder / "scoring.py").stat().st_mode | stat.S_IXUSR)
        return make_trial(edit=edit, **{"documents": 3, **more})

    return make


def of(records: list[Any], kind: type[Any]) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


def test_a_python_function_judges_a_pass_and_its_digest_stands_in_each_score(
    make_scored: Callable[..., Any], records_of: Any
) -> None:
    trial = make_scored()
    records = records_of(trial.run(ALLOWED).path)
    scores = of(records, Score)
    assert len(scores) == 9  # three documents in three passes
    lock = trial.frozen.lock
    digest = scorer_digest(trial.folder, ["scoring.py"])
    assert lock.trial.scorer.files_sha256 == digest
    assert {score.scorer_digest for score in scores} == {digest}
    assert {score.rule_digest for score in scores} == {rule_digest(lock.trial)}
    first = [score for score in scores if score.pass_id == scores[0].pass_id]
    found = {score.document_id: (score.score_outcome, score.is_accepted, score.graded_value) for score in first}
    assert found == {"d0": ("right", True, 1.0), "d1": ("wrong", False, None), "d2": ("right", True, 1.0)}
    assert not of(records, Failure)
    assert next(score for score in first if score.document_id == "d1").missing["graded_value"] == "not_applicable"


def test_a_command_reads_lines_and_writes_one_verdict_each(make_scored: Callable[..., Any], records_of: Any) -> None:
    source = """#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"document_id": "\\([^"]*\\)".*/\\1/')
  echo "{\\"document_id\\": \\"$id\\", \\"is_accepted\\": true, \\"graded_value\\": 0.5}"
done
"""
    trial = make_scored(source, edit=table('command = ["./scoring.py"]\nfiles = ["scoring.py"]'))
    scores = of(records_of(trial.run(ALLOWED).path), Score)
    assert {(score.is_accepted, score.graded_value) for score in scores} == {(True, 0.5)}
    assert len(scores) == 9


def test_the_scorer_is_asked_when_the_pass_is_measured_and_its_time_is_nobodys(
    make_scored: Callable[..., Any], records_of: Any
) -> None:
    trial = make_scored("import time\n\ndef score(document):\n    time.sleep(0.5)\n    return True\n")
    records = records_of(trial.run(ALLOWED).path)
    for end in of(records, PassEnd):
        assert end.pass_outcome == "completed"
        assert end.phase_ns["measure"] < 1.5e9  # three documents wait 1.5 s in the scorer
    order = [type(record).__name__ for record in records if isinstance(record, Request | Score | PassEnd)]
    first = order.index("Score")
    assert order[first : first + 4] == ["Score", "Score", "Score", "PassEnd"]


@pytest.mark.parametrize(
    ("source", "said", "exit_code"),
    [
        ("import os\n\ndef score(document):\n    os._exit(7)\n", "exit code 7", 7),
        ("import ctypes\n\ndef score(document):\n    ctypes.string_at(0)\n", "exit code -11", -11),
        ("import time\n\ndef score(document):\n    time.sleep(60)\n", "no end within 2 s", None),
        ("def score(document):\n    raise ValueError('not today')\n", "ValueError: not today", None),
        ("def score(document):\n    return 'yes'\n", "returned str", None),
        ("def score(document):\n    return {'is_accepted': 1}\n", "malformed", None),
        ("def score(document):\n    return {'is_accepted': True, 'graded_value': 2.0}\n", "malformed", None),
        ("def score(document):\n    return {'accepted': True}\n", "malformed", None),
        ("def score(document):\n    return {}\n", "does not say is_accepted", None),
    ],
)
def test_a_scorer_that_fails_is_a_failure_of_each_document_and_never_a_zero(
    make_scored: Callable[..., Any], records_of: Any, texts_of: Any, source: str, said: str, exit_code: int | None
) -> None:
    timeout_s = 2 if "no end within" in said else 60
    edit = table(f'entry_point = "scoring:score"\nfiles = ["scoring.py"]\ntimeout_s = {timeout_s}')
    trial = make_scored(source, edit=lambda text: edit(text).replace("[plan]", "[plan]\nreference_runs = 1"))
    report = trial.run(RunOptions(device="cpu", allow_commands=True, only=("fp32",)))
    records, texts = records_of(report.path), texts_of(report.path)
    assert not of(records, Score)
    failures = of(records, Failure)
    assert {(f.failure_scope, f.failure_cause) for f in failures} == {("request", "scorer")}
    assert sorted(f.document_id for f in failures) == ["d0", "d1", "d2"]
    assert {f.exit_code for f in failures} == {exit_code}
    assert all(said in texts[f.message_hmac] for f in failures)
    assert any("judge this run again with `collector score`" in notice for notice in trial.watcher.notices)
    assert [end.pass_outcome for end in of(records, PassEnd)] == ["completed"]


REQUESTS = [
    Asked(
        Request(
            pass_id="0" * 16, phase="measure", document_id=name, is_final=True, intended_ns=0,
            token_count_source="scripted", finish_reason=reason, request_outcome=outcome,
        ),
        answer,
    )
    for name, reason, outcome, answer in (
        ("a", "end_token", "completed", "yes"), ("b", "end_token", "completed", ""),
        ("c", "length", "completed", "ye"), ("d", "not_started", "too_long", None), ("e", "error", "failed", None),
    )
]  # type: ignore[misc]  # fmt: skip
DOCUMENTS = {name: DocumentLine(id=name, role="test", text="?", answers=["yes"]) for name in "abcde"}


def judged(tmp_path: Path, *lines: str, seen: list[bytes] | None = None) -> Judged:
    """What becomes of a scorer's output, given line by line."""
    (tmp_path / "s.py").write_text("")

    def answer(command: list[str], *, cwd: Path, sent: bytes, timeout_s: float) -> CommandEnd:
        if seen is not None:
            seen.append(sent)
        return CommandEnd(0, "\n".join(lines).encode(), b"")

    scorer = UserScorer(
        Scorer(command=["x"], files=["s.py"]), files_sha256=scorer_digest(tmp_path, ["s.py"]), base_dir=tmp_path,
        run_command=answer,
    )  # fmt: skip
    return scorer.judge(REQUESTS, DOCUMENTS)


def accepted(name: str, value: bool = True, **more: Any) -> str:
    return json.dumps({"document_id": name, "is_accepted": value, **more})


def test_only_answers_are_put_to_the_scorer_with_what_it_needs(tmp_path: Path) -> None:
    seen: list[bytes] = []
    found = judged(tmp_path, *map(accepted, "abc"), seen=seen)
    lines = [json.loads(line) for line in seen[0].splitlines()]
    assert [line["document_id"] for line in lines] == ["a", "b", "c"]
    assert lines[2] == {
        "document_id": "c", "text": "?", "expected": {"answers": ["yes"], "tolerance": None}, "answer": "ye",
        "finish_reason": "length",
    }  # fmt: skip
    assert (found.verdicts["d"].score_outcome, found.verdicts["e"].score_outcome) == ("too_long", "failed")
    assert not found.faults


def test_missing_repeated_and_foreign_verdicts_are_faults_of_their_documents_alone(tmp_path: Path) -> None:
    found = judged(tmp_path, "loading the model ...", accepted("a"), accepted("b"), accepted("b"), accepted("zzz"))
    assert found.verdicts["a"].is_accepted
    assert found.faults.keys() == {"b", "c"}
    assert found.faults["b"] == "the scorer gave 2 verdicts"
    assert found.faults["c"].startswith("the scorer gave no verdict\nline 1 of the scorer's output")
    assert len(found.stray) == 2


def test_c10_c11_c12_what_is_not_accepted_keeps_its_cause(tmp_path: Path) -> None:
    unreadable = {"is_readable": False}
    found = judged(
        tmp_path, accepted("a", False, **unreadable), accepted("b", False), accepted("c", False, **unreadable)
    )
    assert [found.verdicts[name].score_outcome for name in "abc"] == ["unparseable", "empty", "truncated"]
    assert judged(tmp_path, accepted("a", False), accepted("c", False)).verdicts["c"].score_outcome == "wrong"
    both = judged(tmp_path, accepted("a", True, **unreadable))
    assert both.faults["a"] == "the scorer accepts an answer that it calls not readable"


def test_a_command_and_all_that_it_started_end_at_the_time_limit(tmp_path: Path) -> None:
    end = run_command(["sh", "-c", "sleep 50 & echo $!; wait"], cwd=tmp_path, sent=b"", timeout_s=0.5)
    assert end.exit_code is None
    assert not Path(f"/proc/{end.output.decode().strip()}/exe").exists()


def test_code_of_the_protocol_runs_only_where_it_is_allowed(make_scored: Callable[..., Any]) -> None:
    trial = make_scored()
    result = CliRunner().invoke(main, ["run", str(trial.protocol), "--out", str(trial.out), "--device", "cpu"])
    assert result.exit_code == 2
    assert "judged by the function scoring:score of the protocol's folder (scoring.py)" in result.stderr
    assert "--allow-commands" in result.stderr
    assert not trial.out.exists()
    command = ["run", str(trial.protocol), "--out", str(trial.out), "--device", "cpu", "--allow-commands"]
    assert CliRunner().invoke(main, command).exit_code == 0


@pytest.mark.parametrize("source", ["import nothing_of_this_name\n", "def another(document):\n    return True\n"])
def test_a_scorer_that_cannot_be_called_is_refused_before_anything_is_measured(
    make_scored: Callable[..., Any], source: str
) -> None:
    trial = make_scored(source)
    with pytest.raises(DossierError, match=r"the scorer does not work, and nothing was measured: exit code 1\n"):
        trial.run(ALLOWED)
    assert not trial.out.exists()


def test_a_command_that_is_not_there_is_refused_before_anything_is_measured(make_scored: Callable[..., Any]) -> None:
    trial = make_scored(edit=table('command = ["./no-such-program"]\nfiles = ["scoring.py"]'))
    with pytest.raises(DossierError, match="no-such-program cannot be started: No such file"):
        trial.run(ALLOWED)


def test_changed_files_are_drift_and_another_digest(make_scored: Callable[..., Any]) -> None:
    trial = make_scored()
    (trial.folder / "scoring.py").write_text(FUNCTION.replace("0.25", "0.5"), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        read_frozen(trial.protocol)
    (finding,) = refused.value.findings
    assert (finding.rule, finding.message) == ("drift", "`task.scorer.files` has another content than when frozen")
    lines = trial.protocol.read_text().splitlines()
    assert lines[(finding.line or 0) - 1].startswith("files = ")
    with pytest.raises(DossierError, match="no longer those that were frozen"):
        trial.run(ALLOWED)  # frozen before the change, as in a run that has begun


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ('files = ["scoring.py"]', "has neither entry_point nor command"),
        ('entry_point = "scoring:score"\ncommand = ["x"]\nfiles = ["scoring.py"]', "has both entry_point and command"),
        ('entry_point = "scoring.score"\nfiles = ["scoring.py"]', "which is not `module:function`"),
        ('entry_point = "scoring:score"\nfiles = ["scoring.py", "absent.txt"]', "there is no such file"),
        ('entry_point = "scoring:score"\nfiles = ["protocol.toml"]', "does not name scoring.py"),
        ('command = ["x"]\nfiles = ["../scoring.py"]', "no path inside the protocol's folder"),
        ('command = ["x"]\nfiles = ["scoring.py", "scoring.py"]', "stands there twice"),
    ],
)
def test_a_table_that_cannot_be_called_or_frozen_is_refused_with_its_line(
    make_scored: Callable[..., Any], edit: str, said: str
) -> None:
    trial = make_scored()
    text = trial.protocol.read_text()
    begin, end = text.index("[task.scorer]"), text.index("[workload]")
    trial.protocol.write_text(text[:begin] + f"[task.scorer]\n{edit}\n\n" + text[end:])
    found = [finding for finding in check_protocol(trial.protocol, with_tokenizer=False) if finding.rule == "scorer"]
    assert any(said in finding.message for finding in found), found
    assert all(finding.next_step and finding.line for finding in found)
