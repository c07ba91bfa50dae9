"""`tests/cases.md` is true: every test it names exists, and every test named after a case is listed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
CASE_IN_NAME = re.compile(r"^test_([a-h])([0-9]{2})_")


def all_tests() -> set[tuple[str, str]]:
    """Every test as its file, relative to tests/, and its name."""
    return {
        (path.relative_to(TESTS).as_posix(), node.name)
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def listed() -> list[tuple[str, str, str]]:
    """Rows of the table: case id, file, test name."""
    rows = re.findall(
        r"^\| ([A-H]-[0-9]{2}) \|.*\| `([^`:]+)::([^`]+)` \|$", (TESTS / "cases.md").read_text(encoding="utf-8"), re.M
    )
    return [(case, file, name) for case, file, name in rows]


def test_every_listed_test_exists_where_the_table_says() -> None:
    rows = listed()
    assert rows
    assert {(file, name) for _, file, name in rows} <= all_tests()


def test_every_test_named_after_a_case_is_listed() -> None:
    named = {(f"{m[1].upper()}-{m[2]}", file, name) for file, name in all_tests() if (m := CASE_IN_NAME.match(name))}
    assert named <= set(listed())
