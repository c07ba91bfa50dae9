-- one row per (judged pass, metric, length class or all, request): the values behind the percentiles
-- step: mart
with requests as (
    select
        passes.configuration_key,
        passes.label,
        passes.first_begun,
        case when passes.rate_per_s is not null then 'open' when passes.batch > 1 then 'batch' else 'closed' end as loop,
        documents.length_class,
        requests.*
    from counted_passes as passes
    inner join pass_documents as documents using (run_id, pass_id)
    inner join final_requests as requests using (run_id, pass_id, document_id)
    where passes.is_judged
),
classes as (
    select *, length_class as group_class from requests
    union all by name
    select *, 'all' as group_class from requests
),
valued as (
    select *, 1 as metric_place, 'ttft_s' as metric, cast(first_token_ns - intended_ns as double) as value_ns
    from classes
    union all by name
    select
        *, 2 as metric_place, 'tpot_s' as metric,
        case when output_tokens >= 2 then (last_token_ns - first_token_ns) / (output_tokens - 1) end as value_ns
    from classes
    union all by name
    select *, 3 as metric_place, 'e2e_s' as metric, cast(last_token_ns - intended_ns as double) as value_ns
    from classes
)
select
    configuration_key, label, first_begun, loop, group_class as length_class, metric, metric_place, document_id,
    case when request_outcome = 'completed' then value_ns end as value_ns, source
from valued
order by first_begun, configuration_key, metric_place, group_class, document_id
