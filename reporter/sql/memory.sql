-- one row per (configuration, device, scope, phase): the judged pass; scopes overlap and are never added
-- labels: label, configuration_key, device_id, scope, phase, method
-- figure start_bytes | bytes | measured | reading at the start of the phase
-- figure peak_bytes | bytes | measured | highest reading within the phase
-- figure end_bytes | bytes | measured | reading at the end of the phase
with readings as (
    select
        passes.configuration_key,
        passes.label,
        passes.first_begun,
        readings.*
    from counted_passes as passes
    inner join stg_reading as readings using (run_id, pass_id)
    where passes.is_judged
)
select
    configuration_key || '~' || device_id || '~' || memory_scope || '~' || phase as row_key,
    label,
    configuration_key,
    device_id,
    memory_scope as scope,
    phase,
    coalesce(
        any_value(counter_method) filter (where statistic = 'peak'), min(counter_method)
    ) as method,
    max(value_bytes) filter (where statistic = 'start') as start_bytes,
    max(value_bytes) filter (where statistic = 'peak') as peak_bytes,
    max(value_bytes) filter (where statistic = 'end') as end_bytes,
    max(missing['value_bytes']) filter (where statistic = 'start') as start_bytes_missing,
    max(missing['value_bytes']) filter (where statistic = 'peak') as peak_bytes_missing,
    max(missing['value_bytes']) filter (where statistic = 'end') as end_bytes_missing,
    list(source order by source) as sources
from readings
group by configuration_key, label, first_begun, device_id, memory_scope, phase
order by
    first_begun, configuration_key, device_id,
    list_position(['allocated', 'reserved', 'process', 'device', 'host'], memory_scope),
    list_position(['build', 'load', 'warmup', 'measure', 'reload'], phase)
