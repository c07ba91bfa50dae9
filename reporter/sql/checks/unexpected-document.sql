-- one row per measured request for a document that is not in its pass's order
-- severity: finding
-- next: mend the program that wrote the run; the request is not counted
with expected as (
    select run_id, pass_id, unnest(document_order) as document_id from stg_pass_begin
)
select requests.run_id, requests.seq, requests.document_id || ' is not in the order of pass ' || requests.pass_id as message
from stg_request as requests
semi join stg_pass_begin using (run_id, pass_id)
anti join expected using (run_id, pass_id, document_id)
where requests.phase = 'measure'
order by requests.run_id, requests.seq
