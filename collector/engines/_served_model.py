"""Whether a server serves what was asked for, as far as it tells: the model's name, and the form of its weights.

Some servers answer whatever name a request has with the one model that they hold. A list without the asked name is
therefore believed of servers that list what they hold; a gateway may route names that it does not list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from collector.client.messages import Exchange
from collector.client.sse import EventReader
from collector.contract.errors import DossierError
from collector.contract.protocol import ServerChoice, VariantChoice, portable

LISTS_WHAT_IT_HOLDS = ("vllm", "sglang", "llamacpp", "tgi")
_PLAIN_FORMATS = {
    "f32": "float32", "fp32": "float32", "float": "float32", "f16": "float16", "fp16": "float16", "half": "float16",
    "bf16": "bfloat16",
}  # fmt: skip
_DTYPES = ("float32", "float16", "bfloat16")


def listed_names(page: Any) -> list[str]:
    """Return the name of each model in a server's list of them."""
    return list(dict.fromkeys(str(entry["id"]) for entry in _entries(page)))


def other_names(page: Any) -> list[str]:
    """Return the names by which a server answers beside those of its list."""
    found = [entry.get("aliases") for entry in _entries(page)]
    return [str(name) for names in found if isinstance(names, list) for name in names]


def require_listed(choice: ServerChoice, asked: str, listed: Sequence[str], others: Sequence[str] = ()) -> None:
    """Raise DossierError where a server that lists what it holds does not list the asked name."""
    if choice.kind in LISTS_WHAT_IT_HOLDS and listed and asked not in (*listed, *others):
        names = ", ".join(portable(name) for name in listed)
        raise DossierError(
            f"the server {choice.name!r} lists {names}, and the protocol asks for the model {portable(asked)!r}",
            next_step=f'write model = "{portable(listed[0])}" under the server {choice.name!r}, or start the server '
            "that holds the other one",
        )


def unlisted_words(asked: str, listed: Sequence[str]) -> str | None:
    """Return the deviation of a gateway that does not list the asked name; null where it does, or lists nothing."""
    if not listed or asked in listed:
        return None
    shown = ", ".join(portable(name) for name in listed[:5]) + (" ..." if len(listed) > 5 else "")
    return f"model: requested {portable(asked)}, the server lists {shown}"


def answering_model(exchange: Exchange) -> str | None:
    """Return the model's name in an answer's first event, or in a body that is no stream; null where none stands."""
    reader = EventReader()
    for _, piece in exchange.pieces:
        for event in reader.events(piece):
            return _named(event.data)
    return None if reader.has_fields else _named(b"".join(piece for _, piece in exchange.pieces))


def is_same_model(asked: str, answering: str) -> bool:
    """Return whether two names may be one model: alike but for folders, and for a revision after @."""
    return _short_name(asked) == _short_name(answering)


def answering_words(asked: str, answering: Sequence[str]) -> str | None:
    """Return the deviation of answers that name another model than the asked one; null where none does."""
    others = [portable(name) for name in answering if not is_same_model(asked, name)]
    return f"model: requested {portable(asked)}, answers name {', '.join(others)}" if others else None


def format_words(variant: VariantChoice, claims: Mapping[str, str]) -> str | None:
    """Return the deviation of weights that are claimed in another form than asked for; null where none is seen.

    A GGUF may hold any form. What the variant does not ask for, and a form of a name unknown here, is no deviation.
    """
    claimed = claims.get("weights_format") or claims.get("dtype")
    if claimed is None or variant.quantization == "gguf":
        return None
    plain = _plain_format(claimed)
    asked = variant.dtype if variant.quantization == "none" else variant.quantization
    is_other = plain != variant.dtype if variant.quantization == "none" else plain is not None
    if not is_other or (plain is None and not _is_packed(claimed)):
        return None
    return f"weights: requested {asked}, the server claims {claimed}"


def _plain_format(claimed: str) -> str | None:
    """Return the dtype that a claim names, e.g. `all F32`, `torch.bfloat16`; null of a packed form."""
    word = re.sub(r"^(all|mostly)\s+|^torch\.|\s*\(guessed\)$", "", claimed.strip().lower())
    return word if word in _DTYPES else _PLAIN_FORMATS.get(word)


def _is_packed(claimed: str) -> bool:
    """Whether a claim names weights of fewer bits: Q4_1, IQ2_XS, nf4, awq, int8, fp8."""
    return re.search(r"\bi?q\d|int\d|fp[48]|nf4|awq|gptq|float8|e4m3|e5m2|mxfp", claimed.lower()) is not None


def _entries(page: Any) -> list[dict[str, Any]]:
    entries = page.get("data") if isinstance(page, dict) else None
    found = entries if isinstance(entries, list) else []
    return [entry for entry in found if isinstance(entry, dict) and entry.get("id")]


def _named(data: bytes) -> str | None:
    try:
        name = json.loads(data).get("model")
    except (ValueError, AttributeError):
        return None
    return name if isinstance(name, str) and name else None


def _short_name(name: str) -> str:
    return name.partition("@")[0].rstrip("/").rpartition("/")[2]
