"""The starter: forty documents whose expected values a second reader finds again, and a trial that runs as it is."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from babel.dates import get_month_names
from babel.numbers import parse_decimal
from click.testing import CliRunner

from collector.cli import main
from collector.clock import FakeClock
from collector.contract.campaign import PACKAGE_DAYS
from collector.contract.campaign_file import read_campaign
from collector.contract.errors import DossierError
from collector.contract.judging import judge
from collector.freeze import freeze, read_frozen
from collector.init import FILES, detected_device, init_folder
from collector.protocol_check import check_protocol, examine, load_protocol
from collector.starter import make_documents
from collector.starter.demo_model import cached_folder

TODAY = dt.date(2026, 11, 30)
STARTER = Path(make_documents.__file__).parent
DOCUMENTS: list[dict[str, Any]] = [json.loads(line) for line in (STARTER / "documents.jsonl").read_text().splitlines()]


def test_the_script_writes_the_file_that_is_shipped() -> None:
    assert make_documents.file_text() == (STARTER / "documents.jsonl").read_text(encoding="utf-8")


def test_roles_subset_and_tiers_are_as_the_design_wants_them() -> None:
    roles = Counter(one["role"] for one in DOCUMENTS)
    assert roles == {"validation": 24, "test": 10, "development": 6}
    validation = [one for one in DOCUMENTS if one["role"] == "validation"]
    assert sum("critical" in one["subsets"] for one in validation) == 6
    assert any("critical" in one["subsets"] for one in DOCUMENTS if one["role"] == "test")
    assert {one["language"] for one in validation} == {"en", "es", "tr", "vi", "fr", "de"}
    assert {one["length_class"] for one in validation} == {"short", "usual", "long"}
    labelled = [one for one in validation if f": {one['expected']['category']}" in one["text"]]
    assert len(labelled) > len(validation) / 2
    assert any(one["is_hard"] for one in validation)
    assert any(None in one["expected"].values() for one in validation)


def test_length_classes_follow_the_real_lengths() -> None:
    lengths: dict[str, list[int]] = {}
    for one in DOCUMENTS:
        lengths.setdefault(one["length_class"], []).append(len(one["text"]))
    assert max(lengths["short"]) < min(lengths["usual"])
    assert max(lengths["usual"]) < min(lengths["long"])


# A second reader. It knows neither the tables that the documents were made from nor the judging code: dates and amounts
# are found by pattern and read by Babel's locale data; where a text has several, the one nearest to the word for paying
# counts.
LOCALES = {"en": "en_GB", "es": "es_ES", "tr": "tr_TR", "vi": "vi_VN", "fr": "fr_FR", "de": "de_DE"}
PAYING = re.compile(r"charged|Abbuchung|réglé|trả", re.IGNORECASE)
CURRENCY = r"USD|GBP|EUR|TL|€|đồng|đ"
AMOUNT = re.compile(rf"(?:[$£]|EUR )([0-9][0-9.,\u00a0]*[0-9])|([0-9][0-9.,\u00a0]*[0-9]) (?:{CURRENCY})(?!\w)")
WORDS = {
    "travel": "rail taxi hotel flight vol",
    "food": "mesa menús köfte ayran galettes",
    "utilities": "strom nước",
    "office": "hefte stifte",
}


def dates_in(text: str, language: str) -> list[tuple[int, str]]:
    months = {name.casefold(): number for number, name in get_month_names("wide", locale=LOCALES[language]).items()}
    found = [(match.start(), match[0]) for match in re.finditer(r"\d{4}-\d{2}-\d{2}", text)]
    found += [
        (match.start(), f"{match[3]}-{match[2]}-{match[1]}")
        for match in re.finditer(r"\b(\d{2})[./](\d{2})[./](\d{4})\b", text)
    ]
    for match in re.finditer(r"(\d{1,2})\.? (?:de )?(?:tháng )?(\w+) (?:de |năm )?(\d{4})", text):
        month = int(match[2]) if match[2].isdigit() else months.get(match[2].casefold())
        if month is not None:
            found.append((match.start(), f"{match[3]}-{month:02}-{int(match[1]):02}"))
    return found


def amounts_in(text: str, language: str) -> list[tuple[int, Decimal]]:
    numbers = [(match.start(), match[1] or match[2]) for match in AMOUNT.finditer(text)]
    # Babel's French groups are separated by a narrow no-break space.
    return [(at, parse_decimal(one.replace("\u00a0", "\u202f"), locale=LOCALES[language])) for at, one in numbers]


def the_one(found: list[tuple[int, Any]], text: str) -> Any:
    paying = PAYING.search(text)
    if len(found) > 1:
        assert paying is not None, text
        return min(found, key=lambda one: abs(one[0] - paying.start()))[1]
    return found[0][1] if found else None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: str(one["id"]))
def test_a_second_reader_finds_the_expected_values(document: dict[str, Any]) -> None:
    text, language, expected = document["text"], document["language"], document["expected"]
    assert the_one(dates_in(text, language), text) == expected["date"]
    amount = the_one(amounts_in(text, language), text)
    assert amount == (None if expected["amount"] is None else Decimal(expected["amount"]))
    label = re.search(r"(?:Category|Categoría|Kategori|Loại|Catégorie ?|Kategorie): (\w+)", text)
    words = set(re.findall(r"\w+", text.casefold()))
    said = [label[1]] if label else [name for name, known in WORDS.items() if words & set(known.split())]
    assert said == [expected["category"]]


def test_every_expected_value_is_accepted_when_answered() -> None:
    fields = load_protocol(STARTER / "protocol.toml").protocol.task.fields
    for document in DOCUMENTS:
        verdict = judge(
            fields=fields, expected=document["expected"], answer=json.dumps(document["expected"]),
            finish_reason="end_token", request_outcome="completed",
        )  # fmt: skip
        assert verdict.is_accepted


def test_init_writes_a_trial_that_checks_and_freezes(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    result = CliRunner().invoke(main, ["init", str(folder)])
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [str(folder / name) for name in FILES]
    assert check_protocol(folder / "protocol.toml", with_tokenizer=False) == []
    lock = freeze(folder / "protocol.toml", campaign=None, clock=FakeClock(), with_tokenizer=False)
    assert lock.objective_digest is not None
    assert len(read_frozen(folder / "protocol.toml").documents) == 40


def test_the_campaign_names_this_machines_device_and_says_that_its_prices_are_examples(tmp_path: Path) -> None:
    init_folder(tmp_path, device='Card "X" 80 GB', today=TODAY)
    campaign = read_campaign(tmp_path / "campaign.toml").campaign
    assert {one.device for one in (*campaign.candidates, *campaign.offers)} == {'Card "X" 80 GB'}
    assert [one.variant for one in campaign.candidates] == ["fp32", "bf16"]
    assert campaign.as_of == TODAY
    for offer in campaign.offers:
        assert offer.basis == "example"
        assert offer.valid_until > TODAY
        assert all(getattr(offer, f"price_{days}_days") for days in PACKAGE_DAYS)
    assert campaign.calendar.preparation is not None
    assert campaign.calendar.preparation.basis == "assumed"
    assert campaign.calendar.preparation.by
    assert campaign.documents_per_corpus > 0
    init_folder(tmp_path / "here")
    here = read_campaign(tmp_path / "here" / "campaign.toml").campaign
    assert here.candidates[0].device == detected_device()


def test_init_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    first, second = (init_folder(tmp_path / name, device="d", today=TODAY) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_model_folder_is_written_relative_to_the_protocol(tmp_path: Path) -> None:
    (tmp_path / "cache" / "model").mkdir(parents=True)
    init_folder(tmp_path / "a", model=str(tmp_path / "cache" / "model"), device="d")
    assert load_protocol(tmp_path / "a" / "protocol.toml").protocol.model.id == "../cache/model"
    init_folder(tmp_path / "b", model="other/model-1B", device="d")
    assert load_protocol(tmp_path / "b" / "protocol.toml").protocol.model.id == "other/model-1B"


@pytest.mark.parametrize("name", FILES)
def test_init_overwrites_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(DossierError, match="there already"):
        init_folder(tmp_path, device="d")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_init_where_no_folder_can_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["init", str(tmp_path / "file" / "trial")])
    assert result.exit_code == 2
    assert "next:" in result.stderr
    with pytest.raises(DossierError):
        init_folder(tmp_path / "x", kind="ranking", device="d")


@pytest.mark.slow
def test_every_prompt_of_the_starter_has_at_most_300_tokens(tmp_path: Path) -> None:
    """Counted by the demo model's own tokenizer and template; skipped where that model is not in the cache."""
    cache = Path(os.environ.get("GPU_DOSSIER_CACHE", STARTER.parents[1] / ".cache"))
    folder = cached_folder(cache)
    if folder is None:
        pytest.skip(f"no demo model in {cache}; make it: python -m collector.starter.demo_model --cache {cache}")
    init_folder(tmp_path, model=str(folder), device="d")
    report = examine(tmp_path / "protocol.toml")
    assert report.findings == []
    assert report.longest_prompt_tokens is not None
    assert report.longest_prompt_tokens <= 300


def test_the_starters_statements_do_not_cover_other_documents(tmp_path: Path) -> None:
    init_folder(tmp_path, device="Test CPU (1 core)")
    protocol, documents = tmp_path / "protocol.toml", tmp_path / "documents.jsonl"
    assert not check_protocol(protocol, with_tokenizer=False)
    text = documents.read_text(encoding="utf-8")
    documents.write_text(text.replace("Northgate Supplies", "Our own supplier"), encoding="utf-8")
    findings = check_protocol(protocol, with_tokenizer=False)
    assert [(finding.rule, finding.line) for finding in findings] == [
        (
            f"missing-{name}",
            next(n for n, line in enumerate(protocol.read_text().splitlines(), 1) if line.startswith(name)),
        )
        for name in ("permission", "review")
    ]
    assert "'val-01' first" in findings[0].message
