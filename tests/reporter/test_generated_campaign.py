"""A generated campaign through the reporter: every figure equal to a second computation, no finding, flat memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import campaign_time
import pytest
import recompute
from generate_records import generate
from generated_grid import Grid

from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Sentence
from reporter.render import render, shipped_words

SMALL = Grid.first(3, 4, 3, 3, 60)
WHOLE = Grid()
"""5 cards x 6 variants x 4 cells x 5 repetitions x 300 documents."""
ALLOWED = 1e-9


def differences(folder: Path, dossier: Dossier) -> tuple[int, dict[str, tuple[Any, Any]]]:
    """Return how many values were computed twice, and those that differ: figure id -> (dossier, second computation)."""
    expected = recompute.every_value(recompute.Records(folder / "runs"), folder / "campaign.toml")
    differ: dict[str, tuple[Any, Any]] = {}
    for name, value in expected.items():
        figure = dossier.figures.get(name.removesuffix("/interval"))
        told: Any = figure and figure.value
        if figure is not None and name.endswith("/interval"):
            told = figure.interval and (figure.interval.low, figure.interval.high)
        if told is None or told != pytest.approx(value, rel=ALLOWED, abs=ALLOWED):
            differ[name] = told, value
    return len(expected), differ


def chosen(folder: Path) -> set[str]:
    """Return who is cheapest, and who is within the tie width of it, by the second computation."""
    campaign = tomllib.loads((folder / "campaign.toml").read_text(encoding="utf-8"))
    order = recompute.cheapest(recompute.Records(folder / "runs"), campaign)
    width = 100 + float(campaign["objective"]["tie_percent"])
    return {one.key for one in order if 100 * one.net <= width * order[0].net}


def first_choices(dossier: Dossier) -> set[str]:
    rows = dossier.tables["candidates"].rows
    return {row.key for row in rows if row.labels["status"] in ("recommended", "equivalent")}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Dossier]:
    folder = tmp_path_factory.mktemp("generated")
    generate(folder, SMALL)
    return folder, build_dossier([folder / "runs"], folder / "campaign.toml", cache_dir=folder / "cache")


def test_every_figure_of_a_generated_campaign_is_that_of_a_second_computation(small: tuple[Path, Dossier]) -> None:
    count, differ = differences(*small)
    assert differ == {}
    assert count > 5000


def test_the_second_computation_finds_the_same_cheapest_configurations(small: tuple[Path, Dossier]) -> None:
    assert first_choices(small[1]) == chosen(small[0]) != set()


def test_a_second_computation_that_counts_otherwise_is_noticed(
    small: tuple[Path, Dossier], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recompute, "Z", 1.9)
    _, differ = differences(*small)
    assert {name.rsplit("/", 1)[1] for name in differ} == {"interval"}


def test_a_dossier_of_generated_records_says_so_before_anything_else(
    small: tuple[Path, Dossier], said: Callable[[Dossier, Sentence], str]
) -> None:
    first = said(small[1], small[1].notices[0])
    assert first.endswith("come from a script, not from a model: no measurement at all.")
    assert small[1].protocol_name.startswith("GENERATED")


def test_check_has_no_finding_in_generated_records(small: tuple[Path, Dossier]) -> None:
    command = [sys.executable, "-m", "reporter.cli", "check", str(small[0] / "runs"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_page_one_shows_the_first_of_many_configurations_and_a_section_the_verdict_of_each(
    small: tuple[Path, Dossier],
) -> None:
    html = render(small[1], lang="en", medium="screen", words=shipped_words())
    text = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    assert "The first 24 of 36 configurations, as in the chart; section 2 has the verdict of each." in text
    every = html[html.index("Every configuration and its verdict") :]
    every = every[: every.index("</table>")]
    labels = [row.labels["label"] for row in small[1].tables["candidates"].rows]
    assert [label for label in labels if label not in every] == []


@pytest.mark.slow
def test_180_000_requests_fit_a_gibibyte_and_equal_a_second_computation(tmp_path: Path) -> None:
    generate(tmp_path, WHOLE)
    dossier = build_dossier([tmp_path / "runs"], tmp_path / "campaign.toml", cache_dir=tmp_path / "cache")
    assert sum(json.loads(line)["kind"] == "request" for line in _lines(tmp_path)) >= 180_000
    assert campaign_time.fresh("build", tmp_path)["peak_bytes"] < campaign_time.WANTED_BYTES
    count, differ = differences(tmp_path, dossier)
    assert differ == {}
    assert count > 20_000
    assert first_choices(dossier) == chosen(tmp_path) != set()


def _lines(folder: Path) -> Any:
    for path in (folder / "runs").glob("*.jsonl"):
        with path.open("rb") as lines:
            yield from lines
