-- one row per engine
-- labels: engine_id, name, version, flags, evidence, server, start, start_environment, claims
with first_seen as (
    select *
    from stg_engine
    qualify row_number() over (partition by engine_id order by written_at, run_id, seq) = 1
),
-- what a server said of itself when it first stood behind this engine
claimed as (
    select
        begun.engine_id,
        arg_min(claims.server_name, (claims.written_at, claims.run_id, claims.seq)) as server,
        arg_min(claims.server_kind, (claims.written_at, claims.run_id, claims.seq)) as server_kind,
        arg_min(claims.claims, (claims.written_at, claims.run_id, claims.seq)) as claims,
        list(claims.source order by claims.source) as sources
    from stg_server_claim as claims
    inner join stg_pass_begin as begun using (run_id, pass_id)
    group by begun.engine_id
),
listed as (
    select
        first_seen.engine_id,
        list_sort(list_transform(map_entries(engine_flags), lambda e: e.key || '=' || e.value)) as flags,
        list_sort(list_transform(map_entries(claimed.claims), lambda e: e.key || '=' || e.value)) as claims
    from first_seen
    left join claimed using (engine_id)
)
select
    engine_id as row_key,
    engine_id,
    case
        when claimed.server_kind = 'other' then claimed.server
        -- the library in process goes by the same name
        when claimed.server_kind = 'transformers' then 'transformers serve'
        else engine_name
    end as name,
    case when claimed.server is null then engine_version else claimed.claims['version'] end as version,
    array_to_string(
        list_filter(
            listed.flags,
            lambda flag: claimed.server is null or not regexp_matches(flag, '^(start|server|environment[.][^=]*)=')
        ),
        '; '
    ) as flags,
    engine_evidence as evidence,
    claimed.server,
    if(claimed.server is null, null, engine_flags['start']) as start,
    if(
        claimed.server is null,
        null,
        array_to_string(
            list_transform(
                list_filter(listed.flags, lambda flag: starts_with(flag, 'environment.')), lambda flag: flag[13:]
            ),
            '; '
        )
    ) as start_environment,
    -- what is claimed of the weights stands with the variant
    array_to_string(
        list_filter(
            listed.claims,
            lambda claim: not regexp_matches(claim, '^(version=|model|weight|parameters|dtype|quantization)')
        ),
        '; '
    ) as claims,
    [source] || coalesce(claimed.sources, []) as sources
from first_seen
left join claimed using (engine_id)
left join listed using (engine_id)
order by engine_name, engine_id
