-- one row per final try of a completed pass without a score and without a recorded failure of its judging
-- severity: finding
-- next: judge the run again; the document counts as failed until then
select
    requests.run_id,
    requests.seq,
    requests.document_id || ' in pass ' || requests.pass_id || ' was answered and never judged' as message
from stg_request as requests
semi join (select * from stg_pass_end where pass_outcome = 'completed') as ended using (run_id, pass_id)
anti join stg_score as scores using (run_id, pass_id, document_id, turn, try_index)
anti join (select * from stg_failure where failure_scope = 'request') as failures using (run_id, pass_id, document_id)
where requests.phase = 'measure' and requests.is_final
order by requests.run_id, requests.seq
