-- one row per (counted pass, metric that it has): the median of its completed requests; a pass is a process of its own
-- step: mart
with medians as (
    select
        pass_key,
        count(ttft_ns) as ttft_count,
        count(tpot_ns) as tpot_count,
        count(e2e_ns) as e2e_count,
        quantile_disc(ttft_ns, 0.5) as ttft_p50_ns,
        quantile_disc(tpot_ns, 0.5) as tpot_p50_ns,
        quantile_disc(e2e_ns, 0.5) as e2e_p50_ns
    from request_times
    group by pass_key
),
valued as (
    select pass_key, 1 as metric_place, 'ttft_s' as metric, ttft_count as valued_count, ttft_p50_ns as p50_ns
    from medians
    union all by name
    select pass_key, 2 as metric_place, 'tpot_s' as metric, tpot_count as valued_count, tpot_p50_ns as p50_ns
    from medians
    union all by name
    select pass_key, 3 as metric_place, 'e2e_s' as metric, e2e_count as valued_count, e2e_p50_ns as p50_ns
    from medians
)
select
    passes.pass_key,
    passes.configuration_key,
    passes.label,
    passes.first_begun,
    passes.repetition,
    passes.sources,
    valued.* exclude (p50_ns),
    valued.p50_ns / 1e9 as p50_s
from valued
inner join counted_passes as passes using (pass_key)
where valued.valued_count > 0
order by passes.first_begun, passes.configuration_key, valued.metric_place, passes.repetition
