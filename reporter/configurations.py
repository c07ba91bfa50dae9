"""Each measured configuration as the tables of the evidence show it: quality, time, memory, failure, machine."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple, cast

from collector.contract.matching import Machine
from collector.contract.peaks import Peak
from collector.contract.protocol import LockedTrial
from collector.contract.records.base import Role, Stage
from collector.contract.records.passes import MemoryScope

from .book import Book
from .dossier import Row
from .load_series import Unranked, has_other_prompts, unranked
from .paired_statistics import Pairs
from .readings import Reload, TimeReading, pairs_of, reload_of, times_of

_KEY = re.compile(r".*~b([0-9]+)~c([0-9]+)(?:~[0-9a-f]{6})?")
"""`<variant>~<device>~b<batch>~c<concurrency>`, with six more digits where two machines share that."""
_SCOPES: dict[str, tuple[MemoryScope, ...]] = {"cpu": ("host",)}
DEVICE_SCOPES: tuple[MemoryScope, ...] = ("device", "process", "reserved", "allocated")
"""Widest first: the widest one that was read answers whether it fits."""

ROLE_OF: dict[Stage, Role] = {"pilot": "development", "validation": "validation", "test": "test"}
"""The documents that a stage answers."""


class Failed(NamedTuple):
    """Why a configuration has no complete pass."""

    cause: str
    phase: str | None


class PeakReading(NamedTuple):
    """The peak that counts against the device's memory, and the figure that holds it."""

    peak: Peak
    figure_id: str
    capacity_bytes: int | None
    capacity_id: str | None


class Configuration(NamedTuple):
    """One configuration; counts are null where no pass was judged.

    expected_documents: the protocol's documents for this stage, whatever was returned.
    corpus_ns: median over complete passes of the measured phase; `repetition_count` of them.
    subsets: name -> (accepted, documents expected).
    scored: documents with a judgement; a failed request is judged, one whose scorer crashed is not.
    card_count: devices its weights lay on. reference_key: what its losses are counted against, null for the campaign's
    first reference. factor: what differs from that, `several` where a difference can be attributed to nothing.
    pairs: its documents against that reference's. times: metric -> percentiles of one request.
    is_as_requested, has_artefact_digest: what was loaded, read back after warm-up; null where nothing was.
    engine: named where engines differ. unranked: why its speed is not ranked. has_other_prompts: they are not shown to
    be the reference's, so its answers are compared with none.
    """

    key: str
    label: str
    variant: str
    device: str
    purpose: str
    batch: int
    concurrency: int
    expected_documents: int
    returned_documents: int | None
    accepted: int | None
    subsets: dict[str, tuple[int, int]]
    corpus_ns: Fraction | None
    corpus_figure_ids: list[str]
    loading_ns: int
    loading_figure_ids: list[str]
    repetition_count: int
    peak: PeakReading | None
    failed: Failed | None
    machine: Machine
    environment_id: str | None = None
    scored: int | None = None
    model: str = ""
    card_count: int = 1
    reference_key: str | None = None
    factor: str = "none"
    pairs: Pairs | None = None
    times: dict[str, TimeReading] = {}
    reload: Reload | None = None
    is_as_requested: bool | None = None
    has_artefact_digest: bool | None = None
    engine: str = ""
    unranked: Unranked | None = None
    has_other_prompts: bool = False

    @property
    def is_complete(self) -> bool:
        """Every expected identifier was returned and judged (mission F3)."""
        return self.returned_documents == self.expected_documents


def configurations(book: Book, trial: LockedTrial) -> list[Configuration]:
    """Return the measured configurations in the order of the tables, failed ones included.

    An open loop is a load test and no configuration to rent: it is none of them.
    """
    found: dict[str, Row] = {}
    for table in ("quality", "passes"):
        for row in book.rows(table):
            is_first = row.labels["purpose"] not in ("reference_repeat", "repetition")
            if is_first and row.labels.get("loop") != "open":
                found.setdefault(row.labels["configuration_key"], row)
    groups = {(row.labels["dimension"], row.labels["value"]): row for row in book.rows("workload")}
    documents = book.whole(groups.get(("all", "all")), "document_count") or 0
    subsets = {
        gate.subset: book.whole(groups.get(("subset", gate.subset)), "document_count") or 0
        for gate in trial.gates.subsets
    }
    return [_configuration(book, key, row, documents, subsets) for key, row in found.items()]


def accepted_id(key: str, *, prefix: str = "") -> str:
    """Return the id of a configuration's accepted documents; `prefix` names a stage other than the judged one."""
    return f"{prefix}quality/{key}/accepted_documents"


def subset_row(book: Book, key: str, subset: str) -> Row | None:
    """Return a configuration's row of one subset."""
    for row in book.rows_of("quality_by_group", key):
        if row.labels.get("dimension") == "subset" and row.labels.get("value") == subset:
            return row
    return None


def _configuration(book: Book, key: str, row: Row, expected: int, subsets: dict[str, int]) -> Configuration:
    match = _KEY.fullmatch(key)
    assert match is not None
    quality = book.row("quality", key)
    device = row.labels["device"]
    environment_id = next((row.labels["environment_id"] for row in book.rows_of("passes", key)), None)
    machine, kind, capacity_id = _machine(book, device, environment_id)
    corpus, corpus_ids = _median(book, key, "measure_ns")
    loading, loading_ids = _loading(book, key)
    compared = book.row("comparisons", key)
    labels = compared.labels if compared is not None else {}
    return Configuration(
        key=key, label=row.labels["label"], variant=row.labels["variant"], device=device,
        purpose=row.labels["purpose"], batch=int(match[1]), concurrency=int(match[2]), expected_documents=expected,
        returned_documents=book.whole(quality, "returned_documents"),
        accepted=book.whole(quality, "accepted_documents"),
        subsets={
            name: (book.whole(subset_row(book, key, name), "accepted_documents") or 0, count)
            for name, count in subsets.items()
        },
        corpus_ns=corpus, corpus_figure_ids=corpus_ids, loading_ns=loading, loading_figure_ids=loading_ids,
        repetition_count=len(corpus_ids), machine=machine,
        peak=_peak(book, key, kind, machine.memory_bytes, capacity_id),
        failed=_failure(book, key) if quality is None else None, environment_id=environment_id,
        scored=book.whole(book.row("coverage", key), "scored_documents"), model=labels.get("model", ""),
        card_count=book.whole(compared, "card_count") or 1, reference_key=labels.get("reference_key") or None,
        factor=labels.get("factor") or "none", pairs=pairs_of(book, key), times=times_of(book, key),
        reload=reload_of(book, key), is_as_requested=_claim(labels.get("is_as_requested")),
        has_artefact_digest=_claim(labels.get("has_artefact_digest")), engine=row.labels.get("engine", ""),
        unranked=unranked(book, key), has_other_prompts=has_other_prompts(book, key),
    )  # fmt: skip


def _claim(label: str | None) -> bool | None:
    return label == "yes" if label else None


def _durations(book: Book, key: str, column: str) -> list[tuple[int, str]]:
    found = []
    for row in book.rows_of("durations", key):
        value = book.whole(row, column)
        if value is not None:
            found.append((value, row.cells[column]))
    return found


def _median(book: Book, key: str, column: str) -> tuple[Fraction | None, list[str]]:
    """Return the exact median: the middle value, or half the sum of the two in the middle."""
    found = _durations(book, key, column)
    if not found:
        return None, []
    values = sorted(value for value, _ in found)
    middle = len(values) // 2
    median = Fraction(values[middle]) if len(values) % 2 else Fraction(values[middle - 1] + values[middle], 2)
    return median, [name for _, name in found]


def _loading(book: Book, key: str) -> tuple[int, list[str]]:
    """Return load and warm-up of the first pass that has them."""
    parts = [_durations(book, key, column)[:1] for column in ("load_ns", "warmup_ns")]
    return sum(value for part in parts for value, _ in part), [name for part in parts for _, name in part]


def _machine(book: Book, device: str, environment_id: str | None) -> tuple[Machine, str, str | None]:
    """Return the machine as an offer can name it, the device's kind, and the figure of its memory.

    Two machines may hold devices of one name with other memory, other slices or in another number.
    """
    plain = re.sub(r" x [0-9]+$", "", device)
    named = (plain, environment_id)
    rows = [r for r in book.rows("devices") if (r.labels.get("name"), r.labels.get("environment_id")) == named]
    if not rows:
        return Machine(device, 1, None, None), "", None
    first = rows[0]
    memory_bytes = book.whole(first, "device_memory_bytes")
    several = re.search(r" x ([0-9]+)$", device)
    used = int(several[1]) if several else 1
    machine = Machine(plain, len(rows), memory_bytes, first.labels.get("mig_profile") or None, used_count=used)
    return machine, first.labels.get("kind", ""), first.cells.get("device_memory_bytes")


def _peak(book: Book, key: str, kind: str, capacity: int | None, capacity_id: str | None) -> PeakReading | None:
    """Return the highest peak over phases of the widest scope read; of several cards, the fullest.

    None behind a server: its engine takes memory at its start whatever the workload, so its peak is no need.
    """
    if book.rows_of("engine_phases", key):
        return None
    rows = [row for row in book.rows_of("memory", key) if book.whole(row, "peak_bytes") is not None]
    for scope in _SCOPES.get(kind, DEVICE_SCOPES):
        by_device: dict[str, dict[Peak, str]] = {}
        for row in rows:
            if row.labels.get("scope") == scope:
                device = row.labels["device_id"]
                peak = Peak(device_id=device, memory_scope=scope, peak_bytes=cast(int, book.whole(row, "peak_bytes")))
                by_device.setdefault(device, {}).setdefault(peak, row.cells["peak_bytes"])
        highest = {Peak.max_over_phases(windows): windows for windows in by_device.values()}
        if highest:
            peak = max(highest, key=lambda peak: peak.peak_bytes)
            return PeakReading(peak, highest[peak][peak], capacity, capacity_id)
    return None


def _failure(book: Book, key: str) -> Failed | None:
    """Return the last recorded cause that ended a pass; `unknown` where a pass did not end and nothing says why."""
    for row in reversed(book.rows("failures")):
        if row.labels.get("configuration_key") == key and row.labels.get("scope") in ("variant", "pass", "run"):
            return Failed(row.labels.get("cause", ""), row.labels.get("phase") or None)
    return Failed("unknown", None) if book.rows_of("passes", key) else None
