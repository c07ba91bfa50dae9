-- one row per failure record
-- labels: scope, cause, label, configuration_key, phase, document_id, exception_class, exit_code, stage
with labelled as (
    select attempts.run_id, attempts.pass_id, attempts.stage, configurations.label, configurations.configuration_key
    from pass_attempts as attempts
    inner join configurations using (configuration_id)
)
select
    failures.run_id || ':' || failures.seq as row_key,
    failures.failure_scope as scope,
    failures.failure_cause as cause,
    labelled.label,
    labelled.configuration_key,
    failures.phase,
    failures.document_id,
    failures.exception_class,
    cast(failures.exit_code as varchar) as exit_code,
    labelled.stage,
    [failures.source] as sources
from stg_failure as failures
left join labelled using (run_id, pass_id)
order by failures.written_at, failures.run_id, failures.seq
