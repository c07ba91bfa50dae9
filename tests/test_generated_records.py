"""The generator of records: what it writes is valid, follows the recorded run, and can never pass as a measurement."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median

import pytest
from generate_records import RECORDED, GeneratedRun, generate
from generated_grid import CARDS, Grid
from recorded_pool import read_pool, run_files

from collector.contract import chain

GRID = Grid.first(2, 3, 4, 2, 40)
FOLLOWED = (
    "request", "score", "document", "reading", "telemetry", "warning", "tensor_group", "variant", "pass_end",
    "batch_check",
)  # fmt: skip
"""Kinds whose lines do not grow with the number of documents."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[GeneratedRun]]:
    folder = tmp_path_factory.mktemp("generated")
    return folder, generate(folder, GRID)


def records(folder: Path) -> dict[str, list[dict[str, object]]]:
    found = defaultdict(list)
    for path in run_files(folder / "runs"):
        for line in path.read_bytes().splitlines():
            record = json.loads(line)
            found[record["kind"]].append(record)
    return found


def test_generated_runs_are_chained_sealed_and_without_a_finding(written: tuple[Path, list[GeneratedRun]]) -> None:
    for run in written[1]:
        report = chain.verify(run.path)
        assert report.is_sealed
        assert report.problems == []


def test_one_file_per_card_and_every_cell_of_the_grid_in_it(written: tuple[Path, list[GeneratedRun]]) -> None:
    found = records(written[0])
    assert [run.card for run in written[1]] == list(CARDS[:2])
    wanted = {(variant.name, cell.batch) for variant in GRID.variants for cell in GRID.cells}
    for environment in {one["environment_id"] for one in found["environment"]}:
        begun = [one for one in found["pass_begin"] if one["environment_id"] == environment]
        assert {(one["variant_name"], one["batch"]) for one in begun} == wanted


def test_equal_grids_give_equal_bytes_and_another_seed_gives_others(
    written: tuple[Path, list[GeneratedRun]], tmp_path: Path
) -> None:
    generate(tmp_path / "again", GRID)
    generate(tmp_path / "other", Grid.first(2, 3, 4, 2, 40, seed=2))
    one, again, other = (
        [path.read_bytes() for path in [*run_files(folder / "runs"), folder / "campaign.toml"]]
        for folder in (written[0], tmp_path / "again", tmp_path / "other")
    )
    assert one == again
    assert one[0] != other[0]


@pytest.mark.parametrize("kind", FOLLOWED)
def test_lines_are_as_long_as_the_recorded_ones_within_five_percent(
    written: tuple[Path, list[GeneratedRun]], kind: str
) -> None:
    recorded = fmean(read_pool(run_files(RECORDED)).line_bytes[kind])
    lengths = [
        len(line) + 1
        for path in run_files(written[0] / "runs")
        for line in path.read_bytes().splitlines()
        if line.startswith(f'{{"kind":"{kind}"'.encode())
    ]
    assert fmean(lengths) == pytest.approx(recorded, rel=0.05)


def test_times_follow_the_recorded_ones_by_the_factor_of_card_and_variant(
    written: tuple[Path, list[GeneratedRun]],
) -> None:
    pool = read_pool(run_files(RECORDED))

    def answer_ns(request: dict[str, object]) -> int:
        return int(str(request["last_token_ns"])) - int(str(request["intended_ns"]))

    recorded = median(
        (one.last_token_ns or 0) - one.intended_ns for requests in pool.answers[1].values() for one in requests
    )
    found = records(written[0])
    of_pass = {one["pass_id"]: one for one in found["pass_begin"]}
    machines = {one["environment_id"]: one["device_name"] for one in found["device"] if one["device_kind"] == "cuda"}
    for card in GRID.cards:
        generated = median(
            answer_ns(one)
            for one in found["request"]
            if one["request_outcome"] == "completed" and one["phase"] == "measure"
            and (begin := of_pass[one["pass_id"]])["variant_name"] == "fp32" and begin["batch"] == 1
            and machines[begin["environment_id"]] == card.name
        )  # fmt: skip
        assert generated / recorded == pytest.approx(card.speed, rel=0.1)


def test_the_traps_of_a_real_campaign_are_in_it(written: tuple[Path, list[GeneratedRun]]) -> None:
    found = records(written[0])
    causes = {str(one["failure_cause"]) for one in found["failure"]}
    assert causes == {"out_of_memory", "killed"}
    assert {str(one["request_outcome"]) for one in found["request"]} == {"completed", "too_long", "failed"}
    assert {str(one["attempt"]) for one in found["pass_begin"]} == {"1", "2"}
    passes = len(GRID.cards) * len(GRID.variants) * len(GRID.cells) * GRID.repetitions
    completed = [one for one in found["pass_end"] if one["pass_outcome"] == "completed"]
    # one never ran, and the two of the batch that memory was too small for were not completed
    assert len(completed) == passes - 3


def test_every_file_says_that_it_was_generated(written: tuple[Path, list[GeneratedRun]]) -> None:
    found = records(written[0])
    assert {one["collector_version"] for one in found["header"]} == {"generated"}
    assert all("GENERATED" in str(one["protocol_json"]) for one in found["header"])
    assert {one["engine_name"] for one in found["engine"]} == {"scripted"}
    named = [one for one in found["warning"] if one["warning_class"] == "generated"]
    assert len(named) == len(written[1])
