-- one row per (variant, environment, engine): its observation after warm-up, else after loading
-- step: mart
with observed as (
    select
        configurations.environment_id,
        configurations.engine_id,
        configurations.variant,
        configurations.device,
        case
            when (select count(distinct model) from configurations) > 1 then configurations.model || '~' else ''
        end as model_prefix,
        attempts.began_at,
        attempts.is_counted,
        variants.*
    from stg_variant as variants
    inner join pass_attempts as attempts using (run_id, pass_id)
    inner join configurations using (configuration_id)
),
chosen as (
    select *
    from observed
    qualify row_number() over (
        partition by environment_id, engine_id, variant_id
        order by observed_at = 'after_warmup' desc, is_counted desc, began_at, run_id, seq
    ) = 1
),
keyed as (
    select
        *,
        model_prefix || variant || '~' || trim(regexp_replace(lower(device), '[^a-z0-9]+', '-', 'g'), '-') as plain_key
    from chosen
)
select
    * exclude (plain_key, model_prefix),
    plain_key || case
        when count(*) over (partition by plain_key) > 1 then '~' || md5(environment_id || engine_id || variant_id)[1:6]
        else ''
    end as variant_key,
    case when (select count(distinct device) from keyed) > 1 then device || ' · ' else '' end
    || case when model_prefix = '' then '' else model_prefix[:-2] || ' · ' end || variant as label
from keyed
order by plain_key, environment_id, engine_id, variant_id
