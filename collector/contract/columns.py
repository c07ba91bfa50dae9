"""Struct -> DuckDB column: one typed scan over all kinds, so that nothing is ever guessed from data."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
from msgspec import inspect

from .records import KINDS

Field = msgspec.structs.FieldInfo


def duckdb_columns() -> dict[str, str]:
    """Return column -> DuckDB type for every field of every kind, `kind` first: what `read_json` is told.

    A field that a kind does not have reads as null. Lists become `T[]`, maps `MAP(VARCHAR, T)`.
    """
    columns = {"kind": "VARCHAR"}
    for kind in KINDS.values():
        columns |= {field.name: duckdb_type(field.type) for field in msgspec.structs.fields(kind)}
    return columns


def kind_columns(kind: str) -> list[str]:
    """Return the columns of one kind in the contract's order, `kind` and the envelope first."""
    return ["kind", *(field.name for field in msgspec.structs.fields(KINDS[kind]))]


def duckdb_type(annotation: Any) -> str:
    """Return the DuckDB type that holds an annotation's values. Raises TypeError for a type outside the contract."""
    return _duckdb_type(without_null(annotation))


def without_null(annotation: Any) -> inspect.Type:
    """Return the annotation's type with null and constraints of no type (descriptions) taken away."""
    found = _bare(inspect.type_info(annotation))
    if isinstance(found, inspect.UnionType):
        held = [member for member in found.types if not isinstance(member, inspect.NoneType)]
        if len(held) != 1:
            raise TypeError(f"{annotation}: a union with null only")
        return _bare(held[0])
    return found


def _bare(found: inspect.Type) -> inspect.Type:
    return found.type if isinstance(found, inspect.Metadata) else found


def _duckdb_type(found: inspect.Type) -> str:
    match _bare(found):
        case inspect.BoolType():
            return "BOOLEAN"
        case inspect.IntType():
            return "BIGINT"
        case inspect.FloatType():
            return "DOUBLE"
        case inspect.StrType() | inspect.LiteralType():
            return "VARCHAR"
        case inspect.ListType(item_type=item):
            return f"{_scalar_type(item)}[]"
        case inspect.DictType(key_type=key, value_type=value) if _scalar_type(key) == "VARCHAR":
            return f"MAP(VARCHAR, {_scalar_type(value)})"
    raise TypeError(f"{found} has no column type in the contract")


def _scalar_type(found: inspect.Type) -> str:
    inner = _duckdb_type(found)
    if inner.endswith(("]", ")")):
        raise TypeError(f"{found}: lists and maps hold scalars only")
    return inner


@functools.cache
def vocabulary(kind: str, field: str) -> tuple[str, ...] | None:
    """Return the words that a field may hold (of a map or list: its values), or null where it is free."""
    annotation = next(info.type for info in msgspec.structs.fields(KINDS[kind]) if info.name == field)
    match without_null(annotation):
        case inspect.LiteralType(values=words):
            return tuple(str(word) for word in words)
        case inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
            held = _bare(inner)
            return tuple(str(word) for word in held.values) if isinstance(held, inspect.LiteralType) else None
    return None
