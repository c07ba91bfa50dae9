"""The journal: groups on the disk before they count, one writer, torn tails cut and told, nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.append_file import AppendFile
from collector.clock import FakeClock, SystemClock
from collector.contract.chain import scan, verify
from collector.contract.digests import text_hmac
from collector.contract.errors import DossierError
from collector.contract.records import Decision, Document, Failure, Header, Probe, Record, Request, Warning
from collector.contract.texts import Text, TextsHeader, inspect_texts, read_texts, texts_path
from collector.journal import Journal
from collector.run_files import newest_unsealed

SALT = bytes(range(32))
PLAN = "cd" * 32
HEADER = Header(
    format=1, stage="validation", protocol_json="{}", protocol_id="ab" * 32, plan_id=PLAN, collector_version="0.1.0",
    wall_at="2026-03-14T09:00:00.000000Z", monotonic_ns=1,
)  # fmt: skip


def document(number: int, cluster: str = "c") -> Document:
    return Document(
        document_id=f"d{number}", role="validation", length_class="short", is_hard=False, subsets=[], cluster=cluster,
        text_hmac="ab" * 32, expected_hmac="ab" * 32,
    )  # fmt: skip


def long_decision(byte_count: int) -> Decision:
    return Decision(decision="override", decided_by="test", detail={"long": "x" * byte_count})


def text(content: str, kind: str = "answer") -> Text:
    return Text(hmac=text_hmac(SALT, content), text_kind=kind, text=content)


def create(folder: Path, on_acknowledged: Callable[[int], None] | None = None, **changes: Any) -> Journal:
    header = msgspec.structs.replace(HEADER, **changes)
    return Journal.create(folder, header=header, salt=SALT, clock=FakeClock(), on_acknowledged=on_acknowledged)


def resume(path: Path, salt: bytes = SALT) -> Journal:
    return Journal.resume(path, salt=salt, clock=FakeClock())


def records(path: Path) -> list[Record]:
    return [line.record for line in scan(path) if line.record is not None]


def contents(path: Path) -> list[str]:
    return [held.text for held in read_texts(texts_path(path))]


@contextmanager
def file_size_limit(byte_count: int) -> Iterator[None]:
    """No file of this process may grow beyond `byte_count`: writes are cut short and refused, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (byte_count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disks are slow; a test that resumes a thousand times does not need their promise."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def test_a_finished_run_is_a_sealed_chain_with_its_texts_beside_it(tmp_path: Path) -> None:
    with create(tmp_path / "runs") as journal:
        journal.append(document(1))
        journal.text(text("Total: 12 EUR"))
        journal.flush()
        head = journal.seal()
    report = verify(journal.path)
    assert (report.problems, report.head_digest, report.run_id) == ([], head, journal.run_id)
    assert report.kind_counts == {"header": 1, "document": 1, "seal": 1}
    assert re.fullmatch(r"20260101T000000Z-[0-9a-f]{32}\.jsonl", journal.path.name)
    assert journal.path.name.endswith(f"-{journal.run_id}.jsonl")
    assert contents(journal.path) == ["Total: 12 EUR"]
    first = texts_path(journal.path).read_bytes().splitlines()[0]
    assert msgspec.json.decode(first, type=TextsHeader) == TextsHeader(run_id=journal.run_id, salt_hex=SALT.hex())


def test_the_header_is_on_the_disk_when_the_journal_is_there(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        assert [type(record) for record in records(journal.path)] == [Header]


def test_nothing_is_written_before_flush_and_a_group_is_one_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []
    real = os.write
    with create(tmp_path) as journal:
        before = journal.path.stat().st_size
        monkeypatch.setattr(os, "write", lambda fd, data: writes.append(len(data)) or real(fd, data))
        for number in range(50):
            journal.append(document(number))
        assert journal.path.stat().st_size == before
        journal.flush()
        assert writes == [journal.path.stat().st_size - before]
        journal.flush()
        assert len(writes) == 1


def test_texts_are_on_the_disk_before_the_lines_that_cite_them_and_acknowledged_is_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real_write, real_sync = os.write, os.fsync

    def name(fd: int) -> str:
        return "texts" if os.readlink(f"/proc/self/fd/{fd}").endswith(".texts.jsonl") else "lines"

    def write(fd: int, data: Any) -> int:
        order.append(f"write {name(fd)}")
        return real_write(fd, data)

    def sync(fd: int) -> None:
        real_sync(fd)
        order.append(f"synced {name(fd)}")

    with create(tmp_path, on_acknowledged=lambda seq: order.append(f"acknowledged {seq}")) as journal:
        monkeypatch.setattr(os, "write", write)
        monkeypatch.setattr(os, "fsync", sync)
        order.clear()
        journal.append(document(1))
        journal.text(text("an answer"))
        journal.append(document(2))
        journal.flush()
    assert order == ["write texts", "synced texts", "write lines", "synced lines", "acknowledged 2"]


def test_a_text_is_written_once_per_file_even_across_a_resume(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        for content in ("a", "b", "a"):
            journal.text(text(content))
        journal.flush()
        journal.text(text("b"))
    with resume(journal.path) as again:
        again.text(text("a"))
        again.text(text("c"))
    assert contents(journal.path) == ["a", "b", "c"]


@pytest.mark.parametrize("content", ["", "dòng\nmới\r\x00", "\ud800 lone", "😀" * 300_000, '"}\\'], ids=range(5))
def test_any_text_comes_back_character_for_character(tmp_path: Path, content: str) -> None:
    with create(tmp_path) as journal:
        journal.text(text(content))
    (held,) = read_texts(texts_path(journal.path))
    assert (held.text, held.hmac) == (content, text_hmac(SALT, content))


def test_deleting_the_texts_leaves_the_chain_valid_and_the_run_resumable(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.text(text("secret"))
        journal.append(document(1))
    texts_path(journal.path).unlink()
    with resume(journal.path) as again:
        again.text(text("later"))
        again.seal()
    assert verify(journal.path).problems == []
    assert contents(journal.path) == ["later"]


def test_the_main_file_holds_no_text(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.text(text("the customer's name"))
        journal.append(Warning(warning_class="UserWarning", message_hmac=text_hmac(SALT, "the customer's name")))
    assert b"customer" not in journal.path.read_bytes()


# Resuming.


def test_a_resumed_run_goes_on_in_the_same_chain_and_says_so(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.append(document(1))
    with resume(journal.path) as again:
        assert (again.run_id, again.path) == (journal.run_id, journal.path)
        again.append(document(2))
        again.seal()
    report = verify(journal.path)
    assert report.problems == []
    assert report.kind_counts == {"header": 1, "document": 2, "decision": 1, "seal": 1}
    decisions = [record for record in records(journal.path) if isinstance(record, Decision)]
    assert [decision.decision for decision in decisions] == ["resumed"]


@pytest.mark.usefixtures("no_fsync")
def test_a_run_cut_at_any_byte_after_its_header_resumes_with_every_whole_line(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        for number in range(1):
            journal.append(document(number))
    whole = journal.path.read_bytes()
    header_end = whole.index(b"\n") + 1
    for length in range(header_end, len(whole) + 1):
        journal.path.write_bytes(whole[:length])
        with resume(journal.path) as again:
            again.append(document(9))
            again.seal()
        kept = whole[: whole[:length].rfind(b"\n") + 1]
        report = verify(journal.path)
        assert journal.path.read_bytes().startswith(kept)
        assert report.problems == []
        assert report.is_sealed
        assert report.kind_counts["decision"] == (1 if len(kept) == length else 2)


@pytest.mark.parametrize("tail", [b'{"kind":"docu', b"\0" * 300, b"\0" * 300 + b"\n", b'{"kind":"seal","run_id":"0'])
def test_a_torn_tail_is_cut_and_the_cut_is_recorded(tmp_path: Path, tail: bytes) -> None:
    with create(tmp_path) as journal:
        journal.append(document(1))
    journal.path.write_bytes(journal.path.read_bytes() + tail)
    with resume(journal.path):
        pass
    cut, resumed = (record for record in records(journal.path) if isinstance(record, Decision))
    assert (cut.decision, cut.detail) == ("tail_cut", {"cut_bytes": str(len(tail)), "texts_cut_bytes": "0"})
    assert resumed.decision == "resumed"
    assert verify(journal.path).problems == []


@pytest.mark.parametrize("tail", [b'{"hmac":"ab', b"\0" * 40, b"garbage\n"])
def test_a_torn_tail_of_the_texts_is_cut_and_recorded(tmp_path: Path, tail: bytes) -> None:
    with create(tmp_path) as journal:
        journal.text(text("kept"))
    texts = texts_path(journal.path)
    texts.write_bytes(texts.read_bytes() + tail)
    with resume(journal.path) as again:
        again.text(text("new"))
    assert contents(journal.path) == ["kept", "new"]
    assert inspect_texts(texts).good_byte_count == texts.stat().st_size
    cut = next(record for record in records(journal.path) if isinstance(record, Decision))
    assert (cut.decision, cut.detail["texts_cut_bytes"]) == ("tail_cut", str(len(tail)))


def test_damage_before_the_tail_is_not_resumed_over(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.append(document(1))
        journal.append(document(2))
    damaged = journal.path.read_bytes().replace(b'"d1"', b'"d7"')
    journal.path.write_bytes(damaged)
    with pytest.raises(DossierError, match=r"jsonl:3: \[chain\]"):
        resume(journal.path)
    assert journal.path.read_bytes() == damaged


def test_a_sealed_run_is_not_resumed_and_takes_no_more_records(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.seal()
        with pytest.raises(DossierError, match="is sealed"):
            journal.append(document(1))
    sealed = journal.path.read_bytes()
    with pytest.raises(DossierError, match="nothing is left to resume"):
        resume(journal.path)
    assert journal.path.read_bytes() == sealed


def test_another_salt_is_refused(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        pass
    before = journal.path.read_bytes()
    with pytest.raises(DossierError, match=r"protocol\.salt"):
        resume(journal.path, salt=bytes(32))
    assert journal.path.read_bytes() == before


def test_resuming_a_file_that_is_gone_makes_none(tmp_path: Path) -> None:
    with pytest.raises(DossierError, match="cannot be opened"):
        resume(tmp_path / "absent.jsonl")
    assert list(tmp_path.iterdir()) == []


# One writer, unique names.


def test_a_second_writer_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        with pytest.raises(DossierError, match="another collector") as caught:
            resume(journal.path)
        assert "next: wait" in str(caught.value)
        journal.append(document(1))
        journal.seal()
    assert verify(journal.path).problems == []


def test_d20_two_runs_started_at_the_same_instant_have_two_files(tmp_path: Path) -> None:
    with create(tmp_path) as one, create(tmp_path) as other:
        assert one.path != other.path
        assert one.path.name[:17] == other.path.name[:17]
    assert len(list(tmp_path.glob("*.jsonl"))) == 4


def test_d20_an_existing_file_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda count: "ab" * count)
    with create(tmp_path) as first:
        first.append(document(1))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(DossierError, match="File exists"):
        create(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def child(folder: Path, count: int, text_bytes: int) -> subprocess.Popen[str]:
    """A process that waits for a line, then appends records of about 300 KB and prints each acknowledged seq."""
    script = f"""
import sys
from pathlib import Path
from collector.clock import SystemClock
from collector.contract.records import Decision, Header
from collector.journal import Journal
import msgspec
header = msgspec.json.decode(sys.stdin.readline(), type=Header)
journal = Journal.create(Path({str(folder)!r}), header=header, salt=bytes(range(32)), clock=SystemClock(),
                         on_acknowledged=lambda seq: print(seq, flush=True))
for number in range({count}):
    journal.append(Decision(decision="override", decided_by="d%d" % number, detail={{"long": "x" * {text_bytes}}}))
    journal.flush()
journal.seal()
"""
    return subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def start(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    filled = msgspec.structs.replace(HEADER, run_id="0" * 32, prev="0" * 64, written_at=HEADER.wall_at)
    process.stdin.write(msgspec.json.encode(filled).decode() + "\n")
    process.stdin.flush()


def test_d16_processes_that_write_at_once_never_mix_their_lines(tmp_path: Path) -> None:
    """Records larger than a pipe's buffer, one folder; each process has its own file, so nothing can interleave."""
    processes = [child(tmp_path, count=12, text_bytes=300_000) for _ in range(4)]
    for process in processes:
        start(process)
    for process in processes:
        _, _ = process.communicate(timeout=60)
        assert process.returncode == 0
    files = [path for path in tmp_path.glob("*.jsonl") if not path.name.endswith(".texts.jsonl")]
    assert len(files) == 4
    for path in files:
        report = verify(path)
        assert (report.problems, report.is_sealed, report.kind_counts["decision"]) == ([], True, 12)


def test_a_killed_writer_leaves_every_acknowledged_record_and_no_lock(tmp_path: Path) -> None:
    for acknowledged_before_kill in (1, 4, 9):
        folder = tmp_path / str(acknowledged_before_kill)
        process = child(folder, count=100_000, text_bytes=20_000)
        start(process)
        assert process.stdout is not None
        seen = [int(process.stdout.readline()) for _ in range(acknowledged_before_kill)]
        process.send_signal(signal.SIGKILL)
        seen += [int(line) for line in process.communicate()[0].splitlines()]
        path = newest_unsealed(folder, PLAN, "validation")
        assert path is not None
        with resume(path) as journal:
            journal.seal()
        found = [record.seq for record in records(path)]
        assert found == list(range(len(found)))
        assert len(found) > max(seen)
        assert verify(path).problems == []


# Refusals that leave nothing half-written.


def test_a_full_disk_is_an_error_with_a_next_step_and_leaves_whole_groups_only(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    journal = create(tmp_path, on_acknowledged=acknowledged.append)
    journal.append(document(1))
    journal.flush()
    before = journal.path.read_bytes()
    with file_size_limit(len(before) + 700):
        journal.append(long_decision(400))
        journal.append(long_decision(400))
        with pytest.raises(DossierError, match="next: free space") as caught:
            journal.flush()
    assert journal.path.read_bytes() == before
    assert str(journal.path) in str(caught.value)
    assert acknowledged == [0, 1]
    journal.flush()
    assert acknowledged == [0, 1, 3]
    journal.seal()
    journal.close()
    assert verify(journal.path).problems == []


def test_a_full_disk_while_texts_are_written_leaves_the_lines_that_cite_them_unwritten(tmp_path: Path) -> None:
    journal = create(tmp_path)
    lines, texts = journal.path.read_bytes(), texts_path(journal.path).read_bytes()
    with file_size_limit(max(len(lines), len(texts)) + 1000):
        journal.append(document(1))
        journal.text(text("x" * 5000))
        with pytest.raises(DossierError, match="free space"):
            journal.flush()
    assert (journal.path.read_bytes(), texts_path(journal.path).read_bytes()) == (lines, texts)
    journal.close()
    assert contents(journal.path) == ["x" * 5000]
    assert verify(journal.path).record_count == 2


def test_a_failing_fsync_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledged: list[int] = []
    journal = create(tmp_path, on_acknowledged=acknowledged.append)
    before = journal.path.read_bytes()

    def broken(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        journal.append(document(1))
        with pytest.raises(DossierError, match="Input/output error"):
            journal.flush()
    assert (acknowledged, journal.path.read_bytes()) == ([0], before)
    journal.close()


def test_what_a_failed_write_left_is_dropped_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may refuse the clean-up as well; the next group must not land behind the leftover."""
    file = AppendFile.create(tmp_path / "a")
    file.append(b"one\n")

    def refuse(fd: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch, file_size_limit(6):
        patch.setattr(os, "ftruncate", refuse)
        with pytest.raises(DossierError):
            file.append(b"two\n")
    assert (tmp_path / "a").read_bytes() == b"one\ntw"
    file.append(b"three\n")
    file.close()
    assert (tmp_path / "a").read_bytes() == b"one\nthree\n"


def test_a_disk_too_full_for_the_header_leaves_no_file(tmp_path: Path) -> None:
    with file_size_limit(200), pytest.raises(DossierError, match="free space"):
        create(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_folder_is_refused_with_a_next_step(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:  # root may write anywhere: become nobody for a moment
        os.seteuid(65534)
    try:
        with pytest.raises(DossierError, match="give this user the right"):
            create(folder)
    finally:
        if is_root:
            os.seteuid(0)
    folder.chmod(0o755)
    assert list(folder.iterdir()) == []


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("x")
    with pytest.raises(DossierError, match="folder for runs"):
        create(tmp_path / "runs")


def test_d14_a_record_of_one_megabyte_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        with pytest.raises(DossierError, match=r"a decision record of 1,000,\d{3} bytes; a line is under 1,000,000"):
            journal.append(long_decision(1_000_000))
        journal.append(long_decision(990_000))
        journal.seal()
    assert verify(journal.path).problems == []
    with pytest.raises(DossierError, match="a header record"):
        create(tmp_path / "other", protocol_json="x" * 1_000_000)
    assert list((tmp_path / "other").iterdir()) == []


# Values that the contract cannot hold.


def test_d24_a_value_that_was_lost_is_told_in_a_warning_with_its_text(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.append(Decision(decision="override", decided_by="me", detail={"why": object}))  # type: ignore[dict-item]
        journal.append(Probe(
            probe_name="p", environment_id="0" * 16, definition_id="d", probe_unit="s", probe_value=float("nan"),
        ))  # fmt: skip
        journal.seal()
    assert verify(journal.path).problems == []
    _, decision, warning, probe, _ = records(journal.path)
    assert isinstance(decision, Decision)
    assert decision.detail == {"why": "<class 'object'>"}
    assert isinstance(warning, Warning)
    assert warning.warning_class == "unwritable_value"
    assert contents(journal.path) == ["values that a decision record cannot hold: detail.why: <class 'object'>"]
    assert warning.message_hmac == text_hmac(SALT, contents(journal.path)[0])
    assert isinstance(probe, Probe)
    assert (probe.probe_value, probe.missing) == (None, {"probe_value": "failed"})


def test_d24_a_record_that_cannot_be_written_is_kept_as_text_and_counts_as_a_failure(tmp_path: Path) -> None:
    unfit = Request(
        pass_id="0123456789abcdef", phase="measure", document_id="d7", is_final=True, intended_ns="soon",
        token_count_source="engine", finish_reason="end_token", request_outcome="completed", output_tokens=41,
    )  # type: ignore[arg-type]  # fmt: skip
    with create(tmp_path) as journal:
        journal.append(unfit)
        journal.append(document(8))
        journal.seal()
    assert verify(journal.path).problems == []
    failure = records(journal.path)[1]
    assert isinstance(failure, Failure)
    assert (failure.failure_cause, failure.exception_class) == ("format", "unfit request record")
    assert (failure.pass_id, failure.document_id, failure.phase) == ("0123456789abcdef", "d7", "measure")
    (kept,) = contents(journal.path)
    assert "intended_ns: 'soon'" in kept
    assert "output_tokens=41" in kept


def test_records_are_stamped_by_the_clock_at_the_time_they_are_taken_over(tmp_path: Path) -> None:
    clock = FakeClock(start_utc="2026-10-25T00:30:00.000000Z")
    journal = Journal.create(tmp_path, header=HEADER, salt=SALT, clock=clock)
    clock.advance_ns(3_600_000_000_000)
    journal.append(document(1))
    journal.close()
    stamps = [json.loads(line)["written_at"] for line in journal.path.read_bytes().splitlines()]
    assert stamps == ["2026-10-25T00:30:00.000000Z", "2026-10-25T01:30:00.000000Z"]


def test_the_system_clock_gives_stamps_that_the_contract_accepts(tmp_path: Path) -> None:
    with Journal.create(tmp_path, header=HEADER, salt=SALT, clock=SystemClock()) as journal:
        journal.seal()
    assert verify(journal.path).problems == []
