-- one row per phase in which a wider memory scope was read lower than a narrower one on the same device
-- severity: flag
-- next: sampled scopes can miss a short peak, and drivers count differently: read the peaks as what each scope saw
with ordered as (
    select *, list_position(['reserved', 'process', 'device'], memory_scope) as width
    from stg_reading
    where memory_scope in ('reserved', 'process', 'device') and statistic = 'peak'
)
select
    wider.run_id,
    wider.seq,
    wider.device_id || ', ' || wider.phase || ': peak of ' || wider.memory_scope || ' ' || wider.value_bytes
    || ' bytes is below ' || narrower.memory_scope || ' ' || narrower.value_bytes || ' bytes' as message
from ordered as wider
inner join ordered as narrower using (run_id, pass_id, phase, device_id)
where wider.width > narrower.width and wider.value_bytes < narrower.value_bytes
order by wider.run_id, wider.seq, narrower.width
