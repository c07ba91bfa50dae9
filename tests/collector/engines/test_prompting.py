"""From prompt to token ids: the template once, and the start token exactly as often as the template asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from collector.contract.errors import DossierError
from collector.engines._prompting import TemplateEncoder, check_start_tokens, model_context_tokens
from collector.engines.base import ExampleTurn, Prompt

BOS = 256
PROMPT = Prompt(document_id="inv-7", system="", user="Total 5 EUR")
TURN = "<|user|>{{ messages[0]['content'] }}<|assistant|>"
EVERY_TURN = "{{ bos_token }}{% for m in messages %}{{ m['role'] }}:{{ m['content'] }};{% endfor %}assistant:"
Maker = Callable[..., Any]


class AddsItsOwnStart:
    """A tokenizer that puts its start token before everything, even when told not to: such have been published."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __call__(self, text: str, *, add_special_tokens: bool) -> Any:
        return self._tokenizer(text, add_special_tokens=True)


def test_the_template_is_applied_once_with_system_user_and_the_opening_of_the_answer(make_tokenizer: Maker) -> None:
    (sent,) = TemplateEncoder(make_tokenizer(), 256).encode([Prompt(document_id="d", system="be brief", user="hi")])
    assert sent.rendered == "<s><|system|>be brief\n<|user|>hi\n<|assistant|>"
    assert sent.start_token_count == 1
    assert sent.token_ids.count(BOS) == 1


def test_worked_examples_are_earlier_turns_of_the_chat(make_tokenizer: Maker) -> None:
    turns = [ExampleTurn(user="one", answer="1"), ExampleTurn(user="two", answer="2")]
    prompt = Prompt(document_id="d", system="count", user="three", examples=turns)
    (sent,) = TemplateEncoder(make_tokenizer(EVERY_TURN), 256).encode([prompt])
    assert sent.rendered == "<s>system:count;user:one;assistant:1;user:two;assistant:2;user:three;assistant:"
    assert sent.token_ids.count(BOS) == 1
    (plain,) = TemplateEncoder(make_tokenizer(None), 256).encode([prompt])
    assert plain.rendered == "count\n\none\n1\n\ntwo\n2\n\nthree"


def test_token_ids_are_those_of_the_library_itself(make_tokenizer: Maker) -> None:
    tokenizer = make_tokenizer()
    (sent,) = TemplateEncoder(tokenizer, 256).encode([PROMPT])
    messages = [{"role": "user", "content": PROMPT.user}]
    library = tokenizer.apply_chat_template(messages, tokenize=True, add_generation_prompt=True, return_dict=True)
    assert sent.token_ids == library["input_ids"]


def test_without_a_system_text_no_system_message_is_sent(make_tokenizer: Maker) -> None:
    (sent,) = TemplateEncoder(make_tokenizer(), 256).encode([PROMPT])
    assert "<|system|>" not in sent.rendered


def test_c05_one_start_token_where_the_template_writes_one(make_tokenizer: Maker) -> None:
    (sent,) = TemplateEncoder(make_tokenizer("{{ bos_token }}" + TURN), 256).encode([PROMPT])
    assert (sent.start_token_count, sent.token_ids[:2]) == (1, [BOS, 259])


def test_c05_none_where_the_template_writes_none_although_the_tokenizer_would(make_tokenizer: Maker) -> None:
    (sent,) = TemplateEncoder(make_tokenizer(TURN), 256).encode([PROMPT])
    assert (sent.start_token_count, sent.token_ids[0]) == (0, 259)


def test_c05_a_start_token_written_by_template_and_tokenizer_is_doubled(make_tokenizer: Maker) -> None:
    tokenizer = AddsItsOwnStart(make_tokenizer("{{ bos_token }}" + TURN))
    with pytest.raises(DossierError, match=r"doubled: the prompt of inv-7 begins with 2 .*first ids: 256, 256, 259, "):
        TemplateEncoder(tokenizer, 256).encode([PROMPT])


def test_c05_a_template_that_writes_it_twice_is_doubled_too(make_tokenizer: Maker) -> None:
    with pytest.raises(DossierError, match="doubled"):
        TemplateEncoder(make_tokenizer("{{ bos_token }}{{ bos_token }}" + TURN), 256).encode([PROMPT])


def test_c05_a_start_token_that_nobody_asked_for_is_an_error(make_tokenizer: Maker) -> None:
    with pytest.raises(DossierError, match=r"not asked for: the prompt of inv-7 begins with 1 .*asks for 0; first"):
        TemplateEncoder(AddsItsOwnStart(make_tokenizer(TURN)), 256).encode([PROMPT])


def test_c05_a_start_token_that_the_template_writes_and_the_vocabulary_spells_out_is_absent(
    make_tokenizer: Maker,
) -> None:
    tokenizer = make_tokenizer("{{ bos_token }}" + TURN)
    tokenizer.bos_token = "</s>"  # the template now writes one token, while the checked id is another's
    wrong = type("Wrong", (AddsItsOwnStart,), {"bos_token_id": BOS, "__call__": lambda self, text, **_: tokenizer(
        text, add_special_tokens=False)})(tokenizer)  # fmt: skip
    with pytest.raises(DossierError, match=r"absent: the prompt of inv-7 begins with 0 .*first ids: 257, 259"):
        TemplateEncoder(wrong, 256).encode([PROMPT])


@pytest.mark.parametrize(("asked", "ids", "fault"), [(1, [5, 6], "absent"), (1, [1, 1, 5], "doubled"), (0, [1], "not")])
def test_the_start_token_fault_names_id_count_and_next_step(asked: int, ids: list[int], fault: str) -> None:
    with pytest.raises(DossierError, match=fault) as caught:
        check_start_tokens(ids, asked=asked, start_id=1, document_id="d")
    assert "(id 1)" in str(caught.value)
    assert "tokenizer_config.json" in caught.value.next_step


def test_a_tokenizer_without_a_start_token_has_none(make_tokenizer: Maker) -> None:
    assert check_start_tokens([1, 1], asked=0, start_id=None, document_id="d") == 0


def test_a_base_model_gets_plain_text_and_the_start_token_of_its_tokenizer(make_tokenizer: Maker) -> None:
    plain = TemplateEncoder(make_tokenizer(None), 256)
    (sent,) = plain.encode([Prompt(document_id="d", system="S", user="U")])
    assert (sent.rendered, sent.start_token_count, sent.token_ids[0]) == ("S\n\nU", 1, BOS)
    assert plain.template_digest() is None


def test_a_template_that_refuses_the_system_role_says_what_to_do(make_tokenizer: Maker) -> None:
    template = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + TURN
    with pytest.raises(DossierError, match="no system role") as caught:
        TemplateEncoder(make_tokenizer(template), 256).encode([Prompt(document_id="d", system="S", user="U")])
    assert "move [task] system into [task] prompt" in caught.value.next_step


def test_an_answer_is_decoded_without_special_tokens_and_without_clean_up(make_tokenizer: Maker) -> None:
    encoder = TemplateEncoder(make_tokenizer(), 256)
    ids = make_tokenizer()('{"a" : 5 , "é" : 1 }', add_special_tokens=False).input_ids
    assert encoder.text([*ids, 257]) == '{"a" : 5 , "é" : 1 }'


def test_equal_tokenizers_and_templates_have_equal_digests_and_changed_ones_do_not(make_tokenizer: Maker) -> None:
    first, same, other = (TemplateEncoder(make_tokenizer(each), 9) for each in (TURN, TURN, TURN + " "))
    assert first.tokenizer_digest() == same.tokenizer_digest() == other.tokenizer_digest()
    assert first.template_digest() == same.template_digest() != other.template_digest()
    grown = make_tokenizer(TURN)
    grown.add_tokens(["<new>"])
    assert TemplateEncoder(grown, 9).tokenizer_digest() != first.tokenizer_digest()


def test_the_context_is_read_under_the_names_that_models_use() -> None:
    from transformers import GPT2Config, LlamaConfig, MambaConfig

    assert model_context_tokens(LlamaConfig(max_position_embeddings=77)) == 77
    assert model_context_tokens(GPT2Config(n_positions=55)) == 55
    assert model_context_tokens(MambaConfig()) is None
