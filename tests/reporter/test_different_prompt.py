"""Answers to different prompts: found by their hashes and refused before any score is compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from collector.contract.errors import Refused
from reporter.check import check
from reporter.figures import build
from reporter.load import open_records

Kit = Any


def two_engines(folder: Path, kit: Kit, *, changed: int) -> Path:
    """Two runs of one model under one protocol; the second sends `changed` documents without the chat template."""
    kit(folder / "in-process")
    server = kit(folder / "server", device=kit.device(name="Example GPU", kind="cuda", host="b"), seed=2,
                 start="2026-01-09T09:00:00").path  # fmt: skip
    wanted = {f"doc-{number:03d}" for number in range(1, changed + 1)}

    def edit(_: int, line: dict[str, Any]) -> dict[str, Any]:
        is_changed = line["kind"] == "request" and line["phase"] == "measure" and line["document_id"] in wanted
        return line | {"prompt_hmac": "b" * 64} if is_changed else line

    server.write_bytes(b"".join(line + b"\n" for line in kit.rechain(server.read_bytes().splitlines(), edit)))
    return Path(server)


@pytest.mark.parametrize("changed", [1, 20])
def test_c07_the_same_model_sent_another_prompt_by_another_engine_is_refused_before_any_score_is_compared(
    tmp_path: Path, campaign_records: Kit, changed: int
) -> None:
    server = two_engines(tmp_path, campaign_records, changed=changed)
    lines = [msgspec.json.decode(line) for line in server.read_bytes().splitlines()]
    place = next(n for n, line in enumerate(lines, start=1) if line.get("prompt_hmac") == "b" * 64)
    count = sum(line.get("prompt_hmac") == "b" * 64 for line in lines)
    found = [finding for finding in check([tmp_path]).findings if finding.rule == "different-prompt"]
    assert {finding.file for finding in found} == {server}
    assert len(found) == count
    with open_records([tmp_path]) as store:
        with pytest.raises(Refused) as refused:
            build(store)
        (finding,) = refused.value.findings
        assert (finding.rule, finding.file, finding.line) == ("different-prompt", server, place)
        assert finding.message.startswith(f"different prompt: {count} request(s)")
        assert "same template" in finding.next_step
        with pytest.raises(duckdb.CatalogException):
            store.con.execute("select * from judged_documents")


def test_c07_runs_of_one_prompt_are_compared(tmp_path: Path, campaign_records: Kit) -> None:
    two_engines(tmp_path, campaign_records, changed=0)
    assert check([tmp_path]).findings == []
    with open_records([tmp_path]) as store:
        assert build(store).tables["quality"].rows
