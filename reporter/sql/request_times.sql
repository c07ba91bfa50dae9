-- one row per final try in the measure phase of a counted pass: its times
-- step: mart
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
    requests.ttft_ns,
    requests.tpot_ns,
    requests.e2e_ns,
    requests.is_embedding,
    begun.cache_state is not null or begun.concurrency > 1 as is_load
from counted_passes as passes
inner join pass_documents as documents using (pass_key, run_id, pass_id)
inner join final_requests as requests using (run_id, pass_id, document_id)
inner join stg_pass_begin as begun using (run_id, pass_id)
order by requests.source
