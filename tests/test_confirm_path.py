"""Validation, choice, confirmation, dossier: the two commands as a user types them, with the scripted engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import done, run
from scripted_bills import CAMPAIGN, protocol

from collector import cli as collector_cli
from reporter import cli as reporter_cli

OFFER = """[[candidate]]
id = "{variant}"
label = "Our {variant}"
variant = "{variant}"
device = "{device}"
offers = ["{variant}"]
[[offer]]
id = "{variant}"
provider = "Example Cloud"
device = "{device}"
pricing_class = "quote"
currency = "EUR"
price_3_days = "{price}"
tax_percent = "19"
basis = "example"
source = "made up"
retrieved = 2026-11-05
valid_until = 2026-12-14
"""


def write_trial(folder: Path, *, wrong_on_test: int) -> None:
    """Twenty bills to choose by and ten to confirm on; bf16 answers one of the first wrong, and some of the others."""
    folder.mkdir()
    lines = [
        {"id": f"{role[0]}{i:02d}", "role": role, "text": f"{role} bill {i} of the day",
         "expected": {"date": f"2026-03-{i + 1:02d}", "amount": f"{i + len(role)}.50"}}
        for role, count in (("validation", 20), ("test", 10))
        for i in range(count)
    ]  # fmt: skip
    (folder / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    wrong = {name: {"replace": {"amount": "1"}} for name in ["v07", *(f"t{i:02d}" for i in range(wrong_on_test))]}
    script = {
        "script_format": 1, "answers_from": "documents.jsonl", "passes": [{"match": "bf16/*", "documents": wrong}],
    }  # fmt: skip
    (folder / "script.json").write_text(json.dumps(script))
    (folder / "protocol.toml").write_text(protocol(max_lost_points="10"))
    (folder / "campaign.toml").write_text(CAMPAIGN)


def chosen_trial(folder: Path, monkeypatch: pytest.MonkeyPatch, *, wrong_on_test: int) -> None:
    """Write, freeze and run a trial, price what was measured, and choose bf16, the cheapest."""
    write_trial(folder, wrong_on_test=wrong_on_test)
    monkeypatch.chdir(folder)
    done(collector_cli.main, "freeze", "protocol.toml")
    path = done(collector_cli.main, "run", "protocol.toml", "--out", "runs", "--device", "cpu").splitlines()[0]
    records = [json.loads(line) for line in Path(path).read_text().splitlines()]
    device = next(record["device_name"] for record in records if record["kind"] == "device")
    offers = [OFFER.format(variant=v, device=device, price=price) for v, price in (("bf16", "100"), ("fp32", "200"))]
    Path("campaign.toml").write_text(CAMPAIGN + "".join(offers))
    done(reporter_cli.main, "choose", "runs", "--campaign", "campaign.toml", "-o", "choice.json")


def test_a_choice_is_confirmed_once_and_a_second_look_makes_validation_of_the_test_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen_trial(tmp_path / "trial", monkeypatch, wrong_on_test=0)
    confirming = ("confirm", "protocol.toml", "--choice", "choice.json", "--out", "runs", "--device", "cpu")
    first = run(collector_cli.main, *confirming)
    assert first.exit_code == 0, first.output
    assert "warning" not in first.stderr
    assert first.stdout.splitlines()[1:3] == ["fp32/1/1: completed", "bf16/1/1: completed"]
    campaign = ("--campaign", "campaign.toml", "--choice", "choice.json")
    said = done(reporter_cli.main, "summary", "runs", *campaign)
    assert "Confirmed on 10 test documents that had no part in the choice: 10 accepted, every rule met." in said
    assert "The test documents were looked at once, on" in said
    assert "choice file" not in said
    assert "0 finding(s)" in run(reporter_cli.main, "check", "runs").output
    assert (
        json.loads(done(reporter_cli.main, "summary", "runs", *campaign, "--json"))["confirmation"]["look_count"] == 1
    )

    before = Path("choice.json").read_bytes()
    done(reporter_cli.main, "choose", "runs", "--campaign", "campaign.toml", "-o", "choice.json")
    assert Path("choice.json").read_bytes() == before

    second = run(collector_cli.main, *confirming)
    assert second.exit_code == 0, second.output
    assert "warning: this is look 2 at the test documents" in second.stderr
    said = done(reporter_cli.main, "summary", "runs", *campaign)
    assert "Not an independent confirmation: the test documents were looked at 2 times" in said
    assert len(list(Path("runs").glob("*Z-*.texts.jsonl"))) == 3


def test_a_choice_that_fails_on_test_documents_is_said_to_be_not_confirmed_and_an_edited_choice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen_trial(tmp_path / "trial", monkeypatch, wrong_on_test=2)
    choice = Path("choice.json").read_text()
    Path("edited.json").write_text(choice.replace('"variant": "bf16"', '"variant": "fp32"'))
    edited = run(collector_cli.main, "confirm", "protocol.toml", "--choice", "edited.json", "--out", "runs")
    assert edited.exit_code == 2
    assert "edited.json was edited after it was written" in edited.stderr
    assert len(list(Path("runs").glob("*.texts.jsonl"))) == 1
    done(collector_cli.main, "confirm", "protocol.toml", "--choice", "choice.json", "--out", "runs", "--device", "cpu")
    said = done(reporter_cli.main, "summary", "runs", "--campaign", "campaign.toml")
    assert "NOT CONFIRMED. On the 10 test documents, which had no part in the choice, Our bf16 lost 2" in said
    assert "run Our bf16: 100.00 EUR net" in said.replace("\u00a0", " ")
    done(reporter_cli.main, "html", "runs", "--campaign", "campaign.toml", "-o", "dossier.html")
    page = Path("dossier.html").read_text(encoding="utf-8")
    assert "Recommended by validation, not confirmed" in page
    assert page.count("NOT CONFIRMED. On the") == 2
    assert 'id="confirmation"' in page


def test_a_rule_written_after_the_look_confirms_nothing_and_page_one_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen_trial(tmp_path / "trial", monkeypatch, wrong_on_test=0)
    done(collector_cli.main, "confirm", "protocol.toml", "--choice", "choice.json", "--out", "runs", "--device", "cpu")
    # The same rule again changes nothing; another value expected of one validation document is another rule.
    done(collector_cli.main, "score", "runs", "--protocol", "protocol.toml", "--out", "same")
    assert "Confirmed on 10 test documents" in done(
        reporter_cli.main, "summary", "runs", "same", "--campaign", "campaign.toml"
    )
    documents = Path("documents.jsonl")
    documents.write_text(documents.read_text().replace('"amount": "17.50"', '"amount": "1"', 1))
    done(collector_cli.main, "freeze", "protocol.toml")
    done(collector_cli.main, "score", "runs", "--protocol", "protocol.toml", "--out", "again")
    both = ("runs", "again", "--campaign", "campaign.toml")
    found = json.loads(done(reporter_cli.main, "summary", *both, "--json"))["confirmation"]
    assert (found["status"], found["remarks"]) == ("judged_again", [])
    done(reporter_cli.main, "html", *both, "-o", "dossier.html")
    page = Path("dossier.html").read_text(encoding="utf-8")
    assert page.count("Not a confirmation of the first choice: answers were judged again under a rule written") == 2
    assert "Confirmed on" not in page


def test_page_one_says_how_many_answers_lost_their_verdict_to_a_scorer_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen_trial(tmp_path / "trial", monkeypatch, wrong_on_test=0)
    done(collector_cli.main, "confirm", "protocol.toml", "--choice", "choice.json", "--out", "runs", "--device", "cpu")
    Path("scoring.py").write_text(
        "def score(document):\n    return document['document_id'] not in ('v03', 'v04') or 1\n"
    )
    scorer = '[task.scorer]\nentry_point = "scoring:score"\nfiles = ["scoring.py"]\n[workload]'
    frozen = Path("protocol.toml")
    frozen.write_text(frozen.read_text().replace("[workload]", scorer, 1))
    done(collector_cli.main, "freeze", "protocol.toml")
    scored = run(
        collector_cli.main, "score", "runs", "--protocol", "protocol.toml", "--out", "again", "--allow-commands"
    )
    assert scored.exit_code == 1, scored.output
    said = done(reporter_cli.main, "summary", "runs", "again", "--campaign", "campaign.toml")
    assert "answers were judged again under a rule written after the look" in said.lower()
    assert "answers have no verdict, because the scorer failed on them; none is accepted." in said
    assert "Confirmed on" not in said
