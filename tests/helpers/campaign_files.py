"""A campaign file of one question, and offers for it: what tests of plans and rentals write beside a protocol."""

from __future__ import annotations

TEST_CPU = "Test CPU (1 core)"
HEAD = """format = 1
question = "Which?"
dossier_id = "D-1"
as_of = 2026-03-01
issued = 2026-03-01
documents_per_corpus = 100
deadline_h = "{deadline}"
[objective]
prefer = "cheapest"
"""
_OFFER = """[[offer]]
id = "{name}"
provider = "P"
device = "{device}"
pricing_class = "quote"
currency = "EUR"
{prices}
tax_percent = "20"
basis = "{basis}"
source = "quote 1"
retrieved = 2026-02-20
valid_until = {until}
"""


def offer(
    name: str, *, prices: str = 'price_3_days = "72.00"', device: str = TEST_CPU, basis: str = "quoted",
    until: str = "2026-03-31",
) -> str:  # fmt: skip
    """Return one [[offer]]; `prices` are lines of their own."""
    return _OFFER.format(name=name, prices=prices, device=device, basis=basis, until=until)
