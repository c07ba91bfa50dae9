"""Checks after a reload as the reporter reads them: their table, their failures, and artefacts that differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.contract.records import Decision, Failure, Record, ReloadCheck, encode_record
from reporter import figures
from reporter.check import check
from reporter.figures import Evidence
from reporter.load import open_records
from reporter.render import render

Line = dict[str, Any]
MS = 1_000_000


def with_records(kit: Any, path: Path, make: Callable[[dict[str, Line]], list[Record]]) -> list[Line]:
    """Put records before the seal of a run, which is chained and sealed again; returns the file's lines.

    make: gets variant -> `pass_begin` of its first pass.
    """
    raw = path.read_bytes().splitlines()
    lines = [msgspec.json.decode(line) for line in raw]
    begun = {line["variant_name"]: line for line in reversed(lines) if line["kind"] == "pass_begin"}
    envelope = {"run_id": lines[0]["run_id"], "written_at": lines[-1]["written_at"]}
    added = [encode_record(msgspec.structs.replace(record, **envelope)) for record in make(begun)]
    chained = kit.rechain([*raw[:-1], *added, raw[-1]], lambda index, line: line)
    path.write_bytes(b"".join(line + b"\n" for line in chained))
    return [msgspec.json.decode(line) for line in chained]


def reloaded(begun: Line, **changes: Any) -> ReloadCheck:
    facts: dict[str, Any] = {
        "variant_id": begun["variant_id"], "pass_id": begun["pass_id"], "checked_document_count": 8,
        "equal_answer_count": 8, "is_same_artefact": True, "load_ns": 2_000 * MS, "answer_ns": 900 * MS,
    }  # fmt: skip
    return ReloadCheck(**facts | changes)


def broken(begun: Line) -> Failure:
    return Failure(
        failure_scope="variant", failure_cause="load_failure", pass_id=begun["pass_id"], phase="reload",
        variant_id=begun["variant_id"], exception_class="OSError",
    )  # fmt: skip


def evidence(runs: Path) -> Evidence:
    with open_records([runs]) as store:
        return figures.build(store)


@pytest.fixture
def runs(tmp_path: Path, campaign_records: Any) -> Path:
    """fp32 answered as before; bf16 answered two documents otherwise, from other files."""
    written = campaign_records(tmp_path / "runs")
    with_records(
        campaign_records, written.path,
        lambda begun: [
            reloaded(begun["fp32"]),
            reloaded(
                begun["bf16"], equal_answer_count=6, is_same_artefact=False,
                differing_document_ids=["inv-0003", "inv-0007"],
            ),
        ],
    )  # fmt: skip
    return Path(written.runs)


def test_each_reload_check_is_a_row_of_its_configuration(runs: Path) -> None:
    found = evidence(runs)
    rows = found.tables["reload_checks"].rows
    assert [(row.labels["variant"], row.labels["outcome"], row.labels["is_same_artefact"]) for row in rows] == [
        ("fp32", "completed", "yes"), ("bf16", "completed", "no"),
    ]  # fmt: skip
    assert [row.labels["configuration_key"] for row in rows] == [row.key for row in rows]
    key = rows[1].key
    values = {name: found.value("reload_checks", key, name) for name in rows[1].cells}
    assert values == {
        "checked_document_count": 8, "equal_answer_count": 6, "load_ns": 2_000 * MS, "answer_ns": 900 * MS,
    }  # fmt: skip
    assert rows[1].labels["differing"] == "inv-0003, inv-0007"


def test_a_reload_check_changes_no_measured_figure(
    tmp_path: Path, campaign_records: Any, runs: Path
) -> None:  # fmt: skip
    """Quality, times and passes are those of the same records without it."""
    before = evidence(Path(campaign_records(tmp_path / "plain" / "runs").runs))
    after = evidence(runs)
    for table in ("quality", "latency", "durations", "passes", "memory", "workload", "fields"):
        assert before.tables[table].rows, table
        assert [row.cells for row in before.tables[table].rows] == [row.cells for row in after.tables[table].rows]
        for row in before.tables[table].rows:
            for column in row.cells:
                assert before.value(table, row.key, column) == after.value(table, row.key, column), (table, column)
    assert check([runs]).findings == []


def test_a_failed_reload_stays_in_the_table_without_numbers_and_its_pass_stays_complete(
    tmp_path: Path, campaign_records: Any
) -> None:
    written = campaign_records(tmp_path / "runs")
    with_records(campaign_records, written.path, lambda begun: [reloaded(begun["fp32"]), broken(begun["bf16"])])
    found = evidence(written.runs)
    row = found.tables["reload_checks"].rows[1]
    assert (row.labels["outcome"], row.labels["cause"], row.labels["is_same_artefact"]) == (
        "failed",
        "load_failure",
        "",
    )
    figure = found.figures[row.cells["equal_answer_count"]]
    assert (figure.value, figure.missing_reason) == (None, "failed")
    (failure,) = found.tables["failures"].rows
    assert (failure.labels["phase"], failure.labels["cause"]) == ("reload", "load_failure")
    causes = {p.labels["variant"]: p.labels["cause"] for p in found.tables["passes"].rows if "cause" in p.labels}
    assert set(causes.values()) <= {""}, "no pass failed"


def test_the_last_check_of_a_configuration_counts(tmp_path: Path, campaign_records: Any) -> None:
    written = campaign_records(tmp_path / "runs")
    with_records(
        campaign_records, written.path,
        lambda begun: [broken(begun["bf16"]), reloaded(begun["bf16"], equal_answer_count=7)],
    )  # fmt: skip
    found = evidence(written.runs)
    (row,) = found.tables["reload_checks"].rows
    assert (row.labels["outcome"], found.value("reload_checks", row.key, "equal_answer_count")) == ("completed", 7)
    assert len(found.tables["failures"].rows) == 1, "the failed one stays a failure"


def test_the_pages_show_the_checks_and_no_longer_call_them_untested(
    decide: Any, campaign_text: Any, tmp_path: Path
) -> None:
    def write(kit: Any, folder: Path) -> None:
        path = kit(folder).path
        with_records(kit, path, lambda begun: [reloaded(begun["fp32"]), reloaded(begun["bf16"], equal_answer_count=5)])

    campaign = campaign_text.candidate("A", "fp32", "o1").offer("o1", {3: "540.00"}).write()
    dossier, plain = decide("reloaded", campaign, write=write), decide("plain", campaign)
    assert "untested_reload" in {sentence.key for sentence in plain.not_tested}
    assert "untested_reload" not in {sentence.key for sentence in dossier.not_tested}
    page, without = (render(one, lang="en", medium="screen") for one in (dossier, plain))
    assert "Checks after a reload" in page
    assert "Checks after a reload" not in without


def test_a_variant_loaded_from_other_files_in_another_run_is_found(
    tmp_path: Path, campaign_records: Any
) -> None:  # fmt: skip
    kit = campaign_records
    kit(tmp_path / "runs", run_id="a" * 32)
    second = kit(tmp_path / "runs", run_id="b" * 32, start="2026-01-05T09:00:00")
    assert check([tmp_path / "runs"]).findings == []

    def other_file(index: int, line: Line) -> Line:
        if line["kind"] == "variant" and line["variant_name"] == "bf16":
            line["file_digests"] = {"model.safetensors": "9" * 64}
        return line

    raw = kit.rechain(second.path.read_bytes().splitlines(), other_file)
    second.path.write_bytes(b"".join(line + b"\n" for line in raw))
    (finding,) = check([tmp_path / "runs"]).findings
    assert (finding.rule, finding.file) == ("artefact-differs", second.path)
    assert "variant bf16 was loaded" in finding.message
    assert "from another model.safetensors than in an earlier pass" in finding.message


def test_the_check_of_a_variant_holds_for_its_batches_and_says_as_what_it_was_asked(
    tmp_path: Path, campaign_records: Any
) -> None:
    """The artefact is the same; the variant itself was not asked in batches again."""
    kit = campaign_records
    written = kit(tmp_path / "runs", batches=(kit.variant(name="fp32", batch=4),))
    lines = with_records(kit, written.path, lambda begun: [reloaded(begun["fp32"], equal_answer_count=7)])
    loads = {line["batch"] for line in lines if line["kind"] == "pass_begin" and line["variant_name"] == "fp32"}
    assert loads == {1, 4}
    found = evidence(written.runs)
    alone, batched = found.tables["reload_checks"].rows
    assert alone.labels["asked_as"] == batched.labels["asked_as"] == alone.labels["label"] != batched.labels["label"]
    assert (alone.labels["is_asked"], batched.labels["is_asked"]) == ("yes", "no")
    assert found.value("reload_checks", batched.key, "equal_answer_count") == 7


def test_the_time_of_a_reload_check_is_paid_for_with_its_pass(runs: Path) -> None:
    """2.0 s of loading and 0.9 s of answering; the repeat of the reference was not loaded again."""
    with open_records([runs]) as store:
        figures.build(store)
        found = store.con.execute("""
            select configurations.variant, times.duration_ns - ended.pass_ns, len(times.sources)
            from pass_times as times
            inner join configurations using (configuration_key)
            inner join stg_pass_end as ended using (run_id, pass_id)
            order by times.began_at""").fetchall()
    assert found == [("fp32", 2_900 * MS, 3), ("fp32", 0, 2), ("bf16", 2_900 * MS, 3)]


def test_passes_after_a_change_of_rental_belong_to_the_new_one(tmp_path: Path, campaign_records: Any) -> None:
    """The decision stands before the last pass of the file; the header names the rental of those before it."""
    kit = campaign_records
    written = kit(tmp_path / "runs")
    raw = written.path.read_bytes().splitlines()
    lines = [msgspec.json.decode(line) for line in raw]
    last = max(index for index, line in enumerate(lines) if line["kind"] == "pass_begin")
    change = Decision(
        decision="resumed", decided_by="collector", detail={"rental_id": "april"}, run_id=lines[0]["run_id"],
        written_at=lines[last]["written_at"],
    )  # fmt: skip

    def march(index: int, line: Line) -> Line:
        return line | {"rental_id": "march"} if line["kind"] == "header" else line

    chained = kit.rechain([*raw[:last], encode_record(change), *raw[last:]], march)
    written.path.write_bytes(b"".join(line + b"\n" for line in chained))
    with open_records([written.path]) as store:
        figures.build(store)
        found = store.con.execute("select rental_id from pass_times order by began_at").fetchall()
    assert found == [("march",), ("march",), ("april",)]
