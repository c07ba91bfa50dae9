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
        any_value(case when rate_per_s is null then 'closed' else arrivals end) as arrivals,
        any_value(cache_state) as cache_state,
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
-- what a server is called by what it says of itself; of a plain OpenAI interface only its name is known
claimed as (
    select
        attempts.configuration_id,
        arg_min(
            case
                when claims.server_kind = 'other' then claims.server_name
                -- the library in process goes by the same name
                when claims.server_kind = 'transformers' then 'transformers serve'
                else claims.server_kind
            end,
            (attempts.began_at, claims.run_id, claims.seq)
        ) as engine,
        arg_min(claims.server_name, (attempts.began_at, claims.run_id, claims.seq)) as server_name,
        bool_and(claims.is_loopback) as is_loopback
    from stg_server_claim as claims
    inner join pass_attempts as attempts using (run_id, pass_id)
    group by attempts.configuration_id
),
engines as (
    select engine_id, arg_min(engine_name, (written_at, run_id, seq)) as engine_name from stg_engine group by engine_id
),
with_device as (
    select
        found.*,
        devices.device_ids,
        -- the weights of a server elsewhere lie on no device of this machine
        case when claimed.is_loopback = false then claimed.server_name || ' (remote)' end as remote,
        coalesce(remote, devices.device, 'unknown device') as device,
        coalesce(claimed.engine, engines.engine_name, 'unknown engine') as engine,
        count(distinct found.model) over (partition by found.is_of_judged_stage) > 1 as has_several_models
    from found
    left join configuration_devices as devices using (configuration_id)
    left join claimed using (configuration_id)
    left join engines using (engine_id)
),
keyed as (
    select
        *,
        case when has_several_models then model || '~' else '' end
        || variant || '~' || trim(regexp_replace(lower(device), '[^a-z0-9]+', '-', 'g'), '-')
        || case
            when rate_per_s is null then '~b' || batch || '~c' || concurrency
            else '~r' || printf('%.6g', rate_per_s)
        end as plain_key
    from with_device
),
counted as (
    select
        *,
        count(*) over (partition by plain_key, is_of_judged_stage) > 1
        or (not is_of_judged_stage and bool_or(is_of_judged_stage) over (partition by plain_key)) as has_same_key,
        count(distinct device) over of_stage as device_count,
        count(distinct engine) over of_stage > 1 as has_several_engines
    from keyed
    -- what another stage ran names nothing anew: the judged stage's keys and labels stay when a confirmation comes
    window of_stage as (partition by is_of_judged_stage)
)
select
    * exclude (plain_key, has_same_key, device_count, has_several_models, remote),
    -- two machines, engines or caches under one plain key are told apart by a digest
    plain_key || case when has_same_key then '~' || configuration_id[1:6] else '' end as configuration_key,
    case when device_count > 1 then device || ' · ' else '' end
    || case when has_several_models then model || ' · ' else '' end
    || variant || ' · '
    -- an engine is named where engines differ, unless the variant is called by it
    || case
        when has_several_engines and not contains(lower(variant), lower(engine)) and not contains(lower(engine), lower(variant))
            then engine || ' · '
        else ''
    end
    || case
        when rate_per_s is not null then printf('%.6g', rate_per_s) || '/s'
        when batch > 1 and concurrency > 1 then 'b' || batch || ' c' || concurrency
        when batch > 1 then 'b' || batch
        when concurrency > 1 then 'c' || concurrency
        else '1'
    end
    || case when has_same_key then ' · ' || configuration_id[1:6] else '' end as label
from counted
order by first_begun, configuration_id
