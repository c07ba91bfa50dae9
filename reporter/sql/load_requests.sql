-- one row per final try of a pass of a load: its times, null where it did not complete, and whether it was steady
-- Of a closed loop those that were sent and ended while it was full; of an open loop those that were due in the steady
-- time, whenever they ended: the slow ones are still under way when the arrivals end.
-- step: mart
select
    passes.pass_key,
    passes.is_judged,
    passes.is_open,
    requests.document_id,
    requests.request_outcome,
    requests.source,
    coalesce(
        case
            when passes.is_open then requests.intended_ns between windows.steady_from_ns and windows.steady_to_ns
            else requests.sent_ns >= windows.steady_from_ns and requests.done_ns <= windows.steady_to_ns
        end,
        false
    ) as is_steady,
    requests.ttft_ns,
    requests.ttfat_ns,
    requests.tpot_ns,
    requests.e2e_ns,
    case when sent_ns is not null then cast(sent_ns - intended_ns as double) end as send_delay_ns,
    coalesce(reasoning_tokens, 0) > 0 as has_thought,
    requests.output_tokens,
    requests.chunk_count,
    requests.token_count_source
from load_passes as passes
inner join final_requests as requests using (run_id, pass_id)
inner join load_windows as windows using (pass_key)
order by passes.pass_key, requests.document_id
