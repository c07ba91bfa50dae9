"""How long a worker may say nothing: never less than the waits that a request engine makes by itself."""

from __future__ import annotations

from itertools import pairwise

import pytest

from collector.client.schedule import due_offsets_ns
from collector.contract.protocol import EngineChoice, Generation, Limits, Model, ServerChoice, VariantChoice
from collector.contract.records.passes import LoopKind
from collector.engines.base import ONE_AT_A_TIME, EngineSetup, Load, Prompt
from collector.events import PassJob
from collector.patience import patience_s

SERVER = ServerChoice(name="s", url="http://127.0.0.1:1", connect_s=7.0, retries=3)


def job(server: ServerChoice | None, load: Load = ONE_AT_A_TIME, documents: int = 200) -> PassJob:
    engine = EngineChoice(name="openai", server=server) if server else EngineChoice(name="transformers")
    setup = EngineSetup(
        base_dir="/", model=Model(id="m"), engine=engine, variant=VariantChoice(name="v"),
        generation=Generation(max_new_tokens=1), limits=Limits(request_s=5.0), device="cpu", pass_label="v/1/1",
    )  # fmt: skip
    measure = [Prompt(document_id=f"{number}", system="", user="x") for number in range(documents)]
    return PassJob(pass_id="p", variant_id="v", setup=setup, salt_hex="", warmup=[], measure=measure, load=load)


def test_in_process_twice_a_request_s_limit_without_an_event_is_a_hang() -> None:
    assert patience_s(job(None)) == 10.0


def test_a_wait_before_a_retry_a_connection_and_a_whole_try_are_no_hang() -> None:
    assert patience_s(job(SERVER)) > 5.0 + 7.0 + 5.0


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_the_longest_gap_between_two_arrivals_is_no_hang(arrivals: LoopKind) -> None:
    load = Load(concurrency=4, rate_per_s=0.02, arrivals=arrivals, seed=7)
    offsets_ns = due_offsets_ns(200, rate_per_s=0.02, arrivals=arrivals, seed=7)
    longest_s = max(later - earlier for earlier, later in pairwise(offsets_ns)) / 1e9
    assert longest_s > 45
    assert patience_s(job(SERVER, load)) == pytest.approx(patience_s(job(SERVER)) + longest_s)
