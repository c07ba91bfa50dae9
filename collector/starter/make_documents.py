"""Write the starter's 330 documents: templates in six languages, filled by arithmetic; expected values by construction.

`python -m collector.starter.make_documents FILE` writes the same bytes each time: nothing is drawn. Which language,
template, day, price and name a document has follows from its place in the plan below, so a reader can work it out.
The date is the day of issue, the amount is the total with tax, the category is that of the goods.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.contract.protocol import DocumentLine
from collector.contract.records.base import Role
from collector.corpus_statistics import corpus_page
from collector.starter import CORPUS_TITLES, TIERS, starter_text
from collector.starter.language import LANGUAGES, Language, Template, read_language
from collector.starter.plan import Place, places, template_for
from collector.starter.writer import Writer

TOKENIZER = "SmolLM2-135M-Instruct"
ID_PREFIX: dict[Role, str] = {"development": "dev", "validation": "val", "test": "test"}
SHORT_BELOW_BYTES = 110
LONG_FROM_BYTES = 2_000


class Made(NamedTuple):
    """A document and the template that it was made from."""

    line: dict[str, object]
    template: Template


def made(*, tier: str | None = None) -> list[Made]:
    """Return the documents in the order of their ids, all or those of one tier, with their templates."""
    languages = {code: read_language(code) for code in LANGUAGES}
    result: list[Made] = []
    numbers: Counter[str] = Counter()
    for place in places():
        numbers[place.role] += 1
        template = template_for(place, languages[place.language])
        if tier in (None, place.tier):
            line = _document(place, template, languages[place.language], numbers[place.role])
            result.append(Made(line, template))
    return result


def _document(place: Place, template: Template, language: Language, number: int) -> dict[str, object]:
    writer = Writer(place, template, language)
    text = writer.text()
    return {
        "id": f"{ID_PREFIX[place.role]}-{number:03}",
        "role": place.role,
        "text": text,
        "expected": {
            "date": None if template.missing == "date" else writer.issued.isoformat(),
            "amount": None if template.missing == "amount" else writer.total.plain,
            "category": writer.category,
        },
        "length_class": length_class(text),
        "is_hard": template.is_hard,
        "subsets": [template.tier, *(["critical"] if place.is_critical else [])],
        "cluster": template.id,
        "language": place.language,
    }


def length_class(text: str) -> str:
    """Return short, usual or long by the text's bytes of UTF-8, which follow tokens better than characters do."""
    size = len(text.encode())
    return "short" if size < SHORT_BELOW_BYTES else "usual" if size < LONG_FROM_BYTES else "long"


def file_text(*, tier: str | None = None) -> str:
    """Return the documents file: one JSON object per line, letters as they are."""
    return "".join(json.dumps(one.line, ensure_ascii=False) + "\n" for one in made(tier=tier))


def page_text() -> str:
    """Return corpus.md: the statistics of all documents, with the tokens that were counted last."""
    lines = made()
    counted = json.loads(starter_text("token_counts.json"))
    if counted["documents_sha256"] != sha256(file_text().encode()).hexdigest():
        raise ValueError("token_counts.json belongs to other documents: write it again with --tokenizer")
    return corpus_page(
        [msgspec.convert(one.line, DocumentLine) for one in lines],
        title=CORPUS_TITLES["extraction"],
        currencies={str(one.line["id"]): one.template.currency for one in lines},
        token_counts=counted["tokens"],
        tokenizer=counted["tokenizer"],
    )


def token_counts_text(folder: Path) -> str:
    """Return token_counts.json: the tokens of each document's text, counted with the tokenizer of a model's folder."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens = {one.line["id"]: len(tokenizer.encode(str(one.line["text"])).ids) for one in made()}
    digest = sha256(file_text().encode()).hexdigest()
    return json.dumps({"tokenizer": TOKENIZER, "documents_sha256": digest, "tokens": tokens}, indent=1) + "\n"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m collector.starter.make_documents", description=__doc__)
    parser.add_argument("file", type=Path, help="where to write; without an option, the documents")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--tier", choices=TIERS, help="write the documents of this tier alone")
    what.add_argument("--tokenizer", type=Path, help="write token_counts.json, counted with this model's tokenizer")
    what.add_argument("--statistics", action="store_true", help="write corpus.md")
    options = parser.parse_args(arguments)
    if options.tokenizer:
        text = token_counts_text(options.tokenizer)
    else:
        text = page_text() if options.statistics else file_text(tier=options.tier)
    options.file.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
