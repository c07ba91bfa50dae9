-- one row per counted pass behind a server, of closed and open loops
-- step: mart
select
    attempts.run_id,
    attempts.pass_id,
    configurations.configuration_key || '~r' || attempts.repetition as pass_key,
    configurations.configuration_key,
    configurations.label,
    configurations.first_begun,
    attempts.repetition = 1 as is_judged,
    configurations.concurrency,
    attempts.arrivals,
    attempts.cache_state,
    claims.server_name,
    claims.server_kind,
    claims.claims,
    claims.source as claim
from pass_attempts as attempts
inner join configurations using (configuration_id)
inner join stg_server_claim as claims using (run_id, pass_id)
where attempts.is_counted and attempts.purpose <> 'reference_repeat'
qualify row_number() over (partition by attempts.run_id, attempts.pass_id order by claims.seq desc) = 1
order by configurations.first_begun, configurations.configuration_id, attempts.repetition
