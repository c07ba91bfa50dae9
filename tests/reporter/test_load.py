"""Run files are checked once, typed without guessing, cached by their bytes, and read in a locked database."""

from __future__ import annotations

import multiprocessing
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from collector.contract import columns
from collector.contract.errors import DossierError, Refused
from collector.contract.records import KINDS, decode_record
from reporter import figures, load
from reporter.cache import Cache, default_cache_dir
from reporter.check import check

Kit = Any


def one(store: load.Store, query: str) -> Any:
    row = store.con.execute(query).fetchone()
    assert row is not None
    return row[0]


def edited(kit: Kit, path: Path, edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change a file's content and chain it again, so that only the content differs."""
    lines = kit.rechain(path.read_bytes().splitlines(), lambda index, line: edit(line))
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def test_every_record_is_in_the_view_of_its_kind_with_all_of_its_fields(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", device=campaign_records.device(kind="cuda"))
    records = [decode_record(line) for line in written.path.read_bytes().splitlines()]
    with load.open_records([written.runs]) as store:
        for kind, struct in KINDS.items():
            expected = [
                {name: value for name, value in msgspec.to_builtins(record).items() if name not in ("kind", "prev")}
                for record in records
                if isinstance(record, struct)
            ]
            cursor = store.con.execute(f"select * exclude (source) from stg_{kind} order by seq")
            names = [column[0] for column in cursor.description or []]
            assert set(names) == set(columns.kind_columns(kind)) - {"kind", "prev"}
            assert [dict(zip(names, row, strict=True)) for row in cursor.fetchall()] == expected


def test_views_exist_for_kinds_without_a_single_record(tmp_path: Path, campaign_records: Kit) -> None:
    with load.open_records([campaign_records(tmp_path / "runs").runs]) as store:
        assert one(store, "select count(*) from stg_telemetry") == 0
        assert store.con.execute("select throttle_ns, power_mean_mw from stg_telemetry").fetchall() == []


@pytest.mark.parametrize(
    "statement",
    [
        "select * from read_text('/etc/hostname')",
        "select * from read_json('{path}')",
        "copy (select 1) to '{folder}/x.csv'",
        "attach '{folder}/x.db'",
        "install httpfs",
        "load httpfs",
        "set threads = 1",
        "set enable_external_access = true",
        "select * from read_text('https://example.org/')",
    ],
)
def test_the_opened_database_reaches_nothing_but_the_cached_records(
    tmp_path: Path, campaign_records: Kit, statement: str
) -> None:
    written = campaign_records(tmp_path / "runs")
    with load.open_records([written.runs]) as store, pytest.raises(duckdb.Error):
        store.con.execute(statement.format(path=written.path, folder=tmp_path))
    assert not (tmp_path / "x.csv").exists()


def test_opened_database_is_in_utc_and_within_the_processors_it_may_use(tmp_path: Path, campaign_records: Kit) -> None:
    with load.open_records([campaign_records(tmp_path / "runs").runs]) as store:
        assert one(store, "select current_setting('TimeZone')") == "UTC"
        assert 1 <= one(store, "select current_setting('threads')") <= min(load.MAX_THREADS, os.cpu_count() or 1)


def test_texts_and_steps_files_documents_and_hidden_folders_are_no_runs(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    name = written.path.name.removesuffix(".jsonl")
    (written.runs / f"{name}.texts.jsonl").write_text('{"kind":"x"}\n')
    (written.runs / f"{name}.steps.jsonl").write_text('{"kind":"x"}\n')
    (tmp_path / "documents.jsonl").write_text('{"id":"a","role":"test","text":"t","expected":{}}\n')
    (tmp_path / ".old").mkdir()
    (tmp_path / ".old" / written.path.name).write_bytes(written.path.read_bytes())
    files = [written.path, written.runs / f"{name}.texts.jsonl"]
    for paths in ([tmp_path], [written.runs], files, [written.path, written.runs]):
        with load.open_records(paths) as store:
            assert [report.path.name for report in store.files] == [written.path.name]
            assert store.set_aside == []


def test_a_run_with_a_damaged_first_line_or_another_name_is_not_overlooked(
    tmp_path: Path, campaign_records: Kit
) -> None:
    one_file = campaign_records(tmp_path / "runs")
    one_file.path.write_bytes(b"?" + one_file.path.read_bytes()[1:])
    other = campaign_records(tmp_path / "runs", seed=2)
    other.path.rename(other.path.with_name("renamed.jsonl"))
    with load.open_records([tmp_path]) as store:
        assert sorted(report.path.name for report in store.files) == sorted([one_file.path.name, "renamed.jsonl"])
        assert ("not-json", 1) in {(item.rule, item.line) for item in store.set_aside}


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_path_without_runs_is_refused_with_a_next_step(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DossierError, match=re.escape(str(tmp_path / name))) as refusal:
        load.open_records([tmp_path / name])
    assert refusal.value.next_step


def test_a_bad_line_is_set_aside_with_its_place_and_every_other_line_is_read(
    tmp_path: Path, campaign_records: Kit
) -> None:
    written = campaign_records(tmp_path / "runs")
    lines = written.path.read_bytes().splitlines()
    bad = next(i for i, line in enumerate(lines) if line.startswith(b'{"kind":"reading"'))
    for damage, rule in (
        (lambda line: line + b" xyz", "trailing-data"),
        (lambda line: line.replace(b'"value_bytes":', b'"value_bytes":9' + b"9" * 20), "integer-range"),
        (lambda line: line[:-1] + b',"phase":"load"}', "duplicate-key"),
        (lambda line: line.replace(b'"phase":"load"', b'"phase":"lunch"'), "vocabulary"),
    ):
        damaged = [damage(line) if i == bad else line for i, line in enumerate(lines)]
        written.path.write_bytes(b"\n".join(damaged) + b"\n")
        with load.open_records([written.path]) as store:
            assert [(item.file, item.line, item.rule) for item in store.set_aside] == [(written.path, bad + 1, rule)]
            assert one(store, "select count(*) from records") == len(lines) - 1


def test_d02_a_field_that_is_null_in_all_records_but_one_keeps_its_type(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", device=campaign_records.device(kind="cuda"))
    with load.open_records([written.runs]) as store:
        assert store.con.execute("select power_limit_mw from stg_device order by seq").fetchall() == [
            (None,),
            (700_000,),
        ]
        kinds = dict(store.con.execute("select column_name, column_type from (describe stg_device)").fetchall())
        assert (kinds["power_limit_mw"], kinds["has_ecc"], kinds["missing"]) == (
            "BIGINT", "BOOLEAN", "MAP(VARCHAR, VARCHAR)",
        )  # fmt: skip


def test_d04_empty_lists_are_legal_in_whichever_file_comes_first(tmp_path: Path, campaign_records: Kit) -> None:
    first = campaign_records(tmp_path / "a", start="2026-01-02T09:00:00")
    second = campaign_records(tmp_path / "b", start="2026-01-03T09:00:00", seed=5)
    edited(campaign_records, first.path, lambda line: line | {"gap_counts": []} if "gap_counts" in line else line)
    for paths in ([first.path, second.path], [second.path, first.path]):
        with load.open_records(paths) as store:
            assert store.set_aside == []
            counts = store.con.execute(
                "select run_id, sum(len(gap_counts)) from stg_request group by run_id order by run_id"
            ).fetchall()
            assert dict(counts)[first.run_id] == 0
            assert dict(counts)[second.run_id] > 0


def test_d05_identifiers_that_look_like_uuids_or_dates_come_back_as_written(
    tmp_path: Path, campaign_records: Kit
) -> None:
    run_id = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
    written = campaign_records(tmp_path / "runs", run_id=run_id, device=campaign_records.device(kind="cuda"))

    def rename(line: dict[str, Any]) -> dict[str, Any]:
        line = {k: "2024-01-02" if v == "doc-001" else v for k, v in line.items()}
        if "document_order" in line:
            line["document_order"] = ["2024-01-02" if d == "doc-001" else d for d in line["document_order"]]
        return line

    edited(campaign_records, written.path, rename)
    with load.open_records([written.runs]) as store:
        assert store.set_aside == []
        assert one(store, "select distinct run_id from records") == run_id
        assert one(store, "select count(*) from stg_score where document_id = '2024-01-02'") == 3
        assert one(store, "select device_uuid from stg_device where device_uuid is not null") == (
            "GPU-0A1B2C3D-0000-1111-2222-333344445555"
        )


def test_d07_stamps_stay_text_and_one_outside_the_contract_is_set_aside_by_name(
    tmp_path: Path, campaign_records: Kit
) -> None:
    written = campaign_records(tmp_path / "runs")
    edited(
        campaign_records,
        written.path,
        lambda line: line | {"began_at": "2026-01-02T16:00:00+07:00"} if line.get("repetition") == 2 else line,
    )
    with load.open_records([written.runs]) as store:
        assert [item.rule for item in store.set_aside] == ["pattern"]
        stamps = [row[0] for row in store.con.execute("select began_at from stg_pass_begin order by seq").fetchall()]
        assert len(stamps) == 2
        assert all(re.fullmatch(r"2026-01-02T09:00:\d\d\.\d{6}Z", stamp) for stamp in stamps)


def test_d09_d11_garbage_after_an_object_and_duplicate_keys_never_reach_a_figure(
    tmp_path: Path, campaign_records: Kit
) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    lines = written.path.read_bytes().splitlines()
    scores = [i for i, line in enumerate(lines) if line.startswith(b'{"kind":"score"')]
    lines[scores[0]] += b" xyz"
    lines[scores[1]] = lines[scores[1]][:-1] + b',"score_outcome":"wrong"}'
    written.path.write_bytes(b"\n".join(lines) + b"\n")
    with load.open_records([written.path]) as store:
        assert {(item.line, item.rule) for item in store.set_aside} == {
            (scores[0] + 1, "trailing-data"),
            (scores[1] + 1, "duplicate-key"),
        }
        assert one(store, "select count(*) from stg_score") == len(scores) - 2


def test_d19_lines_copied_to_the_end_are_ignored_and_counted(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    lines = written.path.read_bytes().splitlines()
    copied = [line for line in lines if line.startswith((b'{"kind":"request"', b'{"kind":"score"'))][:20]
    written.path.write_bytes(b"\n".join([*lines, *copied]) + b"\n")
    with load.open_records([written.path]) as store:
        assert store.duplicate_count == 20
        for kind in ("request", "score"):
            whole = sum(line.startswith(f'{{"kind":"{kind}"'.encode()) for line in lines)
            assert one(store, f"select count(*) from stg_{kind}") == whole


def test_d19_a_second_result_with_its_own_seq_is_a_duplicate_of_the_first(
    tmp_path: Path, campaign_records: Kit
) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    lines = written.path.read_bytes().splitlines()
    score = next(line for line in lines if line.startswith(b'{"kind":"score"'))
    again = campaign_records.rechain([*lines, score], lambda index, line: line)
    written.path.write_bytes(b"\n".join(again) + b"\n")
    with load.open_records([written.path]) as store:
        assert store.set_aside == []
        assert store.duplicate_counts == {"score": 1}
        assert one(store, "select max(seq) from stg_score") < len(lines)


def test_the_same_bytes_under_two_names_are_read_once_and_named(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    copy = written.runs / "copy.jsonl"
    copy.write_bytes(written.path.read_bytes())
    with load.open_records([written.runs]) as store:
        assert store.copies == [(copy, written.path)]
        assert one(store, "select count(*) from stg_pass_begin") == 3
        assert store.duplicate_count == 0


@pytest.mark.parametrize("salt", range(4))
def test_a_changed_copy_of_a_run_never_displaces_the_sound_file(
    tmp_path: Path, campaign_records: Kit, salt: int
) -> None:
    """Whatever the digests of the two, by which the cache names them."""
    written = campaign_records(tmp_path / "runs", documents=4, critical=1, seed=salt + 1)
    lines = written.path.read_bytes().splitlines(keepends=True)
    with load.open_records([written.path]) as store:
        sound = store.con.execute("select * from stg_score order by seq").fetchall()
    changed = b"".join(lines).replace(b'"is_accepted":true', b'"is_accepted":false')
    (written.runs / "a.jsonl").write_bytes(changed)
    with load.open_records([written.runs]) as store:
        assert store.con.execute("select * from stg_score order by seq").fetchall() == sound
        assert store.duplicate_count == len(lines)


def test_one_run_in_two_sealed_files_of_different_content_is_refused(tmp_path: Path, campaign_records: Kit) -> None:
    first = campaign_records(tmp_path / "a", documents=4, critical=1, run_id="5" * 32)
    second = campaign_records(tmp_path / "b", documents=4, critical=1, run_id="5" * 32, reference_runs=1)
    assert first.head_digest != second.head_digest
    with load.open_records([tmp_path]) as store, pytest.raises(Refused, match="both files are sealed"):
        figures.build(store)
    (finding,) = (f for f in check([tmp_path]).findings if f.rule == "two-contents")
    assert finding.file == second.path


def test_a_backup_of_an_open_file_adds_nothing_to_its_later_state(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    lines = written.path.read_bytes().splitlines(keepends=True)
    (written.runs / "backup.jsonl").write_bytes(b"".join(lines[:200]))
    with load.open_records([written.runs]) as store:
        assert store.duplicate_count == 200
        assert one(store, "select count(*) from stg_request") == sum(b'"kind":"request"' in line for line in lines)


def test_d21_a_newer_file_is_set_aside_whole_and_the_others_are_read(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    newer = campaign_records(tmp_path / "runs", seed=9, start="2026-02-02T09:00:00")
    edited(campaign_records, newer.path, lambda line: line | {"format": 99} if line["kind"] == "header" else line)
    with load.open_records([tmp_path]) as store:
        assert store.newer_files == [newer.path]
        assert [(item.file, item.line, item.rule) for item in store.set_aside] == [(newer.path, None, "newer-format")]
        assert store.con.execute("select distinct run_id from records").fetchall() == [(written.run_id,)]


def test_d21_only_newer_files_open_as_empty_views(tmp_path: Path, campaign_records: Kit) -> None:
    newer = campaign_records(tmp_path / "runs")
    edited(campaign_records, newer.path, lambda line: line | {"format": 2} if line["kind"] == "header" else line)
    with load.open_records([tmp_path]) as store:
        assert one(store, "select count(*) from stg_request") == 0


def test_d22_no_field_that_is_missing_ends_in_a_traceback(tmp_path: Path, campaign_records: Kit) -> None:
    """Each field of a request in turn: an optional one reads as null or its default, a required one costs one line."""
    written = campaign_records(tmp_path / "runs", documents=4, critical=1, is_sealed=False)
    lines = written.path.read_bytes().splitlines()
    place = next(i for i, line in enumerate(lines) if b'"phase":"measure"' in line and b'"kind":"request"' in line)
    names = list(msgspec.json.decode(lines[place]))
    for name in names:
        cut = msgspec.json.decode(lines[place])
        del cut[name]
        path = tmp_path / "cut" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\n".join([*lines[:place], msgspec.json.encode(cut), *lines[place + 1 :]]) + b"\n")
    with load.open_records([tmp_path / "cut"]) as store:
        costly = {item.file.stem for item in store.set_aside}
        assert {"kind", "seq", "pass_id", "request_outcome"} <= costly
        assert costly.isdisjoint({"output_tokens", "sent_ns", "missing", "prompt_hmac"})
        assert {item.line for item in store.set_aside} == {place + 1}
        assert {report.path.stem: report.record_count for report in store.files} == {
            name: len(lines) - (name in costly) for name in names
        }


def test_a_torn_last_line_is_left_out_and_the_file_called_open(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    whole = written.path.read_bytes()
    written.path.write_bytes(whole[:-40])
    with load.open_records([written.path]) as store:
        assert store.open_files == [written.path]
        assert [item.rule for item in store.set_aside] == ["torn-tail"]
        assert one(store, "select count(*) from records") == whole.count(b"\n") - 1


def test_second_opening_takes_the_cache_and_another_byte_makes_another_entry(
    tmp_path: Path, campaign_records: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    folder = tmp_path / "cache"
    load.open_records([written.path], cache_dir=folder).close()
    kept = sorted(path.name for path in folder.iterdir())
    assert [name.rsplit(".", 1)[1] for name in kept] == ["json", "parquet"]

    def never(*_: object) -> None:
        raise AssertionError("checked again")

    with monkeypatch.context() as patched:
        patched.setattr("reporter.cache.chain.verify", never)
        with load.open_records([written.path], cache_dir=folder) as store:
            assert one(store, "select count(*) from stg_pass_begin") == 3
            assert store.files[0].header is not None
            assert store.files[0].path == written.path
    written.path.write_bytes(written.path.read_bytes()[:-1] + b" \n")
    load.open_records([written.path], cache_dir=folder).close()
    assert len(list(folder.iterdir())) == 4


def test_a_damaged_cache_entry_is_made_again(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    folder = tmp_path / "cache"
    load.open_records([written.path], cache_dir=folder).close()
    for pattern in ("*.parquet", "*.json"):
        (entry,) = folder.glob(pattern)
        entry.write_bytes(entry.read_bytes()[:50])
        with load.open_records([written.path], cache_dir=folder) as store:
            assert one(store, "select count(*) from stg_pass_begin") == 3


def test_a_parquet_of_another_run_in_the_cache_never_reaches_a_figure(tmp_path: Path, campaign_records: Kit) -> None:
    """Nor does one that a query wrote into: DuckDB allows writing to a path that may be read."""
    written, other = campaign_records(tmp_path / "a"), campaign_records(tmp_path / "b", seed=2)
    folder = tmp_path / "cache"
    load.open_records([other.path], cache_dir=folder).close()
    (foreign,) = folder.glob("*.parquet")
    with load.open_records([written.path], cache_dir=folder) as store:
        (own,) = (path for path in folder.glob("*.parquet") if path != foreign)
        assert not own.stat().st_mode & 0o222
    own.chmod(0o644)
    own.write_bytes(foreign.read_bytes())
    with load.open_records([written.path], cache_dir=folder) as store:
        assert store.con.execute("select distinct run_id from records").fetchall() == [(written.run_id,)]
        own.chmod(0o644)
        store.con.execute(f"copy (select 1 as kind) to '{own}' (format csv, use_tmp_file false)")
    with load.open_records([written.path], cache_dir=folder) as store:
        assert one(store, "select count(*) from stg_pass_begin") == 3


def test_what_is_no_file_in_a_folder_is_passed_over_and_a_run_that_is_a_link_to_nothing_is_not(
    tmp_path: Path, campaign_records: Kit
) -> None:
    runs = campaign_records(tmp_path / "runs").runs
    (runs / "folder.jsonl").mkdir()
    (runs / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(runs / "pipe.jsonl")
    with load.open_records([runs]) as store:
        assert len(store.files) == 1
    with pytest.raises(DossierError, match="is no file"):
        load.open_records([runs / "pipe.jsonl"])
    (runs / f"20260102T090000Z-{'0' * 32}.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DossierError, match="No such file"):
        load.open_records([runs])


def test_a_name_that_is_not_utf_8_is_refused_with_its_bytes(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    written.path.rename(os.fsdecode(os.fsencode(written.runs) + b"/r\xff.jsonl"))
    with pytest.raises(DossierError, match=r"r\\xff\.jsonl is not UTF-8"):
        load.open_records([written.runs])


def test_a_file_given_by_link_folder_and_name_has_one_name_in_any_order(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs")
    link = tmp_path / "a.jsonl"
    link.symlink_to(written.path)
    for paths in ([link, written.runs, written.path], [written.path, link], [written.runs, link, link]):
        with load.open_records(paths) as store:
            assert [report.path.name for report in store.files] == [written.path.name]
            assert store.copies == []


def test_default_cache_is_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "gpu-dossier" / "records"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache_dir() == Path.home() / ".cache" / "gpu-dossier" / "records"


def test_a_cache_that_cannot_be_written_is_refused_with_a_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DossierError, match="cache folder") as refusal:
        Cache(tmp_path / "file" / "cache")
    assert "XDG_CACHE_HOME" in refusal.value.next_step


def _count(runs: Path, folder: Path, queue: Any) -> None:
    with load.open_records([runs], cache_dir=folder) as store:
        queue.put(one(store, "select count(*) from records where kind = 'header'"))


def test_d15_two_reports_open_the_folder_at_once_while_a_run_is_being_written(
    tmp_path: Path, campaign_records: Kit
) -> None:
    """Both start on an empty cache; the growing file is appended to all the while, and each reads what it saw whole."""
    sealed = campaign_records(tmp_path / "runs", documents=40)
    growing = campaign_records(tmp_path / "other", start="2026-01-03T09:00:00", is_sealed=False)
    lines = growing.path.read_bytes().splitlines(keepends=True)
    target = sealed.runs / growing.path.name
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with target.open("wb", buffering=0) as stream:
        stream.write(b"".join(lines[:30]))
        readers = [context.Process(target=_count, args=(sealed.runs, tmp_path / "cache", queue)) for _ in range(2)]
        for reader in readers:
            reader.start()
        for line in lines[30:]:
            stream.write(line[:25])
            stream.write(line[25:])
        counts = [queue.get(timeout=60) for _ in readers]
        for reader in readers:
            reader.join(timeout=60)
    assert counts == [2, 2]
    assert [reader.exitcode for reader in readers] == [0, 0]
    assert not list((tmp_path / "cache").glob("*.partial"))
