-- one row per (configuration, metric, length class or all): requests of the judged pass, warm-up excluded
-- labels: label, configuration_key, metric, length_class, loop
-- figure request_count | requests | measured | final tries in the measure phase, failed ones included
-- figure valued_count | requests | measured | completed requests that have the metric; the percentiles are theirs
-- figure p50_s | seconds | derived | smallest value that 50 % of valued_count do not exceed; ttft = first token - intended send, tpot = (last token - first token) / (output tokens - 1) of answers that came in several pieces, e2e = last token - intended send, of a ranking by embedding done - intended send | n=valued_count | interval=order_statistics(p50_low_s, p50_high_s)
-- figure p90_s | seconds | derived | as p50_s, with 90 % | n=valued_count | interval=order_statistics(p90_low_s, p90_high_s)
-- figure p95_s | seconds | derived | as p50_s, with 95 % | n=valued_count | interval=order_statistics(p95_low_s, p95_high_s)
-- figure p99_s | seconds | derived | as p50_s, with 99 % | n=valued_count | interval=order_statistics(p99_low_s, p99_high_s)
with grouped as (
    select
        configuration_key, label, first_begun, loop, metric, metric_place, length_class,
        count(*) as request_count,
        count(value_ns) as valued_count,
        list(value_ns order by value_ns) filter (where value_ns is not null) as sorted_ns,
        list(source order by source) as sources
    from latency_samples
    group by configuration_key, label, first_begun, loop, metric, metric_place, length_class
),
ranked as (
    select grouped.*, p50, p50_low, p50_high, p90, p90_low, p90_high, p95, p95_low, p95_high, p99, p99_low, p99_high
    from grouped
    left join quantile_ranks on grouped.valued_count = quantile_ranks.n
)
select
    configuration_key || '~' || metric || '~' || length_class as row_key,
    label,
    configuration_key,
    metric,
    length_class,
    loop,
    request_count,
    valued_count,
    sorted_ns[p50] / 1e9 as p50_s,
    sorted_ns[p50_low] / 1e9 as p50_low_s,
    sorted_ns[p50_high] / 1e9 as p50_high_s,
    sorted_ns[p90] / 1e9 as p90_s,
    sorted_ns[p90_low] / 1e9 as p90_low_s,
    sorted_ns[p90_high] / 1e9 as p90_high_s,
    sorted_ns[p95] / 1e9 as p95_s,
    sorted_ns[p95_low] / 1e9 as p95_low_s,
    sorted_ns[p95_high] / 1e9 as p95_high_s,
    sorted_ns[p99] / 1e9 as p99_s,
    sorted_ns[p99_low] / 1e9 as p99_low_s,
    sorted_ns[p99_high] / 1e9 as p99_high_s,
    'too_few_samples' as p50_s_missing,
    'too_few_samples' as p90_s_missing,
    'too_few_samples' as p95_s_missing,
    'too_few_samples' as p99_s_missing,
    sources
from ranked
order by first_begun, configuration_key, metric_place, length_class <> 'all', length_class
