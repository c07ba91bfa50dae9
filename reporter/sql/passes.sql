-- one row per pass attempt
-- labels: label, configuration_key, environment_id, stage, purpose, repetition, outcome, counts_yes_no, cause
-- figure attempt | count | measured | number of the attempt; the last complete one counts
-- figure documents | documents | measured | distinct documents with a final try
-- figure measure_ns | nanoseconds | measured | duration of the measure phase by the worker's monotonic clock
with keyed as (
    select
        attempts.*,
        configurations.configuration_key || case
            when attempts.purpose = 'reference_repeat' then '~ref' else '~r'
        end || attempts.repetition || '~a' || attempts.attempt as attempt_key,
        configurations.label,
        configurations.configuration_key
    from pass_attempts as attempts
    inner join configurations using (configuration_id)
)
select
    attempt_key
    || case when count(*) over (partition by attempt_key) > 1 then '~' || stage || '~' || run_id[1:6] else '' end
        as row_key,
    label,
    configuration_key,
    environment_id,
    stage,
    purpose,
    repetition,
    pass_outcome as outcome,
    case when is_counted then 'yes' else 'no' end as counts_yes_no,
    cause,
    attempt,
    distinct_document_count as documents,
    phase_ns['measure'] as measure_ns,
    sources
from keyed
order by began_at, run_id, seq
