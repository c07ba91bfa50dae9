"""From a lock to the ordered passes of a run: the reference first, then one factor at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

import msgspec

from collector.contract.digests import short_id
from collector.contract.errors import DossierError
from collector.contract.protocol import Lock, Model, PlanChoice, VariantChoice, as_json
from collector.contract.records.base import CacheKind, Role, Stage
from collector.contract.records.passes import CacheState, Factor, LoopKind, PassPurpose
from collector.engines.base import ONE_AT_A_TIME, Load

ROLE_OF_STAGE: dict[Stage, Role] = {"pilot": "development", "validation": "validation", "test": "test"}
CHECKED = 8
"""Documents of a batched pass's self-check."""


class Chosen(NamedTuple):
    """A configuration as people name it: a variant of the protocol and how requests are put to it.

    batch: rows of a static batch; concurrency: requests submitted at a time; rate_per_s: arrivals of an open loop.
    """

    variant: str
    batch: int = 1
    concurrency: int = 1
    rate_per_s: float | None = None

    @property
    def is_plain(self) -> bool:
        """True for one request at a time."""
        return self.batch == self.concurrency == 1 and self.rate_per_s is None


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
    arrivals: LoopKind = "closed"
    context_tokens: int | None
    cache_kind: CacheKind
    output_limit_tokens: int
    repetition: int

    def pass_id(self, attempt: int) -> str:
        """Return the id of one attempt: the digest of the key and the attempt."""
        fields = msgspec.to_builtins(self)
        if self.arrivals == "closed":  # ids of before there were open loops
            del fields["arrivals"]
        return short_id({**fields, "attempt": attempt})


class PlannedPass(msgspec.Struct, frozen=True, kw_only=True):
    """One pass to run, attempts left out."""

    key: PassKey
    variant: VariantChoice
    purpose: PassPurpose
    series: str
    factor: Factor
    document_order: list[str]
    load: Load = ONE_AT_A_TIME
    cache_state: CacheState | None = None

    def label(self, attempt: int) -> str:
        """Return `<variant>/<repetition>/<attempt>`: how people and scripts address the attempt.

        After the variant stands `~b<batch>`, `~c<concurrency>` or `~r<rate>` where one of them has grown.
        """
        load = self.load
        if load.rate_per_s is not None:
            grown = f"~r{load.rate_per_s:g}"
        elif load.concurrency > 1:
            grown = f"~c{load.concurrency}"
        else:
            grown = f"~b{load.batch}" if load.batch > 1 else ""
        return f"{self.variant.name}{grown}/{self.key.repetition}/{attempt}"


def variant_id(model: Model, variant: VariantChoice) -> str:
    """Return the digest of what is requested: model and variant, known before anything is loaded."""
    wanted = msgspec.to_builtins(variant)
    if variant.server is None:  # ids of before there were servers
        del wanted["server"]
    return short_id({"model": as_json(model), "variant": wanted})


def factor_between(reference: VariantChoice, variant: VariantChoice) -> Factor:
    """Return the one factor in which two variants differ; `several` where no difference could be attributed.

    Without a quantization method, weights are stored and computed in the dtype: a difference in it counts as weights.
    At one method, the method says what is stored and the dtype what is computed in. Where both differ, it is several.
    Another server is another engine, or the same one started in another way.
    """
    differing: list[Factor] = ["engine"] if reference.server != variant.server else []
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


def is_loaded_anew(lock: Lock, variant: VariantChoice) -> bool:
    """Return whether a pass loads the variant itself: not where a server answers that runs already."""
    server = lock.plan.engine_of(variant).server
    return server is None or bool(server.start)


def warmup_documents(lock: Lock, stage: Stage, *, load: Load = ONE_AT_A_TIME) -> list[str]:
    """Return the documents of the warm-up requests, as many as the plan wants, and at least one whole batch.

    A closed loop warms up at its own concurrency, with one request at least for each that is submitted at a time.

    Development documents come first, so that no measured document was seen before its turn; where they are too few the
    stage's own follow, and where those are too few all are taken again.
    """
    development = [document.document_id for document in lock.documents if document.role == "development"]
    own = stage_documents(lock, stage)
    pool = development + [document_id for document_id in own if document_id not in set(development)]
    wanted = lock.plan.plan.warmup_requests
    if wanted:
        wanted = max(wanted, load.batch, load.concurrency if load.arrivals == "closed" else 1)
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

    def planned(chosen: Chosen, *, repetition: int, purpose: PassPurpose, series: str, factor: Factor) -> PlannedPass:
        variant = _chosen_variant(variants, chosen)
        server = lock.plan.engine_of(variant).server
        load = load_of(chosen, choice, repetition=repetition)
        key = PassKey(
            protocol_id=lock.protocol_id, stage=stage, environment_id=environment_id,
            engine_id=engine_ids[variant.name], variant_id=variant_id(lock.plan.model, variant), batch=load.batch,
            concurrency=load.concurrency, rate_per_s=load.rate_per_s, arrivals=load.arrivals, context_tokens=None,
            cache_kind="engine" if server else variant.cache,
            output_limit_tokens=lock.trial.generation.max_new_tokens, repetition=repetition,
        )  # fmt: skip
        order = document_order(documents, seed=choice.order_seed, repetition=repetition)
        return PlannedPass(
            key=key, variant=variant, purpose=purpose, series=series, factor=factor, document_order=order, load=load,
            cache_state=server.cache_state if server else None,
        )  # fmt: skip

    runs = choice.reference_runs if reference_runs is None else reference_runs
    passes = [
        planned(
            Chosen(choice.reference), repetition=run, series="reference",
            purpose="reference" if run == 1 else "reference_repeat", factor="none" if run == 1 else "order",
        )
        for run in range(1, runs + 1)
    ]  # fmt: skip
    wanted = plans_own(lock) if configurations is None else configurations
    rounds = choice.repetitions if repetitions is None else repetitions
    for chosen, repetition in _in_rounds(wanted, choice.reference, rounds):
        variant = _chosen_variant(variants, chosen)
        grown = _grown(chosen)
        # In process, requests that run together have another attention and cache than one at a time.
        has_pool = grown == "concurrency" and lock.plan.engine_of(variant).server is None
        factor = "several" if has_pool else _factor(reference, variant, chosen)
        # A server's series grows from that variant at 1, whatever the reference; a batch's is the reference's alone.
        series = grown if grown in ("concurrency", "rate") else factor
        first: PassPurpose = "series" if grown and series == grown else "variant"
        purpose = first if repetition == 1 else "repetition"
        passes.append(planned(chosen, repetition=repetition, purpose=purpose, series=series, factor=factor))
    return [
        step
        for step in passes
        if (not only or step.variant.name in only) and (not only_series or step.series in only_series)
    ]


def plans_own(lock: Lock) -> list[Chosen]:
    """Return the configurations of the plan in the order of the protocol, the reference one at a time left out."""
    choice, servers = lock.plan.plan, [each.name for each in lock.plan.variants if lock.plan.engine_of(each).server]
    is_continuous = lock.plan.engine.continuous is not None and choice.reference not in servers
    concurrent = [choice.reference, *servers] if is_continuous else servers
    return [
        *(Chosen(variant.name) for variant in lock.plan.variants if variant.name != choice.reference),
        *(Chosen(choice.reference, batch) for batch in choice.batches),
        *(Chosen(name, concurrency=count) for name in concurrent for count in choice.concurrencies),
        *(Chosen(name, 1, choice.in_flight_limit, rate) for name in servers for rate in choice.rates),
    ]  # fmt: skip


def load_of(chosen: Chosen, choice: PlanChoice, *, repetition: int) -> Load:
    """Return how a configuration's requests are put to the engine; each repetition draws other arrivals."""
    if chosen.rate_per_s is None:
        return Load(batch=chosen.batch, concurrency=chosen.concurrency)
    return Load(
        concurrency=chosen.concurrency, rate_per_s=chosen.rate_per_s, arrivals=choice.arrivals,
        seed=choice.order_seed * 1000 + repetition,
    )  # fmt: skip


def _in_rounds(wanted: Sequence[Chosen], reference: str, rounds: int) -> Iterator[tuple[Chosen, int]]:
    """Yield (configuration, repetition): one at a time, batches, concurrencies, rates; every second round reversed.

    The reference one at a time is left out: it has run.
    """
    for series in ("", "batch", "concurrency", "rate"):
        cells = [each for each in wanted if _grown(each) == series and each != Chosen(reference)]
        for repetition in range(1, rounds + 1):
            for chosen in cells if repetition % 2 else reversed(cells):
                yield chosen, repetition


def _grown(chosen: Chosen) -> Literal["", "batch", "concurrency", "rate"]:
    """The factor that has grown in a configuration, beside its variant."""
    if chosen.rate_per_s is not None:
        return "rate"
    if chosen.concurrency > 1:
        return "concurrency"
    return "batch" if chosen.batch > 1 else ""


def _chosen_variant(variants: Mapping[str, VariantChoice], chosen: Chosen) -> VariantChoice:
    if chosen.variant not in variants:
        raise DossierError(f"no variant is called {chosen.variant!r}", next_step=f"name one of: {', '.join(variants)}")
    return variants[chosen.variant]


def _factor(reference: VariantChoice, variant: VariantChoice, chosen: Chosen) -> Factor:
    factor = factor_between(reference, variant)
    grown = _grown(chosen)
    if not grown:
        return factor
    return grown if factor == "none" else "several"
