-- one row per final try in the measure phase of a counted pass: its times, null where it did not complete
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
    case when request_outcome = 'completed' then cast(first_token_ns - intended_ns as double) end as ttft_ns,
    case
        when request_outcome = 'completed' and output_tokens >= 2
            then (last_token_ns - first_token_ns) / (output_tokens - 1)
    end as tpot_ns,
    case when request_outcome = 'completed' then cast(last_token_ns - intended_ns as double) end as e2e_ns
from counted_passes as passes
inner join pass_documents as documents using (pass_key, run_id, pass_id)
inner join final_requests as requests using (run_id, pass_id, document_id)
order by requests.source
