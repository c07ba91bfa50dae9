"""Sentences about what the pairs of documents show and can decide; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

STATISTICS: dict[str, Wording] = {
    "paired_no_difference_shown": say("no difference shown"),
    "paired_lower": say("fewer accepted than the reference"),
    "paired_higher": say("more accepted than the reference"),
    "paired_lower_alone": say("fewer accepted than the reference: beyond chance alone, not among all compared"),
    "paired_higher_alone": say("more accepted than the reference: beyond chance alone, not among all compared"),
    "margin_accept": say("stays within {points} points also among other documents like these"),
    "margin_reject": say("loses more than {points} points also among other documents like these"),
    "margin_inconclusive": say("within {points} points among other documents like these: open"),
    "margin_inconclusive_needs": say_counted(
        "within {points} points among other documents like these: open, {needed} document would show it",
        "within {points} points among other documents like these: open, {needed} documents would show it",
        by="needed",
    ),
    "subset_supports": say("supports only <= {supported}"),
    "caution_few_documents": say_counted(
        "Caution: {documents} document is little evidence. A variant as good as the reference here could still lose up "
        "to {smallest} among other documents like it.",
        "Caution: {documents} documents are little evidence. A variant as good as the reference here could still lose "
        "up to {smallest} among other documents like these.",
        by="documents",
    ),
    "caveat_margin": say_counted(
        "{label}: the rule is applied to the {documents} documents counted. To show a loss within {points} points "
        "among all documents like these takes at least {needed} document.",
        "{label}: the rule is applied to the {documents} documents counted. To show a loss within {points} points "
        "among all documents like these takes at least {needed} documents.",
        by="needed",
    ),
}
