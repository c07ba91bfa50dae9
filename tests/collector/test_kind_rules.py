"""Kinds of tasks: what a document and a prompt of each must have; refused with line and next step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.clock import FakeClock
from collector.contract.errors import DossierError, Finding, Refused
from collector.contract.protocol import DocumentLine, RankingRule, Task, rule_digest
from collector.documents import NumberedDocument, render_prompt
from collector.freeze import freeze, read_frozen
from collector.init import init_folder
from collector.judging_rules import require_scorable
from collector.kind_rules import kind_findings
from collector.lock import expected_text
from collector.protocol_check import check_protocol

PROTOCOL = "protocol.toml"


@pytest.fixture
def trial(tmp_path: Path) -> Any:
    """A starter of one kind, its first document changed: `trial("answers", answers=[])` -> findings."""

    def write(kind: str, *, drop: str | None = None, **changes: Any) -> list[Finding]:
        if not (tmp_path / PROTOCOL).exists():
            init_folder(tmp_path, kind=kind, device="d")
        documents = tmp_path / "documents.jsonl"
        first, *others = documents.read_text(encoding="utf-8").splitlines()
        line = json.loads(first) | changes
        if drop is not None:
            del line[drop]
        documents.write_text("\n".join([json.dumps(line), *others]) + "\n", encoding="utf-8")
        return check_protocol(tmp_path / PROTOCOL, with_tokenizer=False)

    return write


def edit(folder: Path, old: str, new: str) -> list[Finding]:
    protocol = folder / PROTOCOL
    text = protocol.read_text(encoding="utf-8")
    assert old in text
    protocol.write_text(text.replace(old, new, 1), encoding="utf-8")
    return check_protocol(protocol, with_tokenizer=False)


@pytest.mark.parametrize("kind", ["extraction", "answers", "ranking"])
def test_init_of_each_kind_checks_and_freezes(tmp_path: Path, kind: str) -> None:
    init_folder(tmp_path, kind=kind, device="d")
    assert check_protocol(tmp_path / PROTOCOL, with_tokenizer=False) == []
    lock = freeze(tmp_path / PROTOCOL, campaign=None, clock=FakeClock(), with_tokenizer=False)
    assert lock.trial.task_kind == kind
    assert len(read_frozen(tmp_path / PROTOCOL).documents) == {"extraction": 330, "answers": 50, "ranking": 92}[kind]
    question = next(line for line in (tmp_path / "campaign.toml").read_text().splitlines() if "question =" in line)
    assert {"extraction": "receipts", "answers": "questions", "ranking": "queries"}[kind] in question
    assert f"{len(lock.documents)} documents" in (tmp_path / "corpus.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "changes", "rule", "said"),
    [
        ("answers", {"answers": []}, "expected-missing", "has no known answer"),
        ("answers", {"answers": ["43", " "]}, "expected-empty", "a known answer is empty"),
        ("answers", {"answers": ["forty-three"]}, "tolerance", "which is no number"),
        (
            "answers",
            {"answers": ["43", "<think>"], "tolerance": None},
            "expected-value",
            "itself would not be accepted",
        ),
        ("answers", {"expected": {"date": None}}, "wrong-kind", "`expected`, which is for tasks of kind extraction"),
        ("answers", {"relevance": {"A": 1}}, "wrong-kind", "`relevance`, which is for tasks of kind ranking"),
        (
            "ranking",
            {"relevance": {"A": 1, "Z": 2}},
            "unknown-candidate",
            "grades 'Z', which is none of its candidates",
        ),
        ("ranking", {"relevance": {"A": 0}}, "no-relevant-candidate", "has no relevant candidate"),
        ("ranking", {"candidates": {"A": "x"}, "relevance": {"A": 1}}, "candidates", "has 1 candidate(s)"),
        ("ranking", {"candidates": {"A": "x", "B": " "}, "relevance": {"A": 1}}, "candidates", "candidate 'B'"),
        ("ranking", {"answers": ["x"]}, "wrong-kind", "`answers`, which is for tasks of kind answers"),
        ("extraction", {"tolerance": "1"}, "wrong-kind", "`tolerance`, which is for tasks of kind answers"),
        ("extraction", {"candidates": {"A": "x"}}, "wrong-kind", "`candidates`, which is for tasks of kind ranking"),
    ],
)
def test_a_document_that_does_not_fit_its_kind_is_refused_with_its_line(
    trial: Any, kind: str, changes: dict[str, Any], rule: str, said: str
) -> None:
    (finding,) = trial(kind, **changes)
    assert (finding.rule, finding.line, finding.file.name) == (rule, 1, "documents.jsonl")
    assert said in finding.message
    assert finding.next_step


def test_a_query_without_candidates_and_grades_is_refused_for_both(trial: Any) -> None:
    trial("ranking", drop="candidates")
    findings = trial("ranking", drop="relevance")
    assert [finding.rule for finding in findings] == ["candidates", "no-relevant-candidate"]


def test_a_number_may_be_written_in_any_form_that_has_a_value(trial: Any) -> None:
    assert trial("answers", answers=["43", "43.0", "4.3e1"]) == []
    (finding,) = trial("answers", answers=["NaN"])
    assert finding.rule == "tolerance"


def test_an_extraction_without_fields_is_refused(tmp_path: Path) -> None:
    init_folder(tmp_path, kind="answers", device="d")
    findings = edit(tmp_path, 'kind = "answers"', 'kind = "extraction"')
    assert ("no-fields", "the task is of kind extraction and names no field to extract") in [
        (finding.rule, finding.message) for finding in findings
    ]
    line = next(n for n, text in enumerate((tmp_path / PROTOCOL).read_text().splitlines(), 1) if text == "[task]")
    assert next(finding.line for finding in findings if finding.rule == "no-fields") == line


def test_fields_in_another_kind_are_refused(tmp_path: Path) -> None:
    init_folder(tmp_path, kind="answers", device="d")
    (finding,) = edit(tmp_path, "[workload]", '[[task.field]]\nname = "date"\ntype = "date"\n\n[workload]')
    assert (finding.rule, finding.message) == (
        "wrong-kind",
        "the task is of kind answers and has 1 field(s), which are for extraction",
    )


def test_the_place_of_the_candidates_is_asked_for_in_rankings_alone(tmp_path: Path) -> None:
    init_folder(tmp_path / "r", kind="ranking", device="d")
    (finding,) = edit(tmp_path / "r", '"{document}"', '"{document} {candidates}"')
    assert "by embedding each candidate becomes a vector by itself" in finding.message
    edit(tmp_path / "r", '"{document} {candidates}"', '"{document}"')
    (finding,) = edit(tmp_path / "r", 'answers_by = "embedding"', 'answers_by = "generation"')
    assert (finding.rule, finding.message) == (
        "prompt-placeholder",
        "`task.prompt` contains {candidates} 0 times, not once",
    )
    init_folder(tmp_path / "a", kind="answers", device="d")
    (finding,) = edit(tmp_path / "a", '"{document}"', '"{document} {candidates}"')
    assert "a task of kind answers has no candidates" in finding.message


def test_a_placeholder_inside_a_document_or_candidate_stays_as_it_is() -> None:
    task = Task(kind="ranking", prompt="Q: {document}\n{candidates}\nEnd")
    query = DocumentLine(
        id="q", role="test", text="{candidates}?", candidates={"B": "{document}", "A": "second"}, relevance={"A": 1}
    )
    assert render_prompt(task, query).user == "Q: {candidates}?\nB: {document}\nA: second\nEnd"
    plain = Task(kind="answers", prompt="{document} {candidates}")
    assert render_prompt(plain, query).user == "{candidates}? {candidates}"


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("answers", {"answers": ["42"]}),
        ("answers", {"tolerance": "0.5"}),
        ("ranking", {"relevance": {"A": 2}}),
        ("ranking", {"candidates": {"A": "changed", "B": "another"}, "relevance": {"A": 1}}),
    ],
)
def test_a_changed_answer_candidate_or_grade_is_drift(
    tmp_path: Path, trial: Any, kind: str, changes: dict[str, Any]
) -> None:
    init_folder(tmp_path, kind=kind, device="d")
    freeze(tmp_path / PROTOCOL, campaign=None, clock=FakeClock(), with_tokenizer=False)
    (finding,) = trial(kind, **changes)
    assert (finding.rule, finding.line) == ("drift", 1)
    assert finding.message == "document 'dev-01' changed: expected values"
    with pytest.raises(Refused):
        read_frozen(tmp_path / PROTOCOL)


def test_another_order_of_candidates_is_another_expectation() -> None:
    """The order is what the model sees; the order of the grades is nobody's business."""
    one = DocumentLine(id="q", role="test", text="?", candidates={"A": "x", "B": "y"}, relevance={"A": 1, "B": 2})
    turned = DocumentLine(id="q", role="test", text="?", candidates={"B": "y", "A": "x"}, relevance={"A": 1, "B": 2})
    regraded = DocumentLine(id="q", role="test", text="?", candidates={"A": "x", "B": "y"}, relevance={"B": 2, "A": 1})
    assert expected_text(one) != expected_text(turned)
    assert expected_text(one) == expected_text(regraded)
    known = DocumentLine(id="k", role="test", text="?", answers=["1"], tolerance="0.5")
    assert expected_text(known) == '{"answers":["1"],"tolerance":"0.5"}'


def test_a_ranking_frozen_without_a_rule_is_not_measured(tmp_path: Path) -> None:
    init_folder(tmp_path, kind="ranking", device="d")
    trial = freeze(tmp_path / PROTOCOL, campaign=None, clock=FakeClock(), with_tokenizer=False).trial
    require_scorable(trial)
    with pytest.raises(DossierError, match=r"neither \[task.ranking\] nor \[task.scorer\]"):
        require_scorable(msgspec.structs.replace(trial, ranking=None))


RANKING = """[task.ranking]
metric = "ndcg"             # or mrr (1 / place of the first relevant one), recall
k = 5
accept_from = "0.8"
"""


@pytest.mark.parametrize(
    ("kind", "table", "rule", "said"),
    [
        ("ranking", "", "no-ranking-rule", "nothing says from which value on one is accepted"),
        ("ranking", '[task.ranking]\naccept_from = "0"\n', "threshold", "every order is accepted"),
        ("ranking", '[task.ranking]\naccept_from = "1.01"\n', "threshold", "no order can meet it"),
        ("answers", '[task.ranking]\naccept_from = "1"\n', "wrong-kind", "which is for rankings"),
    ],
)
def test_a_rule_of_rankings_that_cannot_judge_is_refused_with_its_line(
    tmp_path: Path, kind: str, table: str, rule: str, said: str
) -> None:
    init_folder(tmp_path, kind=kind, device="d")
    place = RANKING if kind == "ranking" else "[workload]\n"
    found = edit(tmp_path, place, table if kind == "ranking" else f"{table}\n{place}")
    lines = (tmp_path / PROTOCOL).read_text(encoding="utf-8").splitlines()
    (finding,) = [finding for finding in found if finding.rule == rule and said in finding.message]
    assert lines[(finding.line or 0) - 1].startswith(("[task", "accept_from"))
    assert finding.next_step


def test_a_query_that_no_order_could_bring_to_the_threshold_is_refused_with_its_line(
    trial: Any, tmp_path: Path
) -> None:
    trial("ranking", relevance={"A": 1, "B": 1, "C": 1})
    assert edit(tmp_path, RANKING, '[task.ranking]\nmetric = "recall"\nk = 3\naccept_from = "1"\n') == []
    (finding,) = edit(tmp_path, "k = 3", "k = 2")
    assert (finding.rule, finding.line, finding.file.name) == ("threshold", 1, "documents.jsonl")
    assert "reaches recall@2 = 0.6667 at best" in finding.message


def test_the_rule_of_a_ranking_is_frozen_and_a_changed_one_is_drift(tmp_path: Path) -> None:
    init_folder(tmp_path, kind="ranking", device="d")
    lock = freeze(tmp_path / PROTOCOL, campaign=None, clock=FakeClock(), with_tokenizer=False)
    assert lock.trial.ranking == RankingRule(metric="ndcg", k=5, accept_from="0.8")
    (finding,) = edit(tmp_path, 'accept_from = "0.8"', 'accept_from = "0.7"')
    assert finding.rule == "drift"
    assert finding.message == '`task.ranking.accept_from` was "0.8" when frozen and is "0.7" now'
    changed = msgspec.structs.replace(lock.trial, ranking=RankingRule(accept_from="0.7"))
    assert rule_digest(changed) != rule_digest(lock.trial)


def test_with_a_scorer_a_question_needs_no_known_answer_and_a_query_no_grades() -> None:
    where = Path("documents.jsonl")
    question = NumberedDocument(1, DocumentLine(id="q", role="validation", text="Write a poem."))
    query = NumberedDocument(1, DocumentLine(id="r", role="validation", text="?", candidates={"A": "x", "B": "y"}))
    for entry, kind, rule in ((question, "answers", "expected-missing"), (query, "ranking", "no-relevant-candidate")):
        assert [one.rule for one in kind_findings(where, entry, kind)] == [rule]  # type: ignore[arg-type]
        assert kind_findings(where, entry, kind, has_scorer=True) == []  # type: ignore[arg-type]
    foreign = NumberedDocument(1, DocumentLine(id="q", role="validation", text="?", relevance={"A": 1}))
    assert [one.rule for one in kind_findings(where, foreign, "answers", has_scorer=True)] == ["wrong-kind"]
