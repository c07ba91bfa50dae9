-- one row per configuration: the reference pass that its losses are counted against, and the factor it differs in
-- step: mart
with reference_passes as (
    select
        passes.configuration_id, passes.run_id, passes.pass_id, passes.began_at, passes.configuration_key,
        configurations.environment_id, configurations.device, configurations.model
    from counted_passes as passes
    inner join configurations using (configuration_id)
    where passes.pass_purpose = 'reference' and passes.is_judged
),
first_reference as (
    select * from reference_passes order by began_at, run_id, pass_id limit 1
),
own_factor as (
    select configuration_id, arg_min(factor, (repetition, began_at, run_id, seq)) as factor
    from pass_attempts
    group by configuration_id
),
-- the losses of all models are counted against one model: another model's own reference is judged like any variant
paired as (
    select
        configurations.configuration_id, configurations.configuration_key, configurations.environment_id,
        configurations.device, configurations.model, found.configuration_id as reference_id,
        found.configuration_key as reference_key, found.run_id as reference_run_id, found.pass_id as reference_pass_id,
        found.environment_id as reference_environment_id, found.device as reference_device,
        found.model as reference_model
    from configurations
    cross join first_reference
    inner join reference_passes as found
        on found.configuration_id = first_reference.configuration_id
        or (
            found.model = first_reference.model
            and found.device = configurations.device
            -- a reference of another card answers for its card as long as it keeps to the first one itself
            and not exists (
                select 1
                from reference_passes as own
                where own.configuration_id = configurations.configuration_id and own.model = first_reference.model
            )
        )
    qualify row_number() over (
        partition by configurations.configuration_id
        order by
            found.environment_id = configurations.environment_id and found.device = configurations.device desc,
            found.device = configurations.device desc,
            found.began_at, found.run_id, found.pass_id
    ) = 1
)
select
    paired.configuration_id,
    paired.configuration_key,
    paired.reference_key,
    paired.reference_run_id,
    paired.reference_pass_id,
    case
        when paired.configuration_id = paired.reference_id then 'none'
        when paired.environment_id <> paired.reference_environment_id then 'several'
        when paired.device <> paired.reference_device then 'several'
        when paired.model <> paired.reference_model then 'several'
        else own_factor.factor
    end as factor
from paired
inner join own_factor using (configuration_id)
order by paired.configuration_key
