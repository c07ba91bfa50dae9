"""From a lock to the ordered passes of a run: the reference first, then one factor at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from collector.contract.digests import short_id
from collector.contract.protocol import Lock, Model, VariantChoice, as_json
from collector.contract.records.base import CacheKind, Role, Stage
from collector.contract.records.passes import Factor, PassPurpose

ROLE_OF_STAGE: dict[Stage, Role] = {"pilot": "development", "validation": "validation", "test": "test"}


class PassKey(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass is, without its attempt: two passes with one key measure the same thing.

    The repeats of the reference (A/A) differ in `repetition` alone: 1 is the reference, 2 and more its repeats. Purpose
    and document order are no part of the key, they follow from it.
    """

    protocol_id: str
    stage: Stage
    environment_id: str
    engine_id: str
    variant_id: str
    batch: int
    concurrency: int
    rate_per_s: float | None
    context_tokens: int | None
    cache_kind: CacheKind
    output_limit_tokens: int
    repetition: int

    def pass_id(self, attempt: int) -> str:
        """Return the id of one attempt: the digest of the key and the attempt."""
        return short_id({**msgspec.to_builtins(self), "attempt": attempt})


class PlannedPass(msgspec.Struct, frozen=True, kw_only=True):
    """One pass to run, attempts left out."""

    key: PassKey
    variant: VariantChoice
    purpose: PassPurpose
    series: str
    factor: Factor
    document_order: list[str]

    def label(self, attempt: int) -> str:
        """Return `<variant>/<repetition>/<attempt>`: how people and scripts address the attempt."""
        return f"{self.variant.name}/{self.key.repetition}/{attempt}"


def variant_id(model: Model, variant: VariantChoice) -> str:
    """Return the digest of what is requested: model and variant, known before anything is loaded."""
    return short_id({"model": as_json(model), "variant": as_json(variant)})


def factor_between(reference: VariantChoice, variant: VariantChoice) -> Factor:
    """Return the one factor in which two variants differ; `several` where no difference could be attributed.

    The dtype counts as weights: without a quantization method, weights are stored and computed in the same dtype.
    """
    differing: list[Factor] = []
    if (reference.dtype, reference.quantization) != (variant.dtype, variant.quantization):
        differing.append("weights")
    if reference.attention != variant.attention:
        differing.append("compute")
    if reference.cache != variant.cache:
        differing.append("cache")
    if len(differing) > 1:
        return "several"
    return differing[0] if differing else "none"


def document_order(document_ids: Iterable[str], *, seed: int, repetition: int) -> list[str]:
    """Return the documents in the order of one repetition: the same on every machine and Python version.

    All variants take the same order at the same repetition, so that a variant and the reference differ in one factor.
    """

    def rank(document_id: str) -> str:
        return hashlib.sha256(f"{seed}/{repetition}/{document_id}".encode()).hexdigest()

    return sorted(document_ids, key=rank)


def stage_documents(lock: Lock, stage: Stage) -> list[str]:
    """Return the identifiers of the documents that a stage measures, in the lock's order."""
    role = ROLE_OF_STAGE[stage]
    return [document.document_id for document in lock.documents if document.role == role]


def warmup_documents(lock: Lock, stage: Stage) -> list[str]:
    """Return the documents of the warm-up requests, as many as the plan wants.

    Development documents come first, so that no measured document was seen before its turn; where they are too few the
    stage's own follow, and where those are too few all are taken again.
    """
    development = [document.document_id for document in lock.documents if document.role == "development"]
    own = stage_documents(lock, stage)
    pool = development + [document_id for document_id in own if document_id not in set(development)]
    wanted = lock.plan.plan.warmup_requests
    return [pool[index % len(pool)] for index in range(wanted)] if pool else []


def plan_passes(
    lock: Lock, *, stage: Stage, environment_id: str, engine_ids: dict[str, str], only: Sequence[str] = ()
) -> list[PlannedPass]:
    """Return the passes of a stage in their order.

    The reference comes first, `reference_runs` times, each repeat in another document order; then each other variant,
    `repetitions` times, in the order of the protocol. `engine_ids` maps variant name -> engine_id. `only` keeps the
    named variants and changes nothing else.
    """
    choice = lock.plan.plan
    documents = stage_documents(lock, stage)
    reference = next(variant for variant in lock.plan.variants if variant.name == choice.reference)
    others = [variant for variant in lock.plan.variants if variant.name != choice.reference]

    def planned(variant: VariantChoice, repetition: int, purpose: PassPurpose, factor: Factor) -> PlannedPass:
        key = PassKey(
            protocol_id=lock.protocol_id,
            stage=stage,
            environment_id=environment_id,
            engine_id=engine_ids[variant.name],
            variant_id=variant_id(lock.plan.model, variant),
            batch=1,
            concurrency=1,
            rate_per_s=None,
            context_tokens=None,
            cache_kind=variant.cache,
            output_limit_tokens=lock.trial.generation.max_new_tokens,
            repetition=repetition,
        )
        order = document_order(documents, seed=choice.order_seed, repetition=repetition)
        series = "reference" if variant is reference else factor
        return PlannedPass(
            key=key, variant=variant, purpose=purpose, series=series, factor=factor, document_order=order
        )

    passes = [planned(reference, 1, "reference", "none")]
    passes += [planned(reference, run, "reference_repeat", "order") for run in range(2, choice.reference_runs + 1)]
    for variant in others:
        factor = factor_between(reference, variant)
        for repetition in range(1, choice.repetitions + 1):
            passes.append(planned(variant, repetition, "variant" if repetition == 1 else "repetition", factor))
    return [step for step in passes if not only or step.variant.name in only]
