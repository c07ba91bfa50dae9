"""Records about probes of the machine and about checks after a reload."""

from __future__ import annotations

from .base import Count, Label, Record, Sha256, ShortId


class Probe(Record, frozen=True, kw_only=True, tag="probe"):
    """One measurement of the machine itself, outside any pass."""

    probe_name: Label
    environment_id: ShortId
    device_id: Label | None = None
    variant_id: ShortId | None = None
    definition_id: Label
    """Formula, clock and boundary of the value."""
    probe_unit: Label
    probe_value: float | None = None
    probe_samples: list[float] = []
    text_sha256: Sha256 | None = None
    """Digest of the text a perplexity was computed on; only equal texts compare."""


class ReloadCheck(Record, frozen=True, kw_only=True, tag="reload_check"):
    """The artefact loaded again in a fresh process and asked the same documents again."""

    variant_id: ShortId
    pass_id: ShortId
    checked_document_count: Count
    equal_answer_count: Count
    is_same_artefact: bool
