-- one row per pass with a percentile of a time that is exactly zero: what was not observed was written as zero
-- severity: finding
-- next: mend the program that wrote the run; a time that was not observed is null with a reason
with timed as (
    select
        run_id, pass_id, seq,
        first_token_ns - sent_ns as first_token_ns,
        last_token_ns - sent_ns as answer_ns
    from stg_request
    where phase = 'measure' and is_final and request_outcome = 'completed'
),
-- a script that plays requests has no clock of its own
played as (
    select begun.run_id, begun.pass_id
    from stg_pass_begin as begun
    inner join stg_engine as engines using (run_id, engine_id)
    where engines.engine_name = 'scripted'
),
summed as (
    select
        run_id,
        pass_id,
        min(seq) as seq,
        list_filter(
            [quantile_disc(first_token_ns, 0.5), quantile_disc(first_token_ns, 0.9), quantile_disc(first_token_ns, 0.95)],
            lambda p: p = 0
        ) as first_token_zeros,
        list_filter(
            [quantile_disc(answer_ns, 0.5), quantile_disc(answer_ns, 0.9), quantile_disc(answer_ns, 0.95)],
            lambda p: p = 0
        ) as answer_zeros
    from timed
    anti join played using (run_id, pass_id)
    group by run_id, pass_id
)
select
    run_id,
    seq,
    'pass ' || pass_id || ': ' || case
        when len(first_token_zeros) > 0 then 'a percentile of the time to first token is exactly 0'
        else 'a percentile of the complete answer is exactly 0'
    end as message
from summed
where len(first_token_zeros) > 0 or len(answer_zeros) > 0
order by run_id, seq
