"""A byte-level tokenizer with a chat template, and a folder of it that reads as a model's: no weights are in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
BOS, EOS = 256, 257


def tiny_tokenizer(template: str | None = TEMPLATE) -> Any:
    """One token per byte, and five special ones; its own post-processor adds the start token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: index for index, symbol in enumerate(alphabet)}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"])
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", BOS)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="</s>", chat_template=template
    )


def write_tokenizer_folder(folder: Path, *, template: str | None = TEMPLATE, context_tokens: int = 2048) -> Path:
    """Write what a request engine reads of a model: tokenizer, template and the configuration's context."""
    folder.mkdir(parents=True)
    tiny_tokenizer(template).save_pretrained(folder)
    config = {"model_type": "llama", "max_position_embeddings": context_tokens, "vocab_size": 264}
    (folder / "config.json").write_text(json.dumps(config))
    return folder
