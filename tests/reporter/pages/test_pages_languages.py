"""Every sentence goes through the catalog: the pseudo-language leaves no English, and the catalog is current."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.frontend import parse_mapping_cfg
from babel.messages.pofile import read_po

from collector.contract.records import base, passes, requests, runs, setups
from collector.contract.resources import data_dir
from reporter import vocabulary as vocabulary_words
from reporter import wording
from reporter.dossier import Dossier, Status
from reporter.messages import say
from reporter.render import Words, render
from reporter.translate import PSEUDO_LANGUAGE, check_catalog

ROOT = Path(__file__).parents[3]
CATALOG = data_dir("templates") / "locale" / "gpu-dossier.pot"
NOT_WORDS = re.compile(r"\b(EUR|GPU|UTC|SD-2026-014|gpu-dossier|Nov|Dec|November|December)\b")
VOID = {"meta", "link", "br"}


class Visible(HTMLParser):
    """Collects text that is not data: outside elements marked as not to be translated."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.depth_of_data = 0
        self.stack: list[bool] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        is_data = dict(attrs).get("translate") == "no" or (tag, dict(attrs).get("class")) == ("text", "f-ink data")
        self.stack.append(is_data)
        self.depth_of_data += is_data

    def handle_endtag(self, tag: str) -> None:
        self.depth_of_data -= self.stack.pop()

    def handle_data(self, data: str) -> None:
        if not self.depth_of_data and data.strip():
            self.texts.append(data.strip())


def without_data(dossier: Dossier, text: str) -> str:
    """Remove the dossier's own labels and names, which a chart prints as they are."""
    labels = {v for t in dossier.tables.values() for r in t.rows for k, v in r.labels.items() if " " in v}
    labels |= {r.labels["offer"] for r in dossier.tables["packages"].rows} | {dossier.question}
    weights = dossier.tables["tensor_groups"].rows if "tensor_groups" in dossier.tables else []
    labels |= {r.labels[name] for r in weights for name in ("label", "storage_dtype")}
    for label in sorted(labels, key=len, reverse=True):
        text = text.replace(label, "")
    return text


def test_the_pseudo_language_leaves_no_english_on_the_page(small: Dossier) -> None:
    assert "Scope" in " ".join(english_in(small, "en")), "the finder sees English where it is"
    assert english_in(small, PSEUDO_LANGUAGE) == []


def english_in(dossier: Dossier, lang: str) -> list[str]:
    accented = {key: w._replace(message=w.message) for key, w in wording.SENTENCES.items()}
    fixture = fixture_words(dossier)
    html = render(dossier, lang=lang, medium="screen", words=Words({**accented, **fixture}, wording.WORDS))
    found = (NOT_WORDS.sub("", without_data(dossier, text)) for text in Visible(html).texts)
    return [text for text in found if re.search(r"[A-Za-z]{2,}", text)]


def fixture_words(dossier: Dossier) -> dict[str, Any]:
    """Word each sentence of the fixture by its parameters alone."""

    def sentences(value: Any) -> Iterable[Any]:
        if hasattr(value, "key") and hasattr(value, "parameters"):
            yield value
        elif isinstance(value, list):
            for item in value:
                yield from sentences(item)

    d = dossier.decision
    said = [d.recommendation, d.chart_finding, d.reasons, d.headline_captions, d.would_change, d.does_not_show]
    said += [dossier.subtitle, dossier.not_tested, dossier.notices, dossier.gates]
    said += [r.sentences for t in dossier.tables.values() for r in t.rows]
    return {s.key: say("words " + " ".join(f"{{{n}}}" for n in s.parameters)) for v in said for s in sentences([v])}


def extracted() -> dict[str, str | None]:
    """Return each message of the sources with its plural, as `make pot` would."""
    with (data_dir("templates") / "locale" / "babel.cfg").open(encoding="utf-8") as stream:
        methods, options = parse_mapping_cfg(stream)
    keywords: Any = {"N_": None, "_": None, "gettext": None, "ngettext": (1, 2), "say": None, "say_counted": (1, 2)}
    found: dict[str, str | None] = {}
    for folder in ("reporter", "templates", "collector/contract"):
        for *_, message, _, _ in extract_from_dir(ROOT / folder, methods, options, keywords, ()):
            one, many = message if isinstance(message, tuple) else (message, None)
            found[one] = many
    return found


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="the sources are not beside the tests")
def test_the_template_catalog_holds_exactly_the_messages_of_the_sources() -> None:
    with CATALOG.open("rb") as stream:
        catalog = read_po(stream)
    held = {
        m.id if isinstance(m.id, str) else m.id[0]: None if isinstance(m.id, str) else m.id[1] for m in catalog if m.id
    }
    now = extracted()
    hint = "run: pybabel extract (see templates/locale/babel.cfg)"
    assert sorted(set(now) - set(held)) == [], hint
    assert sorted(set(held) - set(now)) == [], hint
    assert held == now, hint


def test_every_message_of_the_wording_is_in_the_catalog() -> None:
    with CATALOG.open("rb") as stream:
        catalog = read_po(stream)
    ids = {m.id if isinstance(m.id, str) else m.id[0] for m in catalog if m.id}
    assert {w.message for w in [*wording.SENTENCES.values(), *wording.WORDS.values()]} <= ids


def test_a_translation_with_other_placeholders_is_found() -> None:
    assert check_catalog({"%(n)s of {total}": "{total} / %(n)s", "a %(n)s": "b"}) == [
        "placeholders of 'a %(n)s' differ in its translation 'b'"
    ]


@pytest.mark.parametrize(
    "vocabulary",
    [
        base.Phase, base.Role, base.Stage, base.LengthClass, base.FailureCause, base.MissingReason, passes.PassOutcome,
        passes.PassPurpose, passes.MemoryScope, passes.CounterMethod, requests.ScoreOutcome, runs.FailureScope,
        runs.DecisionKind, setups.ModuleGroup, setups.EngineEvidence, Status,
    ],
)  # fmt: skip
def test_every_word_of_the_records_vocabularies_that_a_table_prints_can_be_translated(vocabulary: Any) -> None:
    assert [word for word in get_args(vocabulary) if word not in vocabulary_words.WORDS] == []
