"""From run files and a campaign file to the dossier as data: checked, measured, selected, worded. No clock is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from collector.contract.campaign import Campaign, objective_digest
from collector.contract.campaign_file import read_campaign
from collector.contract.digests import file_sha256
from collector.contract.errors import DossierError
from collector.contract.protocol import Lock

from . import figures
from .batch_tables import put_batches
from .book import Book, ref
from .candidates import refuse_ambiguous
from .case import Case
from .configurations import ROLE_OF, Configuration, configurations
from .confirmation import confirm
from .critical_subsets import put_critical_subsets
from .decision import decision, valid_until
from .dossier import Dossier, Sentence
from .engine_side_tables import put_engine_side
from .figures import Evidence
from .gate_tables import gate_figure, put_gates
from .kinds import acceptance_sentence, work_sentence
from .limits import ALL_DOCUMENTS, languages, not_tested
from .load import Store, open_records
from .load_findings import put_engine_findings, put_load_findings
from .load_tables import put_load
from .missing_passes import put_missing
from .notices import disturbed_keys, notices
from .overrides import refuse_override
from .paid import put_paid
from .paired_tests import put_paired_tests
from .price_tables import put_price_tables
from .record_digest import records_digest
from .requirement_tables import put_requirements
from .selection import join, select, withheld
from .sensitivity import Inputs
from .sensitivity_tables import put_sensitivity
from .stage_book import StageBook
from .verdict_tables import put_candidates
from .weights import put_weights
from .wording import sentence


def build_dossier(
    paths: Sequence[Path],
    campaign_path: Path | None,
    *,
    as_of: dt.date | None = None,
    choice: Path | None = None,
    cache_dir: Path | None = None,
) -> Dossier:
    """Return the dossier of the run files under the campaign; without one, of the measurements alone.

    choice: the choice file that was confirmed, to be held against what the runs record.
    as_of: replaces the campaign's date; without a campaign and a date, the day the last run began is taken.

    Raises Refused for a campaign file that cannot be used, one that names several configurations as one candidate, and
    for runs of several protocols; DossierError where no run file is found, or the choice file cannot be read.
    """
    choice_digest = _choice_digest(choice) if choice is not None else None
    loaded = read_campaign(campaign_path) if campaign_path is not None else None
    with open_records(paths, cache_dir=cache_dir) as store:
        evidence = figures.build(store)
        if loaded is not None:
            book = StageBook(Book(evidence.figures, evidence.tables), evidence.stage)
            measured = configurations(book, evidence.lock.trial)
            refuse_ambiguous(loaded, measured)
            refuse_override(loaded, measured)
        campaign = loaded.campaign if loaded else None
        return dossier_of(store, evidence, campaign, as_of=as_of, choice_digest=choice_digest)


def _choice_digest(choice: Path) -> str:
    try:
        return file_sha256(choice)
    except OSError as error:
        step = "name the choice.json that was given to `collector confirm`, or leave the option out"
        raise DossierError(f"{choice} cannot be read: {error.strerror}", next_step=step) from None


def dossier_of(
    store: Store,
    evidence: Evidence,
    campaign: Campaign | None,
    *,
    as_of: dt.date | None = None,
    choice_digest: str | None = None,
) -> Dossier:
    """Return the dossier of opened records and their evidence; neither is changed."""
    if campaign is not None and as_of is not None:
        campaign = msgspec.structs.replace(campaign, as_of=as_of)
    case = case_of(store, evidence, campaign)._replace(choice_digest=choice_digest)
    return _dossier(case, store, evidence, as_of)


def case_of(store: Store, evidence: Evidence, campaign: Campaign | None) -> Case:
    """Select, and put the tables that selection adds into the book."""
    book = Book(evidence.figures, evidence.tables)
    trial = evidence.lock.trial
    measured = configurations(StageBook(book, evidence.stage), trial)
    names = _names(measured, campaign)
    book.relabel(names)
    measured = [
        configuration._replace(label=names.get(configuration.label, configuration.label)) for configuration in measured
    ]
    reference = next((c for c in measured if c.key == evidence.reference_key), None)
    selection = select(trial.gates, measured, reference, campaign)
    if store.changed_files:
        selection = withheld(selection)
    if campaign is not None:
        put_price_tables(book, selection.standings, campaign)
        put_requirements(book, selection.standings, campaign)
    put_paid(book, store.con, selection.standings, campaign)
    if campaign is not None:
        put_sensitivity(book, Inputs(trial.gates, measured, reference, campaign), selection)
    put_batches(book)
    put_engine_side(book)
    put_load(book, store, campaign)
    put_load_findings(book)
    put_engine_findings(book)
    put_weights(book, evidence.lock)
    put_gates(book, selection.standings)
    put_missing(book, store, evidence.headers)
    put_paired_tests(book, trial.gates)
    put_critical_subsets(book, trial.gates)
    confirmation = confirm(book, trial, evidence.stage, selection, store)
    is_refuted = confirmation is not None and confirmation.status == "not_confirmed"
    put_candidates(book, selection, campaign, is_refuted=is_refuted)
    return Case(
        book, evidence.lock, evidence.stage, reference, selection, campaign, changed_files=len(store.changed_files),
        has_open_files=bool(store.open_files), confirmation=confirmation, disturbed_keys=disturbed_keys(store),
    )  # fmt: skip


def _names(measured: Sequence[Configuration], campaign: Campaign | None) -> dict[str, str]:
    """Return label -> the candidate's label; a configuration whose own label a candidate took prints its key."""
    pairs = [(c, candidate) for c, candidate in join(measured, campaign) if c is not None]
    names = {c.label: candidate.label for c, candidate in pairs if candidate is not None}
    taken = set(names.values())
    return names | {c.label: c.key for c, candidate in pairs if candidate is None and c.label in taken}


def _dossier(case: Case, store: Store, evidence: Evidence, as_of: dt.date | None) -> Dossier:
    campaign, lock, headers = case.campaign, case.lock, evidence.headers
    day = (campaign.as_of if campaign else as_of) or dt.date.fromisoformat(headers[-1].wall_at[:10])
    declared = headers[0].objective_digest == objective_digest(campaign.objective) if campaign else None
    digest = records_digest(store)
    page_one = decision(case)
    subtitle, gates = list(_subtitle(case, headers[0].wall_at, day)), list(_gates(case))
    said = notices(case, store, objective_declared=declared)
    untested = not_tested(case)
    return Dossier(
        dossier_id=campaign.dossier_id if campaign else f"records-{digest[:12]}",
        revision=campaign.revision if campaign else 1,
        supersedes=campaign.supersedes if campaign else None,
        question=campaign.question if campaign else lock.trial.name,
        issuer=campaign.issuer if campaign else None,
        prepared_for=campaign.prepared_for if campaign else None,
        issued=(campaign.issued if campaign else day).isoformat(),
        as_of=day.isoformat(),
        protocol_id=lock.protocol_id,
        protocol_name=lock.trial.name,
        task_kind=lock.trial.task_kind,
        answers_by=lock.plan.engine.answers_by,
        plan_ids=sorted({header.plan_id for header in headers}),
        stages=sorted({header.stage for header in headers}),
        frozen_at=lock.frozen_at,
        first_run_at=headers[0].wall_at,
        objective_declared_before=declared,
        objective_digest=objective_digest(campaign.objective) if campaign else None,
        records_digest=digest,
        has_example_prices=any(figure.basis == "example" for figure in case.book.figures.values()),
        subtitle=subtitle,
        decision=page_one,
        confirmation=case.confirmation,
        figures=dict(sorted(case.book.figures.items())),
        tables=dict(sorted(case.book.tables.items())),
        not_tested=untested,
        notices=said,
        gates=gates,
    )


def _subtitle(case: Case, first_run_at: str, as_of: dt.date) -> Iterator[Sentence]:
    lock = case.lock
    everything = case.book.row("workload", ALL_DOCUMENTS)
    if everything is not None:
        yield work_sentence(
            lock.trial, ref(everything.cells["document_count"]), role=ROLE_OF[case.stage],
            answers_by=lock.plan.engine.answers_by,
        )  # fmt: skip
    if known := languages(case.book):
        yield sentence("subtitle_languages", languages=", ".join(known))
    yield _frozen(lock, first_run_at)
    until = valid_until(case)
    if until is None:
        yield sentence("subtitle_no_prices")
    else:
        is_over = until < as_of.isoformat()
        yield sentence("subtitle_prices_expired" if is_over else "subtitle_prices", date="~" + until)


def _frozen(lock: Lock, first_run_at: str) -> Sentence:
    order = "before" if lock.frozen_at <= first_run_at else "after"
    return sentence(
        f"subtitle_frozen_{order}", protocol=f"{lock.protocol_id[:4]}…{lock.protocol_id[-4:]}",
        frozen="~" + lock.frozen_at[:10], first_run="~" + first_run_at[:10],
    )  # fmt: skip


def _gates(case: Case) -> Iterator[Sentence]:
    """The rules in words, with the limits in whole documents where something was judged by them."""
    trial = case.lock.trial
    yield acceptance_sentence(trial)
    judged = next((standing for standing in case.measured if standing.gates), None)
    limits: dict[tuple[str, str | None], dict[str, str]] = {}
    for gate in judged.gates if judged else []:
        assert judged is not None
        limits[gate.rule, gate.subset] = {
            column: ref(gate_figure(judged.key, gate, column)) for column in ("limit", "document_count")
        }
    gates = trial.gates
    if gates.max_lost_points is not None:
        yield _rule(
            "gate_lost", limits.get(("max_lost_points", None)), "allowed", points=gates.max_lost_points,
            reference=trial.reference,
        )  # fmt: skip
    if gates.min_accepted_percent is not None:
        yield _rule(
            "gate_accepted", limits.get(("min_accepted_percent", None)), "needed", percent=gates.min_accepted_percent
        )
    for subset in gates.subsets:
        yield _rule(
            "gate_subset", limits.get(("subset_min_accepted_percent", subset.subset)), "needed",
            percent=subset.min_accepted_percent, subset=subset.subset,
        )  # fmt: skip
    has_rules = gates.max_lost_points is not None or gates.min_accepted_percent is not None or gates.subsets
    by_interval = "gate_interval" if gates.decide_by == "interval" else "gate_whole_documents"
    yield sentence(by_interval if has_rules else "gate_none")
    yield from _references(case)


def _references(case: Case) -> Iterator[Sentence]:
    """Where cards have references of their own: which one a loss is counted against."""
    if case.lock.trial.gates.max_lost_points is None or case.reference is None:
        return
    against: dict[str, list[str]] = {}
    for standing in case.measured:
        own = standing.reference
        if own is not None and standing.key != own.key:
            against.setdefault(own.label, []).append(standing.label)
    if len(against) > 1:
        for label, labels in against.items():
            yield sentence("gate_reference", reference=label, labels=", ".join(labels))


def _rule(key: str, limits: dict[str, str] | None, name: str, **parameters: str) -> Sentence:
    if limits is None:
        return sentence(f"{key}_plain", **parameters)
    return sentence(key, **parameters, **{name: limits["limit"], "documents": limits["document_count"]})
