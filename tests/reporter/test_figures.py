"""Figures: the same whatever the order of files, arguments and rows; finite or null; never of two protocols."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.errors import Refused
from collector.contract.records import KINDS
from reporter import figures, load, sql_files
from reporter.dossier import BASES, Basis, Figure, Unit
from reporter.figures import Evidence, derive, weakest

Kit = Any


def built(paths: Sequence[Path], cache: Path) -> Evidence:
    with load.open_records(paths, cache_dir=cache) as store:
        return figures.build(store)


def as_bytes(evidence: Evidence) -> bytes:
    import msgspec

    return msgspec.json.encode([evidence.figures, evidence.tables])


def figure(basis: Basis, name: str = "a/b/c", **more: Any) -> Figure:
    return Figure(figure_id=name, value=1, unit="count", basis=basis, **more)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Path:
    """Two machines in three files: two runs on one machine, one of them with a killed attempt and repetitions."""
    kit, runs = campaign_records, tmp_path_factory.mktemp("campaign") / "runs"
    kit(runs, documents=20, repetitions=2)
    kit(runs, documents=20, device=kit.device(name="Example GPU", kind="cuda", host="b"), start="2026-01-03T09:00:00")
    killed = kit.variant(name="fp16", dtype="float16", outcomes={2: "failed", 4: "too_long"}, killed_attempts=2)
    kit(runs, documents=20, variants=(kit.fp32, killed), start="2026-01-04T09:00:00", seed=2)
    return runs


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def whole(campaign: Path, cache: Path) -> Evidence:
    return built([campaign], cache)


def test_order_of_files_and_arguments_changes_no_figure(campaign: Path, cache: Path, whole: Evidence) -> None:
    names = sorted(campaign.iterdir())
    assert len(names) == 3
    for order in (names[::-1], [names[1], names[2], names[0]]):
        assert as_bytes(built(order, cache)) == as_bytes(whole)


def test_names_of_files_change_nothing_but_the_names_told(
    campaign: Path, tmp_path: Path, cache: Path, whole: Evidence
) -> None:
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    for place, path in enumerate(sorted(campaign.iterdir(), reverse=True)):
        (renamed / f"{place}.jsonl").write_bytes(path.read_bytes())
    before, after = whole, built([renamed], cache)
    assert before.figures == after.figures
    assert {n: t for n, t in before.tables.items() if n != "runs"} == {
        n: t for n, t in after.tables.items() if n != "runs"
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_rows_changes_no_figure(
    campaign: Path, cache: Path, whole: Evidence, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain forbids shuffled lines, so the rows are shuffled behind it, where every query reads them."""
    monkeypatch.setattr(load, "SMALL_COUNT", 0)
    with load.open_records([campaign], cache_dir=cache) as store:
        names = [name for (name,) in store.con.execute("select column_name from (describe records)").fetchall()]
        listed = ", ".join(f'"{name}"' for name in names)
        store.con.execute(
            f"create table shuffled as select {listed} from records order by md5(run_id || seq || 'salt {seed}')"
        )
        store.con.execute("create or replace view records as select * from shuffled")
        files_order = "desc" if seed % 2 else "asc"
        store.con.execute(f"create table files_again as select * from run_files order by sha256 {files_order}")
        store.con.execute("create or replace table run_files as select * from files_again")
        rows = store.con.execute("select run_id, seq from stg_request").fetchall()
        assert rows != sorted(rows)
        assert as_bytes(figures.build(store)) == as_bytes(whole)


def test_two_builds_are_byte_identical_with_and_without_the_cache(
    campaign: Path, tmp_path: Path, cache: Path, whole: Evidence
) -> None:
    with load.open_records([campaign], cache_dir=cache) as store:
        assert as_bytes(figures.build(store)) == as_bytes(figures.build(store)) == as_bytes(whole)
    assert as_bytes(built([campaign], tmp_path / "fresh")) == as_bytes(whole)


@pytest.mark.parametrize("most_threads", [1, load.MAX_THREADS])
def test_records_read_into_memory_and_records_left_in_parquet_give_the_same_bytes(
    campaign: Path, cache: Path, whole: Evidence, monkeypatch: pytest.MonkeyPatch, most_threads: int
) -> None:
    monkeypatch.setattr(load, "SMALL_COUNT", 0)
    monkeypatch.setattr(load, "MAX_THREADS", most_threads)
    assert as_bytes(built([campaign], cache)) == as_bytes(whole)


def test_figure_ids_name_file_row_and_column_and_cells_point_at_them(whole: Evidence) -> None:
    evidence = whole
    pointed = set()
    for name, table in evidence.tables.items():
        assert table.grain.startswith("one row per ")
        assert len({row.key for row in table.rows}) == len(table.rows)
        for row in table.rows:
            for column, figure_id in row.cells.items():
                assert figure_id == f"{name}/{row.key}/{column}" == evidence.figures[figure_id].figure_id
                pointed.add(figure_id)
    assert pointed == set(evidence.figures)
    key = evidence.tables["quality"].rows[0].key
    assert evidence.value("quality", key, "document_count") == 20
    assert evidence.value("quality", "nobody", "document_count") is None


def test_every_null_has_a_reason_and_every_number_a_unit_a_formula_and_a_query(whole: Evidence) -> None:
    for item in whole.figures.values():
        assert (item.value is None) == (item.missing_reason is not None), item
        assert item.unit in get_args(Unit)
        assert item.formula
        assert item.query_digest == sql_files.query_digest(item.figure_id.split("/")[0])
        assert re.fullmatch("[0-9a-f]{64}", str(item.query_digest))


def test_sources_are_real_lines_and_files_are_named_by_their_head_digest(
    campaign: Path, cache: Path, whole: Evidence
) -> None:
    with load.open_records([campaign], cache_dir=cache) as store:
        known = {f"{run}:{seq}" for run, seq in store.con.execute("select run_id, seq from records").fetchall()}
        heads = {report.head_digest for report in store.files}
    for item in whole.figures.values():
        assert set(item.sources) <= known
        assert set(item.file_digests) <= heads


def test_an_open_file_is_named_by_the_digest_of_its_bytes(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    with load.open_records([written.runs]) as store:
        evidence = figures.build(store)
        (item,) = {tuple(each.file_digests) for each in evidence.figures.values()}
        assert item == (store.files[0].sha256,)


def test_d13_a_device_without_a_single_answer_gives_nulls_and_json_that_every_parser_reads(
    tmp_path: Path, campaign_records: Kit
) -> None:
    kit = campaign_records
    silent = kit.variant(outcomes=dict.fromkeys(range(6), "failed"))
    evidence = built([kit(tmp_path / "runs", documents=6, critical=2, variants=(silent,)).runs], tmp_path / "cache")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    json.loads(as_bytes(evidence), parse_constant=refuse)
    for item in evidence.figures.values():
        assert not isinstance(item.value, float) or math.isfinite(item.value)
    key = "fp32~example-cpu-2-cores~b1~c1"
    assert evidence.value("latency", f"{key}~ttft_s~all", "request_count") == 6
    assert evidence.value("latency", f"{key}~ttft_s~all", "p50_s") is None
    assert evidence.value("durations", f"{key}~r1", "output_tokens_per_s") is None
    assert evidence.value("quality", key, "failed_documents") == 6


def test_runs_of_two_protocols_are_refused_by_file_and_never_pooled(tmp_path: Path, campaign_records: Kit) -> None:
    campaign_records(tmp_path / "runs")
    other = campaign_records(tmp_path / "runs", documents=23, start="2026-01-09T09:00:00")
    with load.open_records([tmp_path / "runs"]) as store, pytest.raises(Refused) as refusal:
        figures.build(store)
    (finding,) = refusal.value.findings
    assert (finding.file, finding.line, finding.rule) == (other.path, 1, "mixed-protocols")
    assert "never pooled" in finding.message
    assert finding.next_step


def test_files_without_a_readable_run_are_refused(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    written.path.write_bytes(b"?" + written.path.read_bytes())
    with load.open_records([written.runs]) as store, pytest.raises(Refused, match="no-run"):
        figures.build(store)


def test_a_run_that_began_no_pass_gives_empty_tables(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    lines = written.path.read_bytes().splitlines()
    described = [line for line in lines if line.startswith((b'{"kind":"header"', b'{"kind":"document"'))]
    written.path.write_bytes(b"\n".join(described) + b"\n")
    evidence = built([written.path], tmp_path / "cache")
    assert (evidence.stage, evidence.reference_key) == ("validation", None)
    assert [name for name, table in evidence.tables.items() if table.rows] == ["runs", "roles"]


def test_a_header_without_a_lock_is_refused_by_file(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    lines = campaign_records.rechain(
        written.path.read_bytes().splitlines(),
        lambda index, line: line | {"protocol_json": "{}"} if line["kind"] == "header" else line,
    )
    written.path.write_bytes(b"\n".join(lines) + b"\n")
    with load.open_records([written.path]) as store, pytest.raises(Refused, match="protocol-json"):
        figures.build(store)


def test_a_file_without_a_readable_header_gives_no_figure(tmp_path: Path, campaign_records: Kit) -> None:
    good = campaign_records(tmp_path / "runs")
    bad = campaign_records(tmp_path / "runs", seed=4, start="2026-01-09T09:00:00")
    wanted = built([good.path], tmp_path / "cache")
    bad.path.write_bytes(b"?" + bad.path.read_bytes()[1:])
    evidence = built([tmp_path / "runs"], tmp_path / "cache")
    for name in ("quality", "passes", "paired", "latency", "durations", "memory", "workload"):
        assert evidence.tables[name] == wanted.tables[name]


def test_d19_figures_do_not_change_when_lines_are_copied_to_the_end(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    before = built([written.path], tmp_path / "cache")
    lines = written.path.read_bytes().splitlines()
    copied = [line for line in lines if line.startswith((b'{"kind":"request"', b'{"kind":"score"'))][-20:]
    written.path.write_bytes(b"\n".join([*lines, *copied]) + b"\n")
    after = built([written.path], tmp_path / "cache")
    for name in ("quality", "paired", "noise", "latency", "durations"):
        for row in before.tables[name].rows:
            assert [after.figures[i].value for i in row.cells.values()] == [
                before.figures[i].value for i in row.cells.values()
            ]


# every SQL file


@pytest.mark.parametrize("name", [*sql_files.MARTS, *sql_files.TABLES])
def test_sql_file_says_its_grain_is_lower_case_and_orders_its_rows(name: str) -> None:
    file = sql_files.sql_file(name)
    assert file.grain.startswith("one row")
    body = "\n".join(line for line in file.text.splitlines() if not line.lstrip().startswith("--"))
    code = re.sub(r"'[^']*'", "''", body)
    assert code == code.lower()
    assert "avg(" not in code
    assert "now()" not in code
    assert "order by" in code
    is_mart = "-- step: mart" in file.text
    assert is_mart is (name in sql_files.MARTS)
    assert bool(file.figures or file.labels) is not is_mart


def test_every_sql_file_is_run_and_every_run_file_exists() -> None:
    folder = files("reporter") / "sql"
    assert {path.name for path in folder.iterdir() if path.name.endswith(".sql")} == {
        f"{name}.sql" for name in (*sql_files.MARTS, *sql_files.TABLES)
    }
    assert {path.name for path in (folder / "checks").iterdir()} == {f"{rule}.sql" for rule in sql_files.CHECKS}


def test_sql_names_no_record_kind_that_the_contract_lacks() -> None:
    for name in (*sql_files.MARTS, *sql_files.TABLES):
        cited = set(re.findall(r"\bstg_(\w+)", sql_files.sql_file(name).text))
        assert cited <= set(KINDS), name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select 1", "the first line"),
        ("-- one row per x\n-- figure a | furlongs | measured | f", "not a figure's declaration"),
        ("-- one row per x\n-- figure a | count | guessed | f", "not a figure's declaration"),
        ("-- one row per x\n-- figure a | count | measured | f | colour=red", "unknown option"),
    ],
)
def test_a_sql_head_out_of_form_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sql_files.parse("x", text)


# derived figures


@pytest.mark.parametrize(("left", "right"), list(itertools.product(BASES, repeat=2)))
def test_a_derived_figure_prints_the_weaker_of_two_bases(left: Basis, right: Basis) -> None:
    made = derive([figure(left), figure(right)], 2, "count", "a + b", "x/y/z")
    assert BASES.index(made.basis) == max(BASES.index(left), BASES.index(right))
    assert made.is_derived
    assert made.formula == "a + b"


@given(st.lists(st.sampled_from(BASES), min_size=1, max_size=8))
def test_the_weakest_basis_does_not_depend_on_order_or_grouping(bases: list[Basis]) -> None:
    expected = weakest(bases)
    assert expected in bases
    assert all(BASES.index(basis) <= BASES.index(expected) for basis in bases)
    assert weakest(bases[::-1]) == expected
    step = figure(bases[0])
    for basis in bases[1:]:
        step = derive([step, figure(basis)], 1, "count", "f", "x/y/z")
    assert step.basis == expected


def test_a_derived_figure_keeps_files_and_records_of_its_inputs() -> None:
    a = figure("measured", record_count=2, sources=["r:1", "r:2"], file_digests=["b", "a"])
    b = figure("quoted", record_count=2, sources=["r:2", "r:3"], file_digests=["c"])
    made = derive([a, b], 1.5, "ratio", "a / b", "x/y/z")
    assert (made.sources, made.record_count, made.file_digests) == (["r:1", "r:2", "r:3"], 3, ["a", "b", "c"])
    many = figure("measured", record_count=400, sources=[f"r:{i}" for i in range(20)])
    assert derive([many, b], 1, "ratio", "f", "x/y/z").record_count == 402
    assert len(derive([many, b], 1, "ratio", "f", "x/y/z").sources) == 20


@pytest.mark.parametrize(
    ("inputs", "value", "message"),
    [([], 1, "has inputs"), ([figure("measured")], float("nan"), "finite"), ([figure("measured")], None, "reason")],
)
def test_a_derived_figure_without_inputs_value_or_reason_is_refused(
    inputs: list[Figure], value: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        derive(inputs, value, "count", "f", "x/y/z")
