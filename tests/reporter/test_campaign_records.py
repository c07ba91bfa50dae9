"""The record builder that the reporter's tests stand on makes files that keep the contract."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from collector.contract.records import Request, decode_record


def test_built_files_decode_chain_and_carry_their_own_head_digest(tmp_path: Path, campaign_records: Any) -> None:
    cuda = campaign_records.device(name="Example GPU", kind="cuda", host="b")
    files = [campaign_records(tmp_path / "runs"), campaign_records(tmp_path / "runs", device=cuda)]
    assert files[0].lock.protocol_id == files[1].lock.protocol_id
    for written in files:
        lines = written.path.read_bytes().splitlines()
        prev = "0" * 64
        for seq, line in enumerate(lines):
            record = decode_record(line)
            assert (record.seq, record.prev, record.run_id) == (seq, prev, written.run_id)
            prev = hashlib.sha256(line).hexdigest()
        sealed = lines[-1].replace(written.head_digest.encode(), b"0" * 64)
        assert hashlib.sha256(sealed).hexdigest() == written.head_digest


def test_built_campaign_has_the_reference_twice_and_one_variant_over_all_documents(
    tmp_path: Path, campaign_records: Any
) -> None:
    written = campaign_records(tmp_path / "runs", documents=30)
    records = [decode_record(line) for line in written.path.read_bytes().splitlines()]
    kinds = Counter(type(record).__name__ for record in records)
    assert kinds["PassBegin"] == kinds["PassEnd"] == 3
    assert kinds["Score"] == 90
    measured = [r for r in records if isinstance(r, Request) and r.phase == "measure"]
    assert len(measured) == 90


def test_rechained_lines_are_valid_again(tmp_path: Path, campaign_records: Any) -> None:
    written = campaign_records(tmp_path / "runs")
    lines = written.path.read_bytes().splitlines()
    dropped = campaign_records.rechain(lines, lambda i, o: None if o["kind"] == "warning" else o)
    assert [msgspec.json.decode(line)["seq"] for line in dropped] == list(range(len(dropped)))
    assert b"warning" not in b"".join(dropped[:-1])
