"""Every sentence that selection and assembly can say: key -> English message with named placeholders.

Rendering: `gettext(message)`, or `ngettext(message, plural, n)` with n the value of the parameter named by `by`, then
`.format(**parameters)`. Each parameter is printed by its first character: `#` a figure (counts, points and ratios as
bare numbers; bytes, durations, percent and money with their unit), `@` a word of WORDS, `~` an ISO date, anything
else as it is. Extraction: keywords `say` and `say_counted:1,2`.
"""

from __future__ import annotations

from string import Formatter

from .allocation_wording import ALLOCATION
from .cost_wording import COST
from .dossier import Sentence
from .kinds_wording import KINDS
from .messages import Wording, say, say_counted
from .rejudged_wording import REJUDGED
from .selection_wording import SELECTION, SELECTION_WORDS
from .sensitivity_wording import SENSITIVITY
from .series_wording import BATCHES, WEIGHTS
from .statistics_wording import STATISTICS


def placeholders(message: str) -> set[str]:
    """Return the names between braces."""
    return {name for _, name, _, _ in Formatter().parse(message) if name is not None}


def sentence(key: str, /, **parameters: str) -> Sentence:
    """Return the sentence.

    Raises KeyError for an unknown key and ValueError where the parameters are not those of the message.
    """
    wording = SENTENCES[key]
    wanted = placeholders(wording.message)
    if wording.plural is not None:
        wanted |= placeholders(wording.plural) | {str(wording.by)}
    if wanted != set(parameters):
        raise ValueError(f"{key} wants {sorted(wanted)}, got {sorted(parameters)}")
    return Sentence(key=key, parameters=parameters)


VERDICTS = {
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
    "verdict_deadline": say("meets the rules, misses the deadline by {hours}"),
    "verdict_no_duration": say("meets the rules, time not measured"),
    "verdict_no_headroom": say("meets the rules, headroom not measured"),
    "verdict_reference": say("reference"),
    "verdict_reference_more": say("reference; {difference} more"),
    "verdict_reference_no_price": say("reference; no price given"),
    "verdict_reference_expired": say("reference; no quote valid on {date}"),
    "verdict_reference_mismatch": say("reference; no offer is for the measured machine"),
    "verdict_reference_deadline": say("reference; misses the deadline by {hours}"),
    "verdict_reference_rejected": say("reference; fails its own rules: {accepted} accepted, {needed} needed"),
    "verdict_rejected_lost": say("rejected: {lost} lost, {allowed} allowed"),
    "verdict_rejected_accepted": say("rejected: {accepted} accepted, {needed} needed"),
    "verdict_rejected_subset": say("rejected: {subset} {accepted}, {needed} needed"),
    "verdict_rejected_incomplete": say("rejected: {returned} of {expected} documents returned"),
    "verdict_rejected_no_reference": say("not judged: the reference was not completed"),
    "verdict_failed": say("failed: {cause} in {phase}"),
    "verdict_failed_unknown": say("failed: the pass did not end"),
    "verdict_not_measured": say("not measured"),
}

RECOMMENDATIONS = {
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

REASONS = {
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
        "The processing time assumes that {wanted} documents take as long, one by one, as the {measured} measured."
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

CONFIRMATIONS = {
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

CAPTIONS = {
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
        "per accepted corpus, a full set of documents: {paid} paid, {corpora} corpus",
        "per accepted corpus, a full set of documents: {paid} paid, {corpora} corpora",
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

FINDINGS = {
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

WOULD_CHANGE = {
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

LIMITS = {
    "limit_prompt": say("Prompts longer than {tokens} tokens, the longest tested."),
    "limit_language": say("Other languages than {languages}."),
    "limit_language_unstated": say("Any particular language: the documents do not state theirs."),
    "limit_one_request": say("More than one request at a time: batch and concurrency were 1 throughout."),
    "limit_load": say("Batches above {batch} and concurrency above {concurrency}."),
    "limit_devices": say("Other devices than {devices}, other hosts, other drivers."),
    "limit_stage_test": say("How the choice does on unseen documents: the test set was not looked at."),
    "limit_test_again": say(
        "How the choice does on unseen documents: the test documents were looked at {looks} times."
    ),
    "limit_stage_pilot": say("Anything final: the runs are pilot runs on development documents."),
    "limit_texts": say("Other texts than the {documents} documents of this protocol; results relate to them alone."),
    "limit_repetitions": say_counted(
        "How much a repetition varies: variants were measured {repetitions} time.",
        "How much further repetitions vary: variants were measured {repetitions} times.",
        by="repetitions",
    ),
    "limit_repetitions_fewest": say_counted(
        "How much a repetition varies: not every variant was measured more than {repetitions} time.",
        "How much further repetitions vary: not every variant was measured more than {repetitions} times.",
        by="repetitions",
    ),
    "limit_no_repeat": say("How stable the reference is: it was not run twice."),
    "limit_example_prices": say("What anything costs: at least one price is an example, made up to show the form."),
    "limit_no_prices": say("What anything costs: no price was given."),
    "limit_fine_tuning": say("Anything about fine-tuning or training."),
    "limit_installed": say("That a provider's machine has the model installed, or runs it alike."),
    "limit_parallel": say("Several machines side by side: packages are counted one after the other."),
    "limit_factors": say("Which factor makes the difference between {left} and {right}: they differ in more than one."),
}

GATES = {
    "gate_required": say("A document is accepted only when all required fields are right: {fields}."),
    "gate_lost": say(
        "At most {points} percentage points lost against the reference {reference}: {allowed} of {documents} documents."
    ),
    "gate_accepted": say("At least {percent} percent of all documents accepted: {needed} of {documents}."),
    "gate_subset": say("At least {percent} percent accepted in {subset}: {needed} of {documents}."),
    "gate_lost_plain": say("At most {points} percentage points lost against the reference {reference}."),
    "gate_accepted_plain": say("At least {percent} percent of all documents accepted."),
    "gate_subset_plain": say("At least {percent} percent of the documents in {subset} accepted."),
    "gate_whole_documents": say(
        "The rules are judged in whole documents, on the first repetition. Intervals stand beside them as a caveat and "
        "do not decide."
    ),
    "gate_none": say("The protocol sets no acceptance rule for a configuration."),
}

NOTICES = {
    "notice_set_aside": say_counted(
        "{lines} line of {file} was set aside, first line {first}: {rule}.",
        "{lines} lines of {file} were set aside, first line {first}: {rule}.",
        by="lines",
    ),
    "notice_open_file": say("{file} is open: its run was not finished, and its tail is unprotected."),
    "notice_torn_tail": say("The last line of {file} is torn; it was left out."),
    "notice_newer_file": say("{file} has a newer format and was set aside whole; upgrade gpu-dossier to read it."),
    "notice_noise": say(
        "The reference, run twice on {documents} documents, changed its verdict on {flipped} of them: differences of "
        "that size show nothing."
    ),
    "notice_noise_of": say(
        "{label}, run twice on {documents} documents, changed its verdict on {flipped} of them: differences of that "
        "size show nothing."
    ),
    "notice_noise_none_of": say("{label}, run twice on {documents} documents, judged all of them alike."),
    "notice_noise_none": say("The reference, run twice on {documents} documents, judged all of them alike."),
    "notice_unparseable": say("{label}: {unparseable} of {documents} answers could not be read as the format asked."),
    "notice_truncated": say("{label}: {truncated} of {documents} answers were cut off at the output limit."),
    "notice_chain": say("The hash chain of {file} is broken at line {line}: its records may have been changed."),
    "notice_duplicates": say_counted(
        "{records} record was given twice and is counted once.",
        "{records} records were given twice and are counted once.",
        by="records",
    ),
    "notice_origin": say("Origin of {label}: {origin}."),
    "notice_deviation": say("{label} did not load as requested: {deviation}."),
    "notice_objective_before": say("The objective was declared before the first run."),
    "notice_objective_after": say("The objective was not declared before the first run, or was changed since."),
    "notice_not_stable": say("Not stable: {label} passes or fails the rule on {rule} depending on the repetition."),
    "notice_disturbed": say("{label}: others used the machine while it was measured; its times may be too long."),
    "notice_unsteady": say("{label}: speed had not settled while measuring."),
    "notice_plans": say_counted(
        "One plan is pooled here.", "{plans} plans of one protocol are pooled here.", by="plans"
    ),
    "notice_example_prices": say("EXAMPLE PRICES, made up to show the form: {offers}."),
    "notice_unknown_offer": say("{candidate} names no offer; its price is unknown."),
    "notice_expired": say("The quote {offer} holds from {first} to {last} and cannot win on {as_of}."),
    "notice_mismatch_device": say("Offer {offer} is for {offered}, not for {measured}; it is left out for {label}."),
    "notice_mismatch_count": say(
        "Offer {offer} has {offered} devices, measured were {measured}; it is left out for {label}."
    ),
    "notice_mismatch_memory": say(
        "Offer {offer} names {offered} GiB device memory, measured were {measured}; it is left out for {label}."
    ),
    "notice_mismatch_mig": say(
        "Offer {offer} has MIG profile {offered}, measured was {measured}; it is left out for {label}."
    ),
    "notice_idle_devices": say("Offer {offer} rents {offered} devices of which {used} works; the price is the whole."),
    "notice_failures": say_counted(
        "{failures} failure was recorded and is listed.",
        "{failures} failures were recorded and are listed.",
        by="failures",
    ),
    "notice_attempts": say_counted(
        "{attempts} pass attempt did not end and does not count.",
        "{attempts} pass attempts did not end and do not count.",
        by="attempts",
    ),
}

LOOKS = {
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

NOT_TESTED = {
    "untested_concurrency": say("Memory and quality by context length and concurrency."),
    "untested_gpu": say("Any GPU: the only device was the processor."),
    "untested_cache": say("Other cache strategies than {cache}."),
    "untested_probes": say("Machine probes: memory bandwidth, round trip, the brake of the token time."),
    "untested_reload": say("Reload of the chosen artefact in a fresh process."),
    "untested_test_set": say("Confirmation on the test documents."),
    "untested_telemetry": say("Power, energy, clocks and throttling."),
    "untested_build": say("Making the artefact (quantization, calibration): no build was measured."),
    "untested_server": say("An inference server, and the path of a client to it."),
    "untested_open_loop": say("Arrivals by rate (open loop): each request waited for the one before."),
    "untested_perplexity": say("Perplexity and bits per character."),
    "untested_memory": say("Memory: no reading was taken."),
}

SUBTITLE = {
    "subtitle_workload": say_counted(
        "Field extraction ({fields}), {documents} {role} document.",
        "Field extraction ({fields}), {documents} {role} documents.",
        by="documents",
    ),
    "subtitle_languages": say("Languages: {languages}."),
    "subtitle_frozen_before": say("Protocol {protocol} frozen {frozen}, before the first run on {first_run}."),
    "subtitle_frozen_after": say("Protocol {protocol} frozen {frozen}, after the first run on {first_run}."),
    "subtitle_prices": say("Prices valid until {date}."),
    "subtitle_prices_expired": say("Prices were valid until {date}: expired."),
    "subtitle_no_prices": say("No prices given."),
}

ROWS = {
    "cost_per_corpus": say_counted(
        "{paid} paid, {corpora} corpus accepted", "{paid} paid, {corpora} corpora accepted", by="corpora"
    ),
    "cost_not_defined": say("not defined: {paid} paid, 0 corpora accepted, since a rule is not met"),
    "cost_not_defined_incomplete": say("not defined: {paid} paid, 0 corpora accepted, since documents are missing"),
    "cost_not_defined_not_judged": say("not defined: {paid} paid, 0 corpora accepted, since nothing could be judged"),
    "package_expired": say("not valid on {date}"),
    "package_mismatch": say("not for the measured machine"),
    "package_deadline": say("misses the deadline"),
    "calendar_not_foreseen": say("not foreseen"),
}

SENTENCES: dict[str, Wording] = {
    **VERDICTS, **RECOMMENDATIONS, **REASONS, **CAPTIONS, **FINDINGS, **WOULD_CHANGE, **LIMITS, **GATES, **NOTICES,
    **LOOKS, **CONFIRMATIONS,
    **COST,
    **NOT_TESTED, **SUBTITLE, **ROWS, **KINDS,
    **BATCHES, **WEIGHTS, **STATISTICS, **ALLOCATION, **SELECTION, **SENSITIVITY,
    **REJUDGED,
}  # fmt: skip

WORDS: dict[str, Wording] = {
    # criteria
    "cheapest": say("the package price"),
    "most_headroom": say("free memory"),
    "fastest_corpus": say("the time for the wanted volume"),
    "most_corpora": say("the number of corpora"),
    # phases
    "build": say("building"),
    "load": say("loading"),
    "warmup": say("warm-up"),
    "measure": say("measuring"),
    "reload": say("reloading"),
    "unknown_phase": say("an unknown phase"),
    # failure causes
    "out_of_memory": say("out of memory"),
    "killed": say("killed"),
    "interrupted": say("interrupted"),
    "not_ended": say("the pass did not end"),
    "superseded": say("replaced by a later attempt"),
    "crashed": say("crashed"),
    "timeout": say("time limit reached"),
    "load_failure": say("load failure"),
    "missing_operator": say("missing operator"),
    "missing_dependency": say("missing package"),
    "connection": say("connection"),
    "truncation": say("truncation"),
    "format": say("format"),
    "quality": say("quality"),
    "too_long": say("prompt too long"),
    "engine_error": say("engine error"),
    "protocol": say("protocol"),
    "scorer": say("the scorer"),
    # memory scopes
    "allocated": say("allocated tensors"),
    "reserved": say("reserved by the allocator"),
    "process": say("device memory of the process"),
    "device": say("whole device"),
    "host": say("host memory of the worker"),
    "short_allocated": say("device memory in tensors"),
    "short_reserved": say("device memory reserved"),
    "short_process": say("device memory"),
    "short_device": say("memory of the whole device"),
    "short_host": say("host memory"),
    # parts of a model
    "embedding": say("the embedding"),
    "output_layer": say("the output layer"),
    "attention": say("attention"),
    "mlp": say("the feed-forward layers"),
    "norm": say("the norms"),
    "other": say("other tensors"),
    # roles
    "development": say("development"),
    "calibration": say("calibration"),
    "validation": say("validation"),
    "test": say("test"),
    # rules
    "max_lost_points": say("documents lost"),
    "min_accepted_percent": say("documents accepted"),
    # calendar
    "preparation": say("preparation"),
    "quantization": say("quantization"),
    "load_and_warmup": say("loading and warm-up"),
    "processing": say("processing"),
    "evaluation": say("evaluation"),
    "rejected_trials": say("rejected trials"),
    "restarts": say("restarts"),
    "export": say("export"),
    **SELECTION_WORDS,
}
"""Vocabulary words that appear as parameters with `@`."""
