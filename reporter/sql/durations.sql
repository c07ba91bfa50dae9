-- one row per (configuration, repetition): the counted pass
-- labels: label, configuration_key, purpose, repetition
-- figure load_ns | nanoseconds | measured | duration of the load phase by the worker's monotonic clock
-- figure warmup_ns | nanoseconds | measured | duration of the warm-up phase by the worker's monotonic clock
-- figure measure_ns | nanoseconds | measured | duration of the measure phase by the worker's monotonic clock
-- figure pass_ns | nanoseconds | measured | from starting the worker to its end, by the parent's monotonic clock
-- figure completed_documents | documents | measured | final tries with outcome completed
-- figure output_tokens | tokens | measured | sum of generated tokens of completed final tries; null where answers are embedded
-- figure embedded_tokens | tokens | measured | sum of the tokens of all texts embedded for completed final tries; null where answers are generated
-- figure output_tokens_per_s | tokens_per_second | derived | output_tokens / measure_ns x 10^9
-- figure embedded_tokens_per_s | tokens_per_second | derived | embedded_tokens / measure_ns x 10^9
-- figure documents_per_h | documents_per_hour | derived | completed_documents / measure_ns x 3600 x 10^9
with answered as (
    select
        passes.pass_key,
        count(*) as completed_documents,
        -- a server that counts nothing has no number of tokens; one of two counts is no count of all
        case
            when bool_and(requests.output_tokens is not null)
                and count(distinct requests.token_count_source = 'retokenized') = 1
                then sum(requests.output_tokens)
        end as output_tokens,
        sum(requests.prompt_tokens) as prompt_tokens,
        list(requests.source order by requests.source) as sources
    from counted_passes as passes
    inner join pass_documents as documents using (pass_key, run_id, pass_id)
    inner join final_requests as requests using (run_id, pass_id, document_id)
    where requests.request_outcome = 'completed'
    group by passes.pass_key
)
select
    passes.pass_key as row_key,
    passes.label,
    passes.configuration_key,
    passes.pass_purpose as purpose,
    passes.repetition,
    passes.phase_ns['load'] as load_ns,
    passes.phase_ns['warmup'] as warmup_ns,
    passes.phase_ns['measure'] as measure_ns,
    passes.pass_ns,
    coalesce(answered.completed_documents, 0) as completed_documents,
    case
        when embedding.pass_id is null and answered.pass_key is null then 0
        when embedding.pass_id is null then answered.output_tokens
    end as output_tokens,
    case when embedding.pass_id is null then 'not_exposed_by_engine' else 'not_applicable' end as output_tokens_missing,
    case when embedding.pass_id is not null then coalesce(answered.prompt_tokens, 0) end as embedded_tokens,
    'not_applicable' as embedded_tokens_missing,
    case
        when embedding.pass_id is not null and passes.phase_ns['measure'] > 0
            then answered.prompt_tokens / (passes.phase_ns['measure'] / 1e9)
    end as embedded_tokens_per_s,
    case when embedding.pass_id is null then 'not_applicable' else 'not_measured' end as embedded_tokens_per_s_missing,
    case
        when embedding.pass_id is not null then 'not_applicable'
        when answered.pass_key is not null and answered.output_tokens is null then 'not_exposed_by_engine'
        else 'not_measured'
    end as output_tokens_per_s_missing,
    case when passes.phase_ns['measure'] > 0 then answered.output_tokens / (passes.phase_ns['measure'] / 1e9) end
        as output_tokens_per_s,
    case
        when passes.phase_ns['measure'] > 0
            then answered.completed_documents * 3600 / (passes.phase_ns['measure'] / 1e9)
    end as documents_per_h,
    passes.sources || coalesce(answered.sources, []) as sources
from counted_passes as passes
left join answered using (pass_key)
left join embedding_passes as embedding using (run_id, pass_id)
order by passes.first_begun, passes.configuration_key, passes.repetition
