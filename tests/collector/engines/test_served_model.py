"""A server that holds another model or other weights than were asked for is refused, or told as a deviation."""

from __future__ import annotations

from typing import Any

import pytest

from collector.client.messages import Exchange
from collector.contract.errors import DossierError
from collector.contract.protocol import ServerChoice, VariantChoice
from collector.engines._served_model import (
    LISTS_WHAT_IT_HOLDS,
    answering_model,
    answering_words,
    format_words,
    listed_names,
    other_names,
    require_listed,
    unlisted_words,
)

PAGE = {"data": [{"id": "smol", "aliases": ["small"]}, {"id": "/home/somebody/big.gguf"}, {"object": "model"}]}


def server(kind: Any) -> ServerChoice:
    return ServerChoice(name="mine", kind=kind, url="http://127.0.0.1:9")


def variant(quantization: Any = "none", dtype: Any = "float32") -> VariantChoice:
    return VariantChoice(name="v", server="mine", quantization=quantization, dtype=dtype)


def exchange(body: bytes) -> Exchange:
    return Exchange(number=0, try_index=0, intended_ns=0, pieces=[(1, body)], ending="complete", is_final=True)


@pytest.mark.parametrize("kind", LISTS_WHAT_IT_HOLDS)
def test_a_name_that_such_a_server_does_not_list_is_refused_with_those_it_lists(kind: str) -> None:
    with pytest.raises(DossierError, match=r"lists smol, .*asks for the model 'smal'") as refused:
        require_listed(server(kind), "smal", listed_names(PAGE), other_names(PAGE))
    assert 'write model = "smol"' in refused.value.next_step
    assert "/home/somebody" not in str(refused.value)


@pytest.mark.parametrize("name", ["smol", "small", "/home/somebody/big.gguf"])
def test_a_listed_name_and_a_further_name_of_a_model_are_served(name: str) -> None:
    require_listed(server("llamacpp"), name, listed_names(PAGE), other_names(PAGE))


@pytest.mark.parametrize("page", [None, [], {}, {"data": None}, {"data": ["smol"]}, {"data": []}])
def test_a_server_that_lists_nothing_readable_is_believed(page: Any) -> None:
    require_listed(server("vllm"), "smol", listed_names(page), other_names(page))


def test_a_gateway_may_route_what_it_does_not_list_and_the_deviation_says_so() -> None:
    require_listed(server("other"), "smal", listed_names(PAGE))
    assert unlisted_words("smal", listed_names(PAGE)) == "model: requested smal, the server lists smol, big.gguf"
    assert unlisted_words("smol", listed_names(PAGE)) is None
    assert unlisted_words("smal", []) is None


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'data: {"model": "smol", "choices": []}\n\ndata: {"model": "later"}\n\n', "smol"),
        (b': alive\n\ndata: {"model":\ndata: "smol"}\n\n', "smol"),
        (b'{"model": "smol", "choices": []}', "smol"),
        (b"data: {not json}\n\n", None),
        (b'data: {"model": 3}\n\n', None),
        (b"data: [DONE]\n\n", None),
        (b"<html>", None),
        (b"", None),
    ],
)
def test_an_answer_names_its_model_in_its_first_event_or_its_body(body: bytes, name: str | None) -> None:
    assert answering_model(exchange(body)) == name


def test_answers_that_name_another_model_are_a_deviation_with_both_names() -> None:
    assert answering_words("gpt", ["gpt-2026-01-01"]) == "model: requested gpt, answers name gpt-2026-01-01"
    assert answering_words("/somewhere/tiny", ["tiny@main", "/elsewhere/tiny"]) is None
    assert answering_words("gpt", []) is None


@pytest.mark.parametrize("claimed", ["Q4_1", "mostly Q4_K - Medium", "IQ2_XS", "gptq", "fp8", "compressed int8"])
def test_packed_weights_are_a_deviation_of_a_variant_that_asks_for_none(claimed: str) -> None:
    words = format_words(variant(), {"weights_format": claimed})
    assert words == f"weights: requested float32, the server claims {claimed}"
    assert format_words(variant("gguf"), {"weights_format": claimed}) is None


@pytest.mark.parametrize("claimed", ["bfloat16", "torch.bfloat16", "BF16", "all F16", "float16"])
def test_another_type_than_the_asked_one_is_a_deviation_and_the_same_is_none(claimed: str) -> None:
    asked = "bfloat16" if "b" in claimed.lower() else "float16"
    assert format_words(variant(), {"weights_format": claimed}) is not None
    assert format_words(variant(dtype=asked), {"weights_format": claimed}) is None
    assert format_words(variant("bnb_nf4", asked), {"dtype": claimed}) is not None


@pytest.mark.parametrize("claims", [{}, {"weights_format": "(unknown)"}, {"cache_dtype": "fp8"}])
def test_a_form_that_is_not_told_or_of_an_unknown_name_is_no_deviation(claims: dict[str, str]) -> None:
    assert format_words(variant(), claims) is None
