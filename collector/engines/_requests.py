"""What a server is asked: the JSON body of one request, by the endpoint and by the kind of server that reads it.

Decoding is greedy as in process: temperature 0, no penalty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from collector.contract.protocol import Generation, ServerChoice, ServerKind
from collector.contract.server_kinds import KINDS

from ._exchange import STOP_FIELDS

PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}
_GREEDY: dict[ServerKind, dict[str, float]] = {
    "vllm": {"temperature": 0, "repetition_penalty": 1.0},  # else a model's own penalty holds
    "sglang": {"temperature": 0, "repetition_penalty": 1.0},
    "llamacpp": {"temperature": 0, "repeat_penalty": 1.0},
    "tgi": {},  # refuses a temperature of 0, and is greedy without one
    "transformers": {"temperature": 0},
    "other": {"temperature": 0},
}


class RequestWriter:
    """Writes the bodies of one server's requests; `has_usage` may be taken back where a server refuses the field."""

    def __init__(self, server: ServerChoice, generation: Generation, *, model: str) -> None:
        self._server = server
        self._generation = generation
        self._model = model
        self._facts = KINDS[server.kind]
        self.has_usage = bool(self._facts.stream_options)

    @property
    def path(self) -> str:
        return PATHS[self._server.endpoint]

    @property
    def takes_token_ids(self) -> bool:
        """True where the prompt is sent as the token ids themselves."""
        return self._server.endpoint == "completions" and self._facts.takes_token_ids

    def body(
        self, *, messages: Sequence[Mapping[str, str]], text: str, token_ids: Sequence[int], cold: Mapping[str, Any]
    ) -> bytes:
        """Return one body: messages for chat, token ids for completions, or the text where the kind takes no ids.

        cold: fields that keep the server from finding the prompt in its cache. What the protocol gives as `body` comes
        last and wins.
        """
        prompt: dict[str, Any] = {"messages": list(messages)}
        if self._server.endpoint == "completions":
            prompt = {"prompt": list(token_ids) if self.takes_token_ids else text}
        fields = {
            "model": self._model, **prompt, "max_tokens": self._generation.max_new_tokens, "stream": True,
            **_GREEDY[self._server.kind], **self._stop(), **cold,
        }  # fmt: skip
        if self.has_usage:
            fields["stream_options"] = dict.fromkeys(self._facts.stream_options, True)
        fields |= self._server.body
        if "max_completion_tokens" in self._server.body:  # the newer name of the same limit; both are refused
            del fields["max_tokens"]
        return msgspec.json.encode(fields)

    def _stop(self) -> dict[str, Any]:
        texts = self._generation.stop_after
        return {"stop": list(texts), **STOP_FIELDS.get(self._server.kind, {})} if texts else {}
