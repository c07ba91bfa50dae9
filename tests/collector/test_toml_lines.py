"""The line of everything in a TOML file, and one finding per fault of shape."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collector.contract.campaign import Campaign
from collector.contract.errors import Finding, Refused
from collector.contract.protocol import Protocol
from collector.contract.shape import nearest, parse_path, path_text
from collector.contract.toml_lines import load_toml, toml_lines

EVERYTHING = '''# a comment = 1
format = 1
dotted.key = 2
"quoted.key" = { z = 1, list = [1, 2, {k = "v"}] }
text = """
[not a table]
x = 1 \\"""
"""
literal = \'\'\'
y = "2" \'\'\'\'
[table]   # [comment]
list = [
  1, # one
  [2, 3],
  "]",
]
[[item]]
name = 'a # b'
[[item]]
name = "b = c"
[[item.inner]]
value = 1
[[item.inner]]
value = 1979-05-27 07:32:00
[item.outer]
deep.er = -inf
[ spaced . "out" ]
last = true'''

LINES = {
    "format": 2, "dotted": 3, "dotted.key": 3, "text": 5, "literal": 9, "table": 11, "table.list": 12,
    "table.list[0]": 13, "table.list[1]": 14, "table.list[1][1]": 14, "table.list[2]": 15, "item": 17,
    "item[0].name": 18, "item[1]": 19, "item[1].name": 20, "item[1].inner[0].value": 22, "item[1].inner[1]": 23,
    "item[1].inner[1].value": 24, "item[1].outer": 25, "item[1].outer.deep.er": 26, "spaced.out.last": 28,
}  # fmt: skip


@pytest.mark.parametrize(("path", "line"), LINES.items())
def test_each_path_has_its_line(path: str, line: int) -> None:
    assert toml_lines(EVERYTHING)[parse_path(path)] == line


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_value_that_tomllib_finds_has_a_line(newline: str) -> None:
    text = EVERYTHING.replace("\n", newline)
    lines = toml_lines(text)
    leaves = list(_leaves(tomllib.loads(text), ()))
    assert len(leaves) == 18
    assert not [leaf for leaf in leaves if leaf not in lines]
    assert lines[("quoted.key", "list", 2, "k")] == 4


def test_paths_are_read_in_both_notations_and_written_in_one() -> None:
    for text in ("$.variant[1].dtype", "variant[1].dtype"):
        assert parse_path(text) == ("variant", 1, "dtype")
        assert path_text(parse_path(text)) == "variant[1].dtype"


def refused(tmp_path: Path, text: str | bytes, kind: type[Protocol] | type[Campaign] = Protocol) -> list[Finding]:
    path = tmp_path / "file.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(Refused) as caught:
        load_toml(path, kind)
    assert all(finding.file == path and finding.line and finding.next_step for finding in caught.value.findings)
    return caught.value.findings


def test_every_fault_of_shape_is_reported_at_once_with_value_and_line(tmp_path: Path) -> None:
    text = """format = 2
nme = "x"
[task]
kind = "extractio"
prompt = 5
[[task.field]]
name = "date"
type = "dat"
is_requird = false
[generation]
max_new_tokens = "48"
[gates]
max_lost_points = 1
[[gates.subset]]
subset = "critical"
min_accepted_percent = "-5"
[[variant]]
name = ""
[limits]
load_s = -1
"""
    found = {(finding.line, finding.rule, finding.message.split(":")[0]) for finding in refused(tmp_path, text)}
    assert found >= {
        (1, "wrong-type", "`format`"), (2, "unknown-field", "unknown field `nme`"), (4, "wrong-type", "`task.kind`"),
        (5, "wrong-type", "`task.prompt`"), (8, "wrong-type", "`task.field[0].type`"),
        (9, "unknown-field", "unknown field `task.field[0].is_requird`"),
        (11, "wrong-type", "`generation.max_new_tokens`"), (13, "wrong-type", "`gates.max_lost_points`"),
        (16, "wrong-type", "`gates.subset[0].min_accepted_percent`"), (18, "wrong-type", "`variant[0].name`"),
        (20, "wrong-type", "`limits.load_s`"), (1, "missing-field", "the file has no `model`"),
    }  # fmt: skip


def test_an_unknown_field_suggests_the_nearest_known_one(tmp_path: Path) -> None:
    (finding,) = [one for one in refused(tmp_path, "format = 1\n[generation]\nmax_new_token = 3\n") if one.line == 3]
    assert "did you mean `max_new_tokens`" in finding.next_step
    assert nearest("colour", ["prompt", "system"]) is None


def test_the_value_found_is_shown(tmp_path: Path) -> None:
    messages = [one.message for one in refused(tmp_path, 'format = 1\n[generation]\nmax_new_tokens = "48"\n')]
    assert any('found "48"' in message for message in messages)


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("format = 1\nname =\n", 2, "toml-syntax"),
        ("format = 1\nformat = 2\n", 2, "toml-syntax"),
        ('format = 1\nname = "open', 2, "toml-syntax"),
        ("format = [1,\n", 1, "toml-syntax"),
        (b"\xef\xbb\xbfformat = 1\n", 1, "encoding"),
        (b'format = 1\nname = "caf\xe9"\n', 2, "encoding"),
        ("format = 1\n".encode("utf-16"), 1, "encoding"),
    ],
)
def test_a_file_that_is_no_utf8_toml_is_refused_with_its_line(
    tmp_path: Path, text: str | bytes, line: int, rule: str
) -> None:
    (finding,) = refused(tmp_path, text)
    assert (finding.line, finding.rule) == (line, rule)


@pytest.mark.parametrize(
    "second", ["[variant]", "[[variant]]", "[ variant ] # the other one"], ids=["table", "list", "comment"]
)
def test_a_table_that_stands_twice_is_told_of_double_brackets(tmp_path: Path, second: str) -> None:
    (finding,) = refused(tmp_path, f'format = 1\n[variant]\nname = "a"\n{second}\nname = "b"\n')
    assert (finding.line, finding.rule) == (4, "toml-syntax")
    assert "[variant] stands in an earlier line" in finding.message
    assert "[[variant]]" in finding.next_step


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no such file"):
        load_toml(tmp_path / "absent.toml", Protocol)
    with pytest.raises(Refused):
        load_toml(tmp_path, Protocol)


def test_a_loaded_file_still_knows_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(
        'format = 1\nquestion = "q"\ndossier_id = "d"\nas_of = 2026-01-01\nissued = 2026-01-01\n'
        'documents_per_corpus = 24\n[objective]\nprefer = "cheapest"\n'
    )
    loaded = load_toml(path, Campaign)
    assert loaded.value.objective.prefer == "cheapest"
    assert loaded.line_of("objective.prefer") == 8
    assert loaded.line_of("$.objective.tie_percent") == 7  # not written: the table around it
    assert loaded.line_of("calendar.export") is None


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('format = 1\nprompt = """\nRead: {document}\n\n[next]\nx = 1\n', 2, "opened on line 2 are never closed"),
        ("a = '''\nb\n\n\n", 1, "opened on line 1 are never closed"),
        ('# a comment with """\na = "b # c"\nprompt = """x\n', 3, "opened on line 3 are never closed"),
        ('a = ""\nb = """one\ntwo"""\nc = """open\n\n', 4, "opened on line 4 are never closed"),
        ('a = """one\n\nb = """two"""\n', 3, "opened on line 1 end here"),
    ],
)
def test_triple_quotes_that_are_never_closed_are_told_where_they_were_opened(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    (finding,) = refused(tmp_path, text)
    assert (finding.line, finding.rule) == (line, "toml-syntax")
    assert said in finding.message
