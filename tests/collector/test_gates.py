"""Acceptance rules in whole documents."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.judging import allowed_losses, judge_gates, needed_acceptances
from collector.contract.judging.gates import GateVerdict
from collector.contract.protocol import Gates, SubsetGate

E2 = Gates(max_lost_points="1", subsets=[SubsetGate(subset="critical", min_accepted_percent="90")])


def e2(accepted: int, critical: int) -> list[GateVerdict]:
    return judge_gates(
        E2, documents=200, reference_accepted=190, accepted=accepted, subsets={"critical": (critical, 20)}
    )


def test_mission_e2_a_passes_both_rules_and_b_fails_both() -> None:
    assert e2(188, 18) == [
        ("max_lost_points", None, True, 2, 2, 200, "1"),
        ("subset_min_accepted_percent", "critical", True, 18, 18, 20, "90"),
    ]
    assert [verdict.has_passed for verdict in e2(184, 16)] == [False, False]
    assert [verdict.has_passed for verdict in e2(190, 19)] == [True, True]


def test_mission_e2_the_same_rule_in_floating_point_would_have_failed_a() -> None:
    assert 190 / 200 - 188 / 200 > 0.01  # binary: 0.95 - 0.94 is a little over one hundredth
    loss = Fraction(190, 200) - Fraction(188, 200)
    assert loss <= Fraction(1, 100)


@given(
    points=st.decimals(min_value=0, max_value=100, places=4),
    documents=st.integers(1, 5000),
    lost=st.integers(-5000, 5000),
)
def test_the_printed_limits_are_where_the_verdict_turns(points: object, documents: int, lost: int) -> None:
    text = f"{points:.4f}"
    gates = Gates(max_lost_points=text, min_accepted_percent=text)
    reference = 5000
    losses, acceptances = judge_gates(
        gates, documents=documents, reference_accepted=reference, accepted=reference - lost, subsets={}
    )
    assert losses.has_passed == (lost <= allowed_losses(text, documents))
    assert acceptances.has_passed == (reference - lost >= needed_acceptances(text, documents))


def test_more_accepted_than_the_reference_is_a_negative_loss_and_passes() -> None:
    (verdict,) = judge_gates(Gates(max_lost_points="0"), documents=10, reference_accepted=5, accepted=7, subsets={})
    assert (verdict.has_passed, verdict.counted, verdict.limit) == (True, -2, 0)


@pytest.mark.parametrize("subsets", [{}, {"critical": (0, 0)}])
def test_an_empty_subset_passes_nothing(subsets: dict[str, tuple[int, int]]) -> None:
    gates = Gates(subsets=[SubsetGate(subset="critical", min_accepted_percent="0")])
    (verdict,) = judge_gates(gates, documents=10, reference_accepted=5, accepted=5, subsets=subsets)
    assert not verdict.has_passed


def test_no_documents_pass_nothing() -> None:
    gates = Gates(max_lost_points="100", min_accepted_percent="0")
    verdicts = judge_gates(gates, documents=0, reference_accepted=0, accepted=0, subsets={})
    assert not any(verdict.has_passed for verdict in verdicts)


def test_limits_are_rounded_to_the_safe_side() -> None:
    assert allowed_losses("1", 199) == 1
    assert needed_acceptances("90", 19) == 18
    assert needed_acceptances("33.3333", 3) == 1
    assert needed_acceptances("33.3334", 3) == 2
