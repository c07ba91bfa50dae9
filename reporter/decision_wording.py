"""Sentences of page one and of the verdict column: what is recommended, why, and what would change it."""

from __future__ import annotations

from .messages import Wording, say, say_counted

VERDICTS: dict[str, Wording] = {
    "verdict_recommended": say("recommended"),
    "verdict_recommended_not_confirmed": say("recommended by validation, not confirmed on test"),
    "verdict_equivalent": say("equivalent to the best, within {tie}"),
    "verdict_more": say("meets the rules, {difference} more"),
    "verdict_less_headroom": say("meets the rules, {difference} less headroom"),
    "verdict_slower": say("meets the rules, {difference} slower"),
    "verdict_fewer_corpora": say_counted(
        "meets the rules, {difference} corpus fewer", "meets the rules, {difference} corpora fewer", by="difference"
    ),
    "verdict_meets_rules": say("meets the rules"),
    "verdict_no_price": say("meets the rules, no price given"),
    "verdict_expired": say("meets the rules, no quote valid on {date}"),
    "verdict_mismatch": say("meets the rules, no offer is for the measured machine"),
    "verdict_deadline": say("out: meets the rules, but misses the deadline of {deadline} by {hours}"),
    "verdict_no_duration": say("meets the rules, time not measured"),
    "verdict_no_headroom": say("meets the rules, headroom not measured"),
    "verdict_reference": say("reference"),
    "verdict_reference_more": say("reference; {difference} more"),
    "verdict_reference_no_price": say("reference; no price given"),
    "verdict_reference_expired": say("reference; no quote valid on {date}"),
    "verdict_reference_mismatch": say("reference; no offer is for the measured machine"),
    "verdict_reference_deadline": say("reference; misses the deadline of {deadline} by {hours}"),
    "verdict_reference_rejected": say("reference; fails its own rules: {accepted} accepted, {needed} needed"),
    "verdict_rejected_lost": say("rejected: {lost} lost, {allowed} allowed"),
    "verdict_rejected_accepted": say("rejected: {accepted} accepted, {needed} needed"),
    "verdict_rejected_subset": say("rejected: {subset} {accepted}, {needed} needed"),
    "verdict_rejected_incomplete": say("rejected: {returned} of {expected} documents returned"),
    "verdict_rejected_no_reference": say("not judged: the reference was not completed"),
    "verdict_failed": say("failed: {cause} in {phase}"),
    "verdict_failed_unknown": say("no result: no pass came to its end"),
    "verdict_not_measured": say("not measured"),
}

RECOMMENDATIONS: dict[str, Wording] = {
    "recommend_package": say_counted(
        "Rent {device} from {provider} for {packages} package of {days} days and run {label}: {net} net, {gross} with "
        "tax.",
        "Rent {device} from {provider} for {packages} packages of {days} days and run {label}: {net} net, {gross} with "
        "tax.",
        by="packages",
    ),
    "recommend_configuration": say("Run {label} on {device}; no price was given for it."),
    "recommend_none_equivalent": say(
        "No single best configuration: {labels} are equivalent in {criterion}, within {tie}."
    ),
    "recommend_none_equivalent_priced": say_counted(
        "No single best configuration: {labels} are equivalent in {criterion}, within {tie}. Each can be rented; "
        "{first} needs {packages} package of {days} days from {provider}: {net} net, {gross} with tax.",
        "No single best configuration: {labels} are equivalent in {criterion}, within {tie}. Each can be rented; "
        "{first} needs {packages} packages of {days} days from {provider}: {net} net, {gross} with tax.",
        by="packages",
    ),
    "recommend_none_qualifies": say_counted(
        "None is recommended: the one measured configuration does not meet the rules.",
        "None is recommended: of {measured} measured configurations, none meets every rule.",
        by="measured",
    ),
    "recommend_none_priced": say_counted(
        "No winner is declared: {qualified} configuration meets the rules, but has no usable price.",
        "No winner is declared: {qualified} configurations meet the rules, none of them has a usable price.",
        by="qualified",
    ),
    "recommend_none_in_time": say("None is recommended: what meets the rules does not finish within the deadline."),
    "recommend_none_comparable": say("No winner is declared: {criterion} was not measured for what meets the rules."),
    "recommend_none_without_campaign": say_counted(
        "No winner is declared: {qualified} of {measured} configurations meets the rules, and neither prices nor an "
        "objective were given.",
        "No winner is declared: {qualified} of {measured} configurations meet the rules, and neither prices nor an "
        "objective were given.",
        by="qualified",
    ),
    "recommend_none_candidate": say(
        "No winner is declared: what meets the rules is no candidate of the campaign file."
    ),
    "recommend_none_reference": say(
        "No winner is declared: the reference was not completed, so no loss can be judged."
    ),
    "recommend_none_measured": say("None is recommended: no configuration was measured to the end."),
    "recommend_none_records_changed": say_counted(
        "None is recommended: {files} record file was changed or damaged after it was written.",
        "None is recommended: {files} record files were changed or damaged after they were written.",
        by="files",
    ),
}

REASONS: dict[str, Wording] = {
    "reason_open_records": say("The run is not finished: its records are open and can still change."),
    "reason_machine_busy": say("The machine was busy while measuring: times and calendar may be too long."),
    "reason_quality": say("It meets every rule: {accepted} of {documents} documents accepted."),
    "reason_quality_lost": say(
        "It meets every rule: {accepted} of {documents} documents accepted, {lost} lost against the reference, "
        "{allowed} allowed."
    ),
    "reason_quality_validation": say("On validation it met every rule: {accepted} of {documents} documents accepted."),
    "reason_quality_lost_validation": say(
        "On validation it met every rule: {accepted} of {documents} documents accepted, {lost} lost against the "
        "reference, {allowed} allowed."
    ),
    "reason_headroom": say("It leaves {headroom} of {capacity} free at its peak."),
    "reason_time": say("It needs {needed} of the {paid} paid, the whole calendar included."),
    "reason_linear": say(
        "The processing time assumes that {wanted} documents are processed at the rate of the {measured} measured."
    ),
    "reason_other_offer": say_counted(
        "The next best offer for {label}, from {provider}, costs {net} net for {packages} package of {days} days.",
        "The next best offer for {label}, from {provider}, costs {net} net for {packages} packages of {days} days.",
        by="packages",
    ),
    "reason_runner_up_more": say("{label} costs {difference} more."),
    "reason_only_one": say("No other candidate both meets the rules and can be rented."),
    "reason_rejected": say_counted(
        "{rejected} configuration does not meet the rules.",
        "{rejected} configurations do not meet the rules.",
        by="rejected",
    ),
    "reason_failed": say_counted(
        "{failed} configuration failed and stays listed.",
        "{failed} configurations failed and stay listed.",
        by="failed",
    ),
    "reason_objective": say("The objective is {criterion}; what lies within {tie} of the best counts as equivalent."),
    "reason_no_speed_preference": say("Speed, bit width and memory alone are no order of preference."),
}

CAPTIONS: dict[str, Wording] = {
    # The first line of two stands beside the number, the second below it.
    "caption_accepted": say("of {documents}\ndocuments accepted"),
    "caption_accepted_subset": say("of {documents}\ndocuments accepted; {subset} {accepted} of {subset_documents}"),
    "caption_accepted_reference": say("of {documents}\ndocuments accepted (reference {reference})"),
    "caption_accepted_reference_subset": say(
        "of {documents}\ndocuments accepted (reference {reference}); {subset} {accepted} of {subset_documents}"
    ),
    "caption_accepted_by_reference": say("of {documents}\ndocuments accepted by the reference {label}"),
    "caption_peak": say("{scope} at its peak, {label}"),
    "caption_peak_of": say("of {capacity} {scope} at its peak, {label}"),
    "caption_peak_prompt": say("{scope} at its peak, longest prompt {tokens} tokens"),
    "caption_peak_of_prompt": say("of {capacity} {scope} at its peak, longest prompt {tokens} tokens"),
    "caption_needed": say("for {wanted} documents, the whole calendar included; assumes linear"),
    "caption_needed_exact": say("for {wanted} documents, the whole calendar included"),
    "caption_cost": say_counted(
        "per accepted corpus of {size} documents: {paid} paid, {corpora} corpus",
        "per accepted corpus of {size} documents: {paid} paid, {corpora} corpora",
        by="corpora",
    ),
    "caption_price": say_counted(
        "net, {label}: {packages} package of {days} days",
        "net, {label}: {packages} packages of {days} days",
        by="packages",
    ),
    "caption_corpus": say("for the {documents} measured documents, {label}"),
    "caption_qualified": say_counted(
        "of {measured}\nconfiguration meets the rules", "of {measured}\nconfigurations meet the rules", by="measured"
    ),
}

FINDINGS: dict[str, Wording] = {
    "finding_some_lose": say_counted(
        "{losing} of {compared} variant loses more than the rule allows",
        "{losing} of {compared} variants lose more than the rule allows",
        by="compared",
    ),
    "finding_all_lose": say_counted(
        "The one variant compared loses more than the rule allows",
        "All {compared} variants lose more than the rule allows",
        by="compared",
    ),
    "finding_none_loses": say_counted(
        "The variant does not lose more than the rule allows",
        "None of {compared} variants loses more than the rule allows",
        by="compared",
    ),
    "finding_none_loses_but": say_counted(
        "The variant stays within the rule on lost documents, but fails another rule",
        "None of {compared} variants loses more than the rule allows; failing another rule: {failing}",
        by="compared",
    ),
    "finding_some_lose_others_fail": say_counted(
        "{losing} of {compared} variant loses more than the rule allows; failing another rule only: {failing}",
        "{losing} of {compared} variants lose more than the rule allows; failing another rule only: {failing}",
        by="compared",
    ),
    "finding_no_loss_rule": say_counted(
        "One variant against the reference; the protocol sets no limit to the loss",
        "{compared} variants against the reference; the protocol sets no limit to the loss",
        by="compared",
    ),
    "finding_nothing_paired": say("No variant could be compared with the reference"),
}

WOULD_CHANGE: dict[str, Wording] = {
    "change_price": say("A package of {days} days for {label} under {price} net (now {quoted})."),
    "change_volume": say("More than {documents} documents: {label} then needs another package."),
    "change_rule_admits": say("A rule that allows {lost} of {documents} documents lost would admit {label}."),
    "change_margin_lost": say_counted(
        "{documents} more document lost would reject {label}.",
        "{documents} more documents lost would reject {label}.",
        by="documents",
    ),
    "change_margin_accepted": say_counted(
        "{documents} accepted document less would reject {label}.",
        "{documents} accepted documents less would reject {label}.",
        by="documents",
    ),
    "change_margin_subset": say_counted(
        "{documents} accepted document less in {subset} would reject {label}.",
        "{documents} accepted documents less in {subset} would reject {label}.",
        by="documents",
    ),
    "change_needs_loss": say_counted(
        "{documents} more accepted document, and {label} meets the rule on the loss.",
        "{documents} more accepted documents, and {label} meets the rule on the loss.",
        by="documents",
    ),
    "change_needs_accepted": say_counted(
        "{documents} more accepted document, and {label} meets the rule for all documents.",
        "{documents} more accepted documents, and {label} meets the rule for all documents.",
        by="documents",
    ),
    "change_needs_subset": say_counted(
        "{documents} more accepted document in {subset}, and {label} meets that rule.",
        "{documents} more accepted documents in {subset}, and {label} meets that rule.",
        by="documents",
    ),
    "change_deadline": say("A deadline of {hours} or more would let {label} finish in time."),
    "change_price_given": say("A price valid on {date} for {label}."),
    "change_offer_machine": say("An offer for the measured machine of {label}, or a measurement on the offered one."),
    "change_campaign": say("A campaign file with an objective, candidates and offers."),
    "change_candidate": say("Naming {label} as a candidate in the campaign file."),
    "change_tie": say("A tie width under {tie}: {label} would then be best alone."),
    "change_failure": say("A run of {label} that ends: it failed ({cause})."),
    "change_reference": say("A completed run of the reference."),
    "change_test_documents": say("New test documents in a new protocol, and a choice that they confirm."),
    "change_records": say("The record files as they were written, in place of the changed ones."),
}

DECISION: dict[str, Wording] = {**VERDICTS, **RECOMMENDATIONS, **REASONS, **CAPTIONS, **FINDINGS, **WOULD_CHANGE}
