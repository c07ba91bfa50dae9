"""The plan: the reference first and twice, one factor at a time, the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.errors import DossierError
from collector.contract.protocol import Lock, VariantChoice
from collector.engines.base import Load
from collector.plan import (
    Chosen,
    PlannedPass,
    check_documents,
    document_order,
    factor_between,
    plan_passes,
    stage_documents,
    warmup_documents,
)


def planned(lock: Lock, **more: Any) -> list[PlannedPass]:
    engines = {variant.name: "f" * 16 for variant in lock.plan.variants}
    return plan_passes(lock, stage="validation", environment_id="e" * 16, engine_ids=engines, **more)


def with_plan(lock: Lock, **changes: Any) -> Lock:
    plan = msgspec.structs.replace(lock.plan, plan=msgspec.structs.replace(lock.plan.plan, **changes))
    return msgspec.structs.replace(lock, plan=plan)


def test_the_reference_runs_first_and_twice_the_second_time_in_another_order(make_trial: Callable[..., Any]) -> None:
    passes = planned(make_trial(documents=8).frozen.lock)
    assert [(p.variant.name, p.key.repetition, p.purpose, p.factor) for p in passes] == [
        ("fp32", 1, "reference", "none"),
        ("fp32", 2, "reference_repeat", "order"),
        ("bf16", 1, "variant", "weights"),
    ]
    assert sorted(passes[0].document_order) == sorted(passes[1].document_order)
    assert passes[0].document_order != passes[1].document_order


def test_a_variant_takes_the_order_of_the_reference_at_the_same_repetition(make_trial: Callable[..., Any]) -> None:
    passes = planned(with_plan(make_trial(documents=8).frozen.lock, repetitions=2))
    order = {(p.variant.name, p.key.repetition): p.document_order for p in passes}
    assert order["bf16", 1] == order["fp32", 1]
    assert order["bf16", 2] == order["fp32", 2]
    assert [p.purpose for p in passes if p.variant.name == "bf16"] == ["variant", "repetition"]


def test_d19_no_two_attempts_share_a_key(make_trial: Callable[..., Any]) -> None:
    """A/A repeats, repetitions and attempts each have a pass_id of their own, so no result can be added twice."""
    passes = planned(with_plan(make_trial().frozen.lock, repetitions=3, reference_runs=3))
    ids = [p.key.pass_id(attempt) for p in passes for attempt in (1, 2, 3)]
    assert len(ids) == len(set(ids)) == 18


def test_planning_again_gives_the_same_ids(make_trial: Callable[..., Any]) -> None:
    lock = make_trial().frozen.lock
    assert planned(lock) == planned(lock)


def test_c15_another_model_is_another_variant_in_every_pass_key(make_trial: Callable[..., Any]) -> None:
    first = planned(make_trial(name="a", model="model-a").frozen.lock)
    second = planned(make_trial(name="b", model="model-b").frozen.lock)
    assert not {p.key.variant_id for p in first} & {p.key.variant_id for p in second}


def test_a_filter_keeps_the_named_variants_and_their_ids(make_trial: Callable[..., Any]) -> None:
    lock = make_trial().frozen.lock
    assert planned(lock, only=["bf16"]) == [p for p in planned(lock) if p.variant.name == "bf16"]


@pytest.mark.parametrize(
    ("changes", "factor"),
    [
        ({}, "none"),
        ({"dtype": "bfloat16"}, "weights"),
        ({"attention": "eager"}, "compute"),
        ({"cache": "static"}, "cache"),
        ({"dtype": "bfloat16", "attention": "eager"}, "several"),
    ],
)
def test_a_difference_is_attributed_to_one_factor_or_to_none(changes: dict[str, Any], factor: str) -> None:
    reference = VariantChoice(name="reference")
    assert factor_between(reference, msgspec.structs.replace(reference, name="other", **changes)) == factor


def test_warm_up_prefers_documents_that_are_not_measured(make_trial: Callable[..., Any]) -> None:
    lock = make_trial(documents=2, warmup=5).frozen.lock
    assert warmup_documents(lock, "validation") == ["dev", "d0", "d1", "dev", "d0"]
    assert stage_documents(lock, "validation") == ["d0", "d1"]
    assert stage_documents(lock, "pilot") == ["dev"]


def test_a_batch_warms_up_with_one_whole_batch_and_not_at_all_where_the_plan_says_so(
    make_trial: Callable[..., Any],
) -> None:
    lock = make_trial(documents=2, warmup=1).frozen.lock
    assert warmup_documents(lock, "validation", load=Load(batch=4)) == ["dev", "d0", "d1", "dev"]
    assert warmup_documents(with_plan(lock, warmup_requests=0), "validation", load=Load(batch=4)) == []


def test_c03_eight_documents_are_checked_short_and_usual_in_turn_and_measured_ones_only_where_too_few(
    make_trial: Callable[..., Any],
) -> None:
    lock = make_trial(documents=12).frozen.lock
    assert check_documents(lock, "validation") == ["dev", "d0", "d1", "d10", "d11", "d2", "d3", "d4"]
    classes = {"d1": "short", "d3": "short", "d0": "long", "d5": "short"}

    def changed(role: str) -> Lock:
        return msgspec.structs.replace(
            lock,
            documents=[
                msgspec.structs.replace(
                    each, role=role, length_class=classes.get(each.document_id, each.length_class)
                )
                for each in lock.documents
            ],
        )  # fmt: skip

    assert check_documents(changed("development"), "pilot") == ["d1", "d10", "d3", "d11", "d5", "d2", "d4", "d6"]
    classes |= dict.fromkeys([each.document_id for each in lock.documents if each.document_id != "d4"], "long")
    assert check_documents(changed("development"), "pilot") == ["d4", "d0"], "a long one only so that there are two"


def test_batches_take_the_order_of_the_reference_and_their_labels_say_the_batch(make_trial: Callable[..., Any]) -> None:
    passes = planned(with_plan(make_trial(documents=8).frozen.lock, batches=[2, 8]))
    series = [p for p in passes if p.series == "batch"]
    assert [(p.label(1), p.key.batch, p.purpose, p.factor) for p in series] == [
        ("fp32~b2/1/1", 2, "series", "batch"), ("fp32~b8/1/1", 8, "series", "batch"),
    ]  # fmt: skip
    assert {tuple(p.document_order) for p in series} == {tuple(passes[0].document_order)}
    assert len({p.key.pass_id(1) for p in passes}) == len(passes)
    assert {p.key.variant_id for p in series} == {passes[0].key.variant_id}


def test_a_series_can_be_kept_alone(make_trial: Callable[..., Any]) -> None:
    lock = with_plan(make_trial().frozen.lock, batches=[4])
    assert [p.label(1) for p in planned(lock, only_series=["batch"])] == ["fp32~b4/1/1"]
    assert [p.label(1) for p in planned(lock, only=["fp32"], only_series=["reference"])] == ["fp32/1/1", "fp32/2/1"]


def test_chosen_configurations_replace_the_plans_own_and_the_reference_still_comes_first(
    make_trial: Callable[..., Any],
) -> None:
    lock = with_plan(make_trial().frozen.lock, batches=[2], repetitions=2)
    chosen = planned(lock, configurations=[Chosen("bf16", 4), Chosen("fp32", 1)], reference_runs=1)
    assert [(p.label(1), p.purpose, p.factor) for p in chosen] == [
        ("fp32/1/1", "reference", "none"), ("bf16~b4/1/1", "variant", "several"),
        ("bf16~b4/2/1", "repetition", "several"),
    ]  # fmt: skip
    assert [p.label(1) for p in planned(lock, configurations=[])] == ["fp32/1/1", "fp32/2/1"]
    with pytest.raises(DossierError, match="no variant is called 'int4'"):
        planned(lock, configurations=[Chosen("int4")])


@given(st.sets(st.text(min_size=1, max_size=8), max_size=30), st.integers(0, 2**63 - 1), st.integers(1, 9))
def test_an_order_is_a_permutation_that_the_order_of_the_file_does_not_change(
    ids: set[str], seed: int, repetition: int
) -> None:
    order = document_order(sorted(ids), seed=seed, repetition=repetition)
    assert sorted(order) == sorted(ids)
    assert order == document_order(sorted(ids, reverse=True), seed=seed, repetition=repetition)


def test_an_order_never_changes_with_the_version_of_the_collector() -> None:
    assert document_order(["a", "b", "c", "d", "e"], seed=1, repetition=1) == ["e", "a", "b", "d", "c"]


def named(name: str) -> Callable[[str], str]:
    """Add a third variant to a protocol's text."""
    return lambda text: text.replace("[plan]", f'[[variant]]\nname = "{name}"\ndtype = "float16"\n\n[plan]')


def test_every_first_repetition_comes_before_any_second_one_and_batches_come_last(
    make_trial: Callable[..., Any],
) -> None:
    """Every second repetition runs backwards (ABBA), so that no variant always runs last."""
    lock = with_plan(make_trial(edit=named("fp16")).frozen.lock, repetitions=3, batches=[2, 4])
    assert [p.label(1).removesuffix("/1") for p in planned(lock)] == [
        "fp32/1", "fp32/2",
        "bf16/1", "fp16/1", "fp16/2", "bf16/2", "bf16/3", "fp16/3",
        "fp32~b2/1", "fp32~b4/1", "fp32~b4/2", "fp32~b2/2", "fp32~b2/3", "fp32~b4/3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reference", "changes", "factor"),
    [
        ({"quantization": "bnb_nf4", "dtype": "bfloat16"}, {"dtype": "float32"}, "compute"),
        ({"quantization": "bnb_nf4"}, {"attention": "eager", "dtype": "bfloat16"}, "compute"),
        ({}, {"quantization": "bnb_nf4"}, "weights"),
        ({"dtype": "bfloat16"}, {"quantization": "torchao_int8"}, "weights"),
        ({}, {"quantization": "bnb_nf4", "dtype": "bfloat16"}, "several"),
        ({"quantization": "bnb_int8"}, {"quantization": "bnb_nf4", "dtype": "float16"}, "several"),
        ({"quantization": "bnb_nf4"}, {"cache": "static", "dtype": "bfloat16"}, "several"),
    ],
)
def test_the_dtype_is_compute_where_a_method_stores_the_weights_and_weights_where_none_does(
    reference: dict[str, Any], changes: dict[str, Any], factor: str
) -> None:
    """The same method computing in another dtype differs in compute alone; another method and dtype in several."""
    first = VariantChoice(name="reference", **reference)
    other = msgspec.structs.replace(first, name="other", **changes)
    assert factor_between(first, other) == factor_between(other, first) == factor
