-- one row per complete attempt of a pass that had been completed before
-- severity: flag
-- next: only the last complete attempt counts; say why a completed pass was run again
with completed as (
    select begun.*
    from stg_pass_begin as begun
    semi join (select * from stg_pass_end where pass_outcome = 'completed') as ended using (run_id, pass_id)
),
placed as (
    select
        *,
        row_number() over (
            partition by
                protocol_id, stage, environment_id, engine_id, variant_id, batch, concurrency, rate_per_s, context_tokens,
                cache_kind, output_limit_tokens, repetition
            order by attempt, began_at, run_id
        ) as place
    from completed
)
select
    run_id, seq, variant_name || ', repetition ' || repetition || ' was completed ' || (place - 1) || ' time(s) before'
        as message
from placed
where place > 1
order by run_id, seq
