-- one row per pass attempt of any stage: how long its devices were taken, failed attempts included
-- step: mart
with unended as (
    select run_id, pass_id from pass_attempts where pass_ns is null
),
seen as (
    -- what was written on resuming a run, maybe days later, is no sign of the pass
    select run_id, pass_id, written_at from stg_reading semi join unended using (run_id, pass_id)
    union all
    select run_id, pass_id, written_at from stg_request semi join unended using (run_id, pass_id)
    union all
    select run_id, pass_id, written_at from stg_score semi join unended using (run_id, pass_id)
    union all
    select run_id, pass_id, written_at from stg_variant semi join unended using (run_id, pass_id)
),
last_seen as (
    select run_id, pass_id, max(written_at) as last_at from seen group by run_id, pass_id
)
select
    attempts.run_id,
    attempts.pass_id,
    configurations.configuration_key,
    configurations.label,
    header.rental_id,
    coalesce(len(devices.device_ids), 1) as device_count,
    coalesce(
        attempts.pass_ns,
        1000 * date_diff('microsecond', attempts.began_at::timestamp, last_seen.last_at::timestamp)
    ) as duration_ns,
    attempts.pass_ns is not null as is_ended,
    attempts.began_at,
    coalesce(attempts.distinct_document_count, 0) as document_count,
    attempts.sources
from pass_attempts as attempts
inner join configurations using (configuration_id)
left join configuration_devices as devices using (configuration_id)
left join last_seen using (run_id, pass_id)
left join (select run_id, any_value(rental_id) as rental_id from stg_header group by run_id) as header using (run_id)
order by attempts.began_at, attempts.run_id, attempts.seq
