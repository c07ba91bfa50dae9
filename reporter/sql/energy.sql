-- one row per (configuration, repetition): the counted pass, where a card counted its energy
-- labels: label, configuration_key, purpose
-- figure energy_mj | millijoules | measured | sum over the cards of the counter's difference over the measure phase
-- figure window_ns | nanoseconds | measured | longest window of the counters over the measure phase
with counted as (
    select
        passes.pass_key,
        sum(telemetry.energy_mj) as energy_mj,
        max(telemetry.window_ns) as window_ns,
        -- a card whose counter could not be read would make the sum too small
        count(*) filter (where telemetry.energy_mj is null) as unread_count,
        list(telemetry.source order by telemetry.source) as sources
    from counted_passes as passes
    inner join stg_telemetry as telemetry using (run_id, pass_id)
    where telemetry.phase = 'measure' and telemetry.device_id <> 'cpu'
    group by passes.pass_key
)
select
    passes.pass_key as row_key,
    passes.label,
    passes.configuration_key,
    passes.pass_purpose as purpose,
    counted.energy_mj::bigint as energy_mj,
    counted.window_ns,
    counted.sources
from counted_passes as passes
inner join counted using (pass_key)
where counted.unread_count = 0
order by passes.first_begun, passes.configuration_key, passes.repetition
