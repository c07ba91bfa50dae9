"""What tokens a server makes of a prompt: its own tokenizer is asked with the very messages that it will answer.

Asked before anything is timed. A server without such an endpoint, or one that refuses, says nothing: then its count of
prompt tokens is compared, request by request. A tokenizer that knows no template says nothing either: it would only
repeat what was rendered here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from collector.contract.server_kinds import ServerKindFacts, Tokenizer

Ask = Callable[[str, dict[str, Any]], Any]
"""(path, JSON to post) -> JSON answered; null where the server refuses or has no such path."""


class ServerTokenizer:
    """Asks a server for the token ids of messages; after a first refusal it is not asked again."""

    def __init__(self, ask: Ask, facts: ServerKindFacts, *, model: str) -> None:
        self._ask = ask
        self._tokenizer = facts.tokenizer
        self._model = model

    def ids(self, messages: Sequence[dict[str, str]]) -> list[int] | None:
        """Return the token ids that the server makes of the messages, null where it does not tell."""
        if self._tokenizer is None:
            return None
        found = self._asked(self._tokenizer, list(messages))
        if isinstance(found, list) and found and all(isinstance(each, int) for each in found):
            return found
        self._tokenizer = None
        return None

    def _asked(self, tokenizer: Tokenizer, messages: list[dict[str, str]]) -> Any:
        whole: dict[str, Any] = {"model": self._model, "messages": messages}
        match tokenizer.form:
            case "messages":
                found = self._ask(tokenizer.path, {**whole, "add_generation_prompt": True})
                return found.get("tokens") if isinstance(found, dict) else None
            case "template_then_text":
                templated = self._ask(tokenizer.template_path or "", whole)
                if not isinstance(templated, dict) or not isinstance(templated.get("prompt"), str):
                    return None
                # The template's own start token is not in its text: it is added, where the model has one, as in chat.
                text = {"content": templated["prompt"], "add_special": True, "parse_special": True}
                found = self._ask(tokenizer.path, text)
                return found.get("tokens") if isinstance(found, dict) else None
            case "chat_ids":
                found = self._ask(tokenizer.path, whole)
                tokens = found.get("tokenize_response") if isinstance(found, dict) else None
                return [each.get("id") for each in tokens if isinstance(each, dict)] if tokens else None
            case "text":
                return None
