-- one row per device of an environment, as first detected
-- labels: environment_id, device_id, kind, name, uuid, compute_capability, mig_profile
-- figure device_memory_bytes | bytes | measured | memory as the driver states it
-- figure power_limit_mw | count | measured | enforced power limit in milliwatts
with first_seen as (
    select *
    from stg_device
    qualify row_number() over (partition by environment_id, device_id order by written_at, run_id, seq) = 1
)
select
    environment_id || '~' || device_id as row_key,
    environment_id,
    device_id,
    device_kind as kind,
    device_name as name,
    device_uuid as uuid,
    compute_capability,
    mig_profile,
    device_memory_bytes,
    power_limit_mw,
    missing,
    [source] as sources
from first_seen
order by environment_id, device_id
