"""Sentences about what the pairs of documents show and can decide; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

STATISTICS: dict[str, Wording] = {
    "paired_no_difference_shown": say("no difference shown"),
    "paired_lower": say("fewer accepted than the reference"),
    "paired_higher": say("more accepted than the reference"),
    "margin_accept": say("loses less than {points} points, also among other documents like these"),
    "margin_reject": say("loses more than {points} points, also among other documents like these"),
    "margin_inconclusive": say("whether other documents like these would stay within {points} points is open"),
    "margin_inconclusive_needs": say_counted(
        "whether other documents like these would stay within {points} points is open: to show it, an equally good "
        "variant needs {needed} document",
        "whether other documents like these would stay within {points} points is open: to show it, an equally good "
        "variant needs {needed} documents",
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
        "{label}: the rule is applied to the {documents} documents counted. Whether other documents like these would "
        "stay within its {points} points is open: to show it, an equally good variant needs {needed} document.",
        "{label}: the rule is applied to the {documents} documents counted. Whether other documents like these would "
        "stay within its {points} points is open: to show it, an equally good variant needs {needed} documents.",
        by="needed",
    ),
}
