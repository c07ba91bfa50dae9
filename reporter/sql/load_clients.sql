-- one row per counted pass behind a server: what the load generator measured of itself while measuring
-- only with: load_passes
-- labels: label, configuration_key, loop, repetition, is_limit, limit_reasons
-- figure window_ns | nanoseconds | measured | first intended send to the end of the last request
-- figure cpu_share | ratio | measured | processor time of the load generator / window; 1 is one core, the most it can use
-- figure loop_lag_p99_ns | nanoseconds | measured | how late its timers fire, 99th percentile
-- figure send_delay_p50_ns | nanoseconds | measured | intended send to the bytes at the socket, median
-- figure send_delay_p99_ns | nanoseconds | measured | intended send to the bytes at the socket, 99th percentile
-- figure in_flight_max | requests | measured | most requests under way
-- figure connection_count | count | measured | connections opened before the window and in it
-- figure reconnect_count | count | measured | connections opened again
-- figure retry_count | count | measured | tries sent again
select
    passes.pass_key as row_key,
    passes.label,
    passes.configuration_key,
    passes.arrivals as loop,
    passes.repetition,
    case when clients.is_limit then 'yes' else 'no' end as is_limit,
    array_to_string(clients.limit_reasons, '; ') as limit_reasons,
    clients.window_ns,
    clients.cpu_share,
    clients.loop_lag_p99_ns,
    clients.send_delay_p50_ns,
    clients.send_delay_p99_ns,
    clients.in_flight_max,
    clients.connection_count,
    clients.reconnect_count,
    clients.retry_count,
    [clients.source] as sources
from load_passes as passes
inner join stg_client_window as clients using (run_id, pass_id)
where clients.phase = 'measure'
qualify row_number() over (partition by passes.pass_key order by clients.seq desc) = 1
order by passes.is_open, passes.variant, passes.first_begun, passes.repetition
