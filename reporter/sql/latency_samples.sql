-- one row per (judged pass, metric, length class or all, request): the values behind the percentiles
-- Behind a server, and with several requests at a time, they are in load_samples: there by window, beside what was lost.
-- step: mart
with requests as (
    select * from request_times where is_judged and not is_load
),
classes as (
    select *, length_class as group_class from requests
    union all by name
    select *, 'all' as group_class from requests
),
valued as (
    select *, 1 as metric_place, 'ttft_s' as metric, ttft_ns as value_ns from classes where not is_embedding
    union all by name
    select *, 2 as metric_place, 'tpot_s' as metric, tpot_ns as value_ns from classes where not is_embedding
    union all by name
    select *, 3 as metric_place, 'e2e_s' as metric, e2e_ns as value_ns from classes
)
select
    configuration_key, label, first_begun, loop, group_class as length_class, metric, metric_place, document_id,
    value_ns, source
from valued
order by first_begun, configuration_key, metric_place, group_class, document_id
