"""The protocol's rules on one configuration: against which reference, in whole documents or by the interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from collector.contract.judging.gates import GateVerdict, judge_gates
from collector.contract.protocol import Gates

from .configurations import Configuration
from .paired_statistics import Outcome, documents_needed, margin_outcome, share_documents_needed, share_outcome

State = Literal["qualified", "rejected", "inconclusive", "not_judged", "failed", "not_measured"]
LOSS = "max_lost_points"


def references_of(
    measured: Sequence[Configuration], reference: Configuration | None
) -> Mapping[str, Configuration | None]:
    """Return key -> the reference that a configuration's losses are counted against.

    That is the reference measured on the same card where there is one, else the campaign's first. So the loss is the
    variant's own and not the card's; a card's reference itself is judged against the first.
    """
    complete = {configuration.key: configuration for configuration in measured if configuration.accepted is not None}
    return {c.key: complete.get(c.reference_key or "", reference) for c in measured}


def judged(gates: Gates, configuration: Configuration, reference: Configuration | None) -> list[GateVerdict]:
    """Return the verdicts of repetition 1; empty where it was not completed or its reference is missing.

    Documents that were not returned count as not accepted: N is what the protocol expects. Where the protocol decides
    by interval, a rule is passed when its interval accepts.
    """
    if configuration.accepted is None or (gates.max_lost_points is not None and reference is None):
        return []
    verdicts = judge_gates(
        gates,
        documents=configuration.expected_documents,
        reference_accepted=reference.accepted or 0 if reference is not None else 0,
        accepted=configuration.accepted,
        subsets=configuration.subsets,
    )
    if gates.decide_by == "rule":
        return verdicts
    decided = outcomes(gates, configuration, verdicts)
    return [gate._replace(has_passed=outcome == "accept") for gate, outcome in zip(verdicts, decided, strict=True)]


def outcomes(gates: Gates, configuration: Configuration, verdicts: Sequence[GateVerdict]) -> list[Outcome]:
    """Return what the interval says of each rule; none where the protocol decides by the plain rule."""
    if gates.decide_by == "rule":
        return []
    return [_outcome(configuration, gate) for gate in verdicts]


def _outcome(configuration: Configuration, gate: GateVerdict) -> Outcome:
    if gate.rule != LOSS:
        return share_outcome(gate.threshold, gate.counted, gate.document_count)
    if configuration.pairs is not None:
        return margin_outcome(gate.threshold, configuration.pairs)
    # the reference loses nothing against itself
    return "accept" if configuration.purpose == "reference" and gate.counted == 0 else "inconclusive"


def more_documents(configuration: Configuration, gate: GateVerdict) -> int | None:
    """Return how many documents beside those judged would decide an undecided rule.

    A loss: if the variant were as good as the reference; null where the documents at hand would do for such a one. A
    share: if it stayed as it is, counted in the rule's own documents; null where it is exactly the share wanted.
    """
    pairs = configuration.pairs
    if gate.rule != LOSS:
        judged_documents = gate.document_count
        needed = share_documents_needed(gate.threshold, gate.counted, gate.document_count)
    elif pairs is not None and pairs.total:
        judged_documents = pairs.total
        needed = documents_needed(gate.threshold, pairs.discordant / pairs.total)
    else:
        return None
    return needed - judged_documents if needed is not None and needed > judged_documents else None


def state_of(configuration: Configuration, verdicts: list[GateVerdict], gates: Gates) -> State:
    """Return what the rules make of a configuration's first pass."""
    if configuration.accepted is None:
        return "failed"
    if not configuration.is_complete:
        return "rejected"
    if not verdicts and (gates.max_lost_points is not None or gates.min_accepted_percent is not None or gates.subsets):
        return "not_judged"
    if all(verdict.has_passed for verdict in verdicts):
        return "qualified"
    decided = outcomes(gates, configuration, verdicts)
    return "inconclusive" if decided and "reject" not in decided else "rejected"


def keeps_to(gates: Gates, own: Configuration | None, first: Configuration | None) -> bool:
    """Return whether a card's own reference loses no more against the first one than a variant may.

    Otherwise nothing on that card is judged by its loss: it would be measured by a bar that had sunk.
    """
    if own is None or first is None or own.key == first.key or gates.max_lost_points is None:
        return True
    return all(gate.has_passed for gate in judged(gates, own, first) if gate.rule == LOSS)
