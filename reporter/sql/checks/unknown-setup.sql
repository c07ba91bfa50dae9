-- one row per pass that cites an environment or engine that its run does not describe
-- severity: finding
-- next: mend the program that wrote the run
with cited as (
    select run_id, seq, pass_id, 'environment' as cited, environment_id as id from stg_pass_begin
    union all
    select run_id, seq, pass_id, 'engine', engine_id from stg_pass_begin
),
known as (
    select run_id, 'environment' as cited, environment_id as id from stg_environment
    union all
    select run_id, 'engine', engine_id from stg_engine
)
select run_id, seq, 'pass ' || pass_id || ' cites ' || cited || ' ' || id || ', which is not described' as message
from cited
anti join known using (run_id, cited, id)
order by run_id, seq, cited
