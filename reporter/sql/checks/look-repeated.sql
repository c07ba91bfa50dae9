-- one row per look at the test documents whose number another run has too, in the order in which they began
-- severity: flag
-- next: count the looks over all runs of the protocol: give `collector confirm` the folder that holds every one of them
with looked as (
    select
        headers.protocol_id,
        headers.run_id,
        headers.wall_at,
        decisions.seq,
        decisions.detail['look'] as look
    from stg_decision as decisions
    inner join stg_header as headers using (run_id)
    where decisions.decision = 'test_set_looked_at'
),
placed as (
    select *, row_number() over (partition by protocol_id, look order by wall_at, run_id) as place
    from looked
)
select run_id, seq, 'look ' || look || ' at the test documents is recorded in ' || place || ' runs' as message
from placed
where place > 1
order by run_id, seq
