-- one row per score without the request that it judges
-- severity: finding
-- next: mend the program that wrote the run; the score is not counted
select
    scores.run_id,
    scores.seq,
    'score of ' || scores.document_id || ' in pass ' || scores.pass_id || ' judges no request of this run' as message
from stg_score as scores
anti join (select * from stg_request where phase = 'measure') as requests
    using (run_id, pass_id, document_id, turn, try_index)
semi join (select run_id from stg_header where source_head_digest is null) as headers using (run_id)
order by scores.run_id, scores.seq
