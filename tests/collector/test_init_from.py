"""`init --from`: a trial around one's own documents, which `check` refuses until they are labelled and spoken for."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from collector.cli import main
from collector.clock import FakeClock
from collector.contract.campaign_file import read_campaign
from collector.contract.errors import DossierError, Refused
from collector.freeze import freeze
from collector.init_from import Written, init_from
from collector.labelling import TextFile, length_classes, proposed_roles
from collector.protocol_check import check_protocol, examine, load_protocol

TODAY = dt.date(2026, 11, 30)
SPOKEN_FOR = {"permission": "the owner, letter of 2026-01-02", "review": "two readers, 2026-01-03"}


def texts(folder: Path, count: int = 12) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"bill {number}.txt").write_text(f"Bill {number}\n" + "line\n" * number, encoding="utf-8")
    return folder


def write(folder: Path, source: Path, **statements: str) -> Written:
    return init_from(folder, source, statements=statements, device="d", today=TODAY)


def sheet(folder: Path) -> list[dict[str, str]]:
    with (folder / "documents.csv").open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def label(folder: Path, values: dict[str, str]) -> None:
    rows = [{**row, **values} for row in sheet(folder)]
    with (folder / "documents.csv").open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def rules(folder: Path) -> list[str]:
    return [finding.rule for finding in check_protocol(folder / "protocol.toml", with_tokenizer=False)]


def test_a_folder_of_texts_becomes_a_trial_that_freezes_once_it_is_labelled_and_spoken_for(tmp_path: Path) -> None:
    source = texts(tmp_path / "bills")
    folder = tmp_path / "trial"
    result = CliRunner().invoke(main, ["init", str(folder), "--from", str(source)])
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [
        str(folder / name) for name in ("protocol.toml", "campaign.toml", "documents.csv", "documents")
    ]
    checked = CliRunner().invoke(main, ["check", str(folder / "protocol.toml"), "--no-tokens"])
    assert checked.exit_code == 1
    assert "documents.csv:2: [unlabelled] 36 cells are not labelled yet, in 12 of 12 documents" in checked.stdout
    assert "document 'bill 0.txt', column `expected.date`" in checked.stdout
    with pytest.raises(Refused) as refused:
        freeze(folder / "protocol.toml", campaign=None, clock=FakeClock(), with_tokenizer=False)
    assert [one.rule for one in refused.value.findings] == ["unlabelled", "missing-permission", "missing-review"]

    label(folder, {"expected.date": "2026-01-02", "expected.amount": "null", "expected.category": "food"})
    assert rules(folder) == ["missing-permission", "missing-review"]
    text = (folder / "protocol.toml").read_text()
    (folder / "protocol.toml").write_text(text.replace('"TODO: write', '"I, the owner, write'))
    assert rules(folder) == []
    (source / "bill 0.txt").unlink()  # the trial has its own copy
    assert freeze(folder / "protocol.toml", campaign=None, clock=FakeClock(), with_tokenizer=False).documents


def test_the_copied_texts_are_the_originals_byte_by_byte(tmp_path: Path) -> None:
    source = tmp_path / "bills"
    (source / "2025").mkdir(parents=True)
    (source / "2025" / "é.md").write_bytes(b"\xef\xbb\xbf# Bill\r\n5 EUR\r\n")
    (source / "scan.pdf").write_bytes(b"%PDF")
    written = write(tmp_path / "trial", source)
    assert (tmp_path / "trial/documents/2025/é.md").read_bytes() == (source / "2025" / "é.md").read_bytes()
    (row,) = sheet(tmp_path / "trial")
    assert (row["id"], row["file"], row["role"]) == ("2025/é.md", "documents/2025/é.md", "validation")
    assert any("scan.pdf" in notice for notice in written.notices)


def test_check_names_the_columns_that_changed_fields_leave_missing_or_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    write(folder, texts(tmp_path / "bills"), **SPOKEN_FOR)
    text = (folder / "protocol.toml").read_text()
    (folder / "protocol.toml").write_text(text.replace('name = "amount"', 'name = "total"'))
    findings = check_protocol(folder / "protocol.toml", with_tokenizer=False)
    assert [(one.rule, one.line) for one in findings] == [
        ("unknown-column", 1),
        ("missing-column", 1),
        ("unlabelled", 2),
    ]
    assert "`expected.amount`" in findings[0].message
    assert "`expected.total`" in findings[1].message


def test_roles_are_about_10_30_and_60_percent_and_a_further_file_reshuffles_none() -> None:
    names = [f"document {number}.txt" for number in range(2000)]
    before = proposed_roles(names)
    counts = Counter(before.values())
    assert 150 < counts["development"] < 250
    assert 540 < counts["validation"] < 660
    after = proposed_roles(["another.txt", *names, "zzz.txt"])
    assert all(after[name] == role for name, role in before.items())
    for count in range(1, 30):
        assert "validation" in proposed_roles(names[:count]).values()


def test_length_classes_are_thirds_of_length_and_equal_lengths_are_one_class() -> None:
    def classes(*characters: int) -> list[str]:
        found = length_classes([TextFile(Path("x"), str(index), size) for index, size in enumerate(characters)])
        return list(found.values())

    assert classes(10, 20, 30, 40, 50, 60) == ["short", "short", "usual", "usual", "long", "long"]
    assert classes(7) == ["usual"]
    assert set(classes(5, 5, 5, 5)) == {"usual"}
    assert classes(90, 1, 50) == ["long", "short", "usual"]


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("old.txt", "café".encode("cp1252"), "iconv -f CP1252"),
        ("wide.txt", "café".encode("utf-16"), "UTF-16"),
        ("blank.md", b" \n", "blanks only"),
    ],
)
def test_texts_that_cannot_be_read_are_refused_before_anything_is_written(
    tmp_path: Path, name: str, raw: bytes, said: str
) -> None:
    source = texts(tmp_path / "bills", 2)
    (source / name).write_bytes(raw)
    with pytest.raises(Refused) as refused:
        write(tmp_path / "trial", source)
    assert name in str(refused.value)
    assert said in str(refused.value)
    assert not (tmp_path / "trial").exists()


def test_a_folder_without_texts_and_an_absent_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refused, match=r"no \.txt or \.md file"):
        write(tmp_path / "trial", tmp_path / "empty")
    with pytest.raises(DossierError, match="does not exist"):
        write(tmp_path / "trial", tmp_path / "absent")


@pytest.mark.parametrize("name", ["protocol.toml", "documents.csv", "documents.jsonl", "documents"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "trial"
    folder.mkdir()
    (folder / name).write_text("mine")
    with pytest.raises(DossierError, match="there already"):
        write(folder, texts(tmp_path / "bills"))
    assert [path.name for path in folder.iterdir()] == [name]


def test_texts_that_lie_in_the_trials_own_folder_already_are_used_there(tmp_path: Path) -> None:
    (tmp_path / "trial").mkdir()
    source = texts(tmp_path / "trial" / "documents")
    write(tmp_path / "trial", source, **SPOKEN_FOR)
    assert rules(tmp_path / "trial") == ["unlabelled"]


BILLS: list[dict[str, Any]] = [
    {"id": f"b{number}", "role": "validation" if number % 2 else "test", "text": f"Bill {number}",
     "expected": {"due": f"0{number + 1}.02.2026", "total": f"{number},50 EUR", "number": f"00{number}",
                  "kind": "water" if number % 3 else "power"}}
    for number in range(6)
]  # fmt: skip


def test_a_jsonl_file_of_labelled_documents_gets_a_task_drafted_from_its_expected_values(tmp_path: Path) -> None:
    source = tmp_path / "mine.jsonl"
    source.write_text("".join(json.dumps(bill) + "\n" for bill in BILLS))
    written = write(tmp_path / "trial", source, **SPOKEN_FOR)
    assert (tmp_path / "trial" / "documents.jsonl").read_bytes() == source.read_bytes()
    assert any("due, total, number, kind" in notice for notice in written.notices)
    assert rules(tmp_path / "trial") == []
    protocol = load_protocol(tmp_path / "trial" / "protocol.toml").protocol
    assert [(rule.name, rule.type, rule.labels) for rule in protocol.task.fields] == [
        ("due", "date", []), ("total", "money", []), ("number", "text", []), ("kind", "label", ["power", "water"]),
    ]  # fmt: skip
    assert '"due": "...", "total": "..."' in protocol.task.prompt
    assert "power, water" in protocol.task.system
    assert protocol.workload.permission == SPOKEN_FOR["permission"]
    assert protocol.name == "trial"


def test_documents_with_the_starters_fields_keep_its_task(tmp_path: Path) -> None:
    expected = {"date": "2026-01-02", "amount": "5", "category": "food"}
    source = tmp_path / "mine.jsonl"
    source.write_text("".join(json.dumps({**bill, "expected": expected}) + "\n" for bill in BILLS))
    written = write(tmp_path / "trial", source, **SPOKEN_FOR)
    assert not any("drafts" in notice for notice in written.notices)
    task = load_protocol(tmp_path / "trial" / "protocol.toml").protocol.task
    assert [rule.name for rule in task.fields] == ["date", "amount", "category"]


def test_a_csv_file_is_taken_over_with_the_texts_that_it_names(tmp_path: Path) -> None:
    source = tmp_path / "mine"
    (source / "in").mkdir(parents=True)
    (source / "in" / "a.txt").write_text("Bill A")
    (source / "b.txt").write_text("Bill B")
    (source / "labels.csv").write_text(
        "id;role;file;expected.due\na;validation;in/a.txt;2026-01-02\nb;test;b.txt;null\n"
    )
    write(tmp_path / "trial", source / "labels.csv", **SPOKEN_FOR)
    assert [row["file"] for row in sheet(tmp_path / "trial")] == ["documents/in/a.txt", "documents/b.txt"]
    assert rules(tmp_path / "trial") == []
    loaded = load_protocol(tmp_path / "trial" / "protocol.toml")
    assert [one.text for one in loaded.documents] == ["Bill A", "Bill B"]
    (source / "labels.csv").write_text('id,role,file,expected.due\na,test,b.txt,null\nb,test,"b.txt,null\n')
    with pytest.raises(Refused, match="never closed"):
        write(tmp_path / "other", source / "labels.csv", **SPOKEN_FOR)
    (source / "labels.csv").write_text("id,role,file,expected.due\na,test,in/gone.txt,null\n")
    with pytest.raises(Refused, match=r"in/gone\.txt"):
        write(tmp_path / "other", source / "labels.csv", **SPOKEN_FOR)
    assert not (tmp_path / "other").exists()


def test_a_folder_with_its_own_sheet_keeps_its_labels(tmp_path: Path) -> None:
    source = tmp_path / "mine"
    source.mkdir()
    (source / "a.txt").write_text("Bill A")
    (source / "documents.csv").write_text("id,role,file,expected.due\na,validation,a.txt,2026-01-02\n")
    write(tmp_path / "trial", source, **SPOKEN_FOR)
    assert rules(tmp_path / "trial") == []


def test_the_rule_for_a_subset_stays_only_where_documents_name_the_subset(tmp_path: Path) -> None:
    for name, subsets in (("plain", []), ("critical", ["critical"])):
        source = tmp_path / f"{name}.jsonl"
        source.write_text("".join(json.dumps({**bill, "subsets": subsets}) + "\n" for bill in BILLS))
        write(tmp_path / name, source, **SPOKEN_FOR)
        gates = load_protocol(tmp_path / name / "protocol.toml").protocol.gates
        assert [gate.subset for gate in gates.subsets] == subsets
        assert gates.max_lost_points is not None


@pytest.mark.parametrize("kind", ["answers", "ranking"])
def test_other_kinds_take_a_jsonl_file_and_leave_the_starters_statements_behind(tmp_path: Path, kind: str) -> None:
    done = CliRunner().invoke(main, ["init", str(tmp_path / "starter"), "--kind", kind])
    assert done.exit_code == 0, done.output
    source = tmp_path / "starter" / "documents.jsonl"
    own = CliRunner().invoke(main, ["init", str(tmp_path / "own"), "--kind", kind, "--from", str(source)])
    assert own.exit_code == 0, own.output
    assert rules(tmp_path / "own") == ["missing-permission", "missing-review"]


def test_a_folder_of_questions_gets_a_column_for_the_answers_and_rankings_get_no_sheet(tmp_path: Path) -> None:
    source = texts(tmp_path / "questions", 3)
    for kind, code in (("answers", 0), ("ranking", 2)):
        done = CliRunner().invoke(main, ["init", str(tmp_path / kind), "--kind", kind, "--from", str(source)])
        assert done.exit_code == code, done.output
    assert list(sheet(tmp_path / "answers")[0])[-2:] == ["answers", "tolerance"]
    assert rules(tmp_path / "answers") == ["unlabelled", "missing-permission", "missing-review"]
    label(tmp_path / "answers", {"answers": "4 | four"})
    assert rules(tmp_path / "answers") == ["missing-permission", "missing-review"]
    assert "JSON-lines" in done.stderr
    assert not (tmp_path / "ranking").exists()


def test_the_starters_question_volume_deadline_and_hours_are_not_the_users_until_written(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    write(folder, texts(tmp_path / "bills", 12), **SPOKEN_FOR)
    campaign = read_campaign(folder / "campaign.toml").campaign
    assert campaign.question.startswith("TODO: write the question")
    assert (campaign.corpora_wanted, campaign.documents_per_corpus, campaign.deadline_h) == (1, 12, None)
    hours = [getattr(campaign.calendar, name) for name in campaign.calendar.__struct_fields__]
    assert {(one.basis, one.by) for one in hours if one is not None} == {("example", None)}
    assert "STARTER" not in campaign.dossier_id


def test_check_names_the_line_of_each_mark_until_it_is_gone_and_refuses_none(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    write(folder, texts(tmp_path / "bills"), **SPOKEN_FOR)
    label(folder, {"expected.date": "null", "expected.amount": "null", "expected.category": "food"})
    path = folder / "campaign.toml"
    marked = [number for number, line in enumerate(path.read_text().splitlines(), start=1) if "TODO" in line]
    checked = CliRunner().invoke(main, ["check", str(folder / "protocol.toml"), "--no-tokens"])
    assert (checked.exit_code, len(marked)) == (0, 4), checked.output
    for number, what in zip(marked, ("the question", "your volume", "your deadline", "your hours"), strict=True):
        assert f"notice: {path}:{number}: [to-write] still to be written: {what}" in checked.stdout
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "# TODO" not in line))
    path.write_text(path.read_text().replace("TODO: write the question", "What"))
    assert examine(folder / "protocol.toml", with_tokenizer=False).notices == []


@pytest.mark.parametrize("kind", ["extraction", "answers", "ranking"])
def test_a_starters_trial_as_it_is_has_no_notice(tmp_path: Path, kind: str) -> None:
    done = CliRunner().invoke(main, ["init", str(tmp_path / "starter"), "--kind", kind])
    assert done.exit_code == 0, done.output
    assert examine(tmp_path / "starter" / "protocol.toml", with_tokenizer=False).notices == []


def test_a_mistyped_value_in_the_sheet_is_noticed_and_stops_nothing(tmp_path: Path) -> None:
    source = tmp_path / "bills"
    source.mkdir()
    (source / "a.txt").write_text("Bill of 2 January 2026\nTotal 1.200,00 EUR\n")
    folder = tmp_path / "trial"
    write(folder, source, **SPOKEN_FOR)
    label(folder, {"expected.date": "2026-01-03", "expected.amount": "1.200", "expected.category": "food"})
    checked = CliRunner().invoke(main, ["check", str(folder / "protocol.toml"), "--no-tokens"])
    assert checked.exit_code == 0, checked.output
    sheet_path = folder / "documents.csv"
    assert f"notice: {sheet_path}:2: [expected-not-in-text] document 'a.txt', column `expected.date`" in checked.stdout
    assert f"notice: {sheet_path}:2: [expected-ambiguous] document 'a.txt', column `expected.amount`" in checked.stdout


def test_statements_without_documents_are_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["init", str(tmp_path / "t"), "--permission", "me"])
    assert result.exit_code == 2
    assert "--from" in result.stderr


def test_a_model_folder_that_does_not_exist_is_refused_and_nothing_written(tmp_path: Path) -> None:
    for more in ([], ["--from", str(texts(tmp_path / "bills"))]):
        done = CliRunner().invoke(main, ["init", str(tmp_path / "t"), "--model", str(tmp_path / "no" / "model"), *more])
        assert done.exit_code == 2
        assert "does not exist" in done.stderr
        assert not (tmp_path / "t").exists()
