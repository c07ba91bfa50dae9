"""What the dossier does not show and what was not tested, read off the records (mission G1, G4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .batch_tables import batch_limits
from .book import Book, ref
from .case import Case
from .configurations import Configuration
from .confirmation import LOOKS
from .dossier import Sentence
from .kinds import prompt_limit_sentence
from .weights import load_limits
from .wording import sentence

NOT_STATED = "not stated"
ENGINE_CACHE = "engine"
"""The cache strategy of an engine behind a server: its own, which it does not tell."""
ALL_DOCUMENTS = "all~all"


def does_not_show(case: Case) -> list[Sentence]:
    """Return the limits, those of the workload first."""
    measured = [standing.configuration for standing in case.measured if standing.configuration]
    return [
        *_load(case, measured),
        *_workload(case),
        *_repetitions(case, measured),
        *_prices(case),
        *_factors(case, measured),
        *([sentence("limit_devices", devices=", ".join(_devices(measured)))] if measured else []),
        sentence("limit_fine_tuning"),
        sentence("limit_installed"),
    ]


def languages(book: Book) -> list[str]:
    """Return the languages that the documents state, sorted."""
    values = [row.labels["value"] for row in book.rows("workload") if row.labels.get("dimension") == "language"]
    return sorted(value for value in values if value != NOT_STATED)


def _devices(measured: Sequence[Configuration]) -> list[str]:
    return sorted({configuration.device for configuration in measured})


def _workload(case: Case) -> Iterator[Sentence]:
    everything = case.book.row("workload", ALL_DOCUMENTS)
    longest = case.book.figure(everything, "prompt_tokens_max")
    if longest is not None and longest.value is not None:
        yield prompt_limit_sentence(case.lock.plan.engine.answers_by, ref(longest.figure_id))
    known = languages(case.book)
    if known:
        yield sentence("limit_language", languages=", ".join(known))
    else:
        yield sentence("limit_language_unstated")
    if case.stage == "pilot":
        yield sentence("limit_stage_pilot")
    elif case.stage == "validation" and case.look_count == 0:
        yield sentence("limit_stage_test")
    elif case.look_count > 1:
        yield sentence("limit_test_again", looks=ref(LOOKS))
    if everything is not None:
        yield sentence("limit_texts", documents=ref(everything.cells["document_count"]))


def _load(case: Case, measured: Sequence[Configuration]) -> Iterator[Sentence]:
    ended = [c for c in measured if c.failed is None]
    batch = max((c.batch for c in ended), default=1)
    concurrency = max((c.concurrency for c in ended), default=1)
    yield from batch_limits(case.book)
    yield from load_limits(case.book)
    if batch == concurrency == 1:
        yield sentence("limit_one_request")
    else:
        yield sentence(
            "limit_load", batch=ref(case.counted("largest_batch", batch, "largest batch of a configuration")),
            concurrency=ref(case.counted("largest_concurrency", concurrency, "largest concurrency of a configuration")),
        )  # fmt: skip


def _repetitions(case: Case, measured: Sequence[Configuration]) -> Iterator[Sentence]:
    if not any(row.labels.get("purpose") == "reference_repeat" for row in case.book.rows("noise")):
        yield sentence("limit_no_repeat")
    counts = [c.repetition_count for c in measured if c.repetition_count and c.purpose != "reference"]
    if counts:
        fewest = case.counted("fewest_repetitions", min(counts), "fewest complete passes of a variant")
        key = "limit_repetitions" if min(counts) == max(counts) else "limit_repetitions_fewest"
        yield sentence(key, repetitions=ref(fewest))


def _prices(case: Case) -> Iterator[Sentence]:
    offered = [offered for standing in case.selection.standings for offered in standing.offered]
    if not any(entry.packages for entry in offered):
        yield sentence("limit_no_prices")
        return
    if any(entry.offer.basis == "example" for entry in offered):
        yield sentence("limit_example_prices")
    yield sentence("limit_parallel")


def _factors(case: Case, measured: Sequence[Configuration]) -> Iterator[Sentence]:
    """Complete configurations: no difference between them is attributed to one factor (mission D2)."""
    if case.reference is None:
        return
    labels = {configuration.key: configuration.label for configuration in measured}
    engines = {configuration.key: configuration.engine for configuration in measured}
    differing: dict[tuple[str, str], list[Configuration]] = {}
    for configuration in measured:
        if configuration.factor in ("several", "engine") and configuration.accepted is not None:
            right = labels.get(configuration.reference_key or "", case.reference.label)
            has_other = configuration.engine != engines.get(configuration.reference_key or "", case.reference.engine)
            key = "limit_engines" if has_other or configuration.factor == "engine" else "limit_factors"
            differing.setdefault((key, right), []).append(configuration)
    for (key, right), left in differing.items():
        if key == "limit_engines":  # one engine at several loads is named once
            first = {(c.engine, c.variant, c.device): c for c in sorted(left, key=_load_of, reverse=True)}
            left = [c for c in left if first[c.engine, c.variant, c.device] is c]
        yield sentence(key, left=", ".join(c.label for c in left), right=right)


def _load_of(configuration: Configuration) -> tuple[int, int]:
    return configuration.batch, configuration.concurrency


def not_tested(case: Case) -> list[Sentence]:
    """Return the parts of a full dossier for which these records hold no evidence."""
    return list(_untested(case))


def _untested(case: Case) -> Iterator[Sentence]:
    book = case.book
    measured = [standing.configuration for standing in case.measured if standing.configuration]
    kinds = {row.labels.get("kind") for row in book.rows("devices")}
    if kinds <= {"cpu"}:
        yield sentence("untested_gpu")
    if all(c.batch == c.concurrency == 1 for c in measured):
        yield sentence("untested_concurrency")
    caches = {row.labels["cache"] for row in book.rows("variants") if row.labels.get("cache")}
    if caches == {ENGINE_CACHE}:
        yield sentence("untested_cache_engine")
    elif caches:
        yield sentence("untested_cache", cache=", ".join(sorted(caches - {ENGINE_CACHE})))
    if case.stage != "test" and case.look_count == 0:
        yield sentence("untested_test_set")
    loads = book.rows("load_series")
    if not any(row.labels["cache_state"] for row in loads):
        yield sentence("untested_server")
    if all(row.labels["loop"] == "closed" for row in loads):
        yield sentence("untested_open_loop")
    if not any(row.labels.get("phase") == "build" for row in book.rows("memory")):
        yield sentence("untested_build")
    for table, key in (
        ("probes", "untested_probes"),
        ("reload_checks", "untested_reload"),
        ("telemetry", "untested_telemetry"),
        ("perplexity", "untested_perplexity"),
        ("memory", "untested_memory"),
    ):
        if not book.rows(table):
            yield sentence(key)
