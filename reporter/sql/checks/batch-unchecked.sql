-- one row per pass with batches that measured without comparing batched answers with single ones first
-- severity: finding
-- next: run the pass again with a collector that checks; until then a fault of padding may lie in its answers
with measured as (
    select distinct run_id, pass_id from stg_request where phase = 'measure'
)
select run_id, seq, 'pass ' || pass_id || ' has a batch of ' || batch || ' and no batch check' as message
from stg_pass_begin
semi join measured using (run_id, pass_id)
anti join stg_batch_check using (run_id, pass_id)
where batch > 1
order by run_id, seq
