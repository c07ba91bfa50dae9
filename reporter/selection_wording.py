"""Sentences of the choice: requirements, ties, undecided rules, what a person decided, missing runs."""

from __future__ import annotations

from .messages import Wording, say, say_counted

SELECTION: dict[str, Wording] = {
    # verdicts: {stands} is a word: `meets the rules`, `reference`, or that it is out although it meets the rules
    "verdict_headroom": say(
        "{stands} its peak takes {peak} of {capacity} ({percent}), {wanted} must stay free and {free} does"
    ),
    "verdict_memory": say("{stands} its peak takes {peak}, the offered card has {capacity} ({percent})"),
    "verdict_headroom_not_shown": say("{stands} free memory not shown: no peak or no card size was read"),
    "verdict_first_token": say(
        "{stands} first token after {measured} for {percentile} percent of the requests, {limit} allowed"
    ),
    "verdict_answer": say("{stands} answer after {measured} for {percentile} percent of the requests, {limit} allowed"),
    "verdict_first_token_not_shown": say_counted(
        "{stands} time to the first token not shown for {percentile} percent: {requests} request, {needed} needed",
        "{stands} time to the first token not shown for {percentile} percent: {requests} requests, {needed} needed",
        by="requests",
    ),
    "verdict_answer_not_shown": say_counted(
        "{stands} time to the answer not shown for {percentile} percent: {requests} request, {needed} needed",
        "{stands} time to the answer not shown for {percentile} percent: {requests} requests, {needed} needed",
        by="requests",
    ),
    "verdict_impossible_peak": say(
        "{stands} its peak of {peak} exceeds the card's {capacity} ({percent}): one of the two is wrong"
    ),
    "verdict_incomplete": say("{stands}; no offer is complete: {offers}"),
    "verdict_arithmetic": say("{stands}; no quote adds up: {offers}"),
    "verdict_no_rate": say("{stands}; no exchange rate into {currency}: {offers}"),
    "verdict_coverage": say("{stands} {judged} of {documents} documents judged, others {most}: not ranked"),
    "verdict_reference_fails": say(
        "not judged: {reference}, the reference on its card, lost {lost} against the first, {allowed} allowed"
    ),
    "verdict_reference_rejected_subset": say(
        "reference; fails its own rules: {subset} {accepted} accepted, {needed} needed"
    ),
    "verdict_undecided_lost": say("undecided: {lost} lost of {documents}, {allowed} allowed; the interval holds both"),
    "verdict_undecided_lost_more": say_counted(
        "undecided: {lost} lost of {documents}, {allowed} allowed; about {more} more document would decide",
        "undecided: {lost} lost of {documents}, {allowed} allowed; about {more} more documents would decide",
        by="more",
    ),
    "verdict_undecided_accepted": say(
        "undecided: {accepted} of {documents} accepted, {needed} needed; the interval holds both"
    ),
    "verdict_undecided_subset": say(
        "undecided: {subset} {accepted} of {documents} accepted, {needed} needed; the interval holds both"
    ),
    "verdict_undecided_accepted_more": say_counted(
        "undecided: {accepted} of {documents} accepted, {needed} needed; about {more} more document would decide",
        "undecided: {accepted} of {documents} accepted, {needed} needed; about {more} more documents would decide",
        by="more",
    ),
    "verdict_undecided_subset_more": say(
        "undecided: {subset} {accepted} of {documents} accepted, {needed} needed; about {more} more there would decide"
    ),
    "verdict_preferred": say("equivalent to the best, within {tie}; preferred: reloaded and explained"),
    "verdict_chosen": say("chosen by {by}; the rules recommend it too"),
    "verdict_chosen_instead": say("chosen by {by}, not by the rules"),
    "verdict_chosen_against": say("chosen by {by} although it does not meet the rules"),
    # page one
    "recommend_none_undecided": say_counted(
        "None is recommended: of {measured} measured configuration, none meets every rule beyond doubt; undecided: "
        "{undecided}.",
        "None is recommended: of {measured} measured configurations, none meets every rule beyond doubt; undecided: "
        "{undecided}.",
        by="measured",
    ),
    "recommend_none_feasible": say_counted(
        "None is recommended: {qualified} configuration meets the rules, but not what the objective requires of memory "
        "and time.",
        "None is recommended: {qualified} configurations meet the rules, none of them what the objective requires of "
        "memory and time.",
        by="qualified",
    ),
    "recommend_preferred": say(
        "No single best configuration: {labels} are equivalent in {criterion}, within {tie}. Of these, {label} is "
        "preferred: it was reloaded and can be explained."
    ),
    "recommend_preferred_priced": say_counted(
        "No single best configuration: {labels} are equivalent in {criterion}, within {tie}. Of these, {label} is "
        "preferred: it was reloaded and can be explained. Rent {device} from {provider} for {packages} package of "
        "{days} days: {net} net, {gross} with tax.",
        "No single best configuration: {labels} are equivalent in {criterion}, within {tie}. Of these, {label} is "
        "preferred: it was reloaded and can be explained. Rent {device} from {provider} for {packages} packages of "
        "{days} days: {net} net, {gross} with tax.",
        by="packages",
    ),
    "recommend_preferred_priced_hourly": say(
        "No single best configuration: {labels} are equivalent in {criterion}, within {tie}. Of these, {label} is "
        "preferred: it was reloaded and can be explained. Rent {device} from {provider} for {hours}: {net} net, "
        "{gross} with tax."
    ),
    "reason_tie_preferred": say_counted(
        "After a reload in a fresh process {equal} of {checked} answer of {label} was equal, the artefact is the same "
        "by digest, and what was loaded is what was asked for. The difference in {criterion} does not decide.",
        "After a reload in a fresh process {equal} of {checked} answers of {label} were equal, the artefact is the "
        "same by digest, and what was loaded is what was asked for. The difference in {criterion} does not decide.",
        by="checked",
    ),
    "reason_tie_none": say(
        "None of them was both reloaded with equal answers and read back as asked for, so none is preferred. The "
        "difference in {criterion} does not decide."
    ),
    "reason_tie_several": say(
        "Reloaded with equal answers and read back as asked for: {labels}. None of these is preferred over the other, "
        "and the difference in {criterion} does not decide."
    ),
    "reason_valid_until": say("The price holds until {date}."),
    "reason_converted": say("Converted, that is {net} net, at {rate} {home} per {currency} of {date}."),
    "reason_valid_until_first": say("The first of the quotes used ends on {date}."),
    "reason_requirement_headroom": say("{free} of {capacity} stay free at its peak, {wanted} required."),
    "reason_requirement_first_token": say(
        "The first token of {percentile} percent of the requests came within {measured}, {limit} allowed."
    ),
    "reason_requirement_answer": say(
        "The answer to {percentile} percent of the requests came within {measured}, {limit} allowed."
    ),
    "reason_complete_configurations": say(
        "{left} and {right} differ in more than one factor: they are compared as complete configurations, and their "
        "difference is attributed to none."
    ),
    "reason_missing_runs": say_counted(
        "{missing} planned pass has no finished run; it is named with the failures.",
        "{missing} planned passes have no finished run; they are named with the failures.",
        by="missing",
    ),
    # what a person decided
    "override_chosen": say("{by} chose {label} on {date}: {because}."),
    "override_instead": say("The rules recommend {label} instead."),
    "override_same": say("The rules recommend the same."),
    "override_instead_equivalent": say("The rules found {labels} equivalent."),
    "override_instead_nobody": say("The rules recommend nobody."),
    "override_package": say_counted(
        "{device} from {provider} for {packages} package of {days} days: {net} net, {gross} with tax.",
        "{device} from {provider} for {packages} packages of {days} days: {net} net, {gross} with tax.",
        by="packages",
    ),
    "override_package_hourly": say("{device} from {provider} for {hours}: {net} net, {gross} with tax."),
    "override_no_package": say("No package of it may win, so no price is printed for it."),
    "override_against_lost": say(
        "{label} does not meet the rules that were fixed in advance: {lost} lost, {allowed} allowed."
    ),
    "override_against_lost_undecided": say(
        "{label} does not meet the rules that were fixed in advance beyond doubt: {lost} lost, {allowed} allowed."
    ),
    "override_against_accepted": say(
        "{label} does not meet the rules that were fixed in advance: {accepted} accepted, {needed} needed."
    ),
    "override_against_subset": say(
        "{label} does not meet the rules that were fixed in advance: {subset} {accepted} accepted, {needed} needed."
    ),
    "override_against_incomplete": say(
        "{label} does not meet the rules that were fixed in advance: {returned} of {expected} documents returned."
    ),
    "override_against_unjudged": say(
        "Nothing shows that {label} meets the rules that were fixed in advance: it was not judged to the end."
    ),
    "override_against_requirements": say("{label} does not keep to what the objective requires:"),
    "reason_examples_elsewhere": say(
        "The example prices of this dossier stand in its section on packages; this page prints none."
    ),
    # what would change the answer
    "change_headroom": say("{label} on a card with at least {capacity}, its peak being {peak}."),
    "change_first_token": say("A limit of {measured} or more for the first token would let {label} pass."),
    "change_answer": say("A limit of {measured} or more for an answer would let {label} pass."),
    "change_more_requests": say(
        "A run of {label} with at least {needed} requests, so that {percentile} percent of them can be told."
    ),
    "change_documents_decide": say_counted(
        "About {documents} more document could decide the loss of {label}, if it is as good as the reference.",
        "About {documents} more documents could decide the loss of {label}, if it is as good as the reference.",
        by="documents",
    ),
    "change_documents_decide_share": say_counted(
        "About {documents} more document could decide whether {label} has enough accepted, if the share stays so.",
        "About {documents} more documents could decide whether {label} has enough accepted, if the share stays so.",
        by="documents",
    ),
    "change_documents_decide_subset": say_counted(
        "About {documents} more document in {subset} could decide whether {label} has enough accepted "
        "there, if the share stays so.",
        "About {documents} more documents in {subset} could decide whether {label} has enough accepted "
        "there, if the share stays so.",
        by="documents",
    ),
    "change_undecided": say("More documents: the interval of {label} holds the limit of {rule}."),
    "change_interval_rejects": say(
        "Another variant in place of {label}: its whole interval lies beyond the limit of {rule}."
    ),
    "change_impossible_peak": say("A run of {label} whose peak and card size agree."),
    "change_coverage": say("A run of {label} in which every document is judged."),
    "change_offer_whole": say("An offer for {label} that leaves nothing out, adds up and has an exchange rate."),
    "change_needs_all": say_counted(
        "{documents} more accepted document, {of_subset} of them in {subset}, and {label} meets every rule.",
        "{documents} more accepted documents, {of_subset} of them in {subset}, and {label} meets every rule.",
        by="documents",
    ),
    "change_needs_all_several": say_counted(
        "{documents} more accepted document, {of_subset} of them in {subset}, and each of these meets every rule: "
        "{label}.",
        "{documents} more accepted documents, {of_subset} of them in {subset}, and each of these meets every rule: "
        "{label}.",
        by="documents",
    ),
    "change_needs_loss_several": say_counted(
        "{documents} more accepted document, and each of these meets the rule on the loss: {label}.",
        "{documents} more accepted documents, and each of these meets the rule on the loss: {label}.",
        by="documents",
    ),
    "change_needs_accepted_several": say_counted(
        "{documents} more accepted document, and each of these meets the rule for all documents: {label}.",
        "{documents} more accepted documents, and each of these meets the rule for all documents: {label}.",
        by="documents",
    ),
    "change_needs_subset_several": say_counted(
        "{documents} more accepted document in {subset}, and each of these meets that rule: {label}.",
        "{documents} more accepted documents in {subset}, and each of these meets that rule: {label}.",
        by="documents",
    ),
    "change_varied_up": say("{varied}: from {change} more on, {label} is recommended."),
    "change_varied_up_tie": say("{varied}: from {change} more on, {labels} are equivalent."),
    "change_varied_up_none": say("{varied}: from {change} more on, nothing can be recommended."),
    "change_varied_down": say("{varied}: from {change} less on, {label} is recommended."),
    "change_varied_down_tie": say("{varied}: from {change} less on, {labels} are equivalent."),
    "change_varied_down_none": say("{varied}: from {change} less on, nothing can be recommended."),
    "change_volume_hourly": say(
        "More than {documents} documents: {label} then needs {hours} more, for {difference} net."
    ),
    "change_reload": say("A check after a reload that only one of {labels} passes."),
    "not_confirmed_undecided": say(
        "NOT CONFIRMED. The {documents} test documents, which had no part in the choice, are too few for the interval "
        "of {label} to decide the rule on {rule}. Do not rent on this recommendation alone."
    ),
    # rows
    "requirement_headroom": say("{free} of {capacity} free at the peak, {wanted} wanted"),
    "requirement_first_token": say("first token within {measured} for {percentile} percent, {limit} allowed"),
    "requirement_answer": say("answer within {measured} for {percentile} percent, {limit} allowed"),
    "requirement_not_shown": say("not shown: {requests} requests, {needed} needed for {percentile} percent"),
    "requirement_not_read": say("not shown: no peak or no card size was read"),
    "missing_failed": say("every attempt failed: {cause}"),
    "missing_interrupted": say("interrupted before its end; `collector run` with --resume measures it again"),
    "missing_not_begun": say("not begun"),
    "missing_skipped": say("left out: {cause}"),
    "notice_peak_over_memory": say(
        "{label}: the peak of {peak} exceeds the {capacity} of its card ({percent}). One of the two is wrong, and it "
        "cannot win."
    ),
    "notice_missing": say_counted(
        "{missing} pass of the frozen plan has no finished run: {names}.",
        "{missing} passes of the frozen plan have no finished run: {names}.",
        by="missing",
    ),
    "notice_missing_candidates": say("Candidates that were never measured: {names}."),
    "gate_reference": say(
        "Counted against {reference}: {labels}. It is the reference measured on the same card where there is one, else "
        "the first of the campaign; a card's own reference is judged against the first."
    ),
    "gate_interval": say(
        "The protocol decides by interval: a rule is met only where the whole interval keeps to it, not met "
        "where none of it does, and undecided otherwise. What is undecided cannot win."
    ),
}

SELECTION_WORDS: dict[str, Wording] = {
    "stands_meets": say("meets the rules"),
    "stands_reference": say("reference"),
    "stands_out": say("out: meets the rules, but"),
    "stands_out_reference": say("out: reference, but"),
    "varied_price": say("Prices of the recommended offer"),
    "varied_restarts": say("Hours of restarts"),
    "varied_utilisation": say("Processing time of every configuration"),
    "varied_volume": say("Documents per corpus"),
}
