-- one row per judged pass behind a server: what the server counted in the measured window, beside the client's own
-- only with: engine_passes
-- labels: label, configuration_key, server_name, server_kind, cache_state, is_restarted
-- figure finished | requests | claimed | requests that the server finished between the page read before and the one after
-- figure own_requests | requests | measured | requests of the measure phase that the server took, tries included
-- figure generated_tokens | tokens | claimed | tokens that the server generated in the same window
-- figure own_tokens | tokens | measured | tokens of the client's own requests in the measure phase
-- figure preemptions | count | claimed | requests put back for want of cache, each time
-- figure scrape_count | count | measured | pages read while the requests ran
-- figure running_max | requests | claimed | highest number of requests that the server said it was computing, over those pages
-- figure waiting_max | requests | claimed | highest number of requests that the server said were waiting, over those pages
-- figure cache_use_percent | percent | claimed | 100 x highest share of the key-value cache in use, over those pages
-- figure cache_capacity_tokens | tokens | claimed | tokens that the server says its key-value cache holds
-- figure cache_bytes | bytes | claimed | size of the key-value cache, as the server says
-- figure memory_fraction_percent | percent | claimed | 100 x share of the device's memory that the engine was told to take at its start
-- figure weight_bytes | bytes | claimed | size of the weights, as the server says
-- figure reuse_percent | percent | claimed | 100 x prompt tokens found in the server's cache / prompt tokens looked up
with passes as (
    select * from engine_passes where is_judged
),
told as (
    select
        pass_key,
        bool_or(is_restarted) as is_restarted,
        min(reason) as reason,
        list(capability order by capability) as capabilities,
        max(scrape_count) as scrape_count,
        max(delta) filter (where capability = 'finished') as finished,
        max(delta) filter (where capability = 'generated_tokens') as generated_tokens,
        max(delta) filter (where capability = 'preemptions') as preemptions,
        max(highest) filter (where capability = 'running') as running_max,
        max(highest) filter (where capability = 'waiting') as waiting_max,
        max(highest) filter (where capability = 'cache_use') as cache_use,
        max(coalesce(last_value, highest)) filter (where capability = 'cache_capacity') as cache_capacity,
        max(delta) filter (where capability = 'prefix_hits') as prefix_hits,
        max(delta) filter (where capability = 'prefix_queries') as prefix_queries,
        list_distinct(flatten(list(sources))) as sources
    from engine_windows
    group by pass_key
),
counted as (
    select
        passes.*, told.* exclude (pass_key, sources, finished, generated_tokens, preemptions, running_max, waiting_max),
        clients.own_requests,
        clients.own_tokens,
        cast(round(told.finished) as bigint) as finished,
        cast(round(told.generated_tokens) as bigint) as generated_tokens,
        cast(round(told.preemptions) as bigint) as preemptions,
        cast(round(told.running_max) as bigint) as running_max,
        cast(round(told.waiting_max) as bigint) as waiting_max,
        coalesce(
            try_cast(passes.claims['cache_capacity_tokens'] as bigint), cast(round(told.cache_capacity) as bigint)
        ) as cache_capacity_tokens,
        [passes.claim] || coalesce(told.sources, []) || coalesce(clients.sources, []) as sources
    from passes
    left join told using (pass_key)
    left join engine_clients as clients using (pass_key)
)
select
    configuration_key as row_key,
    label,
    configuration_key,
    server_name,
    server_kind,
    cache_state,
    if(coalesce(is_restarted, false), 'yes', 'no') as is_restarted,
    finished,
    own_requests,
    generated_tokens,
    own_tokens,
    preemptions,
    scrape_count,
    running_max,
    waiting_max,
    100 * cache_use as cache_use_percent,
    cache_capacity_tokens,
    try_cast(claims['cache_bytes'] as bigint) as cache_bytes,
    100 * try_cast(claims['memory_fraction'] as double) as memory_fraction_percent,
    try_cast(claims['weight_bytes'] as bigint) as weight_bytes,
    case when prefix_queries > 0 then 100 * prefix_hits / prefix_queries end as reuse_percent,
    if(list_contains(capabilities, 'finished'), reason, 'not_exposed_by_engine') as finished_missing,
    if(list_contains(capabilities, 'generated_tokens'), reason, 'not_exposed_by_engine') as generated_tokens_missing,
    'not_exposed_by_engine' as own_tokens_missing,
    if(list_contains(capabilities, 'preemptions'), reason, 'not_exposed_by_engine') as preemptions_missing,
    if(list_contains(capabilities, 'running'), 'not_measured', 'not_exposed_by_engine') as running_max_missing,
    if(list_contains(capabilities, 'waiting'), 'not_measured', 'not_exposed_by_engine') as waiting_max_missing,
    if(list_contains(capabilities, 'cache_use'), 'not_measured', 'not_exposed_by_engine') as cache_use_percent_missing,
    'not_exposed_by_engine' as cache_capacity_tokens_missing,
    'not_exposed_by_engine' as cache_bytes_missing,
    'not_exposed_by_engine' as memory_fraction_percent_missing,
    'not_exposed_by_engine' as weight_bytes_missing,
    'not_exposed_by_engine' as scrape_count_missing,
    if(list_contains(capabilities, 'prefix_queries'), reason, 'not_exposed_by_engine') as reuse_percent_missing,
    sources
from counted
order by first_begun, configuration_key
