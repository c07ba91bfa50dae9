-- one row per pass without an end in a sealed file, unless a later attempt of it ended
-- severity: finding
-- next: only a finished plan is sealed; mend the program that wrote the run
with attempts as (
    select begun.*, ended.seq is not null as has_end
    from stg_pass_begin as begun
    left join stg_pass_end as ended using (run_id, pass_id)
)
select
    attempts.run_id, attempts.seq, 'pass ' || attempts.pass_id || ' (' || attempts.variant_name || ') never ended' as message
from attempts
semi join (select run_id from run_files where is_sealed) as sealed using (run_id)
where
    not has_end
    and not exists (
        select 1
        from attempts as later
        where
            later.run_id = attempts.run_id and later.variant_id = attempts.variant_id
            and later.environment_id = attempts.environment_id and later.engine_id = attempts.engine_id
            and later.batch = attempts.batch and later.concurrency = attempts.concurrency
            and later.repetition = attempts.repetition and later.attempt > attempts.attempt and later.has_end
    )
order by attempts.run_id, attempts.seq
