"""Find the answer in what a model wrote: reasoning is removed first, then the last complete JSON object counts.

Strict JSON (RFC 8259) is looked for anywhere in the text: inside code fences, between sentences, in an array. An object
inside an object is no candidate of its own, neither where the outer one is complete nor where it was cut off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_DEPTH = 64
"""An object nested deeper is not taken for an answer; keeps the decoder far from its recursion limit."""

# Opening and closing marks of reasoning, by the models that write them: most open models, then Mistral, Kimi, Harmony
# (gpt-oss) and the early distillations.
_REASONING = (
    *(
        (f"<{word}>", f"</{word}>")
        for word in ("think", "thinking", "thought", "reasoning", "reflection", "scratchpad")
    ),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<mark>[{}\[\]:,])
      | (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")
      | (?P<scalar>(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null)(?![0-9A-Za-z.+-]))
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
# What may still become a token when more text follows.
_CUT = re.compile(
    r"""[ \t\r\n]*(?:"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*(?:\\(?:u[0-9a-fA-F]{0,3})?)?
        | -?[0-9.eE+-]* | t(?:r(?:ue?)?)? | f(?:a(?:l(?:se?)?)?)? | n(?:u(?:ll?)?)? )\Z""",
    re.VERBOSE,
)


class JsonNumber(str):
    """The literal of a JSON number, unrounded: in it `.` is always the decimal point."""

    __slots__ = ()


class ParsedAnswer(NamedTuple):
    """What was found in an answer.

    object: the last complete JSON object outside reasoning, or null. Numbers are kept as `JsonNumber`. Where a key
    appears twice its last value stands, as in the JSON parsers an application would use.
    candidate_count: complete objects found in the whole answer, those quoted while reasoning included.
    had_reasoning: a reasoning block was removed.
    has_text: something other than blanks is left without the reasoning.
    """

    object: dict[str, object] | None
    candidate_count: int
    had_reasoning: bool
    has_text: bool


def parse_answer(text: str) -> ParsedAnswer:
    """Return the last complete JSON object of an answer and how many there were."""
    outside, reasoning = split_reasoning(text)
    spans = list(_objects(outside))
    quoted_count = sum(1 for block in reasoning for _ in _objects(block))
    return ParsedAnswer(
        object=_decode(spans[-1]) if spans else None,
        candidate_count=len(spans) + quoted_count,
        had_reasoning=bool(reasoning),
        has_text=bool(outside.strip()),
    )


def split_reasoning(text: str) -> tuple[str, list[str]]:
    """Return the text without its reasoning, and the removed blocks.

    A block that is never closed reaches to the end. A closing mark that was never opened ends a block that began with
    the answer: some chat templates put the opening mark into the prompt.
    """
    removed: list[str] = []
    for opening, closing in _REASONING:
        text = _without_blocks(text, opening=opening, closing=closing, removed=removed)
    return text, removed


def _without_blocks(text: str, *, opening: str, closing: str, removed: list[str]) -> str:
    lowered = _lower(text)
    while (begin := lowered.find(opening)) >= 0:
        end = lowered.find(closing, begin + len(opening))
        after = len(text) if end < 0 else end + len(closing)
        removed.append(text[begin:after])
        # A blank in its place, so that what stood on both sides does not become one object.
        text = f"{text[:begin]} {text[after:]}"
        lowered = _lower(text)
    # `<|end|>` alone also ends ordinary messages, so it never implies reasoning before it.
    if closing != "<|end|>" and (last := lowered.rfind(closing)) >= 0:
        removed.append(text[: last + len(closing)])
        text = text[last + len(closing) :]
    return text


def _lower(text: str) -> str:
    """ASCII only: str.lower changes the length of some other letters, and with it every position."""
    return text.translate(_ASCII_LOWER)


_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _objects(text: str) -> Iterator[str]:
    """Yield each outermost complete JSON object, in order. Linear in the text for what models write."""
    position = 0
    while (start := text.find("{", position)) >= 0:
        scan = _Scan(text, start)
        if scan.is_complete:
            yield text[start : scan.position]
            position = scan.position
        elif scan.is_cut:
            return  # a valid beginning up to the end of the text: what is closed inside belongs to it
        else:
            yield from scan.inner_objects()
            position = max(start + 1, scan.resume_at)


class _Scan:
    """One walk over a JSON object that starts at `start`, without recursion."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.position = start
        self.resume_at = start + 1
        self.is_complete = False
        self.is_cut = False
        self._open: list[tuple[str, int]] = []
        self._closed: list[tuple[int, int]] = []
        self._walk()

    def inner_objects(self) -> Iterator[str]:
        """Yield the outermost objects that were complete inside a broken one."""
        reached = 0
        for begin, end in sorted(self._closed):
            if begin >= reached:
                yield self.text[begin:end]
                reached = end

    def _walk(self) -> None:
        expected = "{"
        while True:
            match = _TOKEN.match(self.text, self.position)
            if match is None or match.lastgroup == "end":
                self.is_cut = match is not None or _CUT.match(self.text, self.position) is not None
                return
            token = match.lastgroup if match.lastgroup != "mark" else match["mark"]
            begin = match.start(match.lastgroup or 0)
            following = self._follow(str(token), expected, begin)
            if following is None:
                return
            # A broken object may have begun inside what looked like a string, so the search goes on within the last
            # token, not after it; objects already counted as closed are passed over.
            self.resume_at = max(begin + 1, self._closed[-1][1] if self._closed else 0)
            self.position = match.end()
            if not self._open:
                self.is_complete = True
                return
            expected = following

    def _follow(self, token: str, expected: str, begin: int) -> str | None:
        """Return what may follow the token, or null where it breaks the grammar.

        The states: `{` start, `k` key or end, `K` key, `:` colon, `v` value, `V` value or end of array, `,` comma or
        end.
        """
        if token in "{[" and expected in "{vV" and len(self._open) < MAX_DEPTH:
            self._open.append((token, begin))
            return "k" if token == "{" else "V"
        if token in "}]" and expected in {"k" if token == "}" else "V", ","}:
            opening, start = self._open[-1]
            if (opening, token) not in {("{", "}"), ("[", "]")}:
                return None
            self._open.pop()
            if token == "}":
                self._closed.append((start, begin + 1))
            return ","
        if token == "string" and expected in "kK":
            return ":"
        if token in ("string", "scalar") and expected in "vV":
            return ","
        if token == ":" and expected == ":":
            return "v"
        if token == "," and expected == ",":
            return "K" if self._open[-1][0] == "{" else "v"
        return None


def _decode(span: str) -> dict[str, object]:
    decoded: dict[str, object] = json.loads(span, parse_int=JsonNumber, parse_float=JsonNumber)
    return decoded
