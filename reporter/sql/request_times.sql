-- one row per final try in the measure phase of a counted pass: its times, null where it did not complete
-- A ranking by embedding has no tokens of its own: its answer is complete when its order is.
-- step: mart
with estimated as (
    select run_id, pass_id
    from final_requests
    where request_outcome = 'completed'
    group by run_id, pass_id
    having bool_and(token_count_source = 'retokenized')
)
select
    passes.pass_key,
    passes.configuration_key,
    passes.label,
    passes.first_begun,
    passes.is_judged,
    case when passes.rate_per_s is not null then 'open' when passes.batch > 1 then 'batch' else 'closed' end as loop,
    documents.document_id,
    documents.length_class,
    requests.source,
    case when request_outcome = 'completed' then cast(first_token_ns - intended_ns as double) end as ttft_ns,
    case
        when request_outcome = 'completed' and output_tokens >= 2
            -- an estimate stands beside the engine's own counts in no statistic: alone it is a labelled fallback
            and (token_count_source <> 'retokenized' or estimated.pass_id is not null)
            then (last_token_ns - first_token_ns) / (output_tokens - 1)
    end as tpot_ns,
    case
        when request_outcome = 'completed'
            then cast(case when embedding.pass_id is null then last_token_ns else done_ns end - intended_ns as double)
    end as e2e_ns,
    embedding.pass_id is not null as is_embedding,
    begun.cache_state is not null or begun.concurrency > 1 as is_load
from counted_passes as passes
inner join pass_documents as documents using (pass_key, run_id, pass_id)
inner join final_requests as requests using (run_id, pass_id, document_id)
inner join stg_pass_begin as begun using (run_id, pass_id)
left join embedding_passes as embedding using (run_id, pass_id)
left join estimated using (run_id, pass_id)
order by requests.source
