-- one row per (judged pass of a load, metric, window, request): the values behind the percentiles under load
-- A first answer token stands apart only where a pass has tokens of thinking.
-- step: mart
with requests as (
    select *, bool_or(has_thought) over (partition by pass_key) as is_reasoning from load_requests where is_judged
),
framed as (
    select *, 'whole' as measured_window from requests
    union all by name
    select *, 'steady' as measured_window from requests where is_steady
),
valued as (
    select *, 1 as metric_place, 'ttft_s' as metric, ttft_ns as value_ns from framed
    union all by name
    select *, 2 as metric_place, 'ttfat_s' as metric, ttfat_ns as value_ns from framed where is_reasoning
    union all by name
    select *, 3 as metric_place, 'tpot_s' as metric, tpot_ns as value_ns from framed
    union all by name
    select *, 4 as metric_place, 'e2e_s' as metric, e2e_ns as value_ns from framed
    union all by name
    select *, 5 as metric_place, 'send_delay_s' as metric, send_delay_ns as value_ns from framed where is_open
)
select pass_key, measured_window, metric, metric_place, document_id, value_ns, source
from valued
order by pass_key, measured_window, metric_place, document_id
