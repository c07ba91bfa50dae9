-- one row per counted pass behind a server: what the client itself saw of the requests of the measure phase
-- Durations count from sending, not from the intended send: what is asked is where a sent request's time goes.
-- step: mart
with tries as (
    select
        requests.run_id, requests.pass_id,
        count(*) filter (where http_status = 200 or request_outcome in ('completed', 'empty')) as own_requests,
        case
            when bool_and(output_tokens is not null)
                filter (where http_status = 200 or request_outcome in ('completed', 'empty'))
                then sum(output_tokens)
        end as own_tokens
    from stg_request as requests
    inner join engine_passes using (run_id, pass_id)
    where phase = 'measure'
    group by requests.run_id, requests.pass_id
),
answered as (
    select
        passes.pass_key, requests.*,
        requests.engine_prefill_ns is not null or requests.engine_decode_ns is not null as has_timings
    from engine_passes as passes
    inner join final_requests as requests using (run_id, pass_id)
    where requests.request_outcome = 'completed'
)
select
    answered.pass_key,
    any_value(tries.own_requests) as own_requests,
    any_value(tries.own_tokens) as own_tokens,
    count(last_token_ns - sent_ns) as client_count,
    sum(last_token_ns - sent_ns) / count(last_token_ns - sent_ns) / 1e9 as client_e2e_s,
    sum(first_token_ns - sent_ns) / count(first_token_ns - sent_ns) / 1e9 as client_ttft_s,
    sum(sent_ns - intended_ns) / count(sent_ns - intended_ns) / 1e9 as client_before_s,
    count(*) filter (where output_tokens >= 2 and last_token_ns > first_token_ns) as client_per_token_count,
    sum((last_token_ns - first_token_ns) // nullif(output_tokens - 1, 0))
        filter (where output_tokens >= 2 and last_token_ns > first_token_ns)
    / nullif(count(*) filter (where output_tokens >= 2 and last_token_ns > first_token_ns), 0) / 1e9
        as client_per_token_s,
    count(*) filter (where has_timings) as told_count,
    sum(engine_queue_ns) / nullif(count(engine_queue_ns), 0) / 1e9 as told_queue_s,
    sum(engine_prefill_ns) / nullif(count(engine_prefill_ns), 0) / 1e9 as told_prefill_s,
    sum(engine_decode_ns) / nullif(count(engine_decode_ns), 0) / 1e9 as told_decode_s,
    sum(last_token_ns - sent_ns) filter (where has_timings)
    / nullif(count(last_token_ns - sent_ns) filter (where has_timings), 0) / 1e9 as told_client_e2e_s,
    sum(first_token_ns - sent_ns) filter (where has_timings)
    / nullif(count(first_token_ns - sent_ns) filter (where has_timings), 0) / 1e9 as told_client_ttft_s,
    sum(sent_ns - intended_ns) filter (where has_timings)
    / nullif(count(sent_ns - intended_ns) filter (where has_timings), 0) / 1e9 as told_client_before_s,
    list(answered.source order by answered.source) as sources
from answered
left join tries using (run_id, pass_id)
group by answered.pass_key
order by answered.pass_key
