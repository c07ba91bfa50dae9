"""The part of Markdown that a folder's README needs: headings, paragraphs, lists, tables, code. Nothing is markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["heading", "paragraph", "list", "table", "code"]
_SPAN = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\((https?://[^)\s]+)\)|\[([^\]]+)\]\([^)\s]*\)")
_RULE = re.compile(r"^\|?[\s:|-]+\|?$")


class Span(NamedTuple):
    """A piece of a line: plain text, code, strong words or a link to a web address."""

    kind: Literal["text", "code", "strong", "link"]
    text: str
    href: str = ""


Line = list[Span]


class Block(NamedTuple):
    """One block. `lines`: a heading, a paragraph and code have one, a list one per item; `rows` are a table's."""

    kind: Kind
    lines: list[Line] = []
    rows: list[list[Line]] = []
    level: int = 0


def title_of(markdown: str) -> str:
    """Return the text of the first heading, or an empty text."""
    found = next((block for block in blocks(markdown) if block.kind == "heading"), None)
    return "".join(span.text for span in found.lines[0]) if found else ""


def blocks(markdown: str) -> list[Block]:
    """Return the blocks in order. What is no known form is a paragraph; links that lead to no web address are text."""
    return list(_blocks(markdown.splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    place = 0
    while place < len(lines):
        line = lines[place]
        end = place + 1
        if line.startswith("```"):
            while end < len(lines) and not lines[end].startswith("```"):
                end += 1
            yield Block("code", [[Span("code", "\n".join(lines[place + 1 : end]))]])
            end += 1
        elif heading := re.match(r"^(#{1,4}) +(.+)$", line):
            yield Block("heading", [spans(heading[2])], level=len(heading[1]))
        elif line.startswith("|"):
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            yield Block("table", rows=[_cells(row) for row in lines[place:end] if not _RULE.match(row)])
        elif _item(line):
            while end < len(lines) and lines[end].strip() and not _starts_other(lines[end]):
                end += 1
            yield Block("list", [spans(text) for text in _items(lines[place:end])])
        elif line.strip():
            while end < len(lines) and lines[end].strip() and not (_starts_other(lines[end]) or _item(lines[end])):
                end += 1
            yield Block("paragraph", [spans(" ".join(part.strip() for part in lines[place:end]))])
        place = end


def _item(line: str) -> re.Match[str] | None:
    return re.match(r"^(?:[-*]|\d+\.) +(.*)$", line)


def _starts_other(line: str) -> bool:
    return line.startswith(("#", "|", "```"))


def _items(lines: list[str]) -> list[str]:
    items: list[str] = []
    for line in lines:
        found = _item(line)
        if found:
            items.append(found[1])
        else:
            items[-1] += " " + line.strip()
    return items


def _cells(row: str) -> list[Line]:
    return [spans(cell.strip()) for cell in row.strip().strip("|").split("|")]


def spans(text: str) -> Line:
    """Return the pieces of a line."""
    line: Line = []
    place = 0
    for found in _SPAN.finditer(text):
        if found.start() > place:
            line.append(Span("text", text[place : found.start()]))
        code, strong, linked, href, unlinked = found.groups()
        if code is not None:
            line.append(Span("code", code))
        elif strong is not None:
            line.append(Span("strong", strong))
        elif href is not None:
            line.append(Span("link", linked, href))
        else:
            line.append(Span("text", unlinked))
        place = found.end()
    if place < len(text):
        line.append(Span("text", text[place:]))
    return line
