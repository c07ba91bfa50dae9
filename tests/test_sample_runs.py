"""The recorded campaigns check clean, and their dossiers are what the code of today makes of its records."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from reporter.cli import main

SAMPLES = Path(__file__).parent.parent / "sample_runs"
CAMPAIGNS = ["labelled", "all-tiers", "ranking", "engines"]


def reporter(*arguments: object) -> str:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_every_recorded_campaign_of_the_samples_is_named_here() -> None:
    assert sorted(path.name for path in SAMPLES.iterdir() if (path / "runs").is_dir()) == sorted(CAMPAIGNS)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_the_recorded_runs_check_clean_and_are_sealed(name: str) -> None:
    output = reporter("check", SAMPLES / name / "runs")
    assert "0 finding(s)" in output
    assert "sealed" in output
    assert ", open" not in output


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_how_much_the_reference_changes_by_itself_is_printed(name: str) -> None:
    output = reporter("summary", SAMPLES / name / "runs", "--campaign", SAMPLES / name / "campaign.toml")
    assert "The reference, run twice on" in output


def test_int8_weights_take_what_their_tensors_take_and_not_what_the_library_claims() -> None:
    runs = [path for path in (SAMPLES / "labelled" / "runs").glob("*.jsonl") if not path.name.endswith("texts.jsonl")]
    lines = [json.loads(line) for path in runs for line in path.read_text().splitlines()]
    found = [one for one in lines if one["kind"] == "variant" and one["variant_name"] == "int8"]
    assert [one["observed_at"] for one in found] == ["loaded", "after_warmup"]
    for one in found:
        groups = [
            line["tensor_bytes"]
            for line in lines
            if line["kind"] == "tensor_group" and line["pass_id"] == one["pass_id"] and not line["is_tied"]
            and line["observed_at"] == one["observed_at"]
        ]  # fmt: skip
        assert one["weight_bytes"] == sum(groups) == 220_332_928
        assert one["claimed_weight_bytes"] == 538_060_288


def test_no_file_of_a_sample_names_a_folder_of_the_machine_that_recorded_it() -> None:
    files = [path for path in SAMPLES.rglob("*") if path.suffix in {".jsonl", ".json", ".toml", ".html"}]
    assert files
    places = (b"/home/", b"/root/", b"/tmp/", b"/Users/", str(SAMPLES.parent).encode())
    assert not [path for path in files if any(place in path.read_bytes() for place in places)]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["html", "pdf"])
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_the_recorded_dossier_is_rendered_again_byte_for_byte(name: str, form: str, tmp_path: Path) -> None:
    folder, out = SAMPLES / name, tmp_path / f"dossier.{form}"
    reporter(form, folder / "runs", "--campaign", folder / "campaign.toml", "-o", out)
    assert out.read_bytes() == (folder / f"dossier.{form}").read_bytes(), (
        "the pages changed: look at them, then run sample_runs/render.sh"
    )
    if form == "html":
        files = {path.name: path.read_bytes() for path in (tmp_path / "dossier_files").rglob("*") if path.is_file()}
        kept = {path.name: path.read_bytes() for path in (folder / "dossier_files").rglob("*") if path.is_file()}
        assert files == kept


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler-utils is not installed")
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_page_one_of_the_pdf_ends_with_the_lines_to_sign(name: str) -> None:
    printed = subprocess.run(
        ["pdftotext", "-f", "1", "-l", "1", SAMPLES / name / "dossier.pdf", "-"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for words in ("What would change this", "What this does not show", "Prepared", "Approved"):
        assert words in printed


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_no_page_shows_the_key_of_a_word_in_place_of_the_word(name: str) -> None:
    page = (SAMPLES / name / "dossier.html").read_text(encoding="utf-8")
    assert re.findall(r">\s*[@#][a-z_]+[:/ ]", page[page.index("<main") :]) == []
