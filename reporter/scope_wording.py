"""Sentences about what was asked, what a reader must know, and what is not shown."""

from __future__ import annotations

from .messages import Wording, say, say_counted

SUBTITLE: dict[str, Wording] = {
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

GATES: dict[str, Wording] = {
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

NOTICES: dict[str, Wording] = {
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

LIMITS: dict[str, Wording] = {
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

NOT_TESTED: dict[str, Wording] = {
    "untested_concurrency": say("Memory and quality by context length and concurrency."),
    "untested_gpu": say("Any GPU: the only device was the processor."),
    "untested_cache": say("Other cache strategies than {cache}."),
    "untested_cache_engine": say("Other cache strategies than the engine's own."),
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

SCOPE: dict[str, Wording] = {**SUBTITLE, **GATES, **NOTICES, **LIMITS, **NOT_TESTED}
