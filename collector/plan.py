"""From a lock to the ordered passes of a run: the reference first, then one factor at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from collector.contract.digests import short_id
from collector.contract.errors import DossierError
from collector.contract.protocol import Lock, Model, PlanChoice, VariantChoice, as_json
from collector.contract.records.base import CacheKind, Role, Stage
from collector.contract.records.passes import Factor, PassPurpose

ROLE_OF_STAGE: dict[Stage, Role] = {"pilot": "development", "validation": "validation", "test": "test"}
CHECKED = 8
"""Documents of a batched pass's self-check."""


class Chosen(NamedTuple):
    """A configuration as people name it: a variant of the protocol and how many requests run at a time."""

    variant: str
    batch: int = 1


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
        """Return `<variant>/<repetition>/<attempt>`: how people and scripts address the attempt.

        With batches `<variant>~b<batch>/<repetition>/<attempt>`.
        """
        batch = f"~b{self.key.batch}" if self.key.batch > 1 else ""
        return f"{self.variant.name}{batch}/{self.key.repetition}/{attempt}"


def variant_id(model: Model, variant: VariantChoice) -> str:
    """Return the digest of what is requested: model and variant, known before anything is loaded."""
    return short_id({"model": as_json(model), "variant": as_json(variant)})


def factor_between(reference: VariantChoice, variant: VariantChoice) -> Factor:
    """Return the one factor in which two variants differ; `several` where no difference could be attributed.

    Without a quantization method, weights are stored and computed in the dtype: a difference in it counts as weights.
    At one method, the method says what is stored and the dtype what is computed in. Where both differ, it is several.
    """
    differing: list[Factor] = []
    is_plain = reference.quantization == variant.quantization == "none"
    has_other_dtype = reference.dtype != variant.dtype
    if reference.quantization != variant.quantization or (is_plain and has_other_dtype):
        differing.append("weights")
    if reference.attention != variant.attention or (not is_plain and has_other_dtype):
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


def warmup_documents(lock: Lock, stage: Stage, *, batch: int = 1) -> list[str]:
    """Return the documents of the warm-up requests, as many as the plan wants, and at least one whole batch.

    Development documents come first, so that no measured document was seen before its turn; where they are too few the
    stage's own follow, and where those are too few all are taken again.
    """
    development = [document.document_id for document in lock.documents if document.role == "development"]
    own = stage_documents(lock, stage)
    pool = development + [document_id for document_id in own if document_id not in set(development)]
    wanted = lock.plan.plan.warmup_requests
    if wanted and batch > 1:
        wanted = max(wanted, batch)
    return [pool[index % len(pool)] for index in range(wanted)] if pool else []


def check_documents(lock: Lock, stage: Stage) -> list[str]:
    """Return the documents that a batched pass answers alone and together before it measures; at most CHECKED of them.

    Development documents first, none of class long, short and usual ones in turn so that rows are really padded; the
    stage's own follow only where those are too few, and long ones only where there would not be two others.
    """
    own = {document_id: place for place, document_id in enumerate(stage_documents(lock, stage))}
    development = [document for document in lock.documents if document.role == "development"]
    measured = [document for document in lock.documents if document.document_id in own and document not in development]
    chosen: list[str] = []
    for pool in (development, measured):
        classes = [[each.document_id for each in pool if each.length_class == name] for name in ("short", "usual")]
        in_turn = [each for pair in zip_longest(*classes) for each in pair if each is not None]
        chosen += in_turn[: CHECKED - len(chosen)]
    long = [each.document_id for each in (*development, *measured) if each.length_class == "long"]
    return chosen + long[: max(0, 2 - len(chosen))]


def plan_passes(
    lock: Lock,
    *,
    stage: Stage,
    environment_id: str,
    engine_ids: Mapping[str, str],
    only: Sequence[str] = (),
    only_series: Sequence[str] = (),
    configurations: Sequence[Chosen] | None = None,
    reference_runs: int | None = None,
    repetitions: int | None = None,
) -> list[PlannedPass]:
    """Return the passes of a stage in their order.

    What is most useful comes first, so that a run that is stopped leaves the best it could: the reference,
    `reference_runs` times (default: the plan's), each repeat in another document order. Then the plan's configurations,
    or those that `configurations` names: every other variant in the order of the protocol, each once before any second
    repetition, and after them the batches. Every second repetition runs in the reverse order (ABBA), so that what
    drifts with time falls on no variant alone. `repetitions`: how often (default: the plan's).
    `engine_ids` maps variant name -> engine_id. `only` keeps the named variants and `only_series` the named series;
    they change nothing else.

    Raises DossierError for a chosen variant that the protocol does not have.
    """
    choice = lock.plan.plan
    variants = {variant.name: variant for variant in lock.plan.variants}
    documents = stage_documents(lock, stage)
    reference = variants[choice.reference]

    def planned(
        variant: VariantChoice, batch: int, *, repetition: int, purpose: PassPurpose, series: str, factor: Factor
    ) -> PlannedPass:
        key = PassKey(
            protocol_id=lock.protocol_id, stage=stage, environment_id=environment_id,
            engine_id=engine_ids[variant.name], variant_id=variant_id(lock.plan.model, variant), batch=batch,
            concurrency=1, rate_per_s=None, context_tokens=None, cache_kind=variant.cache,
            output_limit_tokens=lock.trial.generation.max_new_tokens, repetition=repetition,
        )  # fmt: skip
        order = document_order(documents, seed=choice.order_seed, repetition=repetition)
        return PlannedPass(
            key=key, variant=variant, purpose=purpose, series=series, factor=factor, document_order=order
        )

    runs = choice.reference_runs if reference_runs is None else reference_runs
    passes = [
        planned(
            reference, 1, repetition=run, series="reference", purpose="reference" if run == 1 else "reference_repeat",
            factor="none" if run == 1 else "order",
        )
        for run in range(1, runs + 1)
    ]  # fmt: skip
    wanted = _plans_own(choice, variants) if configurations is None else configurations
    rounds = choice.repetitions if repetitions is None else repetitions
    for chosen, repetition in _in_rounds(wanted, choice.reference, rounds):
        variant = _chosen_variant(variants, chosen)
        factor = _factor(reference, variant, chosen.batch)
        first: PassPurpose = "series" if factor == "batch" else "variant"
        purpose = first if repetition == 1 else "repetition"
        passes.append(
            planned(variant, chosen.batch, repetition=repetition, purpose=purpose, series=factor, factor=factor)
        )
    return [
        step
        for step in passes
        if (not only or step.variant.name in only) and (not only_series or step.series in only_series)
    ]


def _plans_own(choice: PlanChoice, variants: Mapping[str, VariantChoice]) -> list[Chosen]:
    others = [Chosen(name) for name in variants if name != choice.reference]
    return others + [Chosen(choice.reference, batch) for batch in choice.batches]


def _in_rounds(wanted: Sequence[Chosen], reference: str, rounds: int) -> Iterator[tuple[Chosen, int]]:
    """Yield (configuration, repetition): requests one at a time before batches, round by round, every second reversed.

    The reference one at a time is left out: it has run.
    """
    one_at_a_time = [chosen for chosen in wanted if chosen.batch == 1 and chosen.variant != reference]
    batched = [chosen for chosen in wanted if chosen.batch > 1]
    for cells in (one_at_a_time, batched):
        for repetition in range(1, rounds + 1):
            for chosen in cells if repetition % 2 else reversed(cells):
                yield chosen, repetition


def _chosen_variant(variants: Mapping[str, VariantChoice], chosen: Chosen) -> VariantChoice:
    if chosen.variant not in variants:
        raise DossierError(f"no variant is called {chosen.variant!r}", next_step=f"name one of: {', '.join(variants)}")
    return variants[chosen.variant]


def _factor(reference: VariantChoice, variant: VariantChoice, batch: int) -> Factor:
    factor = factor_between(reference, variant)
    if batch == 1:
        return factor
    return "batch" if factor == "none" else "several"
