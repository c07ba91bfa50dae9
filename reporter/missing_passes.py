"""The table `missing_passes`: passes of the frozen plans without a finished run, each by name and with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from collector.contract.protocol import Lock, LockedPlan
from collector.contract.records import Header

from .book import Book, row
from .dossier import Row
from .load import Store
from .wording import WORDS, sentence

STAGE = "validation"
NOT_BEGUN = "not_begun"
UNENDED = ("interrupted", "not_ended")
"""What became of an attempt that nothing went wrong with: a resumed run makes another."""


class _Step(NamedTuple):
    """One pass as a plan foresees it."""

    variant: str
    batch: int
    repetition: int
    concurrency: int = 1
    rate_per_s: float | None = None

    @property
    def load(self) -> str:
        """What sets it apart from one request at a time: `b8`, `c4` or `r2`; nothing for the variant itself."""
        if self.rate_per_s is not None:
            return f"r{self.rate_per_s:g}"
        return f"c{self.concurrency}" if self.concurrency > 1 else f"b{self.batch}" if self.batch > 1 else ""


class _Place(NamedTuple):
    """One plan on one machine."""

    plan_id: str
    environment_id: str
    device: str
    model: str


class _Found(NamedTuple):
    """What is there of a plan on a machine: finished passes, why others failed, and what was left out on purpose."""

    place: _Place
    done: set[_Step]
    failed: dict[_Step, str]
    left_out: dict[str, str]
    """Variant, or variant and batch, -> the reason as it was recorded."""


def put_missing(book: Book, store: Store, headers: tuple[Header, ...]) -> None:
    """Add the table: what each plan foresees on each machine that began it, less what was finished there."""
    plans = {header.plan_id: plan for header in headers if (plan := _plan(header)) is not None}
    found = _found(store)
    several_models = len({one.place.model for one in found}) > 1
    rows = [
        _row(one, step, several_models)
        for one in found
        if one.place.plan_id in plans
        for step in _expected(plans[one.place.plan_id])
        if step not in one.done
    ]
    book.put("missing_passes", "one row per planned pass without a finished run, per machine", rows)


def _plan(header: Header) -> LockedPlan | None:
    try:
        return msgspec.json.decode(header.protocol_json, type=Lock).plan
    except msgspec.MsgspecError:
        return None


def _expected(plan: LockedPlan) -> Iterator[_Step]:
    choice = plan.plan
    for repetition in range(1, choice.reference_runs + 1):
        yield _Step(choice.reference, 1, repetition)
    served = [variant.name for variant in plan.variants if plan.engine_of(variant).server is not None]
    is_continuous = plan.engine.continuous is not None and choice.reference not in served
    concurrent = [choice.reference, *served] if is_continuous else served
    cells = [
        *(_Step(variant.name, 1, 1) for variant in plan.variants if variant.name != choice.reference),
        *(_Step(choice.reference, batch, 1) for batch in choice.batches),
        *(_Step(name, 1, 1, concurrency=count) for name in concurrent for count in choice.concurrencies),
        *(_Step(name, 1, 1, choice.in_flight_limit, rate) for name in served for rate in choice.rates),
    ]
    for cell in cells:
        for repetition in range(1, choice.repetitions + 1):
            yield cell._replace(repetition=repetition)


def _found(store: Store) -> list[_Found]:
    """Return each plan on each machine that began it; where its passes ran on several devices, all are named."""
    attempts = store.con.execute(
        "select headers.plan_id, attempts.environment_id, attempts.variant_name, attempts.batch, attempts.repetition, "
        "attempts.concurrency, attempts.rate_per_s, "
        "bool_or(attempts.pass_outcome = 'completed') as is_done, "
        "arg_max(attempts.cause, (attempts.attempt, attempts.began_at, attempts.run_id)) as cause, "
        "configurations.device, configurations.model "
        "from pass_attempts as attempts inner join stg_header as headers using (run_id) "
        "inner join configurations using (configuration_id) where attempts.stage = ? group by all order by all",
        [STAGE],
    ).fetchall()
    found: dict[tuple[str, str], _Found] = {}
    for plan, machine, *cell, is_done, cause, device, model in attempts:
        known = found.setdefault((plan, machine), _Found(_Place(plan, machine, device, model), set(), {}, {}))
        if device not in known.place.device.split(", "):
            named = known.place._replace(device=f"{known.place.device}, {device}")
            known = found[plan, machine] = known._replace(place=named)
        step = _Step(*cell)
        if is_done:
            known.done.add(step)
        else:
            known.failed[step] = cause or "not_ended"
    for plan, machine, names, batch, reason in _decided(store):
        for name in str(names or "").split(", "):
            if (plan, machine) in found and name:
                found[plan, machine].left_out[f"{name}~{batch}" if batch else name] = reason or ""
    return list(found.values())


def _decided(store: Store) -> list[tuple[str, str, str, str, str]]:
    return store.con.execute(
        "with machines as (select distinct run_id, environment_id from pass_attempts where stage = ?) "
        "select headers.plan_id, machines.environment_id, "
        "coalesce(decisions.detail['variants'], decisions.detail['variant']), decisions.detail['batch'], "
        "decisions.detail['reason'] from stg_decision as decisions inner join machines using (run_id) "
        "inner join stg_header as headers using (run_id) where decisions.decision = 'skipped' order by all",
        [STAGE],
    ).fetchall()


def _row(found: _Found, step: _Step, several_models: bool) -> Row:
    place, cause = found.place, found.failed.get(step)
    batch_reason, reason = found.left_out.get(f"{step.variant}~{step.batch}"), found.left_out.get(step.variant)
    state, said = NOT_BEGUN, sentence("missing_not_begun")
    if cause in UNENDED:
        state, said = "interrupted", sentence("missing_interrupted")
    elif cause is not None:
        state, said = "failed", sentence("missing_failed", cause="@" + cause if cause in WORDS else cause)
    elif batch_reason is not None:
        state, said = "skipped", sentence("missing_skipped", cause=batch_reason)
    elif reason is not None:
        said = sentence("missing_skipped", cause=reason)
    labels = {
        "variant": step.variant, "batch": str(step.batch), "repetition": str(step.repetition), "device": place.device,
        "environment_id": place.environment_id, "plan_id": place.plan_id,
        "model": place.model if several_models else "", "state": state,
    }  # fmt: skip
    cell = f"b{step.batch}"
    if step.concurrency > 1:
        cell = labels["load"] = step.load
    key = f"{place.plan_id[:6]}~{place.environment_id[:6]}~{step.variant}~{cell}~r{step.repetition}"
    return row(key, labels, {}, said)
