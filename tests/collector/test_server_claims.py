"""What servers say of themselves: by kind, with the path that said it, and without anybody's folders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stub_server import StubServer, plain

from collector.contract.protocol import ServerChoice, ServerKind
from collector.contract.records import ServerClaim
from collector.server_claims import server_claim
from collector.server_process import server_at

MODEL = "/home/somebody/models/tiny"
VLLM_CACHE = (
    'vllm:cache_config_info{block_size="128",cache_dtype="auto",enable_prefix_caching="True",'
    'gpu_memory_utilization="0.9",kv_cache_size_tokens="23296",num_gpu_blocks="182"} 1.0\n'
)
PAGES = {
    "vllm": {
        "/version": plain(200, {"version": "0.32.0"}),
        "/v1/models": plain(200, {"data": [{"id": "smol", "root": MODEL, "max_model_len": 2048}]}),
        "/metrics": plain(200, VLLM_CACHE),
    },
    "sglang": {
        "/server_info": plain(200, {"version": "0.5", "mem_fraction_static": 0.88, "max_total_num_tokens": 40_000}),
        "/model_info": plain(200, {"model_path": MODEL}),
    },
    "llamacpp": {
        "/props": plain(
            200,
            {
                "build_info": "b9999-abc", "model_path": f"{MODEL}/tiny.Q4_1.gguf", "total_slots": 4,
                "default_generation_settings": {"n_ctx": 2048},
            },
        )
    },
    "tgi": {"/info": plain(200, {"version": "3.3.6", "model_id": "org/tiny", "max_total_tokens": 4096})},
    "transformers": {"/v1/models": plain(200, {"data": []})},
}  # fmt: skip
WANTED = {
    "vllm": {"version": "0.32.0", "model": "smol", "model_source": "tiny", "context_tokens": "2048"},
    "sglang": {"version": "0.5", "model_source": "tiny", "memory_fraction": "0.88", "cache_capacity_tokens": "40000"},
    "llamacpp": {"version": "b9999-abc", "model_source": "tiny.Q4_1.gguf", "context_tokens": "2048", "slots": "4"},
    "tgi": {"version": "3.3.6", "model": "org/tiny", "context_tokens": "4096"},
    "transformers": {},
}


@pytest.fixture
def claim_of(request: pytest.FixtureRequest) -> Iterator[tuple[ServerKind, ServerClaim, list[dict[str, str]]]]:
    """The claim of a stub that speaks as a kind, and the headers it was asked with."""
    kind: ServerKind = request.param
    with StubServer(pages=PAGES[kind]) as stub:
        choice = ServerChoice(name="gate", kind=kind, url=stub.base_url)
        claim = server_claim(server_at(choice), choice, headers={"Authorization": "Bearer very-secret"})
        yield kind, claim, [seen.headers for seen in stub.seen]


@pytest.mark.parametrize("claim_of", list(PAGES), indirect=True)
def test_each_kind_says_what_it_can_with_the_path_that_said_it_and_no_place_of_the_machine(
    claim_of: tuple[ServerKind, ServerClaim, list[dict[str, str]]],
) -> None:
    kind, claim, asked_with = claim_of
    assert claim.claims.items() >= WANTED[kind].items()
    assert claim.claims.keys() == claim.sources.keys()
    assert set(claim.sources.values()) <= PAGES[kind].keys() | {"/v1/models"}
    assert (claim.server_name, claim.server_kind, claim.is_started, claim.is_loopback) == ("gate", kind, False, True)
    assert (claim.start_ns, claim.missing) == (None, {"start_ns": "not_applicable"})
    assert "somebody" not in str(claim)
    assert "secret" not in str(claim)
    assert all(headers.get("authorization") == "Bearer very-secret" for headers in asked_with)


@pytest.mark.parametrize("claim_of", ["vllm"], indirect=True)
def test_b10_what_an_engine_claims_of_the_memory_is_recorded_as_a_claim_with_its_cache_in_tokens(
    claim_of: tuple[ServerKind, ServerClaim, list[dict[str, str]]],
) -> None:
    claims, sources = claim_of[1].claims, claim_of[1].sources
    assert claims["memory_fraction"] == "0.9"
    assert claims["cache_capacity_tokens"] == "23296"
    assert sources["memory_fraction"] == sources["cache_capacity_tokens"] == "/metrics"


def test_a_server_that_answers_no_such_path_claims_nothing_and_is_recorded_all_the_same() -> None:
    gone = plain(404, {"error": "no"})
    with StubServer(pages={"/version": gone, "/v1/models": plain(200, "no JSON"), "/metrics": gone}) as stub:
        choice = ServerChoice(name="gate", kind="vllm", url=stub.base_url)
        claim = server_claim(server_at(choice), choice)
    assert (claim.claims, claim.sources, claim.server_kind) == ({}, {}, "vllm")
