"""`make demo`: the starter's small trial, or one's own documents and model, which are never deleted."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Commands that write down how they were called, one argument a line, and make the folder that init would make."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("collector", "reporter"):
        path = folder / name
        path.write_text(
            f'#!/bin/sh\nprintf \'%s\\n\' {name} "$@" -- >> "{tmp_path}/calls"\n'
            '[ "$1" = init ] && mkdir -p "$2" && touch "$2/protocol.toml"\nexit 0\n'
        )
        path.chmod(0o755)
    (tmp_path / "installed").touch()
    (tmp_path / "demo-model.path").write_text("/models/small one\n")
    return folder


def make_demo(tools: Path, *settings: str) -> list[list[str]]:
    """Run `make demo` with these settings and return the calls that it made."""
    calls = tools.parent / "calls"
    calls.unlink(missing_ok=True)
    installed, model = tools.parent / "installed", tools.parent / "demo-model.path"
    places = {"BIN": tools, "INSTALLED": installed, "CACHE": tools.parent, "DEMO": tools.parent / "demo"}
    own = [f"{name}={place}" for name, place in places.items()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-C", str(ROOT), "-o", str(installed), "-o", str(model), "demo", *own, *settings],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = calls.read_text().split("--\n")
    return [call.splitlines() for call in lines if call]


def test_without_settings_the_small_starter_is_made_anew_with_the_cached_model(tools: Path) -> None:
    demo = tools.parent / "demo"
    demo.mkdir()
    (demo / "old").touch()
    (demo / ".made-by-make-demo").touch()
    calls = make_demo(tools)
    assert calls[0] == ["collector", "init", str(demo), "--model", "/models/small one", "--small"]
    assert [call[:2] for call in calls[1:]] == [
        ["collector", "check"], ["collector", "freeze"], ["collector", "run"],
        ["reporter", "html"], ["reporter", "pdf"],
    ]  # fmt: skip
    assert not (demo / "old").exists()


def test_a_folder_that_make_demo_did_not_make_is_never_deleted(tools: Path) -> None:
    """Leaving DOCUMENTS out of a second call must not cost a labelled sheet."""
    demo = tools.parent / "demo"
    demo.mkdir()
    (demo / "documents.csv").write_text("labelled by hand")
    done = subprocess.run(
        ["make", "-C", str(ROOT), "-o", "installed", "-o", str(tools.parent / "demo-model.path"), "demo",
         f"BIN={tools}", "INSTALLED=installed", f"CACHE={tools.parent}", f"DEMO={demo}"],
        capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
    )  # fmt: skip
    assert done.returncode == 2
    assert "did not make it" in done.stderr
    assert (demo / "documents.csv").read_text() == "labelled by hand"


def test_ones_own_documents_and_statements_reach_init_as_they_were_written(tools: Path) -> None:
    calls = make_demo(
        tools, "MODEL=org/model", "DOCUMENTS=my bills.csv", 'PERMISSION=Ann\'s "yes", 2026', "REVIEW=two readers"
    )
    assert calls[0] == [
        "collector", "init", str(tools.parent / "demo"), "--model", "org/model", "--from", "my bills.csv",
        "--permission", "Ann's \"yes\", 2026", "--review", "two readers",
    ]  # fmt: skip


def test_a_trial_of_ones_own_documents_is_continued_and_never_deleted(tools: Path) -> None:
    demo = tools.parent / "demo"
    demo.mkdir()
    (demo / "protocol.toml").touch()
    (demo / "documents.csv").write_text("labelled by hand")
    calls = make_demo(tools, "DOCUMENTS=bills")
    assert [call[1] for call in calls] == ["check", "freeze", "run", "html", "pdf"]
    assert (demo / "documents.csv").read_text() == "labelled by hand"
