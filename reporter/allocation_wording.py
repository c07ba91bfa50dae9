"""Sentences about what was paid and how it is split; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

ALLOCATION: dict[str, Wording] = {
    "allocation_paid": say_counted(
        "Really paid for this campaign: {total}, in {charges} charge, tax and credits included.",
        "Really paid for this campaign: {total}, in {charges} charges, tax and credits included.",
        by="charges",
    ),
    "allocation_rate": say(
        "Amounts stay in their currency; who bears more is compared at {rate} {home} per {currency}, on {day}, "
        "source: {source}."
    ),
    "convention_direct": say(
        "Convention {id}, version {version}: a charge goes whole to the candidate that it names, or to the only "
        "one that ran on its rental; every other charge stays unallocated."
    ),
    "convention_even": say(
        "Convention {id}, version {version}: a charge that names no candidate is split in equal parts among all "
        "that ran on its rental, idle time included; one without a rental among all."
    ),
    "convention_proportional_usage": say(
        "Convention {id}, version {version}: a charge that names no candidate is split by measured device time on"
        " its rental: every pass counts, with loading, warm-up and failed attempts. A charge without a rental "
        "follows the device time of all rentals."
    ),
    "convention_proportional_direct": say(
        "Convention {id}, version {version}: a charge that names no candidate is split in proportion to the "
        "charges that name one."
    ),
    "convention_fixed": say(
        "Convention {id}, version {version}: a charge that names no candidate is split by the weights that the "
        "campaign file publishes."
    ),
    "convention_accepted_output": say(
        "Convention {id}, version {version}: a charge that names no candidate is split by corpora completed and "
        "accepted. What failed bears no shared cost."
    ),
    "convention_unallocated": say(
        "Convention {id}, version {version}: a charge that names no candidate is not split; it stays on one common "
        "line."
    ),
    "idle_separate": say("Rented time that no pass used is a line of its own."),
    "idle_even": say("Rented time that no pass used is split in equal parts."),
    "idle_weighted": say("Rented time that no pass used follows the time that was used."),
    "allocation_reason": say("Why this convention, as the campaign file says: {reason}."),
    "allocation_no_reason": say("The campaign file gives no reason for this convention."),
    "allocation_line_idle": say("Idle: rented device time that no pass used. It was paid all the same."),
    "allocation_line_unallocated": say("Unallocated: what this convention gives to nobody. It was paid all the same."),
    "allocation_no_usage": say(
        "{convention} is not defined for {charges}: nothing was measured on what it paid for. The amount stays "
        "unallocated; no other convention steps in."
    ),
    "allocation_no_accepted_output": say(
        "{convention} is not defined for {charges}: no corpus was completed and accepted. The amount stays "
        "unallocated; no other convention steps in."
    ),
    "allocation_no_direct_cost": say(
        "{convention} is not defined for {charges}: no charge names one of those that share it. The amount stays "
        "unallocated; no other convention steps in."
    ),
    "allocation_no_weights": say(
        "{convention} is not defined for {charges}: the campaign file gives no weights. The amount stays "
        "unallocated; no other convention steps in."
    ),
    "rental_runs": say(
        "The campaign file names {runs} for rental {rental}, and no pass of these records ran there under that name: "
        "the run is not here, or says itself that it ran on another."
    ),
    "rental_unused": say("No pass of these records ran on rental {rental}: all of it is idle."),
    "rental_full": say("Rental {rental} was busy all the time: reserved and used time cost the same."),
    "rental_overrun": say(
        "More time was measured on rental {rental} than was rented, {busy} in all: its dates or its runs are wrong."
    ),
    "rental_outside": say_counted(
        "{passes} pass lies outside the dates of rental {rental} by its machine's clock; it counts all the same.",
        "{passes} passes lie outside the dates of rental {rental} by their machine's clock; they count all the same.",
        by="passes",
    ),
    "rental_unended": say_counted(
        "{passes} pass on rental {rental} has no end; it counts to its last record.",
        "{passes} passes on rental {rental} have no end; they count to their last record.",
        by="passes",
    ),
    "shapley_too_many": say("Shapley's mean is computed for up to {most}."),
}
