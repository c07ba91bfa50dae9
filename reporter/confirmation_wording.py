"""Sentences about the test documents: confirmed or not, and how often they were looked at."""

from __future__ import annotations

from .messages import Wording, say, say_counted

CONFIRMATIONS: dict[str, Wording] = {
    "confirmed": say(
        "Confirmed on {documents} test documents that had no part in the choice: {accepted} accepted, every rule met."
    ),
    "confirmed_lost": say(
        "Confirmed on {documents} test documents that had no part in the choice: {accepted} accepted, {lost} lost "
        "against the reference, {allowed} allowed; every rule met."
    ),
    "not_confirmed_lost": say(
        "NOT CONFIRMED. On the {documents} test documents, which had no part in the choice, {label} lost {lost} "
        "against the reference, {allowed} allowed. Do not rent on this recommendation alone."
    ),
    "not_confirmed_accepted": say(
        "NOT CONFIRMED. Of the {documents} test documents, which had no part in the choice, {label} had {accepted} "
        "accepted, {needed} needed. Do not rent on this recommendation alone."
    ),
    "not_confirmed_subset": say(
        "NOT CONFIRMED. Of the {documents} test documents in {subset}, which had no part in the choice, {label} had "
        "{accepted} accepted, {needed} needed. Do not rent on this recommendation alone."
    ),
    "not_confirmed_incomplete": say(
        "NOT CONFIRMED. {label} returned {returned} of the {documents} test documents. Do not rent on this "
        "recommendation alone."
    ),
    "not_confirmed_failed": say(
        "NOT CONFIRMED. On the test documents {label} failed: {cause} in {phase}. Do not rent on this recommendation "
        "alone."
    ),
    "not_confirmed_failed_unknown": say(
        "NOT CONFIRMED. On the test documents the pass of {label} did not end. Do not rent on this recommendation "
        "alone."
    ),
    "not_confirmed_reference": say(
        "NOT CONFIRMED. On the test documents the reference was not completed, so no loss could be judged."
    ),
    "not_finished": say("Not confirmed yet: the run on the test documents is not finished."),
    "other_choice": say("Not confirmed: {put} was put to the test documents, not {label}."),
    "other_environment": say(
        "Not confirmed: {label} was put to the test documents in another environment than the one that was validated."
    ),
    "looked_at_again": say(
        "Not an independent confirmation: the test documents were looked at {looks} times, and are validation "
        "documents since the second look. {label} meets every rule on them too: {accepted} of {documents} accepted."
    ),
    "judged_again": say(
        "Not a confirmation of the first choice: answers were judged again under a rule written after the look at the "
        "test documents. {label} meets every rule on them as judged now: {accepted} of {documents} accepted."
    ),
    "judged_by_later_rule": say(
        "Answers were judged again under a rule written after the look at the test documents, so this is no test of "
        "the first choice."
    ),
    "answers_without_verdict": say_counted(
        "{answers} answer has no verdict, because the scorer failed on it; it is not accepted.",
        "{answers} answers have no verdict, because the scorer failed on them; none is accepted.",
        by="answers",
    ),
    "nothing_recommended": say("Nothing is recommended, so the test documents confirm nothing."),
    "nothing_recommended_put": say(
        "Nothing is recommended, so the test documents confirm nothing; of {label} they show {accepted} of {documents} "
        "accepted."
    ),
    "not_looked_at": say_counted(
        "Not confirmed yet: the {documents} test document kept back for it has not been looked at.",
        "Not confirmed yet: the {documents} test documents kept back for it have not been looked at.",
        by="documents",
    ),
    "no_test_documents": say("Not confirmed: the protocol keeps back no test documents for it."),
}

LOOKS: dict[str, Wording] = {
    "notice_look": say("The test documents were looked at once, on {date}."),
    "notice_looks": say(
        "The test documents were looked at {looks} times; since the second look they are validation documents."
    ),
    "notice_looks_missing": say(
        "A run records look number {look} at the test documents, but the runs given here are {runs}: others are "
        "missing."
    ),
    "notice_look_repeated": say(
        "{runs} runs each record look number {look} at the test documents: they did not know of one another."
    ),
    "notice_look_unrecorded": say(
        "The run {run} on test documents does not begin with a frozen choice: nothing shows that the choice came first."
    ),
    "notice_choice_file": say(
        "The choice file given here is not the one that the last look at the test documents names."
    ),
    "notice_choice_records": say(
        "The choice put to the test documents was made from other records than the validation runs given here."
    ),
    "notice_validation_after_look": say(
        "A validation run began after the first look at the test documents: what was chosen may have known them."
    ),
}

CONFIRMATION: dict[str, Wording] = {**CONFIRMATIONS, **LOOKS}
