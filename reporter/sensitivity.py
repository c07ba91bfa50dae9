"""Sensitivity: the selection made again with one input wrong by its declared range, and where the answer changes.

Nothing is approximated: every value is what `select` says of changed inputs. The price, the hours and the documents of
the recommended configuration are followed; who would be recommended instead is told beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

import msgspec

from collector.contract.campaign import Campaign, Duration
from collector.contract.money import Money, decimal_text, exact, minor_digits, rounded
from collector.contract.offers import Offer
from collector.contract.protocol import Gates

from .configurations import Configuration
from .paired_statistics import Pairs
from .selection import Selection, Standing, select

Factor = Literal["price", "acceptance", "restarts", "utilisation", "volume"]
FACTORS: tuple[Factor, ...] = get_args(Factor)
Direction = Literal[-1, 1]

REACH = 10
"""A change of the answer is looked for up to this many times the declared range."""
STEPS = 4
"""Steps per declared range of that search; within the first step that changes the answer it is narrowed down."""
MONOTONE: frozenset[Factor] = frozenset({"price", "acceptance"})
"""Factors that can only make the recommended one worse in one direction: the search needs no steps."""
SEARCHED = 8
"""Configurations that may win and are followed in the search, the best first: later ones would have to pass all."""
MOST_DECIMALS = 9
"""Of an amount in a campaign file."""


class Inputs(NamedTuple):
    """What a selection is made from."""

    gates: Gates
    measured: Sequence[Configuration]
    reference: Configuration | None
    campaign: Campaign


class End(NamedTuple):
    """One end of a factor's range: what becomes of the recommended one, and who is recommended then.

    price is net, in the currency that everything is compared in. price and needed_ns are null where the recommended one
    could not be had: not accepted, or without a valid price.
    """

    change: Fraction
    price: Money | None
    needed_ns: Fraction | None
    is_accepted: bool
    is_same: bool
    instead: tuple[str, ...]
    """Keys of what is recommended then: one, several that are equivalent, or none; empty where it is the same."""


class Swing(NamedTuple):
    """One factor, varied alone. `range` is in the factor's unit: percent, percentage points or hours.

    changes_at: the smallest change in each direction (down, up) at which another is recommended or nobody is, exact to
    RESOLUTION; null where REACH ranges change nothing.
    """

    factor: Factor
    range: Fraction
    low: End
    high: End
    changes_at: tuple[Fraction | None, Fraction | None]
    instead: tuple[tuple[str, ...], tuple[str, ...]]


class Sensitivities(NamedTuple):
    """The swings of the declared factors, and the factors that nobody declared."""

    swings: list[Swing]
    undeclared: list[Factor]


def sensitivities(inputs: Inputs, selection: Selection) -> Sensitivities | None:
    """Return how the answer depends on each declared input; null where nothing is recommended or nothing declared."""
    winner, declared = selection.winner, inputs.campaign.sensitivity
    if winner is None or winner.configuration is None or declared is None:
        return None
    ranges = {factor: getattr(declared, _FIELDS[factor]) for factor in FACTORS}
    search = inputs._replace(measured=_followed(inputs, selection))
    swings = [_swing(search, winner, factor, exact(text)) for factor, text in ranges.items() if text is not None]
    undeclared = [factor for factor, text in ranges.items() if text is None]
    return Sensitivities(swings, undeclared)


_FIELDS: dict[Factor, str] = {
    "price": "price_percent", "acceptance": "accepted_points", "restarts": "restarts_h",
    "utilisation": "utilisation_percent", "volume": "volume_percent",
}  # fmt: skip


def _followed(inputs: Inputs, selection: Selection) -> list[Configuration]:
    """Return the best of those that may win and all that only a deadline or a price keeps out, in their order."""
    ranked = [s.key for s in selection.ranked[:SEARCHED]]
    kept_out = [s.key for s in selection.standings if s.has_qualified and s.blocked is not None][:SEARCHED]
    keys = {*ranked, *kept_out}
    keys |= {c.reference_key for c in inputs.measured if c.key in keys and c.reference_key is not None}
    return [c for c in inputs.measured if c.key in keys]


def _swing(inputs: Inputs, winner: Standing, factor: Factor, width: Fraction) -> Swing:
    down, up = (_first_change(inputs, winner, factor, width, direction) for direction in (-1, 1))
    return Swing(
        factor, width, _end(inputs, winner, factor, -width), _end(inputs, winner, factor, width),
        changes_at=(down[0], up[0]), instead=(down[1], up[1]),
    )  # fmt: skip


def _end(inputs: Inputs, winner: Standing, factor: Factor, change: Fraction) -> End:
    selection = _selected(inputs, winner, factor, change)
    own = next(s for s in selection.standings if s.key == winner.key)
    best = own.best if own.is_deliverable else None
    return End(
        change=change,
        price=best.compared.net if best else None,
        needed_ns=own.need.total_ns if own.need else None,
        is_accepted=own.has_qualified,
        is_same=_winner_key(selection) == winner.key,
        instead=_instead(selection, winner),
    )


def _winner_key(selection: Selection) -> str | None:
    return selection.winner.key if selection.winner else None


def _instead(selection: Selection, winner: Standing) -> tuple[str, ...]:
    if selection.winner is not None:
        return (selection.winner.key,) if selection.winner.key != winner.key else ()
    return tuple(standing.key for standing in selection.equivalents)


def _first_change(
    inputs: Inputs, winner: Standing, factor: Factor, width: Fraction, direction: int
) -> tuple[Fraction | None, tuple[str, ...]]:
    """Return the smallest change that gives another answer, and who is recommended then.

    The range is searched step by step, since whole packages make the answer jump; within a step by halving, down to
    RESOLUTION.
    """
    if width == 0:
        return None, ()
    step, last = width / STEPS, Fraction(0)
    lowest = _lowest(factor, inputs.campaign)
    for index in range(STEPS * REACH if factor in MONOTONE else 1, STEPS * REACH + 1):
        change = step * index
        if direction < 0:
            change = min(change, lowest)
        if _winner_key(_selected(inputs, winner, factor, direction * change)) != winner.key:
            return _halved(inputs, winner, factor, last, change, direction)
        if change == lowest and direction < 0:
            break
        last = change
    return None, ()


def _lowest(factor: Factor, campaign: Campaign) -> Fraction:
    """Return how far a factor can fall: almost its whole in percent, all restarts in hours, all documents in points."""
    if factor == "restarts":
        known = campaign.calendar.restarts
        return exact(known.hours) if known is not None else Fraction(0)
    return Fraction(100) if factor == "acceptance" else Fraction(99)


RESOLUTION = Fraction(1, 100)
"""Of a factor's unit: to this a change of the answer is narrowed down."""


def _halved(
    inputs: Inputs, winner: Standing, factor: Factor, same: Fraction, other: Fraction, direction: int
) -> tuple[Fraction, tuple[str, ...]]:
    """Return the change rounded to the resolution, on the side where the answer is another."""
    grid = RESOLUTION
    low, high = same // grid, -(-other // grid)
    while high - low > 1:
        middle = (low + high) // 2
        if _winner_key(_selected(inputs, winner, factor, direction * middle * grid)) != winner.key:
            high = middle
        else:
            low = middle
    change = direction * high * grid
    return change, _instead(_selected(inputs, winner, factor, change), winner)


def _selected(inputs: Inputs, winner: Standing, factor: Factor, change: Fraction) -> Selection:
    changed = _CHANGES[factor](inputs, winner, change)
    return select(changed.gates, changed.measured, changed.reference, changed.campaign)


def _price(inputs: Inputs, winner: Standing, percent: Fraction) -> Inputs:
    """The prices and fees of the offer that is recommended; the others stay."""
    assert winner.best is not None
    chosen = winner.best.offer.id
    offers = [_repriced(o, 1 + percent / 100) if o.id == chosen else o for o in inputs.campaign.offers]
    return inputs._replace(campaign=msgspec.structs.replace(inputs.campaign, offers=offers))


def _repriced(offer: Offer, factor: Fraction) -> Offer:
    def scaled(text: str | None, *, digits: int = minor_digits(offer.currency)) -> str | None:
        if text is None:
            return None
        return decimal_text(max(0, rounded(exact(text) * factor * 10**digits)), digits)

    return msgspec.structs.replace(
        offer,
        price_3_days=scaled(offer.price_3_days),
        price_7_days=scaled(offer.price_7_days),
        price_30_days=scaled(offer.price_30_days),
        # rates are multiplied before they are rounded, so they keep the decimals that a bill does not show
        price_hour=scaled(offer.price_hour, digits=MOST_DECIMALS),
        fees=[
            msgspec.structs.replace(fee, amount=scaled(fee.amount, digits=MOST_DECIMALS) or "0") for fee in offer.fees
        ],
        quote_lines=[],  # the arithmetic of the quote was judged before; a changed price is no quote
    )


def _acceptance(inputs: Inputs, winner: Standing, points: Fraction) -> Inputs:
    """The documents accepted of the recommended one, and of each of its subsets, by whole documents."""

    def moved(accepted: int, documents: int) -> int:
        return min(documents, max(0, accepted + int(points * documents / 100)))

    def changed(one: Configuration) -> Configuration:
        if one.key != winner.key or one.accepted is None:
            return one
        return one._replace(
            accepted=moved(one.accepted, one.expected_documents),
            subsets={name: (moved(right, count), count) for name, (right, count) in one.subsets.items()},
            pairs=one.pairs and _moved_pairs(one.pairs, moved(one.accepted, one.expected_documents) - one.accepted),
        )

    return _with_configurations(inputs, changed)


def _moved_pairs(pairs: Pairs, count: int) -> Pairs:
    """Return the pairs with so many more (or fewer) documents accepted: those that agree with the reference first."""
    right, lost, gained, neither = pairs
    if count < 0:
        first = min(-count, right)
        second = min(-count - first, gained)
        return Pairs(right - first, lost + first, gained - second, neither + second)
    first = min(count, lost)
    second = min(count - first, neither)
    return Pairs(right + first, lost - first, gained + second, neither - second)


def _utilisation(inputs: Inputs, winner: Standing, percent: Fraction) -> Inputs:
    """The processing time of every configuration, longer or shorter alike."""

    def changed(one: Configuration) -> Configuration:
        return one._replace(corpus_ns=None if one.corpus_ns is None else one.corpus_ns * (1 + percent / 100))

    return _with_configurations(inputs, changed)


def _with_configurations(inputs: Inputs, changed: Callable[[Configuration], Configuration]) -> Inputs:
    measured = [changed(one) for one in inputs.measured]
    by_key = {one.key: one for one in measured}
    reference = inputs.reference
    if reference is not None:
        # the same object where it is measured: `select` tells the reference by identity
        reference = by_key.get(reference.key) or changed(reference)
    return inputs._replace(measured=measured, reference=reference)


def _restarts(inputs: Inputs, winner: Standing, hours: Fraction) -> Inputs:
    """The calendar's hours of restarts, never below none."""
    calendar = inputs.campaign.calendar
    known = calendar.restarts
    base = exact(known.hours) if known is not None else Fraction(0)
    wanted = max(Fraction(0), base + hours)
    digits = MOST_DECIMALS + 2  # a quarter of a range has two decimals more
    text = decimal_text(int(wanted * 10**digits), digits)
    duration = (
        msgspec.structs.replace(known, hours=text)
        if known is not None
        else Duration(hours=text, basis="assumed", by="sensitivity")
    )
    changed = msgspec.structs.replace(calendar, restarts=duration)
    return inputs._replace(campaign=msgspec.structs.replace(inputs.campaign, calendar=changed))


def _volume(inputs: Inputs, winner: Standing, percent: Fraction) -> Inputs:
    """The documents of a corpus; the number of corpora stays."""
    campaign = inputs.campaign
    documents = max(1, rounded(campaign.documents_per_corpus * (1 + percent / 100)))
    return inputs._replace(campaign=msgspec.structs.replace(campaign, documents_per_corpus=documents))


_CHANGES: dict[Factor, Callable[[Inputs, Standing, Fraction], Inputs]] = {
    "price": _price, "acceptance": _acceptance, "restarts": _restarts, "utilisation": _utilisation, "volume": _volume,
}  # fmt: skip
