"""The time of every chunk is not written where the writing would disturb what is timed, nor asked of what has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.capture_rules import MAX_CONCURRENCY, MAX_RATE_PER_S
from collector.init import init_folder
from collector.protocol_check import check_protocol

SERVER = '\n[[server]]\nname = "far"\nurl = "http://127.0.0.1:1"\nhas_chunk_capture = {}\n'
POOL = "[engine.continuous]\nnum_blocks = 8\nmax_batch_tokens = 64\n\n[[variant]]"


def capture_findings_after(folder: Path, *edits: tuple[str, str], kind: str = "extraction") -> list[tuple[str, str]]:
    """The starter with these edits: (the protocol's own line, message) of each finding about capture."""
    init_folder(folder, kind=kind, device="d")  # type: ignore[arg-type]
    path = folder / "protocol.toml"
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")
    lines = text.splitlines()
    found = [each for each in check_protocol(path, with_tokenizer=False) if each.rule == "capture"]
    return [(lines[(each.line or 1) - 1].strip(), each.message) for each in found]


def plan(line: str) -> tuple[str, str]:
    return "[plan]", f"[plan]\n{line}"


def server(captures: str = "true") -> tuple[str, str]:
    return "[plan]", f"{SERVER.format(captures)}\n[plan]"


def capturing_engine() -> tuple[str, str]:
    return "[engine]", "[engine]\nhas_step_capture = true"


@pytest.mark.parametrize(
    "edits",
    [
        (capturing_engine(),),
        (server(), plan(f"concurrencies = [2, {MAX_CONCURRENCY}]\nrates = [{MAX_RATE_PER_S}]")),
        (server("false"), plan("concurrencies = [2, 256]\nrates = [500]")),
        (capturing_engine(), plan("concurrencies = [2, 256]\nrates = [500]")),
    ],
)
def test_capture_at_low_rates_and_high_rates_without_capture_are_refused_nothing(
    tmp_path: Path, edits: tuple[tuple[str, str], ...]
) -> None:
    assert capture_findings_after(tmp_path, *edits) == []


def test_chunk_capture_at_a_high_concurrency_or_rate_is_refused_at_its_line(tmp_path: Path) -> None:
    found = capture_findings_after(tmp_path, server(), plan("concurrencies = [2, 65]\nrates = [10, 51.5]"))
    assert [line for line, _ in found] == ["has_chunk_capture = true"] * 2
    assert "goes up to 65" in found[0][1]
    assert "goes up to 51.5 per second" in found[1][1]


def test_step_capture_of_many_requests_in_process_is_refused(tmp_path: Path) -> None:
    edits = capturing_engine(), ("[[variant]]", POOL), plan("concurrencies = [2, 128]")
    assert [line for line, _ in capture_findings_after(tmp_path, *edits)] == ["has_step_capture = true"]


def test_an_embedding_has_no_steps_to_capture(tmp_path: Path) -> None:
    ((line, message),) = capture_findings_after(tmp_path, capturing_engine(), kind="ranking")
    assert line == "has_step_capture = true"
    assert "an embedding generates none" in message


def test_an_engine_that_asks_a_server_is_sent_to_the_servers_own_setting(tmp_path: Path) -> None:
    name = 'name = "transformers"', 'name = "openai"\nhas_step_capture = true'
    ((line, message),) = capture_findings_after(tmp_path, name)
    assert line == "has_step_capture = true"
    assert "openai asks a server" in message
