"""What a block pool cannot run is refused before anything is loaded, at its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.contract.protocol import ContinuousChoice, Lock
from collector.init import init_folder
from collector.plan import plan_passes
from collector.protocol_check import check_protocol

POOL = "[engine.continuous]\nblock_size = {size}\nnum_blocks = {blocks}\nmax_batch_tokens = 64\n\n[[variant]]"


def pooled(text: str, *, size: int = 16, blocks: int = 64, concurrencies: str = "[2, 4]") -> str:
    text = text.replace("[[variant]]", POOL.format(size=size, blocks=blocks), 1)
    return text.replace("[plan]", f"[plan]\nconcurrencies = {concurrencies}" if concurrencies else "[plan]", 1)


def findings_of(folder: Path, edit: Callable[[str], str], *, kind: Any = "extraction") -> list[tuple[str, str]]:
    """The starter, edited: (the protocol's own line, message) of each finding about the pool."""
    init_folder(folder, kind=kind, device="d")
    path = folder / "protocol.toml"
    text = edit(path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    found = [each for each in check_protocol(path, with_tokenizer=False) if each.rule == "continuous"]
    return [(text.splitlines()[(each.line or 1) - 1].strip(), each.message) for each in found]


def test_a_pool_with_a_series_of_concurrencies_is_refused_nothing(tmp_path: Path) -> None:
    assert findings_of(tmp_path, pooled) == []


@pytest.mark.parametrize(
    ("changes", "line", "said"),
    [
        ({"concurrencies": ""}, "[engine.continuous]", "and the plan has no such pass"),
        ({"size": 2}, "block_size = 2", "the library takes 4 or more"),
        ({"blocks": 3}, "concurrencies = [2, 4]", "with num_blocks = 3 no more than 3 requests can run"),
        ({"concurrencies": "[80]", "blocks": 99}, "concurrencies = [80]", "with max_batch_tokens = 64 no more than 64"),
    ],
)
def test_a_pool_that_contradicts_the_plan_is_refused_at_its_line(
    tmp_path: Path, changes: dict[str, Any], line: str, said: str
) -> None:
    ((found, message),) = findings_of(tmp_path, lambda text: pooled(text, **changes))
    assert found == line
    assert said in message


def test_an_embedding_has_no_use_for_a_pool(tmp_path: Path) -> None:
    found = findings_of(tmp_path, pooled, kind="ranking")
    assert (
        "[engine.continuous]",
        "[engine.continuous] runs requests that generate, and the engine answers by embedding",
    ) in found


def test_in_process_several_at_a_time_differ_in_more_than_the_concurrency(make_trial: Callable[..., Any]) -> None:
    """Attention and cache are paged there: a difference to one request at a time is attributed to none."""
    lock: Lock = make_trial().frozen.lock
    engine = msgspec.structs.replace(
        lock.plan.engine, name="transformers", continuous=ContinuousChoice(num_blocks=8, max_batch_tokens=64)
    )
    choice = msgspec.structs.replace(lock.plan.plan, concurrencies=[2, 4])
    lock = msgspec.structs.replace(lock, plan=msgspec.structs.replace(lock.plan, engine=engine, plan=choice))
    engine_ids = {variant.name: "f" * 16 for variant in lock.plan.variants}
    passes = plan_passes(lock, stage="validation", environment_id="e" * 16, engine_ids=engine_ids)
    grown = [(each.load.concurrency, each.series, each.factor) for each in passes if each.load.concurrency > 1]
    assert grown == [(2, "concurrency", "several"), (4, "concurrency", "several")]
