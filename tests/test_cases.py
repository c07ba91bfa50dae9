"""`tests/cases.md` is true: every test it names exists, and every test named after a case is listed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
CASE_IN_NAME = re.compile(r"^test_([a-h])([0-9]{2})_")


def all_tests() -> dict[str, str]:
    """Test name -> file, relative to tests/."""
    found: dict[str, str] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[node.name] = path.relative_to(TESTS).as_posix()
    return found


def listed() -> list[tuple[str, str, str]]:
    """Rows of the table: case id, file, test name."""
    rows = re.findall(
        r"^\| ([A-H]-[0-9]{2}) \|.*\| `([^`:]+)::([^`]+)` \|$", (TESTS / "cases.md").read_text(encoding="utf-8"), re.M
    )
    return [(case, file, name) for case, file, name in rows]


def test_every_listed_test_exists_where_the_table_says() -> None:
    functions = all_tests()
    rows = listed()
    assert rows
    assert not [row for row in rows if functions.get(row[2]) != row[1]]


def test_every_test_named_after_a_case_is_listed() -> None:
    named = {(f"{m[1].upper()}-{m[2]}", name) for name in all_tests() if (m := CASE_IN_NAME.match(name))}
    assert named <= {(case, name) for case, _, name in listed()}
