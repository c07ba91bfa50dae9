-- one row per (judged pass behind a server, source of the engine's durations): where a request's time goes, as means
-- only with: engine_passes
-- labels: label, configuration_key, server_name, server_kind, source, concurrency, arrivals
-- figure engine_count | requests | claimed | requests behind the engine's means: those it finished between the page read before and the one after, or those whose responses carried timings
-- figure queue_s | seconds | claimed | mean time in the engine's queue, by its own clock and boundary
-- figure prefill_s | seconds | claimed | mean time of the prompt, by the engine's own clock and boundary
-- figure decode_s | seconds | claimed | mean time from the first token to the last, by the engine's own clock and boundary
-- figure inference_s | seconds | claimed | mean time of prefill and decode together, of an engine that does not tell them apart
-- figure client_count | requests | measured | completed requests behind the client's means
-- figure client_before_s | seconds | measured | mean of sending - intended send: before the request left the client
-- figure client_ttft_s | seconds | measured | mean of first token - sending, by the client's clock
-- figure client_e2e_s | seconds | measured | mean of last token - sending, by the client's clock
with passes as (
    select pass_key, configuration_key, label, first_begun, arrivals, concurrency, server_name, server_kind
    from engine_passes
    where is_judged
),
windows as (
    select
        pass_key,
        bool_or(has_window) as has_window,
        min(reason) as reason,
        max(count_delta) filter (where capability in ('queue', 'prefill', 'inference')) as window_count,
        bool_or(capability = 'queue') as tells_queue,
        bool_or(capability = 'prefill') as tells_prefill,
        bool_or(capability = 'decode') as tells_decode,
        bool_or(capability = 'inference') as tells_inference,
        max(mean) filter (where capability = 'queue') as queue_s,
        max(mean) filter (where capability = 'prefill') as prefill_s,
        max(mean) filter (where capability = 'decode') as decode_s,
        max(mean) filter (where capability = 'inference') as inference_s,
        max(delta) filter (where capability = 'prefill' and metric_type = 'counter') as prefill_total_s,
        max(delta) filter (where capability = 'decode' and metric_type = 'counter') as decode_total_s,
        list_distinct(flatten(list(sources))) as sources
    from engine_windows
    group by pass_key
),
of_window as (
    select
        passes.*,
        1 as place,
        'window' as source_key,
        -- a kind that tells nothing still has the client's path, and a row for it
        if(windows.pass_key is null, 'none', 'window') as source,
        -- a kind that counts no requests tells totals, which are divided by the client's own requests
        coalesce(windows.window_count, if(windows.prefill_total_s is null, null, clients.own_requests)) as engine_count,
        windows.queue_s,
        coalesce(windows.prefill_s, windows.prefill_total_s / nullif(clients.own_requests, 0)) as prefill_s,
        coalesce(windows.decode_s, windows.decode_total_s / nullif(clients.own_requests, 0)) as decode_s,
        windows.inference_s,
        coalesce(windows.tells_queue, false) as tells_queue,
        coalesce(windows.tells_prefill, false) as tells_prefill,
        coalesce(windows.tells_decode, false) as tells_decode,
        coalesce(windows.tells_inference, false) as tells_inference,
        coalesce(windows.reason, 'not_exposed_by_engine') as reason,
        clients.client_count, clients.client_before_s, clients.client_ttft_s, clients.client_e2e_s,
        coalesce(windows.sources, []) || coalesce(clients.sources, []) as sources
    from passes
    left join windows using (pass_key)
    left join engine_clients as clients using (pass_key)
),
of_responses as (
    select
        passes.*,
        2 as place,
        'responses' as source_key,
        'responses' as source,
        clients.told_count as engine_count,
        clients.told_queue_s as queue_s,
        clients.told_prefill_s as prefill_s,
        clients.told_decode_s as decode_s,
        clients.told_queue_s is not null as tells_queue,
        clients.told_prefill_s is not null as tells_prefill,
        clients.told_decode_s is not null as tells_decode,
        false as tells_inference,
        'not_exposed_by_engine' as reason,
        clients.told_count as client_count,
        clients.told_client_before_s as client_before_s,
        clients.told_client_ttft_s as client_ttft_s,
        clients.told_client_e2e_s as client_e2e_s,
        clients.sources
    from passes
    inner join engine_clients as clients using (pass_key)
    where clients.told_count > 0
),
together as (
    select * from of_window
    union all by name
    select * from of_responses
)
select
    configuration_key || '~' || source_key as row_key,
    label,
    configuration_key,
    server_name,
    server_kind,
    source,
    concurrency,
    arrivals,
    cast(engine_count as bigint) as engine_count,
    queue_s,
    prefill_s,
    decode_s,
    case when prefill_s is null or decode_s is null then inference_s end as inference_s,
    client_count,
    client_before_s,
    client_ttft_s,
    client_e2e_s,
    reason as engine_count_missing,
    if(tells_queue, reason, 'not_exposed_by_engine') as queue_s_missing,
    if(tells_prefill, reason, 'not_exposed_by_engine') as prefill_s_missing,
    if(tells_decode, reason, 'not_exposed_by_engine') as decode_s_missing,
    case
        when prefill_s is not null and decode_s is not null then 'not_applicable'
        when tells_inference then reason
        else 'not_exposed_by_engine'
    end as inference_s_missing,
    sources
from together
order by first_begun, configuration_key, place
