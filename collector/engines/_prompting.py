"""From task prompt to token ids: the chat template once, the start token exactly as often as the template asks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from collector.contract.errors import DossierError

from .base import EncodedPrompt, Prompt

_SHOWN_IDS = 16

StopCheck = Callable[[Sequence[int]], bool]


def never(token_ids: Sequence[int]) -> bool:
    """An answer that no text ends."""
    return False


class TemplateEncoder:
    """A tokenizer with its chat template; counts and renders before anything is measured."""

    def __init__(self, tokenizer: Any, context_tokens: int | None) -> None:
        self._tokenizer = tokenizer
        self._context_tokens = context_tokens

    @property
    def tokenizer(self) -> Any:
        """The library's own tokenizer, for its special tokens."""
        return self._tokenizer

    @property
    def has_template(self) -> bool:
        """False for a base model: its prompts are sent as plain text with the tokenizer's own start token."""
        return bool(self._tokenizer.chat_template)

    def context_limit_tokens(self) -> int | None:
        return self._context_tokens

    def count_tokens(self, text: str) -> int:
        """Return how many tokens a text has when the model writes it."""
        return len(self._tokenizer(text, add_special_tokens=False).input_ids)

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        """Return the prompts as they will be sent.

        Raises DossierError where the template refuses the system text, or where the start token is doubled, absent
        or not asked for; the message names the token ids.
        """
        return [self._encoded(prompt) for prompt in prompts]

    def text(self, token_ids: list[int]) -> str:
        """Return an answer's text, special tokens left out and nothing else changed."""
        # The clean-up that some tokenizers ask for removes spaces before punctuation: it would edit the answer.
        return str(self._tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def tokenizer_digest(self) -> str:
        """Return the sha256 of the tokenizer as loaded: equal for equal tokenizers, whatever file they came from."""
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        content = backend.to_str() if backend is not None else repr(sorted(self._tokenizer.get_vocab().items()))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def template_digest(self) -> str | None:
        """Return the sha256 of the chat template's text, or None without one."""
        template = self._tokenizer.chat_template
        return hashlib.sha256(str(template).encode("utf-8")).hexdigest() if template else None

    def tokenizer_class(self) -> str:
        return type(self._tokenizer).__name__

    def stop_check(self, texts: Sequence[str]) -> StopCheck:
        """Return what tells of an answer's ids whether its newest part completes one of the texts.

        A stop text may begin inside one token and end in another, and a character may take several tokens: as many of
        the last ids are turned into text as the longest stop text has bytes, and one more.
        """
        if not texts:
            return never
        reach = max(len(text.encode()) for text in texts) + 1

        def has_stopped(token_ids: Sequence[int]) -> bool:
            tail = self._tokenizer.decode(token_ids[-reach:], skip_special_tokens=True)
            return any(text in tail for text in texts)

        return has_stopped

    def _encoded(self, prompt: Prompt) -> EncodedPrompt:
        if self.has_template:
            rendered = self._rendered(prompt)
            # The template has written every special token; the tokenizer's own start token would come on top.
            token_ids = self._tokenizer(rendered, add_special_tokens=False).input_ids
            asked = self._asked_by_text(rendered)
        else:
            rendered = plain_text(prompt)
            token_ids = self._tokenizer(rendered, add_special_tokens=True).input_ids
            asked = leading(self._tokenizer("", add_special_tokens=True).input_ids, self._tokenizer.bos_token_id)
        found = check_start_tokens(
            token_ids, asked=asked, start_id=self._tokenizer.bos_token_id, document_id=prompt.document_id
        )
        return EncodedPrompt(
            document_id=prompt.document_id, rendered=rendered, token_ids=list(token_ids), start_token_count=found
        )

    def _rendered(self, prompt: Prompt) -> str:
        from jinja2 import TemplateError

        messages = messages_of(prompt)
        try:
            return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        except TemplateError as fault:
            raise DossierError(
                f"the model's chat template refuses the prompt of {prompt.document_id}: {fault}",
                next_step="some templates have no system role: move [task] system into [task] prompt",
            ) from fault

    def _asked_by_text(self, rendered: str) -> int:
        start = self._tokenizer.bos_token
        count = 0
        while start and rendered.startswith(start, count * len(start)):
            count += 1
        return count


def messages_of(prompt: Prompt) -> list[dict[str, str]]:
    """Return a prompt as the turns of a chat, which a template writes out here or in a server."""
    messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
    for example in prompt.examples:
        messages.append({"role": "user", "content": example.user})
        messages.append({"role": "assistant", "content": example.answer})
    messages.append({"role": "user", "content": prompt.user})
    return messages


def up_to_stop(text: str, stop_texts: Sequence[str]) -> str:
    """Return a stopped answer up to the end of its first stop text, whatever its last token brought beyond it.

    A token may hold more than the stop text's end, and servers cut there or not: all answers end alike.
    """
    ends = [text.find(stop) + len(stop) for stop in stop_texts if stop in text]
    return text[: min(ends)] if ends else text


def plain_text(prompt: Prompt) -> str:
    """Return a prompt as one text, for a model without a chat template: its parts with an empty line between them."""
    parts = [f"{example.user}\n{example.answer}" for example in prompt.examples]
    return "\n\n".join([*([prompt.system] if prompt.system else []), *parts, prompt.user])


def leading(token_ids: Sequence[int], start_id: int | None) -> int:
    """Return how many start tokens stand at the head."""
    count = 0
    while start_id is not None and count < len(token_ids) and token_ids[count] == start_id:
        count += 1
    return count


def check_start_tokens(token_ids: Sequence[int], *, asked: int, start_id: int | None, document_id: str) -> int:
    """Return the number of start tokens at the head, which is what the template asks for and at most one.

    Raises DossierError otherwise: one start token more or less has moved a task's score from 0.26 to 0.85.
    """
    found = leading(token_ids, start_id)
    if found == asked and found <= 1:
        return found
    head = ", ".join(str(each) for each in token_ids[:_SHOWN_IDS])
    fault = "doubled" if found > 1 else "absent" if found < asked else "not asked for"
    raise DossierError(
        f"start token {fault}: the prompt of {document_id} begins with {found} start token(s) (id {start_id}), its "
        f"template asks for {asked}; first ids: {head}",
        next_step="mend chat_template and bos_token of the model's tokenizer_config.json so that exactly one of them "
        "writes the start token",
    )


def model_context_tokens(config: Any) -> int | None:
    """Return the positions that the model's configuration knows, or None where it names none."""
    text = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length"):
        value = getattr(text, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None
