"""The steps file: lines that do not drift, on the disk before what cites them, cut when torn, absent by default."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from collector.cli import main
from collector.clock import FakeClock
from collector.contract.chain import verify
from collector.contract.protocol import EngineChoice, ServerChoice
from collector.contract.records import Decision, Document, Header, Record, Request
from collector.contract.steps import (
    Steps,
    decode_steps,
    encode_steps,
    generating_over_time,
    inspect_steps,
    microseconds,
    read_steps,
    steps_digest,
    steps_path,
)
from collector.engines.base import Answer, EncodedPrompt, Wire
from collector.events import PassJob
from collector.journal import Journal
from collector.request_records import RequestRecords
from collector.workers import InProcessWorkerFactory

SALT = bytes(range(32))
HEADER = Header(
    format=1, stage="validation", protocol_json="{}", protocol_id="ab" * 32, plan_id="cd" * 32,
    collector_version="0.1.0", wall_at="2026-03-14T09:00:00.000000Z", monotonic_ns=1,
)  # fmt: skip
SCRIPT = {"defaults": {"first_token_ms": 4, "gap_ms": 1.0004, "output_tokens": 6}}

stamps = st.lists(st.integers(0, 4 * 10**12), min_size=1, max_size=200).map(sorted)
counts = st.lists(st.integers(0, 2**40), max_size=20)


def captured(text: str) -> str:
    return text.replace('name = "scripted"', 'name = "scripted"\nhas_step_capture = true')


def steps(document_id: str = "d1", first_us: int = 10, deltas_us: tuple[int, ...] = (5, 5), **more: Any) -> Steps:
    whole: dict[str, Any] = {"pass_id": "a" * 16, "phase": "measure", "try_index": 0, "unit": "token"}
    return Steps(document_id=document_id, first_us=first_us, deltas_us=list(deltas_us), **(whole | more))


def create(folder: Path) -> Journal:
    return Journal.create(folder, header=HEADER, salt=SALT, clock=FakeClock())


def document(number: int) -> Document:
    return Document(
        document_id=f"d{number}", role="validation", length_class="short", is_hard=False, subsets=[], cluster="c",
        text_hmac="ab" * 32, expected_hmac="ab" * 32,
    )  # fmt: skip


# Lines.


@given(stamps, counts, counts, st.sampled_from(["token", "chunk"]))
def test_a_line_comes_back_as_it_was_and_every_stamp_is_within_half_a_microsecond(
    stamps_ns: list[int], tokens: list[int], live: list[int], unit: Any
) -> None:
    first_us, deltas_us = microseconds(stamps_ns)
    line = steps(first_us=first_us, deltas_us=tuple(deltas_us), unit=unit, tokens=tokens, live_rows=live)
    encoded = encode_steps(line)
    assert decode_steps(encoded.encode()) == line
    assert steps_digest(encoded) == steps_digest(encoded.encode())
    back = line.stamps_us()
    assert len(back) == len(stamps_ns)
    assert all(abs(us * 1000 - ns) <= 500 for us, ns in zip(back, stamps_ns, strict=True))


def test_many_equal_gaps_of_less_than_a_microsecond_do_not_drift() -> None:
    """10,000 gaps of 400 ns: rounding each gap by itself would say 0 us in all instead of 4 ms."""
    first_us, deltas_us = microseconds([400 * step for step in range(10_001)])
    assert (first_us, sum(deltas_us)) == (0, 4000)


def test_stamps_count_from_the_origin_and_never_run_backwards() -> None:
    assert microseconds([5_000, 9_400, 9_200], origin_ns=2_000) == (3, [4, 0])


def test_a_line_that_is_none_is_refused() -> None:
    for broken in (b"{}", b'{"pass_id":"x"}', b"\0\0", encode_steps(steps()).replace("[5,5]", "[5,-5]").encode()):
        with pytest.raises(ValueError, match=r"."):
            decode_steps(broken)


def test_requests_that_generate_are_counted_over_time() -> None:
    lines = [steps("d1", 10, (10, 10)), steps("d2", 20, (20,)), steps("d3", 40, (5,)), steps("d4", 60, ())]
    assert generating_over_time(lines) == [(10, 1), (20, 2), (30, 1), (45, 0)]
    assert generating_over_time([]) == []


# Journal.


def test_steps_are_on_the_disk_before_the_lines_that_cite_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    real = os.fsync

    def sync(fd: int) -> None:
        real(fd)
        name = os.readlink(f"/proc/self/fd/{fd}")
        order.append("steps" if name.endswith(".steps.jsonl") else "lines" if name.endswith(".jsonl") else "folder")

    with create(tmp_path) as journal:
        monkeypatch.setattr(os, "fsync", sync)
        journal.append(document(1))
        journal.steps(encode_steps(steps()))
        journal.flush()
        journal.append(document(2))
        journal.steps(encode_steps(steps("d2")))
        journal.flush()
    assert order == ["folder", "steps", "lines", "steps", "lines"]
    assert [line.document_id for line in read_steps(steps_path(journal.path))] == ["d1", "d2"]


def test_no_steps_make_no_file_and_a_deleted_one_leaves_the_chain_valid(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.append(document(1))
        journal.flush()
        assert not steps_path(journal.path).exists()
        journal.steps(encode_steps(steps()))
        journal.seal()
    steps_path(journal.path).unlink()
    assert verify(journal.path).problems == []


@pytest.mark.parametrize("tail", [b'{"pass_id":"aaaa', b"\0" * 40, b"garbage\n"])
def test_a_torn_tail_of_the_steps_is_cut_on_resuming_and_recorded(
    tmp_path: Path, tail: bytes, records_of: Callable[[Path], list[Record]]
) -> None:
    with create(tmp_path) as journal:
        journal.steps(encode_steps(steps()))
    path = steps_path(journal.path)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    with Journal.resume(journal.path, salt=SALT, clock=FakeClock()) as again:
        assert path.read_bytes() == whole
        again.steps(encode_steps(steps("d2")))
    assert [line.document_id for line in read_steps(path)] == ["d1", "d2"]
    assert inspect_steps(path).good_byte_count == path.stat().st_size
    cut = next(record for record in records_of(journal.path) if isinstance(record, Decision))
    assert (cut.decision, cut.detail["steps_cut_bytes"]) == ("tail_cut", str(len(tail)))


def test_resuming_without_a_steps_file_makes_none(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        pass
    with Journal.resume(journal.path, salt=SALT, clock=FakeClock()) as again:
        again.append(document(1))
    assert not steps_path(journal.path).exists()


# A run.


@pytest.fixture
def in_process(make_trial: Callable[..., Any], fixed_meter: Any, fixed_machine: Any) -> Callable[..., Path]:
    """Run a scripted trial on a fake clock, its workers in this process; give the run file."""

    def run(script: Any, edit: Callable[[str], str], documents: int = 4) -> Path:
        clock = FakeClock()
        factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
        trial = make_trial(script, documents=documents, edit=edit)
        return Path(trial.run(clock=clock, factory=factory, machine=fixed_machine).path)

    return run


def test_a_run_with_capture_writes_one_cited_line_per_request(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    """A real run in processes of its own: warm-up and reload requests too, each digest that of its line."""
    path = Path(make_trial(SCRIPT, documents=5, edit=captured).run().path)
    requests = [record for record in records_of(path) if isinstance(record, Request)]
    lines = steps_path(path).read_bytes().splitlines()
    assert {line.steps_sha256 for line in requests} == {steps_digest(line) for line in lines}
    assert len(lines) == len(requests)
    assert {record.phase for record in requests} == {"warmup", "measure", "reload"}
    for record, line in zip(requests, map(decode_steps, lines), strict=True):
        key = (record.pass_id, record.phase, record.document_id, record.try_index)
        assert (line.pass_id, line.phase, line.document_id, line.try_index) == key
        stamps_us = line.stamps_us()
        assert record.first_token_ns is not None
        assert record.last_token_ns is not None
        assert abs(stamps_us[0] * 1000 - record.first_token_ns) <= 500
        assert abs(stamps_us[-1] * 1000 - record.last_token_ns) <= 500
        gaps = [later - earlier for earlier, later in pairwise(stamps_us)]
        assert len(gaps) + 1 == record.output_tokens == 6
        assert min(gaps) > 0
        assert (line.unit, line.tokens, line.live_rows) == ("token", [], [])


def test_a_batch_tells_its_live_rows_per_step(in_process: Callable[..., Path]) -> None:
    script = {
        "passes": [
            {"match": "*", "documents": {f"d{number}": {"text": "a " * (number + 2)} for number in range(4)}},
        ]
    }
    lines = list(read_steps(steps_path(in_process(script, lambda text: captured(text) + "batches = [4]\n"))))
    together = [line for line in lines if line.live_rows and line.phase == "measure"]
    assert {line.document_id: line.live_rows for line in together} == {
        "d0": [4, 4], "d1": [4, 4, 3], "d2": [4, 4, 3, 2], "d3": [4, 4, 3, 2, 1],
    }  # fmt: skip


def test_without_capture_there_is_no_file_and_no_digest(
    in_process: Callable[..., Path], records_of: Callable[[Path], list[Record]]
) -> None:
    path = in_process(SCRIPT, lambda text: text)
    assert not steps_path(path).exists()
    assert {record.steps_sha256 for record in records_of(path) if isinstance(record, Request)} == {None}


def test_a_captured_request_that_failed_says_why_it_has_no_steps(
    in_process: Callable[..., Path], records_of: Callable[[Path], list[Record]]
) -> None:
    script = SCRIPT | {"passes": [{"match": "*", "documents": {"d1": {"failure_cause": "format"}}}]}
    requests = [
        record
        for record in records_of(in_process(script, captured))
        if isinstance(record, Request) and record.document_id == "d1"
    ]
    assert requests
    assert {(record.steps_sha256, record.missing["steps_sha256"]) for record in requests} == {(None, "failed")}


def test_the_digest_stands_in_the_line_that_the_schema_allows() -> None:
    assert msgspec.json.decode(encode_steps(steps())) == {
        "pass_id": "a" * 16, "phase": "measure", "document_id": "d1", "try_index": 0, "unit": "token", "first_us": 10,
        "deltas_us": [5, 5],
    }  # fmt: skip


@pytest.mark.parametrize("captures", [True, False])
def test_chunks_of_a_server_are_written_with_their_tokens_where_its_capture_is_on(
    make_trial: Callable[..., Any], captures: bool
) -> None:
    server = ServerChoice(name="far", url="http://127.0.0.1:1", has_chunk_capture=captures)
    engine = EngineChoice(name="openai", server=server)
    setup = msgspec.structs.replace(make_trial().setup("fp32/1/1"), engine=engine)
    job = PassJob(pass_id="a" * 16, variant_id="b" * 16, setup=setup, salt_hex=SALT.hex(), warmup=[], measure=[])
    prompt = EncodedPrompt(document_id="d1", rendered="x", token_ids=[1], start_token_count=0)
    answer = Answer(
        prompt=prompt, intended_ns=1000, sent_ns=1000, first_token_ns=4000, last_token_ns=9600, done_ns=9700,
        output_tokens=5, token_count_source="usage", finish_reason="end_token", request_outcome="completed",
        gap_unit="chunk", wire=Wire(chunk_stamps_ns=[4000, 7400, 9600], chunk_tokens=[1, 3, 1]),
    )  # fmt: skip
    made = RequestRecords(job, origin_ns=1000).request(answer, "measure", try_index=2, batch_number=0)
    if not captures:
        assert made.steps is None
        assert (made.record.steps_sha256, made.record.missing["steps_sha256"]) == (None, "not_applicable")
        return
    assert made.steps is not None
    assert made.record.steps_sha256 == steps_digest(made.steps)
    line = steps("d1", 3, (3, 3), unit="chunk", tokens=[1, 3, 1], try_index=2)
    assert decode_steps(made.steps.encode()) == line
    assert line.stamps_us() == [3, 6, 9]


def test_the_command_says_how_large_the_steps_file_is(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(SCRIPT, documents=2, edit=captured)
    said = CliRunner().invoke(main, ["run", str(trial.protocol), "--out", str(trial.out), "--device", "cpu"])
    assert said.exit_code == 0, said.output
    (path,) = trial.out.glob("*.steps.jsonl")
    assert f"{path.name}, {path.stat().st_size:,} bytes" in said.stdout
