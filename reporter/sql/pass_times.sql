-- one row per pass attempt of any stage: how long its devices were taken, failed attempts and its reload check included
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
),
changed_rentals as (
    -- a header never changes: a run that went on under another rental has a decision in its place
    select attempts.run_id, attempts.pass_id, arg_max(decisions.detail['rental_id'], decisions.seq) as rental_id
    from pass_attempts as attempts
    inner join stg_decision as decisions
        on attempts.run_id = decisions.run_id and attempts.seq > decisions.seq
    where decisions.decision = 'resumed' and decisions.detail['rental_id'] is not null
    group by attempts.run_id, attempts.pass_id
),
reloads as (
    select run_id, pass_id, sum(coalesce(load_ns, 0) + coalesce(answer_ns, 0)) as reload_ns, list(source order by seq) as sources
    from stg_reload_check
    group by run_id, pass_id
)
select
    attempts.run_id,
    attempts.pass_id,
    configurations.configuration_key,
    configurations.label,
    coalesce(changed_rentals.rental_id, header.rental_id) as rental_id,
    coalesce(len(devices.device_ids), 1) as device_count,
    coalesce(
        attempts.pass_ns + coalesce(reloads.reload_ns, 0),
        1000 * date_diff('microsecond', attempts.began_at::timestamp, last_seen.last_at::timestamp)
    ) as duration_ns,
    attempts.pass_ns is not null as is_ended,
    attempts.began_at,
    coalesce(attempts.distinct_document_count, 0) as document_count,
    attempts.sources || coalesce(reloads.sources, []) as sources
from pass_attempts as attempts
inner join configurations using (configuration_id)
left join configuration_devices as devices using (configuration_id)
left join last_seen using (run_id, pass_id)
left join reloads using (run_id, pass_id)
left join changed_rentals using (run_id, pass_id)
left join (select run_id, any_value(rental_id) as rental_id from stg_header group by run_id) as header using (run_id)
order by attempts.began_at, attempts.run_id, attempts.seq
