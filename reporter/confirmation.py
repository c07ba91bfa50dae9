"""What the test documents say of the recommendation, beside what validation chose; they never change the choice."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from collector.contract.protocol import LockedTrial
from collector.contract.records.base import Stage

from .book import Book, ref, row
from .configurations import Configuration, accepted_id, configurations
from .dossier import Confirmation, ConfirmationStatus, Row, Sentence
from .gate_tables import gate_figure, put_gates
from .judgement import judged, outcomes, state_of
from .load import Store
from .rejudged import is_under_later_rule, unjudged
from .selection import Selection, Standing
from .sql_files import TEST_PREFIX
from .stage_book import of_test_stage
from .verdicts import failure, rejection, undecided
from .wording import sentence

LOOKS = "confirmation/all/looks"
UNJUDGED = "confirmation/all/unjudged_answers"
TEST_DOCUMENTS = "roles/test/document_count"


def confirm(book: Book, trial: LockedTrial, stage: Stage, selection: Selection, store: Store) -> Confirmation | None:
    """Return whether the recommendation was confirmed, and add the tables of the test stage.

    Null where the judged stage is the test stage itself: then nothing was chosen before it.
    """
    if stage == "test":
        return None
    looks = book.rows("looks")
    if not looks:
        return _not_looked_at(book, selection, _lost_verdicts(book, store))
    number = _count(book, looks)
    tested = _tested(book, trial)
    put_gates(of_test_stage(book), tested, prefix=TEST_PREFIX)
    _put_table(book, tested, selection)
    status, verdict = _verdict(book, selection, tested, looks, number)
    remarks = _lost_verdicts(book, store)
    if verdict is not None and is_under_later_rule(store.judged_again, min(look.labels["at"] for look in looks)):
        if status in ("confirmed", "looked_at_again"):
            status, verdict = "judged_again", _judged_again(selection, tested)
        else:
            remarks.insert(0, sentence("judged_by_later_rule"))
    return Confirmation(status=status, verdict=verdict, look_count=number, remarks=remarks)


def _judged_again(selection: Selection, tested: Sequence[Standing]) -> Sentence:
    """A rule that may know the test documents confirms nothing, whoever meets it."""
    winner = selection.chosen
    assert winner is not None
    accepted, documents = _reached(next(standing for standing in tested if standing.key == winner.key))
    return sentence("judged_again", label=winner.label, accepted=accepted, documents=documents)


def _lost_verdicts(book: Book, store: Store) -> list[Sentence]:
    number = unjudged(store.con)
    if not number:
        return []
    return [sentence("answers_without_verdict", answers=ref(book.given(UNJUDGED, number, "requests", "measured")))]


def looked_at(book: Book) -> Sentence | None:
    """Return how often the test documents were looked at; null for never."""
    looks = book.rows("looks")
    if not looks:
        return None
    number = _count(book, looks)
    if number == 1:
        return sentence("notice_look", date="~" + looks[0].labels["at"][:10])
    return sentence("notice_looks", looks=ref(LOOKS))


def _not_looked_at(book: Book, selection: Selection, remarks: list[Sentence]) -> Confirmation:
    has_documents = TEST_DOCUMENTS in book.figures
    status: ConfirmationStatus = "not_looked_at" if has_documents else "no_test_documents"
    if selection.chosen is None:
        return Confirmation(status=status, verdict=None, look_count=0)
    parameters = {"documents": ref(TEST_DOCUMENTS)} if has_documents else {}
    return Confirmation(status=status, verdict=sentence(status, **parameters), look_count=0, remarks=remarks)


def _count(book: Book, looks: Sequence[Row]) -> int:
    """Return the looks: the runs given, or more where a record says that more came before it."""
    recorded = [int(look.labels["look"]) for look in looks if look.labels["look"].isdigit()]
    number = max(len(looks), *recorded, 0)
    book.derived(
        [look.cells["answered_documents"] for look in looks], figure_id=LOOKS, value=number, unit="count",
        formula="runs on the test documents, or the highest look that one of them records, whichever is more",
    )  # fmt: skip
    return number


def _tested(book: Book, trial: LockedTrial) -> list[Standing]:
    """Return the configurations of the test stage, judged by the same rules against the reference's first test pass."""
    found = configurations(of_test_stage(book), trial)
    reference = next((c for c in found if c.purpose == "reference" and c.accepted is not None), None)
    return [_standing(trial, configuration, reference) for configuration in found]


def _standing(trial: LockedTrial, configuration: Configuration, reference: Configuration | None) -> Standing:
    verdicts = judged(trial.gates, configuration, reference)
    return Standing(
        key=configuration.key, label=configuration.label, state=state_of(configuration, verdicts, trial.gates),
        is_reference=configuration is reference, configuration=configuration, candidate=None, gates=verdicts, need=None,
        offered=[], best=None, late_ns=None, blocked=None, reference=reference,
        outcomes=outcomes(trial.gates, configuration, verdicts),
    )  # fmt: skip


def _put_table(book: Book, tested: Sequence[Standing], selection: Selection) -> None:
    chosen = {s.key: s.configuration for s in selection.standings if s.configuration is not None}
    rows = []
    for standing in tested:
        after, before = standing.configuration, chosen.get(standing.key)
        assert after is not None
        cells = _cells(book, after, TEST_PREFIX)
        if before is not None:
            cells |= {f"validation_{name}": cell for name, cell in _cells(book, before, "").items()}
        labels = {
            "label": standing.label, "configuration_key": standing.key, "purpose": after.purpose,
            "variant": after.variant, "device": after.device, "state": standing.state,
            "is_recommended": "yes" if selection.chosen and selection.chosen.key == standing.key else "no",
        }  # fmt: skip
        if after.peak is not None:
            labels["peak_scope"] = after.peak.peak.memory_scope
        rows.append(row(standing.key, labels, cells, _said(book, standing)))
    book.put("confirmation", "one row per configuration that was put to the test documents", rows)


def _cells(book: Book, configuration: Configuration, prefix: str) -> dict[str, str | None]:
    key, cells = configuration.key, dict[str, str | None]()
    if configuration.accepted is not None:
        cells["accepted_documents"] = accepted_id(key, prefix=prefix)
        cells["document_count"] = f"{prefix}quality/{key}/document_count"
    if configuration.peak is not None:
        cells["peak_bytes"] = configuration.peak.figure_id
    if configuration.corpus_ns is not None and configuration.expected_documents:
        of_stage = "test" if prefix else "validation"
        per_document = configuration.corpus_ns / Fraction(configuration.expected_documents * 10**9)
        cells["document_s"] = book.derived(
            configuration.corpus_figure_ids, figure_id=f"confirmation/{key}/{of_stage}_document_s",
            value=float(per_document), unit="seconds", n=configuration.repetition_count,
            formula=f"median of measure_ns over {configuration.repetition_count} passes / {of_stage} documents / 10^9",
        )  # fmt: skip
    return cells


def _said(book: Book, standing: Standing) -> Sentence:
    match standing.state:
        case "failed":
            return failure(standing)
        case "not_judged":
            return sentence("verdict_rejected_no_reference")
        case "rejected":
            return rejection(standing, prefix=TEST_PREFIX)
        case "inconclusive":
            return undecided(book, standing, prefix=TEST_PREFIX)
        case _:
            return sentence("verdict_reference" if standing.is_reference else "verdict_meets_rules")


def _verdict(
    book: Book, selection: Selection, tested: Sequence[Standing], looks: Sequence[Row], number: int
) -> tuple[ConfirmationStatus, Sentence | None]:
    winner = selection.chosen
    if winner is None:
        return "nothing_recommended", _without_recommendation(tested, looks)
    found = next((standing for standing in tested if standing.key == winner.key), None)
    if found is None:
        return _put_another(winner, tested, looks)
    if found.state == "qualified":
        if number > 1:
            accepted, documents = _reached(found)
            again = sentence(
                "looked_at_again", looks=ref(LOOKS), label=winner.label, accepted=accepted, documents=documents
            )
            return "looked_at_again", again
        return "confirmed", _confirmed(found)
    is_open = any(look.labels["is_sealed"] == "no" for look in looks)
    if found.state == "failed" and is_open and _has_no_cause(found):
        return "not_finished", sentence("not_finished")
    return "not_confirmed", _refuted(book, found)


def _has_no_cause(standing: Standing) -> bool:
    failed = standing.configuration.failed if standing.configuration else None
    return failed is None or failed.cause in ("", "unknown", "interrupted")


def _reached(standing: Standing) -> tuple[str, str]:
    accepted = ref(accepted_id(standing.key, prefix=TEST_PREFIX))
    return accepted, ref(f"{TEST_PREFIX}quality/{standing.key}/document_count")


def _confirmed(standing: Standing) -> Sentence:
    accepted, documents = _reached(standing)
    loss = next((gate for gate in standing.gates if gate.rule == "max_lost_points"), None)
    if loss is None or standing.is_reference or loss.counted <= 0:
        return sentence("confirmed", accepted=accepted, documents=documents)
    lost, allowed = (ref(gate_figure(standing.key, loss, name, prefix=TEST_PREFIX)) for name in ("counted", "limit"))
    return sentence("confirmed_lost", accepted=accepted, documents=documents, lost=lost, allowed=allowed)


def _refuted(book: Book, standing: Standing) -> Sentence:
    label, gate = standing.label, standing.worst_gate
    if standing.state == "failed":
        failed = standing.configuration.failed if standing.configuration else None
        if failed is None or failed.cause in ("", "unknown"):
            return sentence("not_confirmed_failed_unknown", label=label)
        phase = "@" + (failed.phase or "unknown_phase")
        return sentence("not_confirmed_failed", label=label, cause="@" + failed.cause, phase=phase)
    if standing.state == "not_judged":
        return sentence("not_confirmed_reference")
    _, documents = _reached(standing)
    if standing.configuration is not None and not standing.configuration.is_complete:
        returned = ref(f"{TEST_PREFIX}quality/{standing.key}/returned_documents")
        return sentence("not_confirmed_incomplete", label=label, returned=returned, documents=documents)
    assert gate is not None
    counted, limit = (ref(gate_figure(standing.key, gate, name, prefix=TEST_PREFIX)) for name in ("counted", "limit"))
    if standing.state == "inconclusive":
        return sentence("not_confirmed_undecided", label=label, documents=documents, rule="@" + gate.rule)
    if gate.rule == "max_lost_points":
        return sentence("not_confirmed_lost", label=label, lost=counted, allowed=limit, documents=documents)
    if gate.subset is not None:
        of_subset = ref(gate_figure(standing.key, gate, "document_count", prefix=TEST_PREFIX))
        return sentence(
            "not_confirmed_subset", label=label, accepted=counted, needed=limit, subset=gate.subset,
            documents=of_subset,
        )  # fmt: skip
    return sentence("not_confirmed_accepted", label=label, accepted=counted, needed=limit, documents=documents)


def _put_another(
    winner: Standing, tested: Sequence[Standing], looks: Sequence[Row]
) -> tuple[ConfirmationStatus, Sentence]:
    """The recommended configuration was not put to the test documents: another was, or the run has not come to it."""
    last = looks[-1].labels
    is_open = any(look.labels["is_sealed"] == "no" for look in looks)
    if last["chosen_key"] == winner.key and is_open:
        return "not_finished", sentence("not_finished")
    chosen = winner.configuration
    for standing in tested:
        other = standing.configuration
        if chosen is not None and other is not None and _named_alike(chosen, other):
            return "other_choice", sentence("other_environment", label=winner.label)
    put = next((standing.label for standing in tested if standing.key == last["configuration_key"]), last["choice"])
    return "other_choice", sentence("other_choice", put=put or "?", label=winner.label)


def _named_alike(left: Configuration, right: Configuration) -> bool:
    return (left.variant, left.device, left.batch, left.concurrency) == (
        right.variant, right.device, right.batch, right.concurrency,
    )  # fmt: skip


def _without_recommendation(tested: Sequence[Standing], looks: Sequence[Row]) -> Sentence | None:
    key = looks[-1].labels["configuration_key"]
    found = next((standing for standing in tested if standing.key == key), None)
    if found is None or found.configuration is None or found.configuration.accepted is None:
        return sentence("nothing_recommended")
    accepted, documents = _reached(found)
    return sentence("nothing_recommended_put", label=found.label, accepted=accepted, documents=documents)
