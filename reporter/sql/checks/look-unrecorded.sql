-- one row per run on test documents that does not begin with the choice it confirms and the number of its look
-- severity: finding
-- next: put a choice to the test documents with `collector confirm`; nothing shows that this run's choice preceded it
with first_passes as (
    select run_id, min(seq) as seq from stg_pass_begin group by run_id
),
recorded as (
    select decisions.run_id, decisions.decision
    from stg_decision as decisions
    left join first_passes using (run_id)
    where first_passes.seq is null or decisions.seq < first_passes.seq
)
select
    headers.run_id,
    headers.seq,
    'a run on test documents with no decision choice_confirmed or test_set_looked_at before its first pass' as message
from stg_header as headers
where headers.stage = 'test'
    and headers.source_head_digest is null
    and (
        select count(distinct recorded.decision)
        from recorded
        where recorded.run_id = headers.run_id
            and recorded.decision in ('choice_confirmed', 'test_set_looked_at')
    ) < 2
order by headers.run_id, headers.seq
