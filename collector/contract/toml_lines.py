"""Read a TOML file into a Struct, and know the line of every value: errors name file, line, value and next step."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from . import shape
from .errors import Finding, Refused

T = TypeVar("T", bound=msgspec.Struct)

_MAY_HOLD_A_KEY = re.compile(
    r"key(_env)?\b|[-_]key|token(?![a-z])|secret|password|authorization|bearer|cookie|credential|://[^/\s]*@",
    re.IGNORECASE,
)


class Loaded(NamedTuple, Generic[T]):
    """A file's value, and where in the file a path such as `variant[1].dtype` stands.

    `line_of` gives the line of the nearest table around a path that is not written down, null where there is none.
    """

    value: T
    line_of: Callable[[str], int | None]


class TomlText(NamedTuple):
    """A file that is valid TOML: its plain data and the line of each path."""

    path: Path
    data: dict[str, Any]
    lines: dict[shape.Path, int]

    def line_of(self, path: str) -> int | None:
        """Return the line of a path, or of the nearest table around it."""
        return self.line_at(shape.parse_path(path))

    def line_at(self, steps: shape.Path) -> int | None:
        """Like `line_of`, for a path that is split already."""
        while steps:
            if steps in self.lines:
                return self.lines[steps]
            steps = steps[:-1]
        return None

    def findings(self, kind: type[msgspec.Struct]) -> list[Finding]:
        """Return one finding per place that is not of the Struct's shape."""
        return [
            Finding(self.path, self.line_at(problem.path) or 1, problem.rule, problem.message, problem.next_step)
            for problem in shape.shape_problems(kind, self.data)
        ]


def load_toml(path: Path, kind: type[T]) -> Loaded[T]:
    """Return the file as a Struct.

    Raises Refused with one finding per fault of shape, or the one fault that kept the file from being read.
    """
    text = read_toml(path)
    if findings := text.findings(kind):
        raise Refused(findings)
    return Loaded(msgspec.convert(text.data, kind), text.line_of)


def read_toml(path: Path) -> TomlText:
    """Return the file's plain data and lines. Raises Refused where it cannot be read as UTF-8 TOML."""
    text = read_text(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, line = _quoted(*_syntax(str(error), text), text)
        next_step = f"correct line {line}: {_line(text, line)}"
        if name := _declared_again(message, text, line):
            message = f"[{name}] stands in an earlier line already"
            next_step = f"where there are several, write [[{name}]] over each, the first too; else join the tables"
        raise _refused(path, line, "toml-syntax", f"not valid TOML: {message}", next_step) from None
    return TomlText(path, data, toml_lines(text))


def read_text(path: Path) -> str:
    """Return a file's text, decoded as strict UTF-8. Raises Refused (rules unreadable, encoding)."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise _refused(
            path, None, "unreadable", "no such file", "check the path; `collector init DIR` makes one"
        ) from None
    except IsADirectoryError:
        raise _refused(
            path, None, "unreadable", "this is a folder", "name the file in it, for example protocol.toml"
        ) from None
    except OSError as error:
        raise _refused(
            path, None, "unreadable", f"{error.strerror}", "check what the path is and who may read it"
        ) from None
    if fault := encoding_fault(raw):
        raise _refused(path, fault.line, "encoding", fault.message, fault.next_step)
    return raw.decode()


class EncodingFault(NamedTuple):
    """Where and how bytes are no plain UTF-8."""

    line: int
    message: str
    next_step: str


def encoding_fault(raw: bytes) -> EncodingFault | None:
    """Return the first fault of bytes that should be UTF-8 without a byte-order mark."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return EncodingFault(1, "the file is UTF-16, not UTF-8", "save it as UTF-8")
    if raw.startswith(b"\xef\xbb\xbf"):
        return EncodingFault(1, "the file begins with a byte-order mark", "save it as UTF-8 without a byte-order mark")
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{raw[error.start]:02x} is not valid UTF-8"
        return EncodingFault(line, message, "save the file as UTF-8 (it looks like an older encoding such as Latin-1)")
    return None


def _refused(path: Path, line: int | None, rule: str, message: str, next_step: str) -> Refused:
    return Refused([Finding(path, line, rule, message, next_step)])


def _line(text: str, line: int) -> str:
    lines = text.splitlines()
    if 0 < line <= len(lines) and _MAY_HOLD_A_KEY.search(lines[line - 1]):
        return "what stands there is not repeated, since it may hold a key"
    return shape.shown(lines[line - 1].strip()) if 0 < line <= len(lines) else "the end of the file"


def _syntax(message: str, text: str) -> tuple[str, int]:
    match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    if match is None:
        return message, 1
    return message[: match.start()], int(match[1]) if match[1] else max(1, len(text.splitlines()))


def _declared_again(message: str, text: str, line: int) -> str | None:
    """Return the name of a table whose header comes twice, null for any other fault."""
    if not message.startswith(("Cannot declare", "Cannot overwrite")):
        return None
    header = re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]", text.splitlines()[line - 1])
    return header[1] if header else None


def _quoted(message: str, line: int, text: str) -> tuple[str, int]:
    """Lead a fault that comes from triple quotes back to the line where they were opened.

    Unclosed, they swallow the rest of the file; closed by the opening of the next ones, the fault shows only there.
    """
    for opened, closed in _triple_quotes(text):
        if closed is None:
            return f"the triple quotes opened on line {opened} are never closed", opened
        if closed == line and opened < line:
            return f"{message}; the triple quotes opened on line {opened} end here", line
    return message, line


def _triple_quotes(text: str) -> Iterator[tuple[int, int | None]]:
    """Yield the lines where triple quotes are opened and closed; closed is null for those that never are."""
    at, line = 0, 1
    while at < len(text):
        match = _STRING.match(text, at) or _COMMENT.match(text, at)
        end = match.end() if match else at + 1
        ending = line + text.count("\n", at, end)
        if text.startswith(('"""', "'''"), at):
            # Where the long form does not match, the short one matches the first two quotes: an empty string.
            yield line, ending if match and end > at + 2 else None
            if end <= at + 2:
                return
        at, line = end, ending


_COMMENT = re.compile(r"#[^\n]*")
_SPACES = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_KEY = re.compile(r'[ \t]*(?:([A-Za-z0-9_-]+)|"((?:[^"\\]|\\.)*)"|\'([^\']*)\')[ \t]*(\.?)')
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def toml_lines(text: str) -> dict[shape.Path, int]:
    """Return path -> line (from 1) of each key, table and list item of a text that tomllib has accepted."""
    return _Locator(text).lines


class _Locator:
    """Walks valid TOML once; checks nothing, since tomllib has done so."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.lines: dict[shape.Path, int] = {}
        self._tables: dict[shape.Path, int] = {}
        self._line_ends = [match.start() for match in re.finditer("\n", text)]
        self._document()

    def _document(self) -> None:
        table: shape.Path = ()
        self._skip()
        while self._at < len(self._text):
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
            self._skip()

    def _header(self) -> shape.Path:
        begin = self._at
        is_list = self._text.startswith("[[", begin)
        self._at += 2 if is_list else 1
        names = self._key()
        self._at += 2 if is_list else 1
        path = (*self._resolved(names[:-1]), names[-1])
        if is_list:
            count = self._tables.get(path, 0)
            self._tables[path] = count + 1
            self._note(path, begin)
            path = (*path, count)
        else:
            path = self._resolved(names)
        self._note(path, begin)
        return path

    def _resolved(self, names: tuple[str, ...]) -> shape.Path:
        """Lead a header's names through the latest item of each list of tables."""
        path: shape.Path = ()
        for name in names:
            path = (*path, name)
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
        return path

    def _pair(self, table: shape.Path) -> None:
        begin = self._at
        path = table
        for name in self._key():
            path = (*path, name)
            self._note(path, begin)
        self._at += 1  # the equals sign
        self._skip(newlines=False)
        self._value(path)

    def _value(self, path: shape.Path) -> None:
        if match := _STRING.match(self._text, self._at):
            self._at = match.end()
        elif self._text[self._at] == "[":
            self._items(path)
        elif self._text[self._at] == "{":
            self._inline(path)
        elif match := _SCALAR.match(self._text, self._at):
            self._at = match.end()

    def _items(self, path: shape.Path) -> None:
        self._at += 1
        index = 0
        self._skip()
        while self._text[self._at] != "]":
            self._note((*path, index), self._at)
            self._value((*path, index))
            index += 1
            self._skip(marks=",")
        self._at += 1

    def _inline(self, path: shape.Path) -> None:
        self._at += 1
        self._skip()
        while self._text[self._at] != "}":
            self._pair(path)
            self._skip(marks=",")
        self._at += 1

    def _key(self) -> tuple[str, ...]:
        names: list[str] = []
        while match := _KEY.match(self._text, self._at):
            self._at = match.end()
            bare, basic, literal, dot = match.groups()
            names.append(bare if bare is not None else literal if literal is not None else _unescaped(basic))
            if not dot:
                break
        return tuple(names)

    def _skip(self, *, newlines: bool = True, marks: str = "") -> None:
        """Pass over blanks and comments, and over commas between items."""
        while True:
            match = (_BLANK if newlines else _SPACES).match(self._text, self._at)
            self._at = match.end() if match else self._at
            if not marks or not self._text.startswith(marks, self._at):
                return
            self._at += 1

    def _note(self, path: shape.Path, position: int) -> None:
        self.lines.setdefault(path, bisect_left(self._line_ends, position) + 1)


def _unescaped(basic: str) -> str:
    (name,) = tomllib.loads(f'"{basic}" = 0')
    return name
