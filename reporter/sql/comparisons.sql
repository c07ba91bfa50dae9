-- one row per configuration: the reference its losses are counted against, what differs, and how far it is known
-- labels: label, configuration_key, model, reference_key, factor, is_as_requested, has_artefact_digest
-- figure card_count | count | measured | devices that its weights lay on
with traced as (
    select configuration_id, flatten(list(sources order by began_at, run_id, seq)) as sources
    from pass_attempts
    group by configuration_id
)
select
    configurations.configuration_key as row_key,
    configurations.label,
    configurations.configuration_key,
    configurations.model,
    compared.reference_key,
    compared.factor,
    case
        when variants.observed_at is null then ''
        when variants.observed_at = 'after_warmup' and len(variants.deviations) = 0 then 'yes'
        else 'no'
    end as is_as_requested,
    case when variants.observed_at is null then '' when cardinality(variants.file_digests) > 0 then 'yes' else 'no' end
        as has_artefact_digest,
    greatest(1, len(configurations.device_ids)) as card_count,
    traced.sources
from configurations
inner join traced using (configuration_id)
left join configuration_references as compared using (configuration_id)
left join observed_variants as variants
    on configurations.environment_id = variants.environment_id
    and configurations.engine_id = variants.engine_id
    and configurations.variant_id = variants.variant_id
order by configurations.first_begun, configurations.configuration_key
