-- one row per counted pass in a closed loop: the last complete attempt of each pass key
-- An open loop is a load test: its passes stand in load_passes alone, no score or time of theirs is among these.
-- step: mart
select
    attempts.* exclude (variant_id, engine_id, environment_id, batch, concurrency, rate_per_s, context_tokens, cache_kind,
    output_limit_tokens, purpose, variant_name, arrivals, arrival_seed, cache_state),
    attempts.purpose as pass_purpose,
    configurations.configuration_key,
    configurations.label,
    configurations.purpose,
    configurations.variant,
    configurations.device,
    configurations.batch,
    configurations.rate_per_s,
    configurations.first_begun,
    attempts.repetition = 1 as is_judged,
    configurations.configuration_key
    || case when attempts.purpose = 'reference_repeat' then '~ref' else '~r' end || attempts.repetition as pass_key
from pass_attempts as attempts
inner join configurations using (configuration_id)
where attempts.is_counted and attempts.rate_per_s is null
order by configurations.first_begun, configurations.configuration_id, attempts.repetition
