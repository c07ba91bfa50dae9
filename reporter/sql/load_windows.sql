-- one row per pass of a load: when it rises, holds and falls, and how many requests were under way
-- Closed loop: steady from the moment as many are under way as were asked for, until the first answer after the last
-- send: from then on fewer are. Open loop: from the first arrival after as many requests have ended as were under way
-- on average, to the last arrival. Tries that another one follows are load as well.
-- step: mart
with tries as (
    select
        passes.pass_key, passes.is_open, passes.concurrency,
        requests.intended_ns, requests.sent_ns,
        coalesce(requests.done_ns, requests.last_token_ns, requests.sent_ns) as done_ns,
        coalesce(requests.last_token_ns, requests.done_ns, requests.sent_ns) as processed_ns
    from load_passes as passes
    inner join stg_request as requests using (run_id, pass_id)
    where requests.phase = 'measure' and requests.sent_ns is not null
),
spans as (
    select
        pass_key,
        any_value(is_open) as is_open,
        any_value(concurrency) as concurrency,
        count(*) as try_count,
        min(intended_ns) as begin_ns,
        max(intended_ns) as last_intended_ns,
        min(sent_ns) as first_sent_ns,
        max(sent_ns) as last_sent_ns,
        max(done_ns) as end_ns,
        list(done_ns order by done_ns) as ends_ns,
        sum(done_ns - sent_ns) / nullif(max(done_ns) - min(sent_ns), 0) as mean_under_way
    from tries
    group by pass_key
),
events as (
    select pass_key, sent_ns as at_ns, 1 as sent, 0 as processed from tries
    union all
    select pass_key, done_ns, -1, 0 from tries
    union all
    select pass_key, sent_ns, 0, 1 from tries
    union all
    select pass_key, processed_ns, 0, -1 from tries
),
counted as (
    -- who ends at an instant is gone when the next one begins at it
    select
        pass_key,
        at_ns,
        sum(sent) over each_moment as under_way,
        sum(processed) over each_moment as being_processed
    from events
    window each_moment as (
        partition by pass_key order by at_ns, sent, processed rows between unbounded preceding and current row
    )
),
peaks as (
    select pass_key, max(under_way) as under_way_max, max(being_processed) as processed_max
    from counted
    group by pass_key
),
full_from as (
    select counted.pass_key, min(counted.at_ns) as full_ns
    from counted
    inner join spans using (pass_key)
    where counted.under_way >= spans.concurrency
    group by counted.pass_key
),
settled as (
    select spans.pass_key, min(tries.intended_ns) as arrived_ns
    from spans
    inner join tries using (pass_key)
    where tries.intended_ns >= spans.ends_ns[greatest(1, cast(ceil(spans.mean_under_way) as bigint))]
    group by spans.pass_key
),
windows as (
    select
        spans.*,
        peaks.under_way_max,
        peaks.processed_max,
        case when spans.is_open then settled.arrived_ns else full_from.full_ns end as found_from_ns,
        case
            when spans.is_open then spans.last_intended_ns
            else list_min(list_filter(spans.ends_ns, lambda e: e >= spans.last_sent_ns))
        end as found_to_ns
    from spans
    inner join peaks using (pass_key)
    left join full_from using (pass_key)
    left join settled using (pass_key)
),
placed as (
    select
        * exclude (found_from_ns, found_to_ns, ends_ns),
        case when found_from_ns < found_to_ns then found_from_ns end as steady_from_ns,
        case when found_from_ns < found_to_ns then found_to_ns end as steady_to_ns
    from windows
),
held as (
    select
        placed.pass_key,
        sum(greatest(0, least(tries.processed_ns, steady_to_ns) - greatest(tries.sent_ns, steady_from_ns)))
        / nullif(any_value(steady_to_ns - steady_from_ns), 0) as processed_mean,
        sum(tries.processed_ns - tries.sent_ns) / nullif(any_value(end_ns - first_sent_ns), 0) as processed_mean_whole,
        count(*) filter (where tries.done_ns between steady_from_ns and steady_to_ns) as steady_ends
    from placed
    inner join tries using (pass_key)
    group by placed.pass_key
)
select placed.*, held.* exclude (pass_key)
from placed
inner join held using (pass_key)
order by placed.pass_key
