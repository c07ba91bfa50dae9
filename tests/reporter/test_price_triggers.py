"""What page one says would change the answer is true: made so, it changes; what would change nothing is not said."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.contract.protocol import Gates, SubsetGate
from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Sentence
from reporter.render import View, shipped_words
from reporter.translate import Translator

Decide = Any
Kit = Any
Text = Any
Say = Callable[[Dossier, Sentence], str]
RATE = '[[exchange_rate]]\ncurrency = "USD"\nrate = "0.92"\non = 2026-01-30\nsource = "a bank"\nbasis = "quoted"\n'
HOURLY = 'price_hour = "{price}"\n'
CONVERTED = re.compile(r"Converted, that is (\d+\.\d\d) EUR net, at 0\.92 EUR per USD of 30 January 2026\.")


def changes(dossier: Dossier, said: Say) -> list[str]:
    return [said(dossier, one) for one in dossier.decision.would_change]


def reasons(dossier: Dossier, said: Say) -> list[str]:
    return [said(dossier, one) for one in dossier.decision.reasons]


def in_dollars(path: Path) -> Path:
    path.write_text(path.read_text().replace('currency = "EUR"\nprice', 'currency = "USD"\nprice'))
    return path


def test_no_price_is_named_of_an_offer_that_the_recommended_one_rents_too(decide: Decide, campaign_text: Text) -> None:
    text = campaign_text.candidate("fp32", "fp32", "o").candidate("bf16", "bf16", "o")
    dossier = decide("plain", text.offer("o", {}, more=HOURLY.format(price="1.00")).write(documents=700_000))
    assert dossier.decision.has_winner
    assert not [one for one in dossier.decision.would_change if one.key.startswith("change_price")]


def test_the_nearest_offer_that_the_recommended_one_cannot_rent_is_named(
    decide: Decide, campaign_text: Text, said: Say
) -> None:
    text = campaign_text.candidate("bf16", "bf16", "shared").candidate("fp32", "fp32", "shared", "own", "dear")
    text.offer("shared", {}, more=HOURLY.format(price="1.00"))
    text.offer("own", {30: "300.00"}).offer("dear", {30: "400.00"})
    dossier = decide("plain", text.write(documents=700_000))
    named = [one for one in changes(dossier, said) if "(now" in one]
    assert len(named) == 1
    assert re.fullmatch(r"A package of 30 days for fp32 under \d+\.\d\d EUR net \(now 300\.00 EUR\)\.", named[0])


def test_an_hour_under_the_named_price_wins_and_an_hour_at_it_does_not(
    tmp_path: Path, decide: Decide, campaign_text: Text, said: Say
) -> None:
    def written(price: str) -> Dossier:
        text = type(campaign_text)(tmp_path / f"{price}.toml")
        text.candidate("bf16", "bf16", "a").candidate("fp32", "fp32", "b")
        text.offer("a", {30: "7.00"}).offer("b", {}, more=HOURLY.format(price=price))
        return decide("plain", text.write(documents=640_000))  # type: ignore[no-any-return]

    dossier = written("0.3649")
    named = next(one for one in changes(dossier, said) if "(now" in one)
    found = re.fullmatch(r"An hour for fp32 under (0\.\d{4}) EUR net \(now 0\.3649 EUR\)\.", named)
    assert found is not None, named
    hours = next(row for row in dossier.tables["packages"].rows if "~b~hour" in row.key).cells["paid_hours"]
    step = 0.005 / float(dossier.figures[hours].value or 0)  # a bill is rounded to whole cents
    below, above = float(found[1]) - 2 * step, float(found[1]) + 2 * step
    winners = [
        next(row.labels["label"] for row in written(f"{price:.6f}").tables["candidates"].rows)
        for price in (below, above)
    ]
    assert winners == ["fp32", "bf16"]


def test_one_document_more_by_the_hour_says_what_the_next_step_costs(
    decide: Decide, campaign_text: Text, said: Say
) -> None:
    text = campaign_text.candidate("bf16", "bf16", "o").offer(
        "o", {}, more=HOURLY.format(price="1.50") + "billing_step_s = 7200\n"
    )
    dossier = decide("plain", text.write(documents=640_000))
    told = next(one for one in changes(dossier, said) if one.startswith("More than"))
    found = re.fullmatch(r"More than ([\d,]+) documents: bf16 then needs 2\.00 h more, for 3\.00 EUR net\.", told)
    assert found is not None, told
    most = int(found[1].replace(",", ""))
    paid = []
    for documents in (most, most + 1):
        again = decide("plain", text.write(documents=documents))
        row = next(row for row in again.tables["packages"].rows if row.labels["tariff"] == "hour")
        paid.append(again.figures[row.cells["price_net"]].value)
    assert int(paid[1]) - int(paid[0]) == 300


def test_the_declared_range_of_prices_names_where_another_is_recommended(
    decide: Decide, campaign_text: Text, said: Say
) -> None:
    text = campaign_text.candidate("bf16", "bf16", "a").candidate("fp32", "fp32", "b")
    text.offer("a", {3: "100.00"}).offer("b", {3: "112.50"})
    text.calendar = '[sensitivity]\nby = "the buyer"\nprice_percent = "10"\n'
    dossier = decide("plain", text.write())
    told = [
        one for one in changes(dossier, said) if one.startswith("Prices of the recommended offer: from 12.5 % more")
    ]
    assert len(told) == 1
    row = next(row for row in dossier.tables["sensitivity"].rows if row.key == "price")
    value = dossier.figures[row.cells["changes_up"]].value
    assert value == pytest.approx(12.5, abs=0.02)


def test_equivalents_priced_in_another_currency_name_rate_and_day(
    decide: Decide, campaign_text: Text, said: Say
) -> None:
    text = campaign_text.candidate("fp32", "fp32", "o").candidate("bf16", "bf16", "o").offer("o", {3: "100.00"})
    text.calendar = RATE
    dossier = decide("plain", in_dollars(text.write(top='currency = "EUR"')))
    assert not dossier.decision.has_winner
    assert "100.00 USD net" in said(dossier, dossier.decision.recommendation)
    told = [found[1] for one in reasons(dossier, said) if (found := CONVERTED.fullmatch(one))]
    assert told == ["92.00"]


@pytest.mark.parametrize(("chosen", "price"), [("fp32", ["276.00"]), ("bf16", [])])
def test_a_persons_choice_in_another_currency_names_rate_and_day_once(
    decide: Decide, campaign_text: Text, said: Say, chosen: str, price: list[str]
) -> None:
    text = campaign_text.candidate("fp32", "fp32", "dear").candidate("bf16", "bf16", "cheap")
    text.offer("dear", {3: "300.00"}).offer("cheap", {3: "100.00"})
    text.calendar = f'{RATE}[override]\ncandidate = "{chosen}"\nby = "J."\non = 2026-01-30\nbecause = "it is here"\n'
    dossier = decide("plain", in_dollars(text.write(top='currency = "EUR"')))
    record = [said(dossier, one) for one in dossier.decision.override]
    assert [found[1] for one in record if (found := CONVERTED.fullmatch(one))] == price
    assert [found[1] for one in reasons(dossier, said) if (found := CONVERTED.fullmatch(one))] == ["92.00"]


def test_what_misses_the_deadline_is_out_in_word_and_sentence(decide: Decide, campaign_text: Text, said: Say) -> None:
    text = campaign_text.candidate("bf16", "bf16", "o").offer("o", {3: "100.00"})
    dossier = decide("plain", text.write(documents=700_000, top='deadline_h = "1"'))
    row = next(row for row in dossier.tables["candidates"].rows if row.labels["label"] == "bf16")
    assert row.labels["status"] == "excluded"
    told = said(dossier, row.sentences[0])
    assert re.fullmatch(r"out: meets the rules, but misses the deadline of 1\.00 h by [\d.]+ h", told), told


def test_configurations_that_lack_the_same_are_named_in_one_sentence(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    gates = Gates(min_accepted_percent="95", subsets=[SubsetGate(subset="critical", min_accepted_percent="100")])
    alike = kit.variant(name="int8", outcomes=kit.bf16.outcomes)
    runs = kit(tmp_path / "runs", gates=gates, variants=[kit.fp32, kit.bf16, alike]).runs
    dossier = build_dossier([runs], campaign_text.candidate("a", "bf16").candidate("b", "int8").write())
    told = changes(dossier, said)
    assert [one for one in told if one.startswith("3 more")] == [
        "3 more accepted documents, 1 of them in critical, and each of these meets every rule: a, b."
    ]


def test_the_cost_of_a_corpus_says_how_many_documents_a_corpus_has(decide: Decide, campaign_text: Text) -> None:
    text = campaign_text.candidate("bf16", "bf16", "o").offer("o", {3: "100.00"})
    dossier = decide("plain", text.write(corpora=2, documents=1_234))
    view = View(dossier, Translator("en"), shipped_words(), "paper", 0)
    captions = [str(view.say_plain(one)).replace("\u00a0", " ") for one in dossier.decision.headline_captions]
    assert "per accepted corpus of 1,234 documents: 100.00 EUR paid, 2 corpora" in captions
