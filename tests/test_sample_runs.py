"""The recorded campaign checks clean, and its dossiers are what the code of today makes of its records."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reporter.cli import main

SAMPLES = Path(__file__).parent.parent / "sample_runs"
DEMO = SAMPLES / "demo"


def reporter(*arguments: object) -> str:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_recorded_runs_check_clean_and_are_sealed() -> None:
    output = reporter("check", SAMPLES)
    assert "sealed" in output
    assert ", open" not in output


def test_no_file_of_a_sample_names_a_folder_of_the_machine_that_recorded_it() -> None:
    files = [path for path in SAMPLES.rglob("*") if path.suffix in {".jsonl", ".json", ".toml", ".html"}]
    assert files
    places = (b"/home/", b"/root/", b"/tmp/", b"/Users/", str(SAMPLES.parent).encode())
    assert not [path for path in files if any(place in path.read_bytes() for place in places)]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["html", "pdf"])
def test_the_recorded_dossier_is_rendered_again_byte_for_byte(form: str, tmp_path: Path) -> None:
    out = tmp_path / f"dossier.{form}"
    reporter(form, DEMO / "runs", "--campaign", DEMO / "campaign.toml", "-o", out)
    assert out.read_bytes() == (DEMO / f"dossier.{form}").read_bytes(), (
        "the pages changed: look at them, then render sample_runs/demo/dossier.html and .pdf again"
    )
    if form == "html":
        files = {path.name: path.read_bytes() for path in (tmp_path / "dossier_files").rglob("*") if path.is_file()}
        kept = {path.name: path.read_bytes() for path in (DEMO / "dossier_files").rglob("*") if path.is_file()}
        assert files == kept
