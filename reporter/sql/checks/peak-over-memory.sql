-- one row per memory reading above what its device has
-- severity: finding
-- next: the reading or the size of the device is wrong; mend the meter, and do not choose by these records
with placed as (
    select readings.run_id, readings.seq, readings.device_id, readings.phase, readings.memory_scope,
        readings.statistic, readings.value_bytes, passes.environment_id
    from stg_reading as readings
    inner join stg_pass_begin as passes using (run_id, pass_id)
    where readings.value_bytes is not null
),
sizes as (
    select environment_id, device_id, max(device_memory_bytes) as device_memory_bytes
    from stg_device
    group by environment_id, device_id
)
select
    placed.run_id,
    placed.seq,
    placed.device_id || ', ' || placed.phase || ': ' || placed.statistic || ' ' || placed.memory_scope || ' of '
    || placed.value_bytes || ' bytes (' || printf('%.1f', placed.value_bytes / 1073741824) || ' GiB) is over the '
    || sizes.device_memory_bytes || ' bytes (' || printf('%.1f', sizes.device_memory_bytes / 1073741824)
    || ' GiB) of the device' as message
from placed
inner join sizes using (environment_id, device_id)
where placed.value_bytes > sizes.device_memory_bytes
order by placed.run_id, placed.seq
