"""Values that JSON or the contract cannot hold never cost a record."""

from __future__ import annotations

import datetime as dt
import enum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from collector.contract.inspection import inspect_line
from collector.contract.records import (
    Decision,
    PassBegin,
    Probe,
    Reading,
    Record,
    Request,
    Scrape,
    Variant,
    encode_record,
)
from collector.fitting import fit, safe_repr

ENVELOPE = {"run_id": "0" * 32, "seq": 3, "prev": "0" * 64, "written_at": "2026-03-14T09:00:00.000000Z"}
ID = "0123456789abcdef"


class Word(enum.Enum):
    MEASURE = "measure"


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def request(**values: Any) -> Request:
    return Request(**{
        **ENVELOPE, "pass_id": ID, "phase": "measure", "document_id": "d1", "is_final": True, "intended_ns": 1,
        "token_count_source": "engine", "finish_reason": "end_token", "request_outcome": "completed", **values,
    })  # fmt: skip


def probe(**values: Any) -> Probe:
    return Probe(**{
        **ENVELOPE, "probe_name": "bandwidth", "environment_id": ID, "definition_id": "v1", "probe_unit": "bytes_per_s",
        "probe_value": 1.5, **values,
    })  # fmt: skip


def written(record: Record) -> Record:
    """The record as fitted, after its line was checked against the contract."""
    fitted = fit(record)
    assert fitted.record is not None
    assert fitted.losses == ()
    assert inspect_line(encode_record(fitted.record)).problems == ()
    return fitted.record


def test_a_record_of_plain_values_is_passed_on_as_it_is() -> None:
    record = request(output_tokens=7)
    assert fit(record).record is record


@pytest.mark.parametrize(
    ("given", "held"),
    [(np.int64(40), 40), (np.uint8(4), 4), (np.array(7), 7), (np.array([9]).sum(), 9)],
    ids=["int64", "uint8", "zero-dimensional array", "sum"],
)
def test_d24_numpy_integers_are_written_as_integers(given: Any, held: int) -> None:
    record = written(request(output_tokens=given))
    assert isinstance(record, Request)
    assert (record.output_tokens, type(record.output_tokens)) == (held, int)


def test_d24_paths_moments_sets_enums_bytes_and_numpy_texts_are_converted() -> None:
    moment = dt.datetime(2026, 3, 14, 16, 0, tzinfo=dt.timezone(dt.timedelta(hours=7)))
    record = written(Decision(
        **ENVELOPE, decision="stopped", decided_by=np.str_("collector"),
        detail={
            "path": Path("runs/a.jsonl"), "at": moment, "day": dt.date(2026, 3, 14), "bytes": b"\x00\xff",
            "word": Word.MEASURE, Word.MEASURE: "key", "naive": dt.datetime(2026, 3, 14, 16, 0),
        },
    ))  # type: ignore[arg-type, dict-item]  # fmt: skip
    assert isinstance(record, Decision)
    assert record.decided_by == "collector"
    assert record.detail == {
        "path": "runs/a.jsonl", "at": "2026-03-14T09:00:00.000000Z", "day": "2026-03-14", "bytes": "00ff",
        "word": "measure", "measure": "key", "naive": "2026-03-14T16:00:00",
    }  # fmt: skip


def test_d24_sets_tuples_and_arrays_become_lists() -> None:
    record = written(request(gap_counts=np.zeros(72, dtype=np.int32)))
    assert isinstance(record, Request)
    assert record.gap_counts == [0] * 72
    scored = written(probe(probe_samples=(1.0, np.float32(2.5))))
    assert isinstance(scored, Probe)
    assert scored.probe_samples == [1.0, 2.5]
    variant = written(Variant(
        **ENVELOPE, variant_id=ID, pass_id=ID, variant_name="a", observed_at="loaded", model_id="m", requested={},
        observed={}, cache_kind="dynamic", deviations={"b", "a"},
    ))  # type: ignore[arg-type]  # fmt: skip
    assert isinstance(variant, Variant)
    assert variant.deviations == ["a", "b"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), np.float32("nan"), np.float64("inf")])
def test_d24_a_number_that_is_not_finite_is_a_null_with_its_reason(value: Any) -> None:
    record = written(probe(probe_value=value))
    assert isinstance(record, Probe)
    assert record.probe_value is None
    assert record.missing == {"probe_value": "failed"}


def test_a_number_that_is_not_finite_inside_a_list_or_map_is_left_out_with_its_reason() -> None:
    record = written(probe(probe_samples=[1.0, float("nan"), 3.0]))
    assert isinstance(record, Probe)
    assert (record.probe_samples, record.missing) == ([1.0, 3.0], {"probe_samples.1": "failed"})
    scrape = written(
        Scrape(
            **ENVELOPE, pass_id=ID, scrape_moment="during", offset_ns=1, engine_metrics={"a": 1.0, "b": float("inf")}
        )
    )
    assert isinstance(scrape, Scrape)
    assert (scrape.engine_metrics, scrape.missing) == ({"a": 1.0}, {"engine_metrics.b": "failed"})


def test_a_reason_that_was_given_stays_beside_the_one_added() -> None:
    record = written(request(prompt_tokens=float("nan"), missing={"first_chunk_ns": "not_applicable"}))
    assert record.missing == {"first_chunk_ns": "not_applicable", "prompt_tokens": "failed"}


@pytest.mark.parametrize("value", [object(), "many", 2**63, -1, 2.5, [1], Unprintable()])
def test_d24_a_value_that_an_optional_field_cannot_hold_is_a_null_with_reason_and_a_loss(value: Any) -> None:
    record, losses = fit(request(output_tokens=value))
    assert isinstance(record, Request)
    assert record.output_tokens is None
    assert record.missing == {"output_tokens": "failed"}
    assert losses[-1] == f"output_tokens: {safe_repr(value)}"
    assert inspect_line(encode_record(record)).problems == ()


def test_d24_an_object_where_text_belongs_becomes_its_repr_and_a_loss() -> None:
    record, losses = fit(Decision(**ENVELOPE, decision="stopped", decided_by="me", detail={"why": 3 + 4j}))  # type: ignore[dict-item]
    assert isinstance(record, Decision)
    assert record.detail == {"why": "(3+4j)"}
    assert losses == ("detail.why: (3+4j)",)


def test_a_lone_surrogate_is_written_as_an_escape() -> None:
    record = written(request(document_id="d\ud800"))
    assert isinstance(record, Request)
    assert record.document_id == "d\\ud800"


@pytest.mark.parametrize(
    "record",
    [
        request(document_id=""),
        request(intended_ns=float("nan")),
        request(phase="lunch"),
        request(turn=object()),
        Reading(**ENVELOPE, pass_id="x", phase="load", device_id="cpu", memory_scope="host", statistic="peak",
                value_bytes=1, counter_method="counter"),
    ],
    ids=["empty id", "NaN in a required integer", "unknown word", "object where zero is the default", "bad pass_id"],
)  # fmt: skip
def test_a_record_that_no_default_can_mend_is_not_made_up(record: Record) -> None:
    fitted, losses = fit(record)
    assert fitted is None
    assert losses


def test_the_default_of_a_list_stands_in_only_with_a_reason() -> None:
    begun = PassBegin(
        **ENVELOPE, pass_id=ID, protocol_id="0" * 64, stage="pilot", environment_id=ID, engine_id=ID, variant_id=ID,
        batch=np.int64(1), concurrency=1, cache_kind="dynamic", output_limit_tokens=1, repetition=1, attempt=1,
        variant_name="a", purpose="variant", series="s", factor="none", document_order=[], expected_document_count=0,
        began_at=dt.datetime(2026, 3, 14, tzinfo=dt.UTC),
    )  # type: ignore[arg-type]  # fmt: skip
    record = written(begun)
    assert isinstance(record, PassBegin)
    assert (record.batch, record.began_at) == (1, "2026-03-14T00:00:00.000000Z")
    probed, losses = fit(msgspec.structs.replace(probe(), probe_samples="12"))
    assert isinstance(probed, Probe)
    assert (probed.probe_samples, probed.missing) == ([], {"probe_samples": "failed"})
    assert losses == ("probe_samples: '12'",)
