"""A model of the Hub without a network: one short try, then the cache alone or the ways out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from collector.contract.errors import DossierError
from collector.engines._artefact import Artefact, find_artefact
from collector.engines._hub import at_hand
from collector.engines.base import EngineSetup

Maker = Callable[..., EngineSetup]
MODEL = Artefact("nobody-here/not-there", None, "abc", None)


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Takes the Hub to be where nothing listens, and returns the folder of its cache."""
    import transformers.utils.hub as hub
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("unreachable")
def test_a_model_that_is_nowhere_is_refused_within_seconds_with_the_ways_out() -> None:
    begin = time.monotonic()
    with pytest.raises(DossierError, match="nobody-here/not-there is no folder and not in the Hub's cache") as caught:
        at_hand(MODEL)
    assert time.monotonic() - begin < 15  # the library's own six tries wait 23 seconds
    assert "http://127.0.0.1:9 cannot be reached" in caught.value.message
    assert "name the model's folder" in caught.value.next_step
    assert "hf download nobody-here/not-there --revision abc" in caught.value.next_step


def test_a_model_in_the_cache_is_read_from_there_alone_while_the_hub_is_silent(unreachable: Path) -> None:
    snapshot = unreachable / "models--nobody-here--not-there" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "abc").write_text("a" * 40)
    assert at_hand(MODEL).arguments() == {"revision": "abc", "local_files_only": True}


@pytest.mark.usefixtures("unreachable")
def test_a_folder_is_never_asked_about(make_setup: Maker, models_dir: Path) -> None:
    artefact = find_artefact(make_setup("llama"))
    assert artefact.folder == models_dir / "llama"
    assert at_hand(artefact) is artefact


@pytest.mark.usefixtures("unreachable")
def test_without_downloads_nothing_is_asked_and_the_library_looks_into_its_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert at_hand(MODEL) is MODEL


class _Absent(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def answering() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Absent) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_any_answer_of_the_hub_leaves_the_lookup_to_the_library(
    monkeypatch: pytest.MonkeyPatch, answering: str
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", answering)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert at_hand(MODEL) is MODEL
