"""Judging again, as a user types it: from recorded answers to the dossier that takes the newer judgements."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result
from command_line import done, run

from collector import cli as collector_cli
from collector.contract import chain
from collector.contract.digests import json_digest
from collector.contract.protocol import lock_digests
from collector.contract.records import Failure, Header, Request, Score
from collector.contract.texts import texts_path
from reporter import cli as reporter_cli
from reporter.load import open_records
from reporter.locks import lock_of

PROTOCOL = """format = 1
name = "scripted questions"
[task]
kind = "answers"
prompt = "{document}"
[workload]
documents = "documents.jsonl"
permission = "written for this test"
review = "by its author, by construction"
[generation]
max_new_tokens = 16
[gates]
max_lost_points = "50"
[model]
id = "scripted-model"
[engine]
name = "scripted"
script = "script.json"
[[variant]]
name = "fp32"
[plan]
reference = "fp32"
reference_runs = 1
warmup_requests = 0
reload_check = false
"""
SCORER = '[task.scorer]\nentry_point = "scoring:score"\nfiles = ["scoring.py"]\n'
ANSWERS = {"q1": "Tokyo", "q2": "It is Kyoto.", "q3": "72 eggs", "q4": "seventy"}


def write_documents(folder: Path, **changes: Any) -> None:
    known: dict[str, Any] = {
        "q1": {"answers": ["Tokyo"]}, "q2": {"answers": ["Osaka"]}, "q3": {"answers": ["72"], "tolerance": "0"},
        "q4": {"answers": ["70"], "tolerance": "0"},
    }  # fmt: skip
    lines = [
        {"id": name, "role": "validation", "text": f"Question {name}?", **(known[name] | changes.get(name, {}))}
        for name in ANSWERS
    ]
    lines.append({"id": "dev", "role": "development", "text": "Another?", "answers": ["x"]})
    (folder / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def make_trial(folder: Path, *, scorer: str | None = None) -> Path:
    folder.mkdir()
    script = {"script_format": 1, "documents": {name: {"text": text} for name, text in ANSWERS.items()}}
    (folder / "script.json").write_text(json.dumps(script))
    write_documents(folder)
    if scorer is not None:
        (folder / "scoring.py").write_text(scorer)
    text = PROTOCOL.replace("[workload]", f"{SCORER}[workload]") if scorer is not None else PROTOCOL
    (folder / "protocol.toml").write_text(text)
    done(collector_cli.main, "freeze", folder / "protocol.toml")
    return folder


def measure(folder: Path, *options: str) -> Path:
    command = ("run", folder / "protocol.toml", "--out", folder / "runs", "--device", "cpu", *options)
    return Path(done(collector_cli.main, *command).splitlines()[0])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of four questions: q1 and q3 are right, q2 is wrong, q4 has no number."""
    folder = make_trial(tmp_path_factory.mktemp("score") / "trial")
    measure(folder)
    return folder


@pytest.fixture
def trial(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "trial"))


def source_of(trial: Path) -> Path:
    (path,) = [path for path in (trial / "runs").glob("*.jsonl") if not path.name.endswith(".texts.jsonl")]
    return path


def score(trial: Path, *options: str, out: str = "again") -> Result:
    protocol, target = trial / "protocol.toml", trial / out
    return run(collector_cli.main, "score", trial / "runs", "--protocol", protocol, "--out", target, *options)


def scored(trial: Path, *options: str, out: str = "again") -> Path:
    found = score(trial, *options, out=out)
    assert found.exit_code == 0, found.output
    return Path(found.stdout.splitlines()[0])


def records(path: Path) -> list[Any]:
    found = []
    for line in chain.scan(path):
        assert not line.problems, line
        found.append(line.record)
    return found


def verdicts(path: Path) -> dict[str, str]:
    return {one.document_id: one.score_outcome for one in records(path) if isinstance(one, Score)}


def summary(*paths: Path) -> Any:
    found = run(reporter_cli.main, "summary", *paths, "--json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def accepted(dossier: Any) -> tuple[int, int]:
    (row,) = dossier["tables"]["quality"]["rows"]
    return tuple(dossier["figures"][row["cells"][name]]["value"] for name in ("accepted_documents", "document_count"))  # type: ignore[return-value]


def test_answers_judged_again_by_the_same_rules_have_the_same_verdicts_and_the_pair_checks_clean(trial: Path) -> None:
    source = source_of(trial)
    before = source.read_bytes()
    path = scored(trial)
    assert source.read_bytes() == before
    assert verdicts(path) == verdicts(source) == {"q1": "right", "q2": "wrong", "q3": "right", "q4": "unparseable"}
    found = records(path)
    assert {type(one).__name__ for one in found} == {"Header", "Document", "Score", "Seal"}
    first = records(source)[0]
    assert found[0].source_head_digest == chain.verify(source).head_digest
    assert (found[0].protocol_id, found[0].plan_id) == (first.protocol_id, first.plan_id)
    checked = run(reporter_cli.main, "check", trial / "runs", trial / "again")
    assert (checked.exit_code, checked.stderr.count("next:")) == (0, 0), checked.output
    assert accepted(summary(trial / "runs", trial / "again")) == accepted(summary(trial / "runs")) == (2, 4)


def test_changed_labels_are_a_new_protocol_and_the_newer_scores_count_in_place_of_the_old(trial: Path) -> None:
    write_documents(trial, q2={"answers": ["Osaka", "Kyoto"]})
    assert "drift" in score(trial).stderr
    frozen = run(collector_cli.main, "freeze", trial / "protocol.toml")
    assert "this is a new protocol" in frozen.stderr
    found = score(trial)
    assert "judged under a new protocol" in found.stderr
    assert "4 judged, 1 otherwise than before" in found.stdout
    path = Path(found.stdout.splitlines()[0])
    old, new = records(source_of(trial))[0], records(path)[0]
    assert old.protocol_id != new.protocol_id
    assert run(reporter_cli.main, "check", trial / "runs", trial / "again").exit_code == 0
    dossier = summary(trial / "runs", trial / "again")
    assert accepted(dossier) == (3, 4)
    assert dossier["protocol_id"] == new.protocol_id
    keys = [notice["key"] for notice in dossier["notices"]]
    assert {"notice_rejudged", "notice_rejudged_protocol"} <= set(keys)
    said = run(reporter_cli.main, "summary", trial / "runs", trial / "again").output
    assert "1 verdict differs from those made while measuring" in said
    listed = {row["labels"]["file"]: row["labels"] for row in dossier["tables"]["runs"]["rows"]}
    assert listed[path.name]["judges"] == old.run_id
    assert not listed[source_of(trial).name].get("judges")


def test_many_records_stay_in_their_files_and_are_read_alike(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_documents(trial, q2={"answers": ["Kyoto"]})
    assert run(collector_cli.main, "freeze", trial / "protocol.toml").exit_code == 0
    scored(trial)
    few = summary(trial / "runs", trial / "again")
    monkeypatch.setattr("reporter.load.SMALL_COUNT", 0)
    assert summary(trial / "runs", trial / "again") == few
    assert accepted(few) == (3, 4)


def test_of_several_judgements_of_one_run_the_newest_counts(trial: Path) -> None:
    first = scored(trial)
    write_documents(trial, q4={"answers": ["70"], "tolerance": None}, q2={"answers": ["Kyoto"]})
    assert run(collector_cli.main, "freeze", trial / "protocol.toml").exit_code == 0
    second = scored(trial, out="later")
    for order in ((trial / "again", trial / "later"), (trial / "later", trial / "again")):
        dossier = summary(trial / "runs", *order)
        assert accepted(dossier) == (3, 4)
        assert "notice_judged_again_later" in [notice["key"] for notice in dossier["notices"]]
    with open_records([trial]) as store:
        assert [pair.by.path for pair in store.judged_again] == [second]
        assert [(one.report.path, one.rule) for one in store.unused] == [(first, "judged-again-later")]
    assert run(reporter_cli.main, "check", trial).exit_code == 0


def test_judgements_without_their_source_are_set_aside_by_name(trial: Path) -> None:
    path = scored(trial)
    checked = run(reporter_cli.main, "check", trial / "again")
    assert checked.exit_code == 1
    assert f"{path}:1: [source-missing] judges again the run with head digest" in checked.output
    refused = run(reporter_cli.main, "summary", trial / "again")
    assert (refused.exit_code, "source-missing" in refused.stderr) == (2, True)
    old = list((trial / "runs").iterdir())
    measure(trial)
    for path in old:
        path.unlink()
    dossier = summary(trial / "runs", trial / "again")
    assert accepted(dossier) == (2, 4)
    assert "notice_source_missing" in [notice["key"] for notice in dossier["notices"]]


def test_a_judgement_that_did_not_end_is_not_used(trial: Path) -> None:
    path = scored(trial)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    dossier = summary(trial / "runs", trial / "again")
    assert accepted(dossier) == (2, 4)
    assert "notice_judgement_unsealed" in [notice["key"] for notice in dossier["notices"]]
    assert "[judgement-unsealed]" in run(reporter_cli.main, "check", trial / "runs", trial / "again").output


def test_without_its_texts_a_run_cannot_be_judged_again_and_nothing_is_written(trial: Path) -> None:
    texts_path(source_of(trial)).unlink()
    found = score(trial)
    assert found.exit_code == 2
    assert "has no texts beside it" in found.stderr
    assert not (trial / "again").exists()


def test_a_texts_file_that_lacks_an_answer_is_refused(trial: Path) -> None:
    texts = texts_path(source_of(trial))
    kept = [line for line in texts.read_text().splitlines(keepends=True) if "It is Kyoto" not in line]
    texts.write_text("".join(kept))
    found = score(trial)
    assert found.exit_code == 2
    assert "lacks 1 of 4 answers, that of q2 first" in found.stderr
    assert not (trial / "again").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('prompt = "{document}"', 'prompt = "Q: {document}"', "prompt differ"),
        ("max_new_tokens = 16", "max_new_tokens = 15", "generation differ"),
    ],
)
def test_answers_to_another_question_are_not_judged(trial: Path, old: str, new: str, said: str) -> None:
    protocol = trial / "protocol.toml"
    protocol.write_text(protocol.read_text().replace(old, new, 1))
    assert run(collector_cli.main, "freeze", protocol).exit_code == 0
    found = score(trial)
    assert found.exit_code == 2
    assert f"answers other questions than this protocol asks: {said}" in found.stderr
    assert not (trial / "again").exists()


def test_a_document_whose_text_changed_is_another_question(trial: Path) -> None:
    documents = trial / "documents.jsonl"
    documents.write_text(documents.read_text().replace("Question q3?", "Question three?"))
    assert run(collector_cli.main, "freeze", trial / "protocol.toml").exit_code == 0
    assert "documents (1, q3 first) differ" in score(trial).stderr


def test_an_open_run_is_named_and_an_edited_one_is_refused(trial: Path) -> None:
    source = source_of(trial)
    whole = source.read_bytes()
    source.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    found = score(trial)
    assert found.exit_code == 2
    assert f"{source}: is open and has no head digest" in found.stderr
    source.write_bytes(whole.replace(b'"is_accepted":true', b'"is_accepted":false', 1))
    found = score(trial)
    assert found.exit_code == 2
    assert "`prev` is not the digest of the line before" in found.stderr


def test_texts_of_another_salt_are_refused(trial: Path) -> None:
    for name in ("protocol.salt", "protocol.lock.json"):
        (trial / name).unlink()
    assert run(collector_cli.main, "freeze", trial / "protocol.toml").exit_code == 0
    assert "keyed with another salt" in score(trial).stderr


def test_files_of_judgements_are_neither_judged_nor_resumed(trial: Path) -> None:
    path = scored(trial, out="runs")
    found = score(trial)
    assert found.exit_code == 0
    assert f"note: {path} holds judgements made again itself" in found.stderr
    again = run(
        collector_cli.main, "run", trial / "protocol.toml", "--out", trial / "runs", "--device", "cpu", "--resume"
    )
    assert "nothing is left to resume" in again.stderr


def test_a_scorer_that_failed_while_measuring_is_mended_and_judges_the_recorded_answers(tmp_path: Path) -> None:
    broken = "def score(document):\n    raise KeyError('no such table')\n"
    trial = make_trial(tmp_path / "trial", scorer=broken)
    source = measure(trial, "--allow-commands")
    assert verdicts(source) == {}
    assert sum(isinstance(one, Failure) and one.failure_cause == "scorer" for one in records(source)) == 4
    assert run(reporter_cli.main, "check", source).exit_code == 0
    assert accepted(summary(source)) == (0, 4)
    (trial / "scoring.py").write_text(
        "def score(document):\n"
        "    return {'is_accepted': document['answer'] in ('Tokyo', '72 eggs', 'seventy'), 'graded_value': 0.5}\n"
    )
    assert run(collector_cli.main, "freeze", trial / "protocol.toml").exit_code == 0
    refused = score(trial)
    assert (refused.exit_code, "--allow-commands" in refused.stderr) == (2, True)
    path = scored(trial, "--allow-commands")
    assert list(verdicts(path).values()) == ["right", "wrong", "right", "right"]
    assert {one.graded_value for one in records(path) if isinstance(one, Score)} == {0.5}
    assert run(reporter_cli.main, "check", trial / "runs", trial / "again").exit_code == 0
    dossier = summary(trial / "runs", trial / "again")
    assert accepted(dossier) == (3, 4)
    assert not [row for row in dossier["tables"]["failures"]["rows"] if row["labels"]["cause"] == "scorer"]


def test_a_scorer_that_fails_again_leaves_failures_and_says_so(tmp_path: Path) -> None:
    trial = make_trial(
        tmp_path / "trial", scorer="def score(document):\n    return document['document_id'] != 'q3' or 1\n"
    )
    measure(trial, "--allow-commands")
    found = score(trial, "--allow-commands")
    assert found.exit_code == 1
    assert "1 without a judgement" in found.stdout
    path = Path(found.stdout.splitlines()[0])
    (failure,) = [one for one in records(path) if isinstance(one, Failure)]
    assert (failure.document_id, failure.failure_scope, failure.failure_cause) == ("q3", "request", "scorer")
    assert failure.message_hmac in texts_path(path).read_text()
    assert run(reporter_cli.main, "check", trial / "runs", trial / "again").exit_code == 0


def test_c15_answers_are_judged_again_for_their_own_run_alone(trial: Path) -> None:
    """Two runs of one protocol: each new file names one of them and judges the answers that stand beside it."""
    script = json.loads((trial / "script.json").read_text())
    script["documents"]["q1"]["text"] = "Nara"
    (trial / "script.json").write_text(json.dumps(script))
    assert run(collector_cli.main, "freeze", trial / "protocol.toml").exit_code == 0
    first, second = source_of(trial), measure(trial)
    assert sum(isinstance(one, Request) for one in records(second)) == 4
    found = score(trial)
    paths = [Path(line) for line in found.stdout.splitlines() if line.endswith(".jsonl")]
    by_source = {records(path)[0].source_head_digest: verdicts(path)["q1"] for path in paths}
    assert by_source == {chain.verify(first).head_digest: "right", chain.verify(second).head_digest: "wrong"}


def test_a_lock_of_an_earlier_version_is_carried_as_it_was_written(tmp_path: Path) -> None:
    """It lacks fields that were added since: written again with them, its own digests would no longer hold."""
    trial = make_trial(tmp_path / "trial")
    path = trial / "protocol.lock.json"
    lock = json.loads(path.read_text())
    for name in ("ranking", "scorer", "examples_hmac"):
        del lock["trial"][name]
    del lock["plan"]["engine"]["answers_by"]
    lock["protocol_id"] = json_digest(lock["trial"])
    lock["plan_id"] = json_digest({"protocol_id": lock["protocol_id"], "plan": lock["plan"]})
    path.write_text(json.dumps(lock))
    source = measure(trial)
    header = records(source)[0]
    assert isinstance(header, Header)
    assert msgspec.json.decode(header.protocol_json)["trial"].keys() == lock["trial"].keys()
    carried = lock_of(source)
    assert carried is not None
    assert lock_digests(carried.content) == (header.protocol_id, header.plan_id)
    assert run(reporter_cli.main, "check", trial / "runs").exit_code == 0
    scored(trial)
    assert run(reporter_cli.main, "check", trial / "runs", trial / "again").exit_code == 0
