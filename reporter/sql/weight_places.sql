-- one row per (variant on a device, device that holds weights)
-- labels: label, environment_id, device_id, has_offload
-- figure tensor_bytes | bytes | measured | sum of tensor bytes on that device; tied tensors once
-- figure share_percent | percent | derived | 100 x tensor_bytes / tensor_bytes of all devices
with placed as (
    select
        variants.variant_key,
        variants.label,
        variants.environment_id,
        variants.began_at,
        groups.device_id,
        case variants.has_offload when true then 'yes' when false then 'no' end as has_offload,
        coalesce(sum(groups.tensor_bytes) filter (where not groups.is_tied), 0) as tensor_bytes,
        list(groups.source order by groups.run_id, groups.seq) as sources
    from observed_variants as variants
    inner join stg_tensor_group as groups using (run_id, pass_id, observed_at)
    group by all
)
select
    variant_key || '~' || device_id as row_key,
    label,
    environment_id,
    device_id,
    has_offload,
    tensor_bytes,
    100 * tensor_bytes / nullif(sum(tensor_bytes) over (partition by variant_key), 0) as share_percent,
    sources
from placed
order by began_at, variant_key, tensor_bytes desc, device_id
