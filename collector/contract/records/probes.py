"""Records about probes of the machine and about checks after a reload."""

from __future__ import annotations

from .base import Count, Label, Nanoseconds, Record, Sha256, ShortId


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
    """The artefact loaded again in a fresh process and asked the same documents again, after everything is measured.

    A reload that failed has no such record: it is a `failure` of the phase `reload`.
    """

    variant_id: ShortId
    pass_id: ShortId
    """The pass whose answers were asked for again."""
    checked_document_count: Count
    equal_answer_count: Count
    """Answers whose HMAC is that of the pass."""
    is_same_artefact: bool
    """The same files by their digests, and the same weights, tokenizer and template as that pass had loaded."""
    differing_document_ids: list[str] = []
    load_ns: Nanoseconds | None = None
    """Creating the engine, its libraries' imports included, to the end of loading."""
    answer_ns: Nanoseconds | None = None
    """Encoding and answering the checked documents."""
