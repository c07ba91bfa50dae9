-- one row per configuration: its key and labels
-- step: mart
with models as (
    select
        run_id,
        regexp_extract(json_extract_string(protocol_json, '$.plan.model.id'), '[^/]+$')
        || coalesce(' ' || json_extract_string(protocol_json, '$.plan.model.gguf_file'), '') as model
    from stg_header
),
found as (
    select
        configuration_id,
        any_value(models.model) as model,
        any_value(environment_id) as environment_id,
        any_value(engine_id) as engine_id,
        any_value(variant_id) as variant_id,
        any_value(batch) as batch,
        any_value(concurrency) as concurrency,
        any_value(rate_per_s) as rate_per_s,
        any_value(context_tokens) as context_tokens,
        any_value(cache_kind) as cache_kind,
        any_value(output_limit_tokens) as output_limit_tokens,
        arg_min(variant_name, (began_at, run_id, seq)) as variant,
        coalesce(
            min(case when purpose = 'reference' then 'reference' end),
            arg_min(purpose, (repetition, began_at, run_id, seq))
        ) as purpose,
        min((began_at, run_id, seq)) as first_begun,
        bool_or(stage = (select stage from judged_stage)) as is_of_judged_stage
    from pass_attempts
    inner join models using (run_id)
    group by configuration_id
),
with_device as (
    select
        found.*,
        devices.device_ids,
        coalesce(devices.device, 'unknown device') as device,
        count(distinct found.model) over (partition by found.is_of_judged_stage) > 1 as has_several_models
    from found
    left join configuration_devices as devices using (configuration_id)
),
keyed as (
    select
        *,
        case when has_several_models then model || '~' else '' end
        || variant || '~' || trim(regexp_replace(lower(device), '[^a-z0-9]+', '-', 'g'), '-')
        || '~b' || batch || '~c' || concurrency as plain_key
    from with_device
),
counted as (
    select
        *,
        count(*) over (partition by plain_key, is_of_judged_stage) > 1
        or (not is_of_judged_stage and bool_or(is_of_judged_stage) over (partition by plain_key)) as has_same_key,
        min(plain_key) over same_load <> max(plain_key) over same_load as is_load_ambiguous,
        count(distinct device) over of_stage as device_count
    from keyed
    -- what another stage ran names nothing anew: the judged stage's keys and labels stay when a confirmation comes
    window
        of_stage as (partition by is_of_judged_stage),
        same_load as (partition by model, variant, device, greatest(batch, concurrency), is_of_judged_stage)
)
select
    * exclude (plain_key, has_same_key, is_load_ambiguous, device_count, has_several_models),
    -- two machines, engines or caches under one plain key are told apart by a digest
    plain_key || case when has_same_key then '~' || configuration_id[1:6] else '' end as configuration_key,
    case when device_count > 1 then device || ' · ' else '' end
    || case when has_several_models then model || ' · ' else '' end
    || variant || ' · ' || case
        when is_load_ambiguous then 'b' || batch || ' c' || concurrency else cast(greatest(batch, concurrency) as varchar)
    end
    || case when has_same_key then ' · ' || configuration_id[1:6] else '' end as label
from counted
order by first_begun, configuration_id
