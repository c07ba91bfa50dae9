-- one row per counted pass of a load: how many were under way, what came of the requests, and how fast the whole was
-- only with: load_passes
-- labels: label, configuration_key, engine, variant, loop, purpose, repetition, cache_state, is_judged, environment_id
-- figure batch | count | measured | rows of a static batch that the collector makes: 1, the engine batches by itself
-- figure concurrency | requests | measured | requests submitted at a time; of an open loop the most that may be under way
-- figure processed_mean | requests | derived | requests between bytes sent and last token, averaged over the steady time; over the whole run where none was steady
-- figure processed_max | requests | measured | most requests between bytes sent and last token at one instant
-- figure rate_per_s | requests_per_second | measured | arrivals per second, as asked for
-- figure achieved_per_s | requests_per_second | derived | (requests sent - 1) / (last send - first send)
-- figure request_count | requests | measured | final tries in the measure phase
-- figure steady_count | requests | measured | final tries of the steady time
-- figure completed_requests | requests | measured | final tries with a complete answer
-- figure failed_requests | requests | measured | final tries that failed
-- figure empty_requests | requests | measured | final tries that the server ended well without any generated token
-- figure too_long_requests | requests | measured | final tries that were not sent: prompt and output limit exceed the context
-- figure cut_thinking_requests | requests | measured | complete answers that reached the output limit before their first answer token
-- figure retried_tries | requests | measured | tries that another one followed
-- figure failed_percent | percent | derived | 100 x (request_count - completed_requests) / request_count | n=request_count | interval=wilson_percent(lost_requests, request_count)
-- figure ramp_ns | nanoseconds | derived | first intended send to the steady time
-- figure steady_ns | nanoseconds | derived | closed loop: from `concurrency` requests under way to the first answer after the last send; open loop: from the first arrival after as many requests have ended as were under way on average, to the last arrival
-- figure drain_ns | nanoseconds | derived | end of the steady time to the last answer
-- figure wall_ns | nanoseconds | derived | first intended send to the end of the last request: the whole corpus
-- figure output_tokens | tokens | measured | generated tokens of completed requests, the server's own count
-- figure output_tokens_per_s | tokens_per_second | derived | output_tokens / wall_ns x 10^9
-- figure requests_per_s | requests_per_second | derived | completed_requests / wall_ns x 10^9
-- figure steady_per_s | requests_per_second | derived | requests that ended in the steady time / steady_ns x 10^9
-- figure accepted_documents | documents | measured | documents accepted by the protocol's rule for one document
-- figure accepted_per_h | documents_per_hour | derived | accepted_documents / wall_ns x 3600 x 10^9
-- figure estimated_percent | percent | derived | 100 x completed requests whose tokens the client counted from the text / completed_requests
-- figure tokens_per_chunk | ratio | derived | generated tokens / events with content, completed requests that have both counts by the server
-- figure cached_percent | percent | derived | 100 x prompt tokens found in the server's cache / prompt tokens, requests of which the server tells both
with answered as (
    select
        passes.pass_key,
        count(*) as request_count,
        count(*) filter (where request_outcome = 'completed') as completed_requests,
        count(*) filter (where request_outcome = 'failed') as failed_requests,
        count(*) filter (where request_outcome = 'empty') as empty_requests,
        count(*) filter (where request_outcome = 'too_long') as too_long_requests,
        count(*) filter (where request_outcome <> 'completed') as lost_requests,
        count(*) filter (
            where request_outcome = 'completed' and finish_reason = 'length'
            and coalesce(reasoning_tokens, 0) > 0 and first_answer_ns is null
        ) as cut_thinking_requests,
        case
            when bool_and(output_tokens is not null) filter (where request_outcome = 'completed')
                and count(distinct token_count_source = 'retokenized') filter (where request_outcome = 'completed') = 1
                then sum(output_tokens) filter (where request_outcome = 'completed')
        end as output_tokens,
        count(distinct token_count_source = 'retokenized') filter (where request_outcome = 'completed') > 1 as is_mixed,
        count(*) filter (where request_outcome = 'completed' and token_count_source = 'retokenized') as estimated,
        sum(output_tokens) filter (where is_counted) as chunked_tokens,
        sum(chunk_count) filter (where is_counted) as chunks,
        sum(cached_tokens) filter (where cached_tokens is not null and prompt_tokens is not null) as cached_tokens,
        sum(prompt_tokens) filter (where cached_tokens is not null and prompt_tokens is not null) as prompt_tokens,
        count(sent_ns) as sent_count,
        max(sent_ns) - min(sent_ns) as sending_ns,
        list(source order by source) as sources
    from load_passes as passes
    inner join (
        select
            *,
            request_outcome = 'completed' and chunk_count > 0 and output_tokens is not null
            and token_count_source not in ('retokenized', 'none') as is_counted
        from final_requests
    ) as requests using (run_id, pass_id)
    group by passes.pass_key
),
steady as (
    select pass_key, count(*) filter (where is_steady) as steady_count from load_requests group by pass_key
),
retried as (
    select passes.pass_key, count(*) as retried_tries
    from load_passes as passes
    inner join stg_request as requests using (run_id, pass_id)
    where requests.phase = 'measure' and not requests.is_final
    group by passes.pass_key
),
accepted as (
    select
        passes.pass_key,
        count(*) filter (where scores.is_accepted) as accepted_documents
    from load_passes as passes
    inner join final_requests as requests using (run_id, pass_id)
    inner join (
        select *
        from stg_score
        qualify row_number() over (partition by run_id, pass_id, document_id, turn, try_index order by seq desc) = 1
    ) as scores
        on requests.run_id = scores.run_id
        and requests.pass_id = scores.pass_id
        and requests.document_id = scores.document_id
        and requests.turn = scores.turn
        and requests.try_index = scores.try_index
    group by passes.pass_key
)
select
    passes.pass_key as row_key,
    passes.label,
    passes.configuration_key,
    passes.engine,
    passes.variant,
    passes.arrivals as loop,
    passes.purpose,
    passes.repetition,
    passes.cache_state,
    case when passes.is_judged then 'yes' else 'no' end as is_judged,
    passes.environment_id,
    passes.batch,
    passes.concurrency,
    coalesce(windows.processed_mean, windows.processed_mean_whole) as processed_mean,
    windows.processed_max,
    passes.rate_per_s,
    'not_applicable' as rate_per_s_missing,
    case when answered.sent_count > 1 and answered.sending_ns > 0 then (answered.sent_count - 1) / (answered.sending_ns / 1e9) end
        as achieved_per_s,
    answered.* exclude (pass_key, output_tokens, is_mixed, estimated, chunked_tokens, chunks, cached_tokens, prompt_tokens,
    sent_count, sending_ns, sources),
    coalesce(steady.steady_count, 0) as steady_count,
    coalesce(retried.retried_tries, 0) as retried_tries,
    100 * answered.lost_requests / answered.request_count as failed_percent,
    windows.steady_from_ns - windows.begin_ns as ramp_ns,
    windows.steady_to_ns - windows.steady_from_ns as steady_ns,
    windows.end_ns - windows.steady_to_ns as drain_ns,
    windows.end_ns - windows.begin_ns as wall_ns,
    answered.output_tokens,
    case when answered.is_mixed then 'two_counts' else 'not_exposed_by_engine' end as output_tokens_missing,
    answered.output_tokens / (nullif(windows.end_ns - windows.begin_ns, 0) / 1e9) as output_tokens_per_s,
    case when answered.is_mixed then 'two_counts' else 'not_exposed_by_engine' end as output_tokens_per_s_missing,
    answered.completed_requests / (nullif(windows.end_ns - windows.begin_ns, 0) / 1e9) as requests_per_s,
    windows.steady_ends / ((windows.steady_to_ns - windows.steady_from_ns) / 1e9) as steady_per_s,
    case when windows.steady_from_ns is null then 'never_steady' end as steady_per_s_missing,
    case when windows.steady_from_ns is null then 'never_steady' end as ramp_ns_missing,
    case when windows.steady_from_ns is null then 'never_steady' end as steady_ns_missing,
    case when windows.steady_from_ns is null then 'never_steady' end as drain_ns_missing,
    coalesce(accepted.accepted_documents, 0) as accepted_documents,
    coalesce(accepted.accepted_documents, 0) * 3600 / (nullif(windows.end_ns - windows.begin_ns, 0) / 1e9) as accepted_per_h,
    case when answered.completed_requests > 0 then 100 * answered.estimated / answered.completed_requests end
        as estimated_percent,
    case when answered.chunks > 0 then answered.chunked_tokens / answered.chunks end as tokens_per_chunk,
    case when passes.cache_state is null then 'not_applicable' else 'not_exposed_by_engine' end as tokens_per_chunk_missing,
    case when answered.prompt_tokens > 0 then 100 * answered.cached_tokens / answered.prompt_tokens end as cached_percent,
    case when passes.cache_state is null then 'not_applicable' else 'not_exposed_by_engine' end as cached_percent_missing,
    passes.sources || answered.sources as sources
from load_passes as passes
inner join answered using (pass_key)
left join steady using (pass_key)
left join retried using (pass_key)
left join accepted using (pass_key)
left join load_windows as windows using (pass_key)
order by
    passes.is_open, passes.variant, passes.first_begun, passes.concurrency, passes.rate_per_s, passes.repetition,
    passes.pass_key
