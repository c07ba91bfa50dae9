"""The starter's corpus: 330 documents as the plan wants them, no near-duplicates, and a statistics page in step."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import collector
from collector.contract.judging import judge
from collector.contract.protocol import DocumentLine
from collector.corpus_statistics import corpus_page, corpus_statistics, summary_lines
from collector.protocol_check import load_protocol
from collector.starter import TIERS, make_documents, starter_documents
from collector.starter.demo_model import cached_folder
from collector.starter.language import CATEGORIES, LANGUAGES, read_language

STARTER = Path(collector.__file__).parent / "starter"
DOCUMENTS: list[dict[str, Any]] = [
    json.loads(line) for line in (STARTER / "documents.jsonl").read_text(encoding="utf-8").splitlines()
]
COUNTED = json.loads((STARTER / "token_counts.json").read_text(encoding="utf-8"))
LABELS = re.compile(r"^(?:Category|Categoría|Kategori|Loại|Catégorie ?|Kategorie): (\w+)$", re.MULTILINE)
ISO_LABEL = re.compile(r"^(?:Date ?|Fecha|Tarih|Ngày|Datum)\s?: \d{4}-\d{2}-\d{2}$", re.MULTILINE)


def of(role: str, **wanted: Any) -> list[dict[str, Any]]:
    return [
        one for one in DOCUMENTS if one["role"] == role and all(one[name] == value for name, value in wanted.items())
    ]


def tier_of(one: dict[str, Any]) -> str:
    (tier,) = set(one["subsets"]) & set(TIERS)
    return str(tier)


def test_the_script_writes_the_files_that_are_shipped() -> None:
    assert make_documents.file_text() == (STARTER / "documents.jsonl").read_text(encoding="utf-8")
    assert make_documents.page_text() == (STARTER / "corpus.md").read_text(encoding="utf-8")


def test_the_script_writes_one_tier_alone_and_the_page(tmp_path: Path) -> None:
    make_documents.main([str(tmp_path / "labelled.jsonl"), "--tier", "labelled"])
    lines = (tmp_path / "labelled.jsonl").read_text(encoding="utf-8").splitlines()
    assert Counter(json.loads(line)["role"] for line in lines) == {"development": 12, "validation": 40, "test": 80}
    assert "\n".join(lines) + "\n" == starter_documents(tier="labelled")
    make_documents.main([str(tmp_path / "corpus.md"), "--statistics"])
    assert (tmp_path / "corpus.md").read_bytes() == (STARTER / "corpus.md").read_bytes()


def test_roles_tiers_and_critical_documents_are_as_planned() -> None:
    assert Counter(one["role"] for one in DOCUMENTS) == {"development": 30, "validation": 100, "test": 200}
    tiers = Counter((one["role"], tier_of(one)) for one in DOCUMENTS)
    assert [tiers[role, "labelled"] for role in ("development", "validation", "test")] == [12, 40, 80]
    assert [tiers[role, "semi-structured"] for role in ("development", "validation", "test")] == [10, 35, 70]
    critical = Counter((one["role"], tier_of(one)) for one in DOCUMENTS if "critical" in one["subsets"])
    assert critical == {
        ("validation", "labelled"): 4, ("validation", "semi-structured"): 4, ("validation", "prose"): 2,
        ("test", "labelled"): 8, ("test", "semi-structured"): 8, ("test", "prose"): 4,
    }  # fmt: skip
    assert [one["id"] for one in DOCUMENTS][:30] == [f"dev-{number:03}" for number in range(1, 31)]
    assert DOCUMENTS[30]["id"] == "val-001"
    assert DOCUMENTS[-1]["id"] == "test-200"


@pytest.mark.parametrize("role", ["development", "validation", "test"])
def test_every_language_and_category_is_in_every_role(role: str) -> None:
    languages = Counter(one["language"] for one in of(role))
    assert set(languages) == set(LANGUAGES)
    assert min(languages.values()) >= {"development": 4, "validation": 10, "test": 20}[role]
    categories = Counter(one["expected"]["category"] for one in of(role))
    assert set(categories) == set(CATEGORIES)
    assert min(categories.values()) * 10 >= len(of(role))


def test_length_classes_follow_the_real_lengths() -> None:
    """The classes do not overlap in bytes or tokens; long ones have more than 1,500 tokens and not many more."""
    for size in (lambda one: len(one["text"].encode()), lambda one: COUNTED["tokens"][one["id"]]):
        sizes = {
            name: [size(one) for one in DOCUMENTS if one["length_class"] == name] for name in ("short", "usual", "long")
        }
        assert max(sizes["short"]) < min(sizes["usual"])
        assert max(sizes["usual"]) < min(sizes["long"])
    long = [one for one in DOCUMENTS if one["length_class"] == "long"]
    assert Counter(one["role"] for one in long) == {"development": 2, "validation": 8, "test": 16}
    tokens = [COUNTED["tokens"][one["id"]] for one in long]
    assert 1500 < min(tokens) <= max(tokens) <= 1800
    assert not [one["id"] for one in long if tier_of(one) == "labelled"]
    assert all(one["is_hard"] for one in long)
    others = [count for name, count in COUNTED["tokens"].items() if name not in {one["id"] for one in long}]
    assert max(others) <= 160


def test_a_long_document_does_not_repeat_itself() -> None:
    for one in DOCUMENTS:
        if one["length_class"] == "long":
            lines = [line for line in re.split(r"\n|(?<=\.) ", one["text"]) if len(line) > 30]
            assert len(lines) == len(set(lines)), one["id"]


def test_the_labelled_tier_is_plain() -> None:
    for one in DOCUMENTS:
        if tier_of(one) != "labelled":
            assert not LABELS.search(one["text"])
            continue
        assert LABELS.findall(one["text"]) == [one["expected"]["category"]]
        assert len(ISO_LABEL.findall(one["text"])) == (one["expected"]["date"] is not None)


def test_missing_values_hard_documents_and_several_currencies_are_there() -> None:
    for role in ("validation", "test"):
        lacking = Counter(
            name for one in of(role) for name, value in one["expected"].items() if value is None and one["is_hard"]
        )
        assert set(lacking) == {"date", "amount"}
        assert all(one["is_hard"] for one in of(role) if None in one["expected"].values())
    texts = "\n".join(one["text"] for one in DOCUMENTS)
    for sign in ("USD", "$", "£", "EUR", "€", "TL", "đ", "CHF", "MXN", "AUD"):
        assert sign in texts
    for written in (
        r"\d\.\d{3},\d\d",
        r"\d,\d{3}\.\d\d",
        "\\d\u00a0\\d{3},\\d\\d",
        r"\d'\d{3}\.\d\d",
        r"\d\.\d{3}\.\d{3}",
    ):
        assert re.search(written, texts), written


def test_test_documents_come_from_templates_that_nobody_tuned_on_or_chose_by() -> None:
    clusters = {role: {one["cluster"] for one in of(role)} for role in ("development", "validation", "test")}
    assert len(clusters["test"] - clusters["validation"]) >= 15
    assert len(clusters["validation"] - clusters["development"]) >= 10
    assert {one.id for code in LANGUAGES for one in read_language(code).templates} == set().union(*clusters.values())
    kinds = {one.kind for code in LANGUAGES for one in read_language(code).templates}
    assert kinds == {"invoice", "receipt", "ticket", "bill", "statement"}


def shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return set(zip(words, words[1:], words[2:], strict=False))


def test_no_two_documents_of_different_roles_are_nearly_the_same() -> None:
    """Neither equal but for digits, nor with more than three fifths of their word triples in common."""
    without_digits = Counter(re.sub(r"\d", "", one["text"]) for one in DOCUMENTS)
    assert without_digits.most_common(1)[0][1] == 1
    known = [(one, shingles(one["text"])) for one in DOCUMENTS]
    for index, (one, triples) in enumerate(known):
        for other, others in known[:index]:
            if one["role"] != other["role"] and one["language"] == other["language"]:
                shared = len(triples & others) / len(triples | others)
                assert shared < 0.6, (one["id"], other["id"], shared)


def test_every_expected_value_is_accepted_when_answered() -> None:
    fields = load_protocol(STARTER / "protocol.toml").protocol.task.fields
    for document in DOCUMENTS:
        verdict = judge(
            fields=fields, expected=document["expected"], answer=json.dumps(document["expected"]),
            finish_reason="end_token", request_outcome="completed",
        )  # fmt: skip
        assert verdict.is_accepted


def as_lines(documents: Iterable[dict[str, Any]]) -> list[DocumentLine]:
    return [msgspec.convert(one, DocumentLine) for one in documents]


def test_the_statistics_of_any_documents_count_each_once() -> None:
    lines = [
        DocumentLine(id="a", role="development", text="x", expected={"date": None}, language="en", cluster="t"),
        DocumentLine(id="b", role="test", text="y y", expected={"date": "2026-01-01"}, is_hard=True, cluster="t"),
        DocumentLine(id="c", role="test", text="z", length_class="short", subsets=["s", "s"]),
    ]
    counts = corpus_statistics(lines)
    assert counts.roles == {"development": 1, "test": 2}
    assert counts.languages == {("development", "en"): 1, ("test", "not said"): 2}
    assert counts.subsets == {("test", "s"): 1}
    assert counts.missing == {("development", "date"): 1}
    assert counts.hard == {"test": 1}
    assert counts.clusters == {"development": {"t"}, "test": {"t", "c"}}
    page = corpus_page(lines, title="Mine")
    assert "development and test share 1; 1 of test are unknown to development" in page
    assert "Tokens were not counted" in page
    assert summary_lines(lines) == [
        "languages: 1 en, 2 not said", "lengths: 1 short, 2 usual", "subsets: 1 s",
        "templates or sources: 2; marked hard: 1",
    ]  # fmt: skip
    assert summary_lines([]) == ["templates or sources: 0; marked hard: 0"]


def test_the_pages_sums_are_those_of_the_documents() -> None:
    page = (STARTER / "corpus.md").read_text(encoding="utf-8")
    assert "| all | 30 | 100 | 200 |" in page
    cross = [line.split("|")[1:-1] for line in page.split("## Subset")[1].split("## ")[0].splitlines() if "| " in line]
    rows = [[cell.strip() for cell in row] for row in cross if row[0].strip() in TIERS]
    assert [sum(int(row[place]) for row in rows) for place in (3, 4, 5)] == [30, 100, 200]


@pytest.mark.slow
def test_the_token_counts_are_those_of_the_demo_models_tokenizer() -> None:
    cache = Path(os.environ.get("GPU_DOSSIER_CACHE", STARTER.parents[1] / ".cache"))
    folder = cached_folder(cache)
    if folder is None:
        pytest.skip(f"no demo model in {cache}; make it: python -m collector.starter.demo_model --cache {cache}")
    assert make_documents.token_counts_text(folder) == (STARTER / "token_counts.json").read_text(encoding="utf-8")
