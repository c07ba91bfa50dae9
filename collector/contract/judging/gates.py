"""The protocol's acceptance rules, judged in whole documents with integers and exact fractions only (mission E2)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Literal, NamedTuple

from ..protocol import Gates

GateRule = Literal["max_lost_points", "min_accepted_percent", "subset_min_accepted_percent"]


class GateVerdict(NamedTuple):
    """What one rule says about one configuration.

    counted: documents lost against the reference (net; negative where more were accepted), or documents accepted.
    limit: the most that may be lost, or the fewest that must be accepted, in whole documents.
    threshold: points or percent as the protocol writes them.
    """

    rule: GateRule
    subset: str | None
    has_passed: bool
    counted: int
    limit: int
    document_count: int
    threshold: str


def allowed_losses(points: str, document_count: int) -> int:
    """Return the most documents that may be lost: the largest n with n x 100 <= points x document_count."""
    return floor(Fraction(points) * document_count / 100)


def needed_acceptances(percent: str, document_count: int) -> int:
    """Return the fewest documents to accept: the smallest n with n x 100 >= percent x document_count."""
    return ceil(Fraction(percent) * document_count / 100)


def judge_gates(
    gates: Gates,
    *,
    documents: int,
    reference_accepted: int,
    accepted: int,
    subsets: Mapping[str, tuple[int, int]],
) -> list[GateVerdict]:
    """Return one verdict per rule, in the protocol's order.

    `subsets` maps a name to (accepted, documents). A rule about no documents at all is not passed: an empty subset is
    no evidence.
    """
    verdicts: list[GateVerdict] = []
    if gates.max_lost_points is not None:
        lost = reference_accepted - accepted
        allowed = allowed_losses(gates.max_lost_points, documents)
        has_passed = documents > 0 and lost * 100 <= Fraction(gates.max_lost_points) * documents
        verdicts.append(
            GateVerdict("max_lost_points", None, has_passed, lost, allowed, documents, gates.max_lost_points)
        )
    if gates.min_accepted_percent is not None:
        verdicts.append(_acceptance("min_accepted_percent", None, gates.min_accepted_percent, accepted, documents))
    for gate in gates.subsets:
        subset_accepted, subset_documents = subsets.get(gate.subset, (0, 0))
        verdicts.append(
            _acceptance(
                "subset_min_accepted_percent", gate.subset, gate.min_accepted_percent, subset_accepted, subset_documents
            )
        )
    return verdicts


def _acceptance(rule: GateRule, subset: str | None, percent: str, accepted: int, documents: int) -> GateVerdict:
    has_passed = documents > 0 and accepted * 100 >= Fraction(percent) * documents
    return GateVerdict(rule, subset, has_passed, accepted, needed_acceptances(percent, documents), documents, percent)
