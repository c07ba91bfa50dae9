"""A ranking by vectors: query and candidates are embedded, and candidates ordered by their cosine with the query.

A text's vector is the mean of the model's last hidden states over the text's own tokens (attention mask), special ones
included, made to length 1; mean, length and cosine are taken in float32 whatever the weights are stored in. Candidates
are ordered by falling cosine; candidates with one cosine, and those with the same tokens, keep the documents file's
order. The answer is the JSON list of their ids, best first.

Measured window: from just before the padded texts go to the device to the last cosine on the host. There is no first
token and no gap between tokens. A text is never cut: one that the model has no positions for makes its request too
long. Rows are padded on the right and masked: an encoder's positions count from the start of each text.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from collector.clock import Clock
from collector.contract.errors import DossierError

from ._artefact import Artefact
from ._batching import PadToken, pad_right
from ._prompting import TemplateEncoder, leading
from .base import EncodedPrompt, Prompt

EMBEDDING = "mean-cosine-1"
"""Engine flag: changes when other vectors, orders or stamps would come of the same texts."""
POOLING = "mean over the attention mask, length 1, float32"
_NO_LIMIT_TOKENS = 10**9
"""Tokenizers without a limit of their own name a number beyond this."""


class Embedded(NamedTuple):
    """Cosines of each ranking's candidates with its query, in the candidates' order; padding per ranking."""

    cosines: list[list[float]]
    padding_tokens: list[int]
    sent_ns: int
    scored_ns: int


class TextsEncoder(TemplateEncoder):
    """Tokenizes the query and each candidate by itself: no chat template, nothing cut, nothing padded."""

    def __init__(self, tokenizer: Any, context_tokens: int | None) -> None:
        own = tokenizer.model_max_length
        known = [each for each in (context_tokens, own) if each is not None and each < _NO_LIMIT_TOKENS]
        super().__init__(tokenizer, min(known, default=None))
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if (
            backend is not None
        ):  # such files cut and pad by themselves, and their digest would change with the first call
            backend.no_truncation()
            backend.no_padding()

    @property
    def has_template(self) -> bool:
        return False

    def _encoded(self, prompt: Prompt) -> EncodedPrompt:
        texts = [prompt.user, *prompt.candidates.values()]
        parts = self._tokenizer(texts, add_special_tokens=True, truncation=False, padding=False).input_ids
        start_id = self._tokenizer.bos_token_id
        start_id = self._tokenizer.cls_token_id if start_id is None else start_id
        return EncodedPrompt(
            document_id=prompt.document_id,
            rendered=json.dumps({"query": prompt.user, "candidates": prompt.candidates}, ensure_ascii=False),
            token_ids=[token_id for part in parts for token_id in part],
            start_token_count=leading(parts[0], start_id),
            part_token_counts=[len(part) for part in parts],
            candidate_ids=list(prompt.candidates),
        )


class Embedder:
    """Turns rankings into cosines with one loaded model."""

    def __init__(self, model: Any, pad: PadToken, *, device: str, clock: Clock) -> None:
        self._model = model
        self._pad_id = pad.token_id
        self._device = device
        self._clock = clock
        takes = inspect.signature(model.forward).parameters
        self._options = {"use_cache": False} if "use_cache" in takes else {}

    def cosines(self, prompts: Sequence[EncodedPrompt]) -> Embedded:
        """Return the cosines of the rankings; all their texts are rows of one forward pass."""
        import torch

        parts = [texts_of(prompt) for prompt in prompts]
        rows = [text for texts in parts for text in texts]
        padded = pad_right(rows, self._pad_id)
        longest = len(padded.token_ids[0])
        ids, mask = (torch.tensor(part, dtype=torch.long) for part in (padded.token_ids, padded.mask))
        with torch.inference_mode():
            sent_ns = self._clock.monotonic_ns()
            ids, mask = ids.to(self._device), mask.to(self._device)
            hidden = self._model(input_ids=ids, attention_mask=mask, **self._options).last_hidden_state
            vectors = mean_vectors(hidden, mask)
            found, start = [], 0
            for texts in parts:
                # Row by row and not as a product of matrices: a row's sum then does not depend on its neighbours.
                found.append((vectors[start + 1 : start + len(texts)] * vectors[start]).sum(dim=-1))
                start += len(texts)
            flat: list[float] = torch.cat(found).tolist()
            scored_ns = self._clock.monotonic_ns()
        cosines, start = [], 0
        for texts in parts:
            cosines.append(flat[start : start + len(texts) - 1])
            start += len(texts) - 1
        return Embedded(cosines, [sum(longest - len(text) for text in texts) for texts in parts], sent_ns, scored_ns)


def mean_vectors(hidden: Any, mask: Any) -> Any:
    """Return one vector of length 1 per row: the mean of its hidden states where the mask is 1, in float32."""
    import torch

    weights = mask.unsqueeze(-1).float()
    means = (hidden.float() * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-9)
    return torch.nn.functional.normalize(means, dim=-1)


def texts_of(prompt: EncodedPrompt) -> list[list[int]]:
    """Return the token ids of each text: the query, then the candidates."""
    texts, start = [], 0
    for count in prompt.part_token_counts:
        texts.append(prompt.token_ids[start : start + count])
        start += count
    return texts


def best_first(prompt: EncodedPrompt, cosines: Sequence[float]) -> list[int]:
    """Return the candidates' places by falling cosine; equal ones in their order, texts with the same tokens too.

    In a batch, rounding may differ between rows that hold the same text: the first one's cosine counts for all.
    """
    first: dict[tuple[int, ...], float] = {}
    texts = texts_of(prompt)[1:]
    held = [first.setdefault(tuple(text), cosine) for text, cosine in zip(texts, cosines, strict=True)]
    return sorted(range(len(held)), key=lambda place: -held[place])


def order_text(prompt: EncodedPrompt, places: Sequence[int]) -> str:
    """Return the answer: the JSON list of the candidates' ids in this order."""
    return json.dumps([prompt.candidate_ids[place] for place in places], ensure_ascii=False)


def declared_pooling(artefact: Artefact) -> str | None:
    """Return the pooling that the model's own folder asks for, in its words; null where it says nothing.

    Models made with sentence-transformers carry `1_Pooling/config.json`; only a local folder is looked into.
    """
    path = None if artefact.folder is None else artefact.folder / "1_Pooling" / "config.json"
    if path is None or not path.is_file():
        return None
    try:
        asked = json.loads(path.read_text(encoding="utf-8"))
        modes = [name.removeprefix("pooling_mode_") for name, is_on in asked.items() if is_on is True]
    except (OSError, ValueError, AttributeError) as fault:
        raise DossierError(
            f"{path} does not say how vectors are pooled: {fault}", next_step="restore the model's folder"
        ) from fault
    return ", ".join(sorted(name for name in modes if name != "include_prompt")) or None


def embedding_facts(artefact: Artefact) -> dict[str, str]:
    """Return what the variant's record says of pooling."""
    asked = declared_pooling(artefact)
    facts = {"answers_by": "embedding", "pooling": POOLING, "similarity": "cosine"}
    return facts if asked is None else facts | {"declared_pooling": asked}


def pooling_deviation(artefact: Artefact) -> list[str]:
    """Return in words where the model's own folder asks for another pooling than the mean."""
    asked = declared_pooling(artefact)
    return [f"pooling: the model's own configuration asks for {asked}"] if asked not in (None, "mean_tokens") else []
