"""The campaign file of a generated campaign: a candidate per configuration; offers, rental and invoices per card."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from generated_grid import Card, Grid

HEAD = """\
# GENERATED together with its records by tests/benchmarks/generate_records.py: nothing here was measured or quoted.
format = 1
question = "GENERATED records: which card and variant reads the documents for the least money?"
dossier_id = "GENERATED"
as_of = 2026-06-30
issued = 2026-06-30
corpora_wanted = 40
documents_per_corpus = 200000
deadline_h = "400"

[objective]
prefer = "cheapest"
tie_percent = "2"

[allocation]
convention = "proportional_usage"
idle = "separate"
reason = "cause and effect"

[sensitivity]
by = "the generator"
price_percent = "10"
accepted_points = "2"
restarts_h = "6"
utilisation_percent = "15"
volume_percent = "20"

[calendar]
preparation = { hours = "6", basis = "assumed", by = "the generator" }
evaluation = { hours = "3.5", basis = "assumed", by = "the generator" }
"""
MONTHLY = ("310.00", "584.50", "911.25", "1190.00", "1648.40")


def write_campaign_file(
    path: Path, grid: Grid, runs: Sequence[tuple[Card, str, dt.datetime, dt.datetime]]
) -> None:  # fmt: skip
    """Write campaign.toml beside the runs: each configuration a candidate, each card two offers, a rental, invoices."""
    parts = [HEAD]
    for index, (card, _, _, _) in enumerate(runs):
        parts += [_candidate(card, index, name, batch, concurrency) for name, batch, concurrency in _cells(grid)]
        parts += [_offer(card, index, "net"), _offer(card, index, "gross")]
    for index, (card, _, began, ended) in enumerate(runs):
        parts += [_rental(card, index, began, ended), *_charges(card, index)]
    parts.append(_charge("shared", "S-1", "1", "77.77", "archive of all records", ""))
    path.write_text("\n".join(parts), encoding="utf-8")


def _cells(grid: Grid) -> list[tuple[str, int, int]]:
    return [(variant.name, cell.batch, cell.concurrency) for variant in grid.variants for cell in grid.cells]


def _candidate(card: Card, index: int, variant: str, batch: int, concurrency: int) -> str:
    letter = "abcde"[index]
    name = f"{letter}-{variant}-b{batch}-c{concurrency}"
    return (
        f'[[candidate]]\nid = "{name}"\nlabel = "{letter.upper()} {variant} b{batch} c{concurrency}"\n'
        f'variant = "{variant}"\nbatch = {batch}\nconcurrency = {concurrency}\ndevice = "{card.name}"\n'
        f'offers = ["{card.slug}-net", "{card.slug}-gross"]\n'
    )


def _offer(card: Card, index: int, kind: str) -> str:
    month = float(MONTHLY[index]) * (1.19 if kind == "gross" else 1)
    return (
        f'[[offer]]\nid = "{card.slug}-{kind}"\nprovider = "Generated Provider {kind}"\ndevice = "{card.name}"\n'
        f'pricing_class = "reserved"\ncurrency = "EUR"\nprice_3_days = "{month / 7.1:.2f}"\n'
        f'price_7_days = "{month / 3.4:.2f}"\nprice_30_days = "{month:.2f}"\nprices_are = "{kind}"\n'
        f'tax_percent = "19"\nbasis = "example"\nsource = "generated"\nretrieved = 2026-06-01\n'
        f"valid_until = 2026-07-31\n"
    )


def _rental(card: Card, index: int, began: dt.datetime, ended: dt.datetime) -> str:
    start, end = began - dt.timedelta(minutes=37 + index), ended + dt.timedelta(minutes=11 + 3 * index)
    return (
        f'[[rental]]\nid = "rental-{card.slug}"\noffer = "{card.slug}-net"\n'
        f"from = {start:%Y-%m-%dT%H:%M:%SZ}\nto = {end:%Y-%m-%dT%H:%M:%SZ}\n"
    )


def _charges(card: Card, index: int) -> list[str]:
    rental = f'rental = "rental-{card.slug}"\n'
    invoice, paid = f"R-{index + 1}", float(MONTHLY[index])
    return [
        _charge(f"use-{index}", invoice, "1", f"{paid / 7.1:.2f}", "rental of three days", rental),
        _charge(f"disk-{index}", invoice, "2", f"{3.33 + index:.2f}", "storage", rental),
        _charge(f"tax-{index}", invoice, "3", f"{paid / 7.1 * 0.19:.2f}", "value added tax", rental, "tax"),
        _charge(
            f"help-{index}", invoice, "4", "19.99", "support for one candidate",
            f'candidate = "{"abcde"[index]}-fp32-b1-c1"\n',
        ),
    ]  # fmt: skip


def _charge(name: str, invoice: str, line: str, amount: str, text: str, of: str, category: str = "usage") -> str:
    return (
        f'[[charge]]\nid = "{name}"\ninvoice = "{invoice}"\nissuer = "Generated Provider"\nline = "{line}"\n'
        f'on = 2026-06-28\namount = "{amount}"\ncurrency = "EUR"\ncategory = "{category}"\n'
        f'description = "{text}"\nbasis = "example"\n{of}'
    )
