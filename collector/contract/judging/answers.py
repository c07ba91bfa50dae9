"""Judge one answer to a question whose answers are known: find what was answered, compare it with each of them.

Reasoning is removed first. Then the answer is looked for where people and models put it, and the last one wins:

1. Marked: `#### ...`, `\\boxed{...}`, a line that begins with `Answer:` (or the same word of the starter's languages),
   a JSON object with one member. Of several marked answers the last one counts.
2. Not marked, and the known answer is a number (the document has a tolerance): the last number of the text. A marked
   answer gives its first number, after its last `=` where it has one. A number that can be read in two ways (`1.234`)
   is right when either is. Comparison is exact: |given - known| <= tolerance, in fractions.
3. Not marked, and the known answer is a text: the whole answer, else its last line. A sentence counts by what stands
   before or after its verb: `Tokyo is the capital` and `The capital is Tokyo.` both say Tokyo; a negation says nothing.

Texts are compared in NFC, without case (`AU` is `Au`: a task where case matters needs a scorer of its own), blanks
collapsed, without quotes, Markdown emphasis, brackets behind and punctuation around; accents and punctuation inside
count. Any known answer is right.

Told apart: failed, too_long, empty (nothing left without the reasoning), truncated, unparseable (no number where one is
asked for, or an unmarked text line of more than twelve words that says no known answer), wrong, right. Of an answer
that ran into its output limit only whole lines, whole objects and closed marks are read; where none is left it is
truncated.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..records.requests import ScoreOutcome
from .normalise import fold_label
from .numbers import Readings, is_within, numbers_in
from .parse import parse_answer, split_reasoning
from .verdict import Given, Verdict, unanswered, unread

MAX_ANSWER_WORDS = 12
"""A longer unmarked line is no short answer: where it says no known one, nothing can be told."""

MAX_SENTENCE_WORDS = 100
"""A longer line is not looked into: a model that repeats itself without end must not hold up a run."""

_WORD = (
    r"answer|result|solution|antwort|ergebnis|lösung|respuesta|resultado|solución|réponse|résultat|cevap|yanıt|sonuç"
    r"|đáp án|câu trả lời|trả lời|kết quả"
)
_MARK = re.compile(
    r"(?<!#)#{4}[ \t]*(?P<hash>[^\s#].*)$"
    r"|\\boxed\s*\{(?P<boxed>(?:[^{}]|\{[^{}]*\})*)\}"
    rf"|^[^\w\n]*(?:the[ ]+)?(?:final[ ]+)?(?:{_WORD})[ \t]*[:=][ \t]*(?P<label>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|equals|ist|sind|war|lautet|heißt|beträgt|est|sont|était|es|son|era|fue|là)\b"
    r"(?!\s+(?:not|no|never|nicht|kein\w*|pas|không)\b)|[:=](?=\s)",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:no|not|không|không phải)\s*$", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:the|an?|der|die|das|el|la|los|las|le|les)\s+|^l['’]", re.IGNORECASE)
_AROUND = " \t\r\n.,;:!?…。\"'“”‘’«»„‚*_`-–•"
_LATEX_TEXT = re.compile(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}")


class _Found(NamedTuple):
    """Where an answer may stand. marked: the last marked one, or null. text: all without reasoning and cut lines."""

    marked: str | None
    marked_count: int
    text: str


def judge_answer(*, answers: Sequence[str], tolerance: str | None, given: Given) -> Verdict:
    """Return the verdict on one answer. Never raises for anything a model can write.

    answers: the known ones, any of which is right. tolerance: where not null, they are numbers, right within it.
    """
    if (outcome := unanswered(given)) is not None:
        return unread(outcome)
    found = _find(given.answer or "", is_cut=given.is_cut)
    if found.marked is None and not found.text.strip():
        had_text = bool(split_reasoning(given.answer or "")[0].strip())
        return unread("truncated" if given.is_cut else "unparseable" if had_text else "empty", found.marked_count)
    if tolerance is not None:
        return _number(found, answers, tolerance, is_cut=given.is_cut)
    return _text(found, answers, is_cut=given.is_cut)


def _find(answer: str, *, is_cut: bool) -> _Found:
    parsed = parse_answer(answer)
    outside, reasoning = split_reasoning(answer)
    outside = re.sub(r"\*\*|__|`", "", outside)
    if is_cut:
        # What follows the last line end may be half a word or half a number; a mark or object that is closed is whole.
        cut = outside.rfind("\n")
        closed = [match.end() for match in _MARK.finditer(outside) if match["boxed"] is not None]
        outside = outside[: max(cut, 0, *closed)]
    marks = list(_MARK.finditer(outside))
    count = len(marks) + sum(1 for block in reasoning for _ in _MARK.finditer(block)) + parsed.candidate_count
    if marks:
        return _Found(str(marks[-1][str(marks[-1].lastgroup)]), count, outside)
    if parsed.object is not None and len(parsed.object) == 1:
        (value,) = parsed.object.values()
        if isinstance(value, str):
            return _Found(value, count, outside)
    return _Found(None, count, outside)


def _number(found: _Found, answers: Sequence[str], tolerance: str, *, is_cut: bool) -> Verdict:
    numbers: list[Readings]
    if found.marked is not None:
        numbers = list(numbers_in(found.marked.rpartition("=")[2]))[:1]
        count = found.marked_count
    else:
        numbers = list(numbers_in(found.text))
        count = len(numbers)
    if not numbers:
        return unread("truncated" if is_cut and found.marked is None else "unparseable", count)
    is_right = any(is_within(numbers[-1], wanted=answer, tolerance=tolerance) for answer in answers)
    return _judged(is_right, count, 0)


def _text(found: _Found, answers: Sequence[str], *, is_cut: bool) -> Verdict:
    lines = [line for line in found.text.splitlines() if line.strip(_AROUND)]
    if found.marked is not None:
        places, count = [found.marked], found.marked_count
    else:
        places, count = lines[-1:], len(lines)
    whole = found.marked or found.text
    is_right = _says(whole, places, answers, form="NFC")
    if not is_right and found.marked is None and (not lines or len(lines[-1].split()) > MAX_ANSWER_WORDS):
        return unread("truncated" if is_cut and not lines else "unparseable", count)
    return _judged(is_right, count, int(is_right and not _says(whole, places, answers, form=None)))


def _judged(is_right: bool, candidate_count: int, normalisation_count: int) -> Verdict:
    outcome: ScoreOutcome = "right" if is_right else "wrong"
    return Verdict(outcome, is_right, True, [], [], candidate_count, normalisation_count)


def _says(whole: str, places: Sequence[str], answers: Sequence[str], *, form: str | None) -> bool:
    wanted = {_compared(answer, form) for answer in answers}
    readings = [whole, *(reading for place in places for reading in _readings(place))]
    return any(_compared(reading, form) in wanted for reading in readings)


def _readings(place: str) -> Iterator[str]:
    """Yield what a line may say: itself, and what stands on either side of each verb that is not negated."""
    place = _LATEX_TEXT.sub(r"\1", place)
    if len(place.split()) > MAX_SENTENCE_WORDS:
        yield place
        return
    for text in dict.fromkeys((place, re.sub(r"\s*\([^()]*\)", "", place))):
        yield text
        for verb in _VERB.finditer(text):
            before, after = text[: verb.start()], text[verb.end() :]
            if not _NEGATED.search(before):
                for side in (before, after):
                    yield side
                    yield _ARTICLE.sub("", side.strip(_AROUND))


def _compared(text: str, form: str | None) -> str:
    normal = text if form is None else unicodedata.normalize("NFC", text)
    folded = fold_label(normal.strip(_AROUND) or normal)
    return folded if form is None else unicodedata.normalize("NFC", folded)
