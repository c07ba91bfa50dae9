"""Column types and JSON Schemas come from the Structs: one name has one type and one vocabulary everywhere."""

from __future__ import annotations

import json
import keyword
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from msgspec import inspect

from collector.contract.columns import duckdb_columns, duckdb_type, kind_columns, vocabulary, without_null
from collector.contract.records import ENVELOPE, KINDS
from collector.contract.resources import data_dir
from collector.contract.schemas import field_docs, json_schema, schema_text

RECORDS = Path(__file__).parent.parent / "records"
UNITS = ("_ns", "_s", "_bytes", "_bits", "_tokens", "_count", "_mw", "_mj", "_mhz", "_c", "_1m")
WITHOUT_UNIT = {
    "seq", "format", "batch", "concurrency", "repetition", "attempt", "turn", "try_index", "batch_row", "exit_code",
    "pcie_generation", "pcie_width", "live_row_steps", "host_cpu_share",
    "probe_value", "probe_samples",  # their unit is in `probe_unit`
    "gap_counts", "record_counts", "batch_number", "live_row_histogram", "quantization_group", "graded_value",
    "arrival_seed", "cpu_share", "http_status", "in_flight_max",
    "engine_metrics",  # the engine's own names, units included
}  # fmt: skip
"""Counts, indices, shares, and values whose unit another field names."""


def all_fields() -> list[tuple[str, msgspec.structs.FieldInfo]]:
    return [(kind, field) for kind, struct in KINDS.items() for field in msgspec.structs.fields(struct)]


def scalar_of(found: inspect.Type) -> inspect.Type:
    match found:
        case inspect.Metadata(type=inner) | inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
            return scalar_of(inner)
    return found


def read(connection: duckdb.DuckDBPyConnection, path: Path) -> list[dict[str, Any]]:
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in duckdb_columns().items())
    result = connection.execute(
        f"select * from read_json(?, format = 'newline_delimited', columns = {{{columns}}})", [str(path)]
    )
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def test_one_field_name_has_one_type_and_one_vocabulary_across_all_kinds() -> None:
    seen: dict[str, tuple[str, Any]] = {}
    for kind, field in all_fields():
        first_kind, found = seen.setdefault(field.name, (kind, without_null(field.type)))
        assert without_null(field.type) == found, f"{field.name} differs between {first_kind} and {kind}"


def test_no_field_name_is_a_python_keyword_or_the_tag() -> None:
    names = {field.name for _, field in all_fields()}
    assert not {name for name in names if keyword.iskeyword(name) or keyword.issoftkeyword(name)} | (names & {"kind"})


def test_every_number_has_its_unit_in_its_name() -> None:
    unnamed = {
        field.name
        for _, field in all_fields()
        if isinstance(scalar_of(without_null(field.type)), inspect.IntType | inspect.FloatType)
        and not field.name.endswith(UNITS)
    }
    assert unnamed == WITHOUT_UNIT


def test_every_boolean_reads_as_a_claim() -> None:
    booleans = {f.name for _, f in all_fields() if isinstance(without_null(f.type), inspect.BoolType)}
    assert booleans
    assert all(name.startswith(("is_", "has_")) for name in booleans), booleans


def test_every_integer_of_the_contract_fits_duckdbs_bigint() -> None:
    for kind, field in all_fields():
        found = scalar_of(without_null(field.type))
        if isinstance(found, inspect.IntType):
            assert found.le == 2**63 - 1, (kind, field.name)
            assert found.ge is not None, (kind, field.name)


@pytest.mark.parametrize("annotation", [int | str, list[list[int]], dict[int, str], object, tuple[int, int]])
def test_a_type_outside_the_contract_has_no_column(annotation: Any) -> None:
    with pytest.raises(TypeError):
        duckdb_type(annotation)


def test_one_typed_scan_reads_every_kind_value_for_value(tmp_path: Path) -> None:
    lines = [path.read_bytes() for path in sorted(RECORDS.glob("valid/*/*.json"))]
    (tmp_path / "all.jsonl").write_bytes(b"".join(lines))
    with duckdb.connect() as connection:
        rows = read(connection, tmp_path / "all.jsonl")
    assert len(rows) == len(lines)
    for line, row in zip(lines, rows, strict=True):
        assert row == dict.fromkeys(duckdb_columns()) | json.loads(line)


def test_the_scan_does_not_depend_on_the_order_of_lines(tmp_path: Path) -> None:
    """D-04: an all-null or empty first line changes no type."""
    lines = [path.read_bytes() for path in sorted(RECORDS.glob("valid/*/*.json"))]
    (tmp_path / "back.jsonl").write_bytes(b"".join(reversed(lines)))
    (tmp_path / "forth.jsonl").write_bytes(b"".join(lines))
    with duckdb.connect() as connection:
        assert read(connection, tmp_path / "back.jsonl") == read(connection, tmp_path / "forth.jsonl")[::-1]


def test_kind_columns_are_the_structs_fields_in_order() -> None:
    assert kind_columns("seal") == ["kind", *ENVELOPE, "missing", "record_counts", "head_digest"]
    assert {name for kind in KINDS for name in kind_columns(kind)} == set(duckdb_columns())


def test_a_vocabulary_is_found_through_null_and_maps() -> None:
    assert vocabulary("score", "is_accepted") is None
    assert "out_of_memory" in (vocabulary("request", "failure_cause") or ())
    assert "not_permitted" in (vocabulary("reading", "missing") or ())


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_files_have_not_drifted_from_the_structs(kind: str) -> None:
    stored = (data_dir("schemas") / f"{kind}.schema.json").read_text(encoding="utf-8")
    assert stored == schema_text(kind), "write them again: python -m collector.contract.schemas schemas"


def test_there_is_one_schema_per_kind_and_nothing_else() -> None:
    assert {path.name for path in data_dir("schemas").iterdir()} == {f"{kind}.schema.json" for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_requires_the_envelope_and_names_every_field(kind: str) -> None:
    schema = json_schema(kind)
    fields = msgspec.structs.fields(KINDS[kind])
    assert schema["required"] == ["kind", *ENVELOPE, *(field.name for field in fields if field.required)]
    assert list(schema["properties"]) == kind_columns(kind)
    assert schema["properties"]["kind"] == {"enum": [kind]}
    assert "$ref" not in json.dumps(schema)
    assert all(name in schema["properties"] for name in field_docs(KINDS[kind]))


def test_field_docs_reach_the_schema() -> None:
    assert json_schema("seal")["properties"]["prev"]["description"].startswith("sha256 of the previous line")
    assert (
        json_schema("variant")["properties"]["effective_bits"]["description"] == "8 x weight_bytes / parameter_count."
    )
