-- one row per decision record
-- labels: decision, by, at, detail
select
    run_id || ':' || seq as row_key,
    decision,
    decided_by as by,
    written_at as at,
    array_to_string(list_sort(list_transform(map_entries(detail), lambda e: e.key || '=' || e.value)), '; ') as detail,
    [source] as sources
from stg_decision
order by written_at, run_id, seq
