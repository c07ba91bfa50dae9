-- one row per configuration whose variant was loaded again in a fresh process: the last check of it, or its failure
-- labels: label, configuration_key, asked_as, is_asked, environment_id, outcome, is_same_artefact, differing, cause, stage
-- figure checked_document_count | documents | measured | documents asked again after loading again
-- figure equal_answer_count | documents | measured | answers equal to those of the pass, by their HMACs
-- figure load_ns | nanoseconds | measured | loading again, by the worker's monotonic clock
-- figure answer_ns | nanoseconds | measured | asking the checked documents again, by the worker's monotonic clock
with reloaded as (
    select
        run_id, pass_id, seq, source, written_at, 'completed' as outcome, cast(null as varchar) as cause,
        checked_document_count, equal_answer_count, is_same_artefact, differing_document_ids, load_ns, answer_ns
    from stg_reload_check
    union all by name
    select run_id, pass_id, seq, source, written_at, 'failed' as outcome, failure_cause as cause
    from stg_failure
    where phase = 'reload' and failure_scope = 'variant'
),
checked as (
    select attempts.configuration_id as asked_id, attempts.stage, reloaded.*
    from reloaded
    inner join pass_attempts as attempts using (run_id, pass_id)
),
last_of_each as (
    select
        configurations.configuration_key, configurations.label, configurations.environment_id,
        configurations.first_begun, asked.label as asked_as,
        asked.configuration_key as asked_key, checked.*
    from checked
    inner join configurations as asked on checked.asked_id = asked.configuration_id
    -- a variant is loaded again once, as its first pass asked it; that holds for all batches of it on that machine
    inner join configurations
        on asked.environment_id = configurations.environment_id
        and asked.engine_id = configurations.engine_id
        and asked.variant_id = configurations.variant_id
    qualify row_number() over (
        partition by configurations.configuration_key
        order by
            asked.configuration_id = configurations.configuration_id desc,
            checked.written_at desc, checked.run_id desc, checked.seq desc
    ) = 1
)
select
    configuration_key as row_key,
    label,
    configuration_key,
    asked_as,
    case when asked_key = configuration_key then 'yes' else 'no' end as is_asked,
    environment_id,
    outcome,
    case is_same_artefact when true then 'yes' when false then 'no' end as is_same_artefact,
    array_to_string(differing_document_ids, ', ') as differing,
    cause,
    stage,
    checked_document_count,
    equal_answer_count,
    load_ns,
    answer_ns,
    case outcome when 'failed' then 'failed' else 'not_measured' end as checked_document_count_missing,
    checked_document_count_missing as equal_answer_count_missing,
    checked_document_count_missing as load_ns_missing,
    checked_document_count_missing as answer_ns_missing,
    [source] as sources
from last_of_each
order by first_begun, configuration_key
