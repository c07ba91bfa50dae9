"""The run files of a plan in a folder: which one is open, which one finished, and what is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import collector.run_files as run_files
from collector.clock import FakeClock
from collector.contract.errors import DossierError
from collector.contract.records import Header
from collector.journal import Journal
from collector.run_files import newest_sealed, newest_unsealed

PLAN = "cd" * 32
SALT = bytes(32)


def journal(folder: Path, second: int, **changes: Any) -> Journal:
    clock = FakeClock()
    clock.advance_ns(second * 10**9)
    facts: dict[str, Any] = {
        "format": 1, "stage": "validation", "protocol_json": "{}", "protocol_id": "ab" * 32, "plan_id": PLAN,
        "collector_version": "0", "wall_at": clock.utc(), "monotonic_ns": 0,
    }  # fmt: skip
    return Journal.create(folder, header=Header(**(facts | changes)), salt=SALT, clock=clock)


def test_the_newest_file_of_the_same_plan_and_stage_is_found(tmp_path: Path) -> None:
    assert newest_unsealed(tmp_path / "absent", PLAN, "validation") is None
    with (
        journal(tmp_path, 1),
        journal(tmp_path, 2) as wanted,
        journal(tmp_path, 3) as sealed,
        journal(tmp_path, 4, plan_id="ef" * 32),
        journal(tmp_path, 5, stage="test"),
        journal(tmp_path, 6, source_head_digest="ab" * 32) as again,
    ):
        sealed.seal()
    (tmp_path / "20990101T000000Z-torn.jsonl").write_bytes(again.path.read_bytes()[:50])
    (tmp_path / "20990101T000001Z-empty.jsonl").touch()
    (tmp_path / "20990101T000002Z-folder.jsonl").mkdir()
    assert newest_unsealed(tmp_path, PLAN, "validation") == wanted.path
    assert newest_sealed(tmp_path, PLAN, "validation") == sealed.path
    with Journal.resume(wanted.path, salt=SALT, clock=FakeClock()) as last:
        last.seal()
    assert newest_unsealed(tmp_path, PLAN, "validation") not in (None, wanted.path)
    assert newest_sealed(tmp_path, PLAN, "test") is None


def test_a_run_file_that_cannot_be_read_is_refused_and_never_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the one to resume: starting another one beside it would measure everything again."""
    with journal(tmp_path, 1) as hidden:
        pass

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(run_files.Path, "open", refuse)
    with pytest.raises(DossierError, match=f"{hidden.path.name} cannot be read: Permission denied"):
        newest_unsealed(tmp_path, PLAN, "validation")
