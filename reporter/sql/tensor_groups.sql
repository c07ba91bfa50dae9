-- one row per (variant on a device, module group, storage dtype)
-- labels: label, variant_key, module_group, storage_dtype
-- figure tensor_bytes | bytes | measured | sum of tensor bytes; tensors tied to another module are counted there
-- figure element_count | count | measured | sum of elements
select
    variants.variant_key || '~' || groups.module_group || '~' || groups.storage_dtype as row_key,
    variants.label,
    variants.variant_key,
    groups.module_group,
    groups.storage_dtype,
    sum(groups.tensor_bytes) filter (where not groups.is_tied) as tensor_bytes,
    sum(groups.element_count) filter (where not groups.is_tied) as element_count,
    'not_applicable' as tensor_bytes_missing,
    'not_applicable' as element_count_missing,
    list(groups.source order by groups.run_id, groups.seq) as sources
from observed_variants as variants
inner join stg_tensor_group as groups using (run_id, pass_id, observed_at)
group by variants.variant_key, variants.label, variants.began_at, groups.module_group, groups.storage_dtype
order by variants.began_at, variants.variant_key, groups.module_group, groups.storage_dtype
