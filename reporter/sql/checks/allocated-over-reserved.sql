-- one row per counter window in which more was allocated than reserved
-- severity: finding
-- next: the two counters were not read in one window; mend the meter, and do not use these readings
with counters as (
    select * from stg_reading where counter_method = 'counter'
)
select
    allocated.run_id,
    allocated.seq,
    allocated.device_id || ', ' || allocated.phase || ': ' || allocated.statistic || ' allocated '
    || allocated.value_bytes || ' bytes is over reserved ' || reserved.value_bytes || ' bytes' as message
from counters as allocated
inner join counters as reserved using (run_id, pass_id, phase, device_id, statistic)
where
    allocated.memory_scope = 'allocated' and reserved.memory_scope = 'reserved'
    and allocated.value_bytes > reserved.value_bytes
order by allocated.run_id, allocated.seq
