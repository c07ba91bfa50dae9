"""Sentences about offers, bills, break-even and optional costs; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

OFFERS: dict[str, Wording] = {
    "offer_no_price": say("price unknown: it names no price, which is not zero"),
    "offer_incomplete": say("incomplete: its price leaves out {excludes}"),
    "offer_wrong_line": say("its arithmetic does not hold: {text} is printed as {printed}, computed {computed}"),
    "offer_wrong_sum": say(
        "its arithmetic does not hold: the lines of {days} days add up to {computed}, the printed price is {printed}"
    ),
    "offer_expired": say("it holds from {first} to {last}, not on {as_of}"),
    "offer_no_rate": say("in {currency}, and no exchange rate to {wanted} is given"),
    "offer_mismatch_device": say("it is for {offered}, not for {measured}"),
    "offer_mismatch_count": say("its node has {offered} cards, or too few are rented together; {measured} work"),
    "offer_mismatch_memory": say("it names {offered} GiB device memory, measured were {measured}"),
    "offer_mismatch_mig": say("its MIG profile is {offered}, measured was {measured}"),
    "offer_idle_cards": say_counted(
        "the node is rented whole: {idle} of {rented} cards is idle and paid for",
        "the node is rented whole: {idle} of {rented} cards are idle and paid for",
        by="idle",
    ),
    "offer_idle_minimum": say_counted(
        "{rented} cards are rented together at least: {idle} of them is idle and paid for",
        "{rented} cards are rented together at least: {idle} of them are idle and paid for",
        by="idle",
    ),
    "offer_per_card": say(
        "divided by its cards, {days} days are {amount} per card: a manner of speaking, no card is rented at it"
    ),
    "offer_per_card_hour": say(
        "divided by its cards, an hour is {amount} per card: a manner of speaking, no card is rented at it"
    ),
    "offer_by_the_hour": say(
        "{price} per hour, billed in steps of {step}, rounded up, at least {minimum} h; each amount is rounded once, "
        "half away from zero"
    ),
    "offer_storage": say(
        "{name}: {quantity} GiB over all hours paid, whether the machine runs or is stopped; a month is {month} h"
    ),
    "package_no_price": say("price unknown"),
    "line_idle_cards": say_counted("{cards} card idle", "{cards} cards idle", by="cards"),
}

HOURLY: dict[str, Wording] = {
    "recommend_package_hourly": say(
        "Rent {device} from {provider} by the hour, for {hours}, and run {label}: {net} net, {gross} with tax."
    ),
    "recommend_none_equivalent_priced_hourly": say(
        "No single best configuration: {labels} are equivalent in {criterion}, within {tie}. Each can be rented; "
        "{first} needs {hours} by the hour from {provider}: {net} net, {gross} with tax."
    ),
    "reason_other_offer_hourly": say(
        "The next best offer for {label}, from {provider}, costs {net} net for {hours} by the hour."
    ),
    "caption_price_hourly": say("net, {label}: {hours} by the hour"),
    "change_price_hourly": say("An hour for {label} under {price} net (now {quoted})."),
}

OPTIONAL: dict[str, Wording] = {
    "total_package": say("cheapest package of {provider}, net; this alone is ranked"),
    "total_without": say_counted(
        "without {lines} line that has no amount", "without {lines} lines that have no amount", by="lines"
    ),
    "energy_not_measured": say("no energy was measured"),
    "energy_measured": say("measured joules of processing, at {price} per kWh ({source})"),
    "staff_hours": say("{hours} h at {rate}"),
    "staff_hours_by": say("{hours} h at {rate}, stated by {by}"),
    "purchase_other_machine": say("the purchase is of {bought}, not of the machine measured"),
}

ROWS: dict[str, Wording] = {
    "cost_per_corpus": say_counted(
        "{paid} paid, {corpora} corpus accepted", "{paid} paid, {corpora} corpora accepted", by="corpora"
    ),
    "cost_not_defined": say("not defined: {paid} paid, 0 corpora accepted, since a rule is not met"),
    "cost_not_defined_incomplete": say("not defined: {paid} paid, 0 corpora accepted, since documents are missing"),
    "cost_not_defined_not_judged": say("not defined: {paid} paid, 0 corpora accepted, since nothing could be judged"),
    "package_expired": say("not valid on {date}"),
    "package_mismatch": say("not for the measured machine"),
    "package_deadline": say("misses the deadline"),
    "calendar_not_foreseen": say("not foreseen"),
}

COST: dict[str, Wording] = {**ROWS, **OFFERS, **HOURLY, **OPTIONAL}
