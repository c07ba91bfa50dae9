-- one row per pass that ranked by embedding: it has no first token, no further tokens and no decode steps
-- step: mart
select begun.run_id, begun.pass_id
from stg_pass_begin as begun
inner join stg_engine as engines using (run_id, engine_id)
where engines.engine_flags['embedding'] is not null
group by begun.run_id, begun.pass_id
order by begun.run_id, begun.pass_id
