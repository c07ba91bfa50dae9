-- one row per peak that is lower than the reading at the start or end of its phase
-- severity: finding
-- next: a peak holds both ends of its phase; mend the meter, and do not use this peak
select
    peak.run_id,
    peak.seq,
    peak.device_id || ', ' || peak.memory_scope || ', ' || peak.phase || ': peak ' || peak.value_bytes
    || ' bytes is below ' || edge.statistic || ' ' || edge.value_bytes || ' bytes' as message
from stg_reading as peak
inner join stg_reading as edge using (run_id, pass_id, phase, device_id, memory_scope)
where peak.statistic = 'peak' and edge.statistic in ('start', 'end') and peak.value_bytes < edge.value_bytes
order by peak.run_id, peak.seq, edge.statistic
