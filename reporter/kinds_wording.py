"""Sentences that differ with the kind of work and with what judges it; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

KINDS: dict[str, Wording] = {
    "subtitle_answers": say_counted(
        "Known answers, {documents} {role} question.", "Known answers, {documents} {role} questions.", by="documents"
    ),
    "subtitle_ranking": say_counted(
        "Ranking of candidates by generation, {documents} {role} query.",
        "Ranking of candidates by generation, {documents} {role} queries.",
        by="documents",
    ),
    "subtitle_embedding": say_counted(
        "Ranking of candidates by embedding, {documents} {role} query.",
        "Ranking of candidates by embedding, {documents} {role} queries.",
        by="documents",
    ),
    "limit_embedded": say(
        "Queries that have more than {tokens} tokens together with their candidates, the most tested."
    ),
    "gate_answers": say(
        "An answer is accepted only when it is one of the known ones; a number, when it lies within the tolerance of "
        "its question."
    ),
    "gate_ranking_ndcg": say("A ranking is accepted only when its nDCG over the first {k} places is at least {value}."),
    "gate_ranking_mrr": say(
        "A ranking is accepted only when the reciprocal of the first relevant candidate's place, looked for in the "
        "first {k} places, is at least {value}."
    ),
    "gate_ranking_recall": say(
        "A ranking is accepted only when at least the share {value} of all relevant candidates stands in the first {k} "
        "places."
    ),
    "gate_scorer_function": say(
        "An answer is accepted only when the protocol's own scorer says so: the function {scorer}."
    ),
    "gate_scorer_command": say(
        "An answer is accepted only when the protocol's own scorer says so: the command {scorer}."
    ),
}
