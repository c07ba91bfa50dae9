"""The run files of a plan in a folder: which one is open, which one finished, and what is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import collector.run_files as run_files
from collector.clock import FakeClock
from collector.contract.errors import DossierError
from collector.contract.records import Device, Environment, Header
from collector.journal import Journal
from collector.run_files import newest_sealed, newest_unsealed, resumable

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


def environment(name: str, **changes: Any) -> Environment:
    facts: dict[str, Any] = {
        "environment_id": name, "os_name": "Test OS", "os_version": "1", "kernel_version": "1",
        "machine_architecture": "x", "python_version": "3", "packages": {},
    }  # fmt: skip
    return Environment(**(facts | changes))


def device(name: str) -> Device:
    return Device(environment_id=name, device_id="cuda:0", device_kind="cuda", device_name=f"Card {name}")


def test_of_a_shared_folder_only_the_open_file_of_this_environment_is_resumed(tmp_path: Path) -> None:
    """Two machines write into one folder: the newest open file is the other one's."""
    own, others = environment("a" * 16), environment("b" * 16, kernel_version="2", load_average_1m=3.0)
    with journal(tmp_path, 1) as mine, journal(tmp_path, 2) as theirs:
        for file, record in ((mine, own), (theirs, others)):
            file.append(record)
            file.append(device(record.environment_id))
            file.flush()
    assert newest_unsealed(tmp_path, PLAN, "validation") == theirs.path
    assert resumable(tmp_path, PLAN, "validation", own, [device("a" * 16)]) == mine.path
    assert resumable(tmp_path, PLAN, "validation", others, []) == theirs.path
    with pytest.raises(DossierError) as refused:
        resumable(tmp_path, PLAN, "validation", environment("c" * 16), [device("c" * 16)])
    message = refused.value.message
    for said in (
        str(theirs.path),
        f"Card {'b' * 16} (environment {'b' * 16})",
        f"Card {'c' * 16} (environment {'c' * 16})",
    ):
        assert said in message
    assert message.endswith("they differ in kernel_version")
    assert "--resume" in refused.value.next_step


def test_an_open_file_that_ends_before_its_environment_can_be_resumed_anywhere(tmp_path: Path) -> None:
    with journal(tmp_path, 1) as begun:
        pass
    assert resumable(tmp_path, PLAN, "validation", environment("a" * 16), []) == begun.path
    assert resumable(tmp_path, "ef" * 32, "validation", environment("a" * 16), []) is None
