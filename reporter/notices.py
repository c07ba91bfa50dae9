"""What a reader must know beside the answer: records left out, noise, origins, unstable rules, unusable offers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from collector.contract.matching import Mismatch

from .batch_tables import batch_notices
from .book import ref
from .case import Case
from .dossier import Sentence
from .engine_side_tables import engine_side_notices
from .feasibility import is_impossible
from .load import Store
from .load_flags import load_notices
from .look_notices import look_notices
from .offered import Offered
from .rejudged_notices import rejudged_notices
from .requirement_tables import peak_figures
from .selection import Standing
from .stability import unstable_gates
from .wording import sentence

MOST_SHARE_OF_OTHERS = 0.1
"""Share of the processors that others may use while measuring before it is said; a quiet machine's own services take
two percent."""

MOST_NAMED = 8
"""Missing passes that a notice names; all of them are in the table."""


def notices(case: Case, store: Store, *, objective_declared: bool | None) -> list[Sentence]:
    """Return the notices: about records, about the measurement, about the objective and about offers."""
    return [
        *_scripted(store),
        *_files(case, store),
        *rejudged_notices(case, store),
        *look_notices(case, store),
        *_busy(case),
        *_noise(case),
        *_answers(case),
        *batch_notices(case.book),
        *engine_side_notices(case.book),
        *load_notices(case.book, store),
        *_variants(case),
        *_unsteady(case, store),
        *_unstable(case),
        *_impossible(case),
        *_missing(case),
        *_failures(case),
        *_objective(case, objective_declared),
        *_offers(case),
    ]


def _scripted(store: Store) -> Iterator[Sentence]:
    """Say before anything else that the engine was the one that plays a script."""
    found = store.con.execute(
        "select distinct run_id from stg_engine where engine_name = 'scripted' order by run_id"
    ).fetchall()
    if found:
        yield sentence("notice_scripted", runs=", ".join(run_id[:8] for (run_id,) in found))


def _files(case: Case, store: Store) -> Iterator[Sentence]:
    aside = Counter((entry.file, entry.rule) for entry in store.set_aside if entry.line is not None)
    first: dict[tuple[Path, str], int] = {}
    for entry in store.set_aside:
        first.setdefault((entry.file, entry.rule), entry.line or 1)
    for (file, rule), lines in sorted(aside.items()):
        if rule == "torn-tail":
            yield sentence("notice_torn_tail", file=file.name)
            continue
        count = case.book.given(f"notices/{file.name}~{rule}/lines", lines, "records", "measured")
        yield sentence(
            "notice_set_aside", lines=ref(count), file=file.name, rule=rule, first=str(first[file, rule])
        )  # fmt: skip
    for path in store.newer_files:
        yield sentence("notice_newer_file", file=path.name)
    for path in store.open_files:
        yield sentence("notice_open_file", file=path.name)
    for report in store.files:
        broken = next((line for line, problem in report.errors if problem.rule == "chain"), None)
        if broken is not None:
            yield sentence("notice_chain", file=report.path.name, line=str(broken))
    if store.duplicate_count:
        count = case.book.given("notices/all/duplicate_records", store.duplicate_count, "records", "measured")
        yield sentence("notice_duplicates", records=ref(count))
    plans = case.book.given(
        "notices/all/plans", len({r.header.plan_id for r in store.runs if r.header}), "count", "measured"
    )
    if case.book.figures[plans].value != 1:
        yield sentence("notice_plans", plans=ref(plans))


def _busy(case: Case) -> Iterator[Sentence]:
    if case.was_machine_busy:
        yield sentence("reason_machine_busy")
    for label in sorted({s.label for s in case.measured if s.key in case.disturbed_keys}):
        yield sentence("notice_disturbed", label=label)


def disturbed_keys(store: Store) -> frozenset[str]:
    """Return the configurations whose counted passes had others on the processor or on the card while measuring."""
    found = store.con.execute(
        "select distinct passes.configuration_key from counted_passes as passes "
        "inner join stg_telemetry as telemetry using (run_id, pass_id) where telemetry.phase = 'measure' "
        "and (telemetry.host_cpu_share > ? or telemetry.foreign_process_count > 0)",
        [MOST_SHARE_OF_OTHERS],
    ).fetchall()
    return frozenset(key for (key,) in found)


def _noise(case: Case) -> Iterator[Sentence]:
    repeats = [row for row in case.book.rows("noise") if row.labels.get("purpose") == "reference_repeat"]
    for row in repeats:
        documents, flipped = ref(row.cells["document_count"]), ref(row.cells["flipped_documents"])
        label, has_flipped = row.labels["label"], bool(case.book.whole(row, "flipped_documents"))
        if len(repeats) > 1 and has_flipped:
            yield sentence("notice_noise_of", label=label, documents=documents, flipped=flipped)
        elif len(repeats) > 1:
            yield sentence("notice_noise_none_of", label=label, documents=documents)
        elif has_flipped:
            yield sentence("notice_noise", documents=documents, flipped=flipped)
        else:
            yield sentence("notice_noise_none", documents=documents)


def _answers(case: Case) -> Iterator[Sentence]:
    for row in case.book.rows("quality_warnings"):
        affected, documents = ref(row.cells["affected_documents"]), ref(row.cells["document_count"])
        label = row.labels["label"]
        if row.labels["rule"] == "unparseable_share":
            yield sentence("notice_unparseable", label=label, unparseable=affected, documents=documents)
        elif row.labels["rule"] == "truncated_share":
            yield sentence("notice_truncated", label=label, truncated=affected, documents=documents)


def _variants(case: Case) -> Iterator[Sentence]:
    origins: dict[str, list[str]] = {}
    for row in case.book.rows("variants"):
        if row.labels.get("origin"):
            origins.setdefault(row.labels["origin"], []).append(row.labels["label"])
    for origin, labels in origins.items():
        yield sentence("notice_origin", label=", ".join(dict.fromkeys(labels)), origin=origin)
    for row in case.book.rows("variants"):
        if row.labels.get("deviations"):
            yield sentence("notice_deviation", label=row.labels["label"], deviation=row.labels["deviations"])


def _unsteady(case: Case, store: Store) -> Iterator[Sentence]:
    found = store.con.execute(
        "select distinct configuration_key from counted_passes where is_steady = false"
    ).fetchall()
    keys = {key for (key,) in found}
    for label in sorted({s.label for s in case.measured if s.key in keys}):
        yield sentence("notice_unsteady", label=label)


def _unstable(case: Case) -> Iterator[Sentence]:
    gates = case.lock.trial.gates
    for entry in unstable_gates(case.book, gates, case.selection.standings, case.reference):
        yield sentence("notice_not_stable", label=entry.label, rule=entry.subset or "@" + entry.rule)


def _impossible(case: Case) -> Iterator[Sentence]:
    for standing in case.measured:
        if standing.configuration is not None and is_impossible(standing.configuration):
            found = peak_figures(case.book, standing.configuration)
            yield sentence(
                "notice_peak_over_memory",
                label=standing.label,
                **{name: ref(name_id) for name, name_id in found.items()},
            )


def _missing(case: Case) -> Iterator[Sentence]:
    """Expected and not there: passes of the plan without a finished run, and candidates that were never measured."""
    rows = [row.labels for row in case.book.rows("missing_passes") if row.labels["state"] == "not_begun"]
    names = [
        f"{row['variant']}, {row.get('load') or 'batch ' + row['batch']}, repetition {row['repetition']} "
        f"({row['device']})"
        for row in rows
    ]
    if names:
        more = [f"… {len(names) - MOST_NAMED}"] if len(names) > MOST_NAMED else []
        yield sentence(
            "notice_missing", missing=ref(case.missing_count()), names="; ".join([*names[:MOST_NAMED], *more])
        )
    candidates = [standing.label for standing in case.selection.standings if standing.state == "not_measured"]
    if candidates:
        yield sentence("notice_missing_candidates", names=", ".join(candidates))


def _failures(case: Case) -> Iterator[Sentence]:
    failures = len(case.book.rows("failures"))
    if failures:
        count = case.book.given("notices/all/failures", failures, "records", "measured")
        yield sentence("notice_failures", failures=ref(count))
    attempts = sum(row.labels.get("outcome") != "completed" for row in case.book.rows("passes"))
    if attempts:
        count = case.book.given("notices/all/attempts", attempts, "passes", "measured")
        yield sentence("notice_attempts", attempts=ref(count))


def _objective(case: Case, declared: bool | None) -> Iterator[Sentence]:
    if case.campaign is not None:
        yield sentence("notice_objective_before" if declared else "notice_objective_after")


def _offers(case: Case) -> Iterator[Sentence]:
    if case.campaign is None:
        return
    used = {name for candidate in case.campaign.candidates for name in candidate.offers}
    examples = [offer.id for offer in case.campaign.offers if offer.basis == "example" and offer.id in used]
    if examples:
        yield sentence("notice_example_prices", offers=", ".join(examples))
    as_of = "~" + case.campaign.as_of.isoformat()
    for offer in case.campaign.offers:
        if offer.id in used and not offer.holds_on(case.campaign.as_of):
            first, last = "~" + offer.retrieved.isoformat(), "~" + offer.valid_until.isoformat()
            yield sentence("notice_expired", offer=offer.id, first=first, last=last, as_of=as_of)
    for standing in case.selection.standings:
        if standing.candidate is not None and not standing.candidate.offers:
            yield sentence("notice_unknown_offer", candidate=standing.label)
        for offered in standing.offered:
            yield from _offer(standing, offered)


def _offer(standing: Standing, offered: Offered) -> Iterator[Sentence]:
    offer = offered.offer
    if offered.mismatch is not None:
        yield _mismatch(offer.id, offered.mismatch, standing.label)
        return
    tariff = offered.packages[0].tariff if offered.packages else None
    if tariff is not None and tariff.idle_cards:
        yield sentence(
            "notice_idle_devices", offer=offer.id, offered=str(tariff.rented_cards), used=str(tariff.used_cards)
        )  # fmt: skip


def _mismatch(offer: str, mismatch: Mismatch, label: str) -> Sentence:
    return sentence(
        f"notice_mismatch_{mismatch.reason}", offer=offer, offered=mismatch.offered, measured=mismatch.measured,
        label=label,
    )  # fmt: skip
