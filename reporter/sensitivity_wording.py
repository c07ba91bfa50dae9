"""Sentences about inputs that may be wrong; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

SENSITIVITY: dict[str, Wording] = {
    "sensitivity_undeclared": say("No range was declared, so it was not varied."),
    "sensitivity_stays": say("the recommendation stays, also at {times} times the range."),
    "sensitivity_up": say("from {change} more on, {label} is recommended."),
    "sensitivity_up_none": say("from {change} more on, nothing is recommended alone any more."),
    "sensitivity_up_documents": say_counted(
        "from {change} document more on, {label} is recommended.",
        "from {change} documents more on, {label} is recommended.",
        by="change",
    ),
    "sensitivity_up_documents_none": say_counted(
        "from {change} document more on, nothing is recommended alone any more.",
        "from {change} documents more on, nothing is recommended alone any more.",
        by="change",
    ),
    "sensitivity_down": say("from {change} less on, {label} is recommended."),
    "sensitivity_down_none": say("from {change} less on, nothing is recommended alone any more."),
    "sensitivity_down_documents": say_counted(
        "from {change} document less on, {label} is recommended.",
        "from {change} documents less on, {label} is recommended.",
        by="change",
    ),
    "sensitivity_down_documents_none": say_counted(
        "from {change} document less on, nothing is recommended alone any more.",
        "from {change} documents less on, nothing is recommended alone any more.",
        by="change",
    ),
    "sensitivity_convention": say(
        "by the convention chosen, {label} bears {low} to {high} of what the campaign cost; the total paid and the "
        "recommendation stay."
    ),
}
