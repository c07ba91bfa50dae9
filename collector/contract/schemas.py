"""Struct -> JSON Schema, one file per kind, for those who read or write records without this package.

`python -m collector.contract.schemas schemas` writes them; a test fails when they drift.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec

from .records import ENVELOPE, FORMAT_MAJOR, KINDS

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one kind's line, self-contained; the envelope is required.

    Unknown properties are allowed: a later version of the same major may add some.
    """
    struct = KINDS[kind]
    _, components = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    (schema,) = components.values()
    described = field_docs(struct)
    for name, field in schema["properties"].items():
        if name in ENVELOPE:
            field.pop("default", None)
        if name in described:
            field["description"] = described[name]
    return {
        "$schema": _DIALECT,
        "$id": f"urn:gpu-dossier:record:{FORMAT_MAJOR}:{kind}",
        "title": f"{kind} record, format {FORMAT_MAJOR}",
        "type": "object",
        "description": inspect.cleandoc(struct.__doc__ or "").split("\n\n")[0].replace("\n", " "),
        "properties": schema["properties"],
        "required": ["kind", *ENVELOPE, *(name for name in schema["required"] if name != "kind")],
    }


def schema_text(kind: str) -> str:
    """Return the schema's file content."""
    return json.dumps(json_schema(kind), indent=2, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> None:
    """Write `<kind>.schema.json` for every kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        (folder / f"{kind}.schema.json").write_text(schema_text(kind), encoding="utf-8")


@functools.cache
def field_docs(struct: type[Any]) -> dict[str, str]:
    """Return field -> its documentation: the string below it, or its `name: text` line in the class docstring."""
    docs: dict[str, str] = {}
    for base in reversed(struct.__mro__):
        if not base.__module__.startswith(__package__ or "") or not isinstance(base, type(msgspec.Struct)):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(definition, ast.ClassDef)
        docs |= re.findall(r"^(\w+): (.+)$", ast.get_docstring(definition) or "", re.MULTILINE)
        for above, below in zip(definition.body, definition.body[1:], strict=False):
            if isinstance(above, ast.AnnAssign) and isinstance(above.target, ast.Name) and _is_text(below):
                docs[above.target.id] = " ".join(ast.literal_eval(below.value).split())  # type: ignore[attr-defined]
    return docs


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
