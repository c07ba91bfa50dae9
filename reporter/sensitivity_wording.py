"""Sentences about inputs that may be wrong; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say

SENSITIVITY: dict[str, Wording] = {
    "sensitivity_undeclared": say("No range was declared, so it was not varied."),
    "sensitivity_stays": say("The recommendation stays, also at {times} times the range."),
    "sensitivity_up": say("From {change} more on, {label} is recommended."),
    "sensitivity_up_none": say("From {change} more on, nothing is recommended alone any more."),
    "sensitivity_up_points": say("From {change} points more on, {label} is recommended."),
    "sensitivity_up_points_none": say("From {change} points more on, nothing is recommended alone any more."),
    "sensitivity_down": say("From {change} less on, {label} is recommended."),
    "sensitivity_down_none": say("From {change} less on, nothing is recommended alone any more."),
    "sensitivity_down_points": say("From {change} points less on, {label} is recommended."),
    "sensitivity_down_points_none": say("From {change} points less on, nothing is recommended alone any more."),
    "sensitivity_convention": say(
        "By the convention chosen, {label} carries {low} to {high} of what the campaign cost; the total paid and the "
        "recommendation stay."
    ),
}
