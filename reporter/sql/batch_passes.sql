-- one row per pass of a batch series: the reference one request at a time, its repeats, then each batch, failed ones too
-- step: mart
with grown as (
    select distinct environment_id from pass_attempts where factor = 'batch'
)
select
    attempts.* exclude (pass_outcome, cause),
    configurations.configuration_key,
    configurations.label,
    configurations.device,
    configurations.first_begun,
    configurations.configuration_key
    || case when attempts.purpose = 'reference_repeat' then '~ref' else '~r' end || attempts.repetition as pass_key,
    attempts.pass_outcome as outcome,
    attempts.cause,
    attempts.factor <> 'batch' and attempts.purpose = 'reference' and attempts.is_counted as is_start
from pass_attempts as attempts
inner join configurations using (configuration_id)
semi join grown on attempts.environment_id = grown.environment_id
where
    attempts.stage = (select stage from judged_stage)
    and (attempts.factor = 'batch' or attempts.purpose in ('reference', 'reference_repeat'))
qualify row_number() over (
    partition by attempts.configuration_id, attempts.repetition, attempts.purpose
    order by attempts.is_counted desc, attempts.attempt desc, attempts.began_at desc, attempts.run_id, attempts.pass_id
) = 1
order by attempts.environment_id, attempts.batch, attempts.repetition, attempts.configuration_id
