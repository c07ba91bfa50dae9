"""Sentences about inputs that may be wrong; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

SENSITIVITY: dict[str, Wording] = {
    "sensitivity_nothing_recommended": say(
        "Ranges were declared, but the rules recommend nothing alone, so there is no recommendation to vary."
    ),
    "sensitivity_undeclared": say("No range was declared, so it was not varied."),
    "sensitivity_stays": say("the recommendation stays, also at {times} times the range."),
    "sensitivity_up": say("from {change} more on, {label} is recommended."),
    "sensitivity_up_documents": say_counted(
        "from {change} document more on, {label} is recommended.",
        "from {change} documents more on, {label} is recommended.",
        by="change",
    ),
    "sensitivity_up_tie": say("from {change} more on, {labels} are equivalent."),
    "sensitivity_up_documents_tie": say_counted(
        "from {change} document more on, {labels} are equivalent.",
        "from {change} documents more on, {labels} are equivalent.",
        by="change",
    ),
    "sensitivity_up_none": say("from {change} more on, nothing can be recommended."),
    "sensitivity_up_documents_none": say_counted(
        "from {change} document more on, nothing can be recommended.",
        "from {change} documents more on, nothing can be recommended.",
        by="change",
    ),
    "sensitivity_down": say("from {change} less on, {label} is recommended."),
    "sensitivity_down_documents": say_counted(
        "from {change} document less on, {label} is recommended.",
        "from {change} documents less on, {label} is recommended.",
        by="change",
    ),
    "sensitivity_down_tie": say("from {change} less on, {labels} are equivalent."),
    "sensitivity_down_documents_tie": say_counted(
        "from {change} document less on, {labels} are equivalent.",
        "from {change} documents less on, {labels} are equivalent.",
        by="change",
    ),
    "sensitivity_down_none": say("from {change} less on, nothing can be recommended."),
    "sensitivity_down_documents_none": say_counted(
        "from {change} document less on, nothing can be recommended.",
        "from {change} documents less on, nothing can be recommended.",
        by="change",
    ),
    "sensitivity_convention": say(
        "by the convention chosen, {label} bears {low} to {high} of what the campaign cost; the total paid and the "
        "recommendation stay."
    ),
}
