"""Change single values and tables of a protocol's text, and leave the rest as its author wrote it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence

from collector.contract import shape
from collector.contract.protocol import Example, FieldRule
from collector.contract.toml_lines import toml_lines


def with_values(text: str, values: Mapping[str, str | int]) -> str:
    """Return the text with the values of these paths (`workload.review`) replaced; each must be written there."""
    for place, value in values.items():
        lines = text.splitlines(keepends=True)
        at = toml_lines(text)[shape.parse_path(place)] - 1
        key = place.rpartition(".")[2]
        lines[at : _value_end(lines, at)] = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n"]
        text = "".join(lines)
    return text


def without_comment_above(text: str, place: str, *, instead: str) -> str:
    """Return the text with the comment lines directly above a path replaced by one."""
    lines = text.splitlines(keepends=True)
    at = toml_lines(text)[shape.parse_path(place)] - 1
    begin = at
    while begin and lines[begin - 1].startswith("#"):
        begin -= 1
    return "".join([*lines[:begin], f"# {instead}\n", *lines[at:]])


def with_tables_commented(text: str, place: str, *, why: str) -> str:
    """Return the text with every table of a list of tables (`gates.subset`) turned into comments."""
    lines = text.splitlines(keepends=True)
    for index, (begin, end) in enumerate(_tables(text, place)):
        lines[begin:end] = [f"# {line}" if line.strip() else line for line in lines[begin:end]]
        if index == 0:
            lines[begin] = f"# {why}\n{lines[begin]}"
    return "".join(lines)


def with_fields(text: str, fields: Sequence[FieldRule]) -> str:
    """Return the text with these `[[task.field]]` tables in the place of its own."""
    tables = []
    for rule in fields:
        labels = f"labels = {json.dumps(rule.labels, ensure_ascii=False)}\n" if rule.labels else ""
        name = json.dumps(rule.name, ensure_ascii=False)
        tables.append(f'[[task.field]]\nname = {name}\ntype = "{rule.type}"\n{labels}\n')
    return _with_tables(text, "task.field", tables)


def with_examples(text: str, examples: Sequence[Example]) -> str:
    """Return the text with these `[[task.example]]` tables in the place of its own, which must be there."""
    tables = [
        f"[[task.example]]\ndocument = {json.dumps(example.document, ensure_ascii=False)}\n"
        f"answer = {json.dumps(example.answer, ensure_ascii=False)}\n\n"
        for example in examples
    ]
    return _with_tables(text, "task.example", tables)


def _with_tables(text: str, place: str, tables: Sequence[str]) -> str:
    """Return the text with these tables where the first of its own list of tables stood."""
    lines = text.splitlines(keepends=True)
    spans = _tables(text, place)
    for begin, end in reversed(spans):
        del lines[begin:end]
    lines[spans[0][0] : spans[0][0]] = tables
    return "".join(lines)


def _tables(text: str, place: str) -> list[tuple[int, int]]:
    """Return begin and end (exclusive) of each table of a list, up to the next header or its comment."""
    path = shape.parse_path(place)
    lines = text.splitlines()
    found = []
    for steps, number in toml_lines(text).items():
        if len(steps) == len(path) + 1 and steps[:-1] == path and isinstance(steps[-1], int):
            end = number
            while end < len(lines) and not lines[end].startswith(("[", "#")):
                end += 1
            found.append((number - 1, end))
    return sorted(found)


def _value_end(lines: Sequence[str], at: int) -> int:
    """Return the line behind a value that may go over several lines."""
    for end in range(at + 1, len(lines) + 1):
        try:
            tomllib.loads("".join(lines[at:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    return at + 1
