"""A variant behind a server, as far as it can be known from outside: what was asked for, and what the server claims."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from collector.contract.protocol import portable
from collector.contract.records import Variant
from collector.contract.records.base import MissingReason, ObservedAt
from collector.missing import explained

from ._artefact import Artefact, artefact_files, file_digests, local_folder, origin_words, user_cache_dir
from ._context import claimed_context_tokens
from ._exchange import has_unknown_stops
from ._prompting import TemplateEncoder
from ._served_model import answering_words, format_words, unlisted_words
from ._session import Session
from .base import EngineSetup

_HIDDEN = (
    "quantization_method", "quantization_bits", "quantization_group", "weight_storage", "compute_dtype", "attention",
    "output_layer_format", "has_tied_embeddings", "parameter_count", "weight_bytes", "claimed_weight_bytes",
    "effective_bits", "has_offload", "model_revision",
)  # fmt: skip


def served_variant(
    setup: EngineSetup, artefact: Artefact, session: Session, encoder: TemplateEncoder, observed_at: ObservedAt, *,
    answering: Sequence[str], earlier: Variant | None,
) -> Variant:  # fmt: skip
    """Return the variant's record; pass_id and variant_id are filled by the worker.

    answering: names of the model in the answers so far. Files have digests where the start command names the model's
    folder ({model}): they are what the server was given.
    """
    choice, claims = session.choice, session.claim.claims
    digests: dict[str, str] = earlier.file_digests if earlier is not None else _digests(artefact, choice.start)
    asked = {
        "dtype": setup.variant.dtype, "quantization": setup.variant.quantization, "server": choice.name,
        "endpoint": choice.endpoint, "model": choice.model, "gguf_file": setup.model.gguf_file,
    }  # fmt: skip
    variant = Variant(
        variant_id="", pass_id="", variant_name=setup.variant.name, observed_at=observed_at,
        model_id=setup.model.portable_id, model_revision=artefact.revision,
        requested={name: str(value) for name, value in asked.items() if value is not None},
        observed={
            **{f"claimed_{name}": value for name, value in sorted(claims.items())},
            **({"answering_model": ", ".join(map(portable, answering))} if answering else {}),
            "tokenizer_class": encoder.tokenizer_class(), "version_transformers": version("transformers"),
        },
        origin=_origin(setup, artefact), cache_kind="engine", device_map={}, file_digests=digests,
        tokenizer_digest=encoder.tokenizer_digest(), template_digest=encoder.template_digest(),
        deviations=_deviations(setup, session, answering),
    )  # fmt: skip
    reasons: dict[str, MissingReason] = dict.fromkeys(_HIDDEN, "not_exposed_by_engine")
    reasons |= {"origin": "not_applicable", "template_digest": "not_applicable"}
    return explained(variant, reasons)


def _digests(artefact: Artefact, start: list[str]) -> dict[str, str]:
    folder = local_folder(artefact)
    if folder is None or not any("{model}" in part for part in start):
        return {}
    return file_digests(artefact_files(folder, artefact.gguf_file), user_cache_dir())


def _origin(setup: EngineSetup, artefact: Artefact) -> str | None:
    """How the weights came to be, where the server was started with these files; else the protocol's own words."""
    start = setup.engine.server.start if setup.engine.server else []
    if any("{model}" in part for part in start):
        return origin_words(setup, local_folder(artefact), is_dequantized=False)
    return setup.model.origin


def _deviations(setup: EngineSetup, session: Session, answering: Sequence[str]) -> list[str]:
    claims, choice = session.claim.claims, session.choice
    named = answering_words(session.model, answering)
    if named is None and choice.kind == "other":
        named = unlisted_words(session.model, session.listed)
    found = [words for words in (named, format_words(setup.variant, claims)) if words is not None]
    stops = setup.generation.stop_after
    if has_unknown_stops(choice.kind, stops):
        found.append(
            f"stop texts: a server of kind {choice.kind} may cut the text off that ended an answer, and does "
            "not say which it was"
        )
    context, limit = claimed_context_tokens(claims), setup.generation.context_limit_tokens
    if limit is not None and context is not None and context < limit:
        found.append(f"context: the protocol allows {limit} tokens, the server claims {context}")
    return found
