-- one row per engine
-- labels: engine_id, name, version, flags, evidence
with first_seen as (
    select *
    from stg_engine
    qualify row_number() over (partition by engine_id order by written_at, run_id, seq) = 1
)
select
    engine_id as row_key,
    engine_id,
    engine_name as name,
    engine_version as version,
    array_to_string(list_sort(list_transform(map_entries(engine_flags), lambda e: e.key || '=' || e.value)), '; ')
        as flags,
    engine_evidence as evidence,
    [source] as sources
from first_seen
order by engine_name, engine_id
