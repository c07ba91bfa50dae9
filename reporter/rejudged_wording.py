"""Sentences about runs whose answers were judged again; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

REJUDGED: dict[str, Wording] = {
    "notice_rejudged": say_counted(
        "Run {run} was judged again on {date} from its recorded answers ({file}): {changed} verdict differs from those "
        "made while measuring, and the newer ones count.",
        "Run {run} was judged again on {date} from its recorded answers ({file}): {changed} verdicts differ from those "
        "made while measuring, and the newer ones count.",
        by="changed",
    ),
    "notice_rejudged_protocol": say(
        "Run {run} was measured under protocol {before} and is judged under {after}: what is expected of the answers, "
        "or how they are judged, was changed after they were there."
    ),
    "notice_source_missing": say("{file} judges a run again that is not among the files; it is not used."),
    "notice_judged_again_later": say("{file} is not used: its run was judged again once more later."),
    "notice_judgement_unsealed": say("{file} is not used: judging again did not end."),
}
