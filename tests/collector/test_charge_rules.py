"""Charges, rentals and shares that would make the cost of a campaign wrong are refused with line and next step."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from collector.contract.campaign_file import read_campaign
from collector.contract.charge_rules import home_currency, weight
from collector.contract.errors import Finding, Refused
from collector.contract.money import MoneyError

HEAD = """\
format = 1
question = "Which machine?"
dossier_id = "SD-2026-001"
as_of = 2026-11-30
issued = 2026-11-30
documents_per_corpus = 200
[objective]
prefer = "cheapest"
[[candidate]]
id = "a"
label = "A"
variant = "int8"
device = "NVIDIA L40S"
offers = ["o1"]
[[candidate]]
id = "b"
label = "B"
variant = "fp16"
device = "NVIDIA L40S"
[[offer]]
id = "o1"
provider = "Example Cloud"
device = "NVIDIA L40S"
pricing_class = "quote"
currency = "EUR"
price_3_days = "540.00"
tax_percent = "19"
basis = "quoted"
source = "quote 17"
retrieved = 2026-11-20
valid_until = 2026-12-14
"""
RENTAL = """\
[[rental]]
id = "r1"
offer = "o1"
from = 2026-11-21T09:00:00Z
to = 2026-11-24T16:00:00+07:00
runs = ["run-1"]
"""
CHARGE = """\
[[charge]]
id = "c1"
invoice = "2026-17"
issuer = "Example Cloud"
line = "1"
on = 2026-11-25
amount = "540.00"
currency = "EUR"
description = "one package of 3 days"
rental = "r1"
"""
SHARES = """\
[allocation]
convention = "fixed"
weights = { a = "1/3", b = "2/3" }
reason = "agreed by contract"
"""


def findings(path: Path, text: str) -> list[Finding]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Refused) as refused:
        read_campaign(path)
    return refused.value.findings


def other(table: str, **changes: str) -> str:
    """A table with other values: `other(CHARGE, id='"c2"')`; an empty value removes the line."""
    lines = [line for line in table.splitlines() if line.partition(" =")[0] not in changes]
    return "\n".join([*lines, *(f"{key} = {value}" for key, value in changes.items() if value), ""])


def test_a_campaign_with_rental_charges_and_shares_is_read(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    tax = other(CHARGE, id='"c2"', line='"2"', amount='"102.60"', category='"tax"')
    credit = other(CHARGE, id='"c3"', line='"3"', amount='"-20.00"', category='"credit"', rental="", candidate='"a"')
    path.write_text(HEAD + RENTAL + CHARGE + tax + credit + SHARES, encoding="utf-8")
    campaign = read_campaign(path).campaign
    assert [charge.amount for charge in campaign.charges] == ["540.00", "102.60", "-20.00"]
    assert home_currency(campaign) == "EUR"


CASES = {
    "a charge id twice": (CHARGE + other(CHARGE, line='"2"'), "duplicate-id", "charge[1].id", 'the charge id "c1"'),
    "a rental id twice": (
        RENTAL + other(RENTAL, runs='["run-2"]'), "duplicate-id", "rental[1].id", 'the rental id "r1"'
    ),
    "an unknown rental": (
        other(CHARGE, rental='"r9"'), "unknown-rental", "charge[0].rental", '"r9", which is not in this file'
    ),
    "an unknown candidate": (
        other(CHARGE, rental="", candidate='"z"'), "unknown-candidate", "charge[0].candidate", '"z", which is not'
    ),
    "a rental of an unknown offer": (
        other(RENTAL, offer='"o9"') + CHARGE, "unknown-offer", "rental[0].offer", '"o9", which is not in this file'
    ),
    "two purposes": (other(CHARGE, candidate='"a"'), "two-purposes", "charge[0]", "for a rental and for a candidate"),
    "an end before the start": (
        other(RENTAL, to="2026-11-21T15:59:59+07:00") + CHARGE, "dates", "rental[0].to", "not after its start"
    ),
    "no time zone": (
        other(RENTAL, **{"from": "2026-11-21T09:00:00"}) + CHARGE, "no-time-zone", "rental[0].from", "no time zone"
    ),
    "a run of two rentals": (
        RENTAL + other(RENTAL, id='"r2"', to="2026-11-22T09:00:00Z") + CHARGE, "run-of-two-rentals",
        "rental[1].runs[0]", 'run run-1 is claimed by rental "r1"'
    ),
    "a positive credit": (other(CHARGE, category='"credit"'), "sign", "charge[0].amount", "a credit of 540.00 EUR"),
    "a negative tax": (
        other(CHARGE, category='"tax"', amount='"-1.00"'), "sign", "charge[0].amount", "category tax is negative"
    ),
    "decimals that the currency lacks": (
        '[[exchange_rate]]\ncurrency = "VND"\nrate = "0.00003"\non = 2026-11-20\nsource = "bank"\n'
        + other(CHARGE, amount='"10.5"', currency='"VND"'),
        "amount", "charge[0].amount", "10.5 has more decimals than VND has (0)",
    ),
    "a currency that is none": (other(CHARGE, currency='"EUX"'), "amount", "charge[0].currency", "no ISO 4217"),
    "a currency without a rate": (
        other(CHARGE, currency='"USD"'), "no-exchange-rate", "charge[0].currency", "and no rate is given"
    ),
    "shares beyond one": (
        CHARGE + SHARES.replace("2/3", "0.67"), "weights-sum", "allocation.weights", "the weights sum to 301/300"
    ),
    "a share that is none": (
        CHARGE + SHARES.replace("2/3", "1/0"), "weight", "allocation.weights.b", "1/0 divides by zero"
    ),
    "a share for nobody": (
        CHARGE + SHARES.replace('b = "2/3"', 'b = "1/3", z = "1/3"'), "unknown-candidate", "allocation.weights.z",
        'a weight is given to "z"',
    ),
    "a candidate without a share": (
        CHARGE + SHARES.replace(', b = "2/3"', ""), "no-weights", "allocation.weights", "no weight is given to b"
    ),
    "fixed without shares": (CHARGE + '[allocation]\nconvention = "fixed"\n', "no-weights", "allocation", "no weights"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_with_its_line_and_a_next_step(tmp_path: Path, name: str) -> None:
    """Each fault of charges, rentals and allocation is a finding of its rule at its own place."""
    text, rule, where, message = CASES[name]
    path = tmp_path / "campaign.toml"
    found = findings(path, HEAD + (text if "[[rental]]" in text else RENTAL + text))
    fault = next(finding for finding in found if finding.rule == rule)
    assert message in fault.message
    assert fault.next_step
    assert fault.file == path
    key = where.rpartition(".")[2].partition("[")[0]
    assert fault.line is not None
    line = path.read_text(encoding="utf-8").splitlines()[fault.line - 1]
    assert key in line or line.startswith("weights")


def test_a_duplicate_invoice_line_names_both_charges_and_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    found = findings(path, HEAD + RENTAL + CHARGE + other(CHARGE, id='"c2"', line='"1"', amount='"540.00"'))
    lines = path.read_text(encoding="utf-8").splitlines()
    first, second = (number for number, line in enumerate(lines, 1) if line == 'line = "1"')
    assert [finding.rule for finding in found] == ["duplicate-invoice-line"]
    assert found[0].line == second
    assert found[0].message == (
        f'line 1 of invoice 2026-17 of Example Cloud is here twice: as charge "c1" (line {first}) and as "c2" '
        f"(line {second})"
    )
    assert found[0].next_step == "remove one of the two: what was paid once counts once"


def test_the_same_line_number_of_another_invoice_or_issuer_is_another_line(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    more = other(CHARGE, id='"c2"', invoice='"2026-18"') + other(CHARGE, id='"c3"', issuer='"Other Cloud"')
    path.write_text(HEAD + RENTAL + CHARGE + more, encoding="utf-8")
    assert len(read_campaign(path).campaign.charges) == 3


def test_shares_are_exact_decimals_or_fractions() -> None:
    assert [weight(text) for text in ("1/3", "0.25", "1", "0")] == [Fraction(1, 3), Fraction(1, 4), 1, 0]
    for text in ("-0.1", "1/0", "½", "0.1e1", "1 / 3", ""):
        with pytest.raises(MoneyError):
            weight(text)
