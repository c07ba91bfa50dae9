"""Where a model's files are, and their digests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.contract.errors import DossierError
from collector.engines._artefact import artefact_files, file_digests, find_artefact, local_folder, user_cache_dir
from collector.engines.base import EngineSetup

Maker = Callable[..., EngineSetup]


def test_a_folder_is_found_from_the_protocols_folder_and_absolutely(make_setup: Maker, models_dir: Path) -> None:
    for name in ("llama", str(models_dir / "llama")):
        found = find_artefact(make_setup(name, revision="main"))
        assert (found.folder, found.arguments()) == (models_dir / "llama", {})


def test_a_hub_id_keeps_its_revision_and_has_no_folder_before_it_is_cached(make_setup: Maker) -> None:
    found = find_artefact(make_setup("some-one/some-model", revision="abc", gguf_file="m.gguf"))
    assert found == ("some-one/some-model", None, "abc", "m.gguf", False)
    assert found.arguments() == {"revision": "abc", "gguf_file": "m.gguf"}
    assert local_folder(found) is None


def test_the_snapshot_of_a_hub_id_is_found_in_the_hubs_cache(make_setup: Maker, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--some-one--some-model" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text("a" * 40)
    setup = make_setup("some-one/some-model")
    import transformers.utils.hub as hub

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
        assert local_folder(find_artefact(setup)) == snapshot


@pytest.mark.parametrize("name", ["./absent", "/absent/model", "a/b/c", "~/absent-model"])
def test_what_is_neither_folder_nor_hub_id_is_refused(make_setup: Maker, name: str) -> None:
    with pytest.raises(DossierError, match="does not exist") as caught:
        find_artefact(make_setup(name))
    assert "Hugging Face id" in caught.value.next_step


def test_only_the_weights_that_a_load_reads_are_listed(tmp_path: Path) -> None:
    for name in ("model.safetensors", "pytorch_model.bin", "config.json", "notes.txt", "m.gguf", "other.gguf"):
        (tmp_path / name).write_bytes(name.encode())
    assert [path.name for path in artefact_files(tmp_path, None)] == ["model.safetensors", "config.json"]
    assert [path.name for path in artefact_files(tmp_path, "m.gguf")] == ["m.gguf", "config.json"]
    (tmp_path / "model.safetensors").unlink()
    assert [path.name for path in artefact_files(tmp_path, None)] == ["pytorch_model.bin", "config.json"]


def test_a_digest_is_remembered_until_size_or_time_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, cache = tmp_path / "model.safetensors", tmp_path / "cache"
    weights.write_bytes(b"one")
    os.utime(weights, ns=(1, 1))
    assert file_digests([weights], cache) == {weights.name: hashlib.sha256(b"one").hexdigest()}
    reads: list[Path] = []
    monkeypatch.setattr("collector.engines._artefact.file_sha256", lambda path: reads.append(path) or "f" * 64)
    assert file_digests([weights], cache) == {weights.name: hashlib.sha256(b"one").hexdigest()}
    assert reads == []
    weights.write_bytes(b"two")
    assert file_digests([weights], cache) == {weights.name: "f" * 64}


def test_a_broken_or_unwritable_digest_cache_only_costs_time(tmp_path: Path) -> None:
    weights, cache = tmp_path / "w", tmp_path / "cache"
    weights.write_bytes(b"w")
    cache.mkdir()
    (cache / "file-digests.json").write_text("{broken")
    expected = {"w": hashlib.sha256(b"w").hexdigest()}
    assert file_digests([weights], cache) == expected
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    assert file_digests([weights], blocked) == expected


def test_the_cache_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache_dir() == tmp_path / "gpu-dossier"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache_dir() == Path.home() / ".cache" / "gpu-dossier"
