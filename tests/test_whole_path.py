"""From a frozen protocol to pages by the two commands alone: what a user types, in the order in which he types it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import done
from scripted_bills import CAMPAIGN, protocol

from reporter import cli as reporter_cli


def write_trial(folder: Path, *, max_lost_points: str) -> None:
    """Twenty bills; the second variant answers one of them wrong."""
    folder.mkdir()
    lines = [
        {"id": f"d{i:02d}", "role": "validation", "text": f"Bill {i} of the day", "subsets": ["critical"] * (i < 4),
         "expected": {"date": f"2026-03-{i + 1:02d}", "amount": f"{i + 10}.50"}}
        for i in range(20)
    ]  # fmt: skip
    (folder / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    script = {
        "script_format": 1, "answers_from": "documents.jsonl",
        "passes": [{"match": "bf16/*", "documents": {"d07": {"text": '{"date": "2026-03-08", "amount": "1"}'}}}],
    }  # fmt: skip
    (folder / "script.json").write_text(json.dumps(script))
    (folder / "protocol.toml").write_text(protocol(max_lost_points=max_lost_points))
    (folder / "campaign.toml").write_text(CAMPAIGN)


def command(wing: str, *arguments: object, cwd: Path, expect: Sequence[int] = (0,)) -> str:
    """Run one of the two commands as a user does; returns its standard output."""
    done = subprocess.run(
        [sys.executable, "-m", f"{wing}.cli", *map(str, arguments)], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode in expect, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a frozen trial that was run."""
    folder = tmp_path_factory.mktemp("whole") / "trial"
    write_trial(folder, max_lost_points="5")
    command("collector", "check", "protocol.toml", cwd=folder)
    command("collector", "freeze", "protocol.toml", cwd=folder)
    command("collector", "run", "protocol.toml", "--out", "runs", cwd=folder)
    return folder


def test_a_finished_run_checks_clean_and_its_verdicts_are_the_scripts(trial: Path) -> None:
    assert "sealed" in command("reporter", "check", "runs", cwd=trial)
    rows = json.loads(command("reporter", "summary", "runs", "--json", cwd=trial))
    assert "19" in json.dumps(rows)


def test_html_is_byte_identical_twice_and_carries_no_text_of_the_user(
    trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once by a process of its own, with a hash seed of its own, and once here."""
    monkeypatch.chdir(trial)
    command("reporter", "html", "runs", "--campaign", "campaign.toml", "-o", "one/dossier.html", cwd=trial)
    done(reporter_cli.main, "html", "runs", "--campaign", "campaign.toml", "-o", "two/dossier.html")
    pages = [(trial / name / "dossier.html").read_bytes() for name in ("one", "two")]
    assert pages[0] == pages[1]
    assert b"Bill 3 of the day" not in pages[0]


def test_choose_names_protocol_and_records_and_every_configuration(trial: Path) -> None:
    command("reporter", "choose", "runs", "--campaign", "campaign.toml", "-o", "choice.json", cwd=trial)
    choice = json.loads((trial / "choice.json").read_text())
    lock = json.loads((trial / "protocol.lock.json").read_text())
    assert choice["protocol_id"] == lock["protocol_id"]
    assert "bf16" in json.dumps(choice)


def test_the_lock_attached_to_the_dossier_is_the_lock_that_was_frozen(trial: Path, tmp_path: Path) -> None:
    from reporter.attachments import attachments

    files = {path.name: path for path in attachments([trial / "runs"], None, tmp_path)}
    assert files["protocol.lock.json"].read_bytes() == (trial / "protocol.lock.json").read_bytes()
    assert not [name for name in files if name.endswith(".texts.jsonl")]


def test_a_protocol_in_which_nothing_qualifies_ends_in_a_dossier_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "trial"
    write_trial(folder, max_lost_points="0")
    monkeypatch.chdir(folder)
    protocol = (folder / "protocol.toml").read_text()
    strict = protocol.replace("[model]", '[[gates.subset]]\nsubset = "critical"\nmin_accepted_percent = "100"\n[model]')
    (folder / "protocol.toml").write_text(strict)
    wrong = {f"d{i:02d}": {"text": "{}"} for i in range(4)}
    script = json.loads((folder / "script.json").read_text())
    script["documents"] = wrong
    (folder / "script.json").write_text(json.dumps(script))
    command("collector", "freeze", "protocol.toml", cwd=folder)
    command("collector", "run", "protocol.toml", "--out", "runs", cwd=folder)
    done(reporter_cli.main, "html", "runs", "--campaign", "campaign.toml", "-o", "dossier.html")
    page = (folder / "dossier.html").read_text(encoding="utf-8")
    assert "What would change this" in page
    choice = folder / "choice.json"
    done(reporter_cli.main, "choose", "runs", "--campaign", "campaign.toml", "-o", choice)
    assert json.loads(choice.read_text())["chosen"] is None
