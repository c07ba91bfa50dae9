-- one row per counted pass of a load: behind a server, with several requests at a time, at arrivals; beside the reference
-- step: mart
with grown as (
    select distinct environment_id, engine_id, variant_id
    from pass_attempts
    where concurrency > 1 or rate_per_s is not null
),
loaded as (
    select count(*) > 0 as is_any
    from pass_attempts
    where concurrency > 1 or rate_per_s is not null or cache_state is not null
)
select
    attempts.run_id,
    attempts.pass_id,
    attempts.configuration_id,
    configurations.configuration_key,
    configurations.label,
    configurations.variant,
    configurations.device,
    configurations.environment_id,
    configurations.engine,
    configurations.has_several_engines,
    configurations.first_begun,
    attempts.batch,
    attempts.concurrency,
    attempts.rate_per_s,
    case when attempts.rate_per_s is null then 'closed' else attempts.arrivals end as arrivals,
    attempts.rate_per_s is not null as is_open,
    attempts.cache_state,
    attempts.repetition,
    attempts.repetition = 1 as is_judged,
    attempts.purpose,
    attempts.began_at,
    attempts.phase_ns['measure'] as measure_ns,
    attempts.sources,
    configurations.configuration_key
    || case when attempts.purpose = 'reference_repeat' then '~ref' else '~r' end || attempts.repetition as pass_key
from pass_attempts as attempts
inner join configurations using (configuration_id)
left join grown
    on attempts.environment_id = grown.environment_id
    and attempts.engine_id = grown.engine_id
    and attempts.variant_id = grown.variant_id
where
    attempts.is_counted
    and attempts.batch = 1
    and (select is_any from loaded)
    and (attempts.cache_state is not null or grown.engine_id is not null or attempts.purpose = 'reference')
order by configurations.first_begun, configurations.configuration_id, attempts.repetition
