-- one row per (counted pass behind a server, metric of its kind): what the server's own page told before, in between and after
-- The last page before the measured window and the last after it: warm-up is outside. Where a counter went backwards, or
-- the process that answers began at another moment, the server was started anew and no difference means anything.
-- step: mart
with served as (
    select run_id, pass_id, pass_key, server_name, server_kind, claim from engine_passes
),
scrapes as (
    select served.pass_key, scrapes.* exclude (run_id, pass_id)
    from served
    inner join stg_scrape as scrapes using (run_id, pass_id)
),
before as (
    select * from scrapes
    where scrape_moment = 'before'
    qualify row_number() over (partition by pass_key order by offset_ns desc, seq desc) = 1
),
after as (
    select * from scrapes
    where scrape_moment = 'after'
    qualify row_number() over (partition by pass_key order by offset_ns desc, seq desc) = 1
),
within as (
    select scrapes.*
    from scrapes
    left join before using (pass_key)
    left join after using (pass_key)
    where
        scrapes.scrape_moment = 'during'
        and scrapes.offset_ns >= coalesce(before.offset_ns, 0)
        and scrapes.offset_ns <= coalesce(after.offset_ns, scrapes.offset_ns)
),
read as (
    select
        served.*,
        names.* exclude (server_kind),
        before.source is not null and after.source is not null as has_window,
        before.engine_metrics[names.main_key] as main_before,
        after.engine_metrics[names.main_key] as main_after,
        after.engine_metrics[names.count_key] - before.engine_metrics[names.count_key] as count_delta,
        after.engine_metrics[names.plus_key] - before.engine_metrics[names.plus_key] as plus_delta,
        after.engine_metrics[names.minus_key] - before.engine_metrics[names.minus_key] as minus_delta,
        after.engine_metrics[names.minus_count_key] - before.engine_metrics[names.minus_count_key] as minus_count_delta,
        before.engine_metrics['process_start_time_seconds'] <> after.engine_metrics['process_start_time_seconds']
            as has_other_start,
        list_filter([served.claim, before.source, after.source], lambda source: source is not null) as sources
    from served
    inner join engine_metric_names as names using (server_kind)
    left join before using (pass_key)
    left join after using (pass_key)
),
peaks as (
    select
        read.pass_key, read.capability, count(*) as scrape_count,
        max(within.engine_metrics[read.main_key]) as highest,
        list(within.source order by within.source) as sources
    from read
    inner join within using (pass_key)
    where read.metric_type = 'gauge'
    group by read.pass_key, read.capability
),
judged as (
    select
        read.* exclude (sources),
        coalesce(bool_or(
            coalesce(has_other_start, false) or (metric_type <> 'gauge' and coalesce(main_after < main_before, false))
        ) over (partition by pass_key), false) as is_restarted,
        read.sources || coalesce(peaks.sources, []) as sources,
        peaks.highest,
        coalesce(peaks.scrape_count, 0) as scrape_count
    from read
    left join peaks using (pass_key, capability)
)
select
    run_id, pass_id, pass_key, server_name, server_kind, capability, metric_type, unit, has_window, is_restarted,
    case when not is_restarted then main_after - main_before + if(plus_key is null, 0, plus_delta) end as delta,
    case when not is_restarted then count_delta end as count_delta,
    case
        when not is_restarted and metric_type = 'histogram' and count_delta > 0 and minus_key is null
            then (main_after - main_before) / count_delta
        when not is_restarted and metric_type = 'histogram' and count_delta > 0 and minus_count_delta > 0
            then (main_after - main_before) / count_delta - minus_delta / minus_count_delta
    end as mean,
    case when metric_type = 'gauge' then highest end as highest,
    case when metric_type = 'gauge' then main_after end as last_value,
    scrape_count,
    case when not has_window then 'not_measured' when is_restarted then 'server_restarted' else 'too_few_samples' end
        as reason,
    sources
from judged
order by pass_key, capability
