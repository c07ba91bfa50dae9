-- one row per configuration: the devices that its weights lay on
-- step: mart
with placed as (
    select distinct
        attempts.configuration_id,
        attempts.environment_id,
        unnest(map_values(variant.device_map)) as place
    from pass_attempts as attempts
    inner join stg_variant as variant using (run_id, pass_id)
),
observed as (
    select distinct
        configuration_id,
        environment_id,
        case when regexp_matches(place, '^[0-9]+$') then 'cuda:' || place else place end as device_id
    from placed
),
flagged as (
    select distinct attempts.configuration_id, attempts.environment_id, engine.engine_flags['device'] as device_id
    from pass_attempts as attempts
    inner join stg_engine as engine using (run_id, engine_id)
),
present as (
    select distinct environment_id, device_id, device_kind, device_name from stg_device
),
candidates as (
    select observed.configuration_id, present.*, case when device_kind = 'cpu' then 3 else 1 end as preference
    from observed
    inner join present using (environment_id, device_id)
    union all
    select flagged.configuration_id, present.*, 2 as preference
    from flagged
    inner join present using (environment_id, device_id)
    union all
    select attempts.configuration_id, present.*, case when device_kind = 'cpu' then 5 else 4 end as preference
    from (select distinct configuration_id, environment_id from pass_attempts) as attempts
    inner join present using (environment_id)
),
preferred as (
    select *, min(preference) over (partition by configuration_id) as best
    from candidates
),
chosen as (
    -- where nothing was observed, one device stands for the configuration
    select configuration_id, device_id, device_name
    from preferred
    where preference = best
    qualify best < 4 or row_number() over (partition by configuration_id order by device_id) = 1
),
named as (
    select
        configuration_id,
        list(distinct device_name order by device_name) as device_names,
        list(distinct device_id order by device_id) as device_ids
    from chosen
    group by configuration_id
)
select
    configuration_id,
    device_ids,
    array_to_string(device_names, ' + ') || case
        when len(device_ids) > 1 then ' x ' || len(device_ids) else ''
    end as device
from named
order by configuration_id
