-- one row per variant on a device: observed after warm-up, else after loading
-- labels: label, variant, model_id, revision, origin, quantization, weight_storage, compute_dtype, attention, cache, output_layer, bits, group_size, excluded, tied, offload, deviations, file_digests, observed_at, environment_id, server, server_claims
-- figure parameter_count | count | measured | parameters found in the loaded model
-- figure loaded_weight_bytes | bytes | measured | bytes of all weight storages right after loading, before the first request
-- figure weight_bytes | bytes | measured | bytes of all weight storages, each once, scales included
-- figure claimed_weight_bytes | bytes | claimed | what the library's own footprint method says
-- figure thread_count | count | measured | threads that the engine computes with, as it says after loading
-- figure effective_bits | bits | derived | 8 x weight_bytes / parameter_count
with loaded as (
    select run_id, pass_id, variant_id, any_value(weight_bytes) as loaded_weight_bytes
    from stg_variant
    where observed_at = 'loaded'
    group by run_id, pass_id, variant_id
)
select
    variant_key as row_key,
    label,
    variant,
    model_id,
    model_revision as revision,
    origin,
    quantization_method as quantization,
    weight_storage,
    compute_dtype,
    attention,
    cache_kind as cache,
    output_layer_format as output_layer,
    quantization_bits as bits,
    quantization_group as group_size,
    array_to_string(excluded_modules, ', ') as excluded,
    case has_tied_embeddings when true then 'yes' when false then 'no' end as tied,
    case has_offload when true then 'yes' when false then 'no' end as offload,
    array_to_string(list_sort(deviations), '; ') as deviations,
    array_to_string(list_sort(list_transform(map_entries(file_digests), lambda e: e.key || '=' || e.value)), '; ')
        as file_digests,
    observed_at,
    environment_id,
    requested['server'] as server,
    array_to_string(
        list_sort(
            list_transform(
                list_filter(map_entries(observed), lambda e: regexp_matches(e.key, '^claimed_(model|weight|parameters|dtype|quantization)')),
                lambda e: e.key[9:] || '=' || e.value
            )
        ),
        '; '
    ) as server_claims,
    parameter_count,
    loaded.loaded_weight_bytes,
    weight_bytes,
    claimed_weight_bytes,
    try_cast(observed['threads'] as bigint) as thread_count,
    case when parameter_count > 0 then 8.0 * weight_bytes / parameter_count end as effective_bits,
    missing,
    [source] as sources
from observed_variants
left join loaded using (run_id, pass_id, variant_id)
order by began_at, variant_key
