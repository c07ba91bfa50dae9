-- one row per (judged pass behind a server, duration that its histograms tell): the engine's mean beside the client's
-- only with: engine_passes
-- labels: label, configuration_key, server_name, server_kind, measure, engine_boundary, client_boundary
-- figure engine_count | requests | claimed | observations of the engine's histogram in the measured window; of a kind that counts per token, tokens
-- figure engine_mean_s | seconds | claimed | sum / count of the engine's histogram over the measured window
-- figure client_count | requests | measured | completed requests behind the client's mean
-- figure client_mean_s | seconds | measured | mean over those requests by the client's clock, from sending
with passes as (
    select pass_key, configuration_key, label, first_begun from engine_passes where is_judged
)
select
    passes.configuration_key || '~' || windows.capability as row_key,
    passes.label,
    passes.configuration_key,
    windows.server_name,
    windows.server_kind,
    windows.capability as measure,
    windows.server_kind || '_' || windows.capability as engine_boundary,
    'client_' || windows.capability as client_boundary,
    cast(windows.count_delta as bigint) as engine_count,
    windows.mean as engine_mean_s,
    if(windows.capability = 'per_token', clients.client_per_token_count, clients.client_count) as client_count,
    case windows.capability
        when 'ttft' then clients.client_ttft_s
        when 'e2e' then clients.client_e2e_s
        else clients.client_per_token_s
    end as client_mean_s,
    windows.reason as engine_count_missing,
    windows.reason as engine_mean_s_missing,
    windows.sources || coalesce(clients.sources, []) as sources
from passes
inner join engine_windows as windows using (pass_key)
left join engine_clients as clients using (pass_key)
where windows.capability in ('ttft', 'e2e', 'per_token')
order by passes.first_begun, passes.configuration_key, list_position(['ttft', 'per_token', 'e2e'], windows.capability)
