-- one row per (judged pass of a load, metric, window): while the load held, and over the whole run
-- only with: load_passes
-- labels: label, configuration_key, engine, variant, loop, metric, measured_window, is_headline, is_shown, why
-- figure concurrency | requests | measured | requests submitted at a time; of an open loop the most that may be under way
-- figure rate_per_s | requests_per_second | measured | arrivals per second, as asked for
-- figure request_count | requests | measured | final tries of the window, failed ones included
-- figure valued_count | requests | measured | completed requests of the window that have the metric; the percentiles are theirs
-- figure failed_percent | percent | derived | 100 x final tries of the measure phase that did not complete / final tries of the measure phase
-- figure p50_s | seconds | derived | smallest value that 50 % of valued_count do not exceed; ttft = first token of any channel - intended send, ttfat = first token of the answer - intended send, tpot = (last token - first token) / (output tokens - 1) of answers that came in several pieces, e2e = last token - intended send, send_delay = bytes at the socket - intended send | n=valued_count | interval=order_statistics(p50_low_s, p50_high_s)
-- figure p90_s | seconds | derived | as p50_s, with 90 % | n=valued_count | interval=order_statistics(p90_low_s, p90_high_s)
-- figure p95_s | seconds | derived | as p50_s, with 95 % | n=valued_count | interval=order_statistics(p95_low_s, p95_high_s)
-- figure p99_s | seconds | derived | as p50_s, with 99 % | n=valued_count | interval=order_statistics(p99_low_s, p99_high_s)
with answered as (
    select
        pass_key,
        100 * count(*) filter (where request_outcome <> 'completed') / count(*) as failed_percent,
        -- six is the fewest of which a median has an interval; where all were steady the whole run has no more of them
        count(e2e_ns) filter (where is_steady) >= 6
        or (count(e2e_ns) > 0 and count(e2e_ns) = count(e2e_ns) filter (where is_steady)) as is_steady_enough
    from load_requests
    group by pass_key
),
grouped as (
    select
        pass_key, metric, metric_place, measured_window,
        count(*) as request_count,
        count(value_ns) as valued_count,
        list(value_ns order by value_ns) filter (where value_ns is not null) as sorted_ns,
        list(source order by source) as sources
    from load_samples
    group by pass_key, metric, metric_place, measured_window
),
ranked as (
    select grouped.*, p50, p50_low, p50_high, p90, p90_low, p90_high, p95, p95_low, p95_high, p99, p99_low, p99_high
    from grouped
    left join quantile_ranks on grouped.valued_count = quantile_ranks.n
)
select
    ranked.pass_key || '~' || metric || '~' || measured_window as row_key,
    passes.label,
    passes.configuration_key,
    passes.engine,
    passes.variant,
    passes.arrivals as loop,
    metric,
    measured_window,
    case when (measured_window = 'steady') = answered.is_steady_enough then 'yes' else 'no' end as is_headline,
    -- where every request was steady the whole run says the same again
    case
        when measured_window = 'whole' and count(*) over same_requests > 1 and answered.is_steady_enough then 'no'
        else 'yes'
    end as is_shown,
    case
        when measured_window = 'steady' or answered.is_steady_enough then ''
        when windows.steady_from_ns is null then 'never_steady'
        else 'too_few_steady'
    end as why,
    passes.concurrency,
    passes.rate_per_s,
    case when not passes.is_open then 'not_applicable' end as rate_per_s_missing,
    request_count,
    valued_count,
    answered.failed_percent,
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
    case when metric = 'tpot_s' then 'not_exposed_by_engine' else 'too_few_samples' end as p50_s_missing,
    p50_s_missing as p90_s_missing,
    p50_s_missing as p95_s_missing,
    p50_s_missing as p99_s_missing,
    ranked.sources
from ranked
inner join load_passes as passes using (pass_key)
inner join answered using (pass_key)
inner join load_windows as windows using (pass_key)
window same_requests as (partition by ranked.pass_key, metric, request_count)
order by
    passes.is_open, passes.variant, passes.first_begun, passes.concurrency, passes.rate_per_s, passes.pass_key,
    metric_place, measured_window
