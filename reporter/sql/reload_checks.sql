-- one row per configuration whose artefact was loaded again in a fresh process: the last check of it, or its failure
-- labels: label, configuration_key, environment_id, outcome, is_same_artefact, differing, cause, stage
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
last_of_each as (
    select
        configurations.configuration_key, configurations.label, configurations.environment_id,
        configurations.first_begun, attempts.stage, reloaded.*
    from reloaded
    inner join pass_attempts as attempts using (run_id, pass_id)
    inner join configurations using (configuration_id)
    qualify row_number() over (
        partition by configurations.configuration_key
        order by reloaded.written_at desc, reloaded.run_id desc, reloaded.seq desc
    ) = 1
)
select
    configuration_key as row_key,
    label,
    configuration_key,
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
