"""Sentences about batches and about weights as they really are; part of `wording.SENTENCES`."""

from __future__ import annotations

from .messages import Wording, say, say_counted

BATCHES: dict[str, Wording] = {
    "notice_scripted": say("Answers and times of {runs} come from a script, not from a model: no measurement at all."),
    "batch_failed": say("{cause} in {phase}"),
    "batch_reduced_to": say("batch reduced to {batch}"),
    "batch_not_tried": say("not tried: a smaller batch ran out of memory"),
    "limit_batch_memory": say(
        "A batch of {failed} on {device}: it ran out of memory; {largest} is the largest that ran there."
    ),
    "limit_batch_failed": say(
        "A batch of {failed} on {device}: it failed ({cause}); {largest} is the largest that ran there."
    ),
    "notice_batch_check": say_counted(
        "{label}: of {checked} documents answered alone and in a batch of {batch}, {differing} differs.",
        "{label}: of {checked} documents answered alone and in a batch of {batch}, {differing} differ.",
        by="differing",
    ),
    "notice_batch_answers": say_counted(
        "{label}: in a batch of {batch}, {different} of {documents} answers differs from one request at a time; "
        "verdicts changed: {flipped}.",
        "{label}: in a batch of {batch}, {different} of {documents} answers differ from one request at a time; "
        "verdicts changed: {flipped}.",
        by="different",
    ),
}

WEIGHTS: dict[str, Wording] = {
    "weights_claim_wrong": say(
        "{label}: the library's own footprint method says {claimed}; the tensors, found one by one, take {bytes}: "
        "wrong by factor {factor}."
    ),
    "weights_against": say(
        "{label}, {bits} bits by name, takes {bytes} for its weights: {share} of {reference}, where the bits alone "
        "would promise {promised}."
    ),
    "weights_largest": say("Its largest part, {part}, is stored as {dtype} and takes {bytes}."),
    "limit_not_loaded": say("{label} on this machine: it did not load ({cause})."),
}
