-- one row per completed pass that lacks the final try of a document in its order
-- severity: finding
-- next: keep the pass out of the campaign, or run it again; the documents count as failed until then
with expected as (
    select run_id, pass_id, unnest(document_order) as document_id from stg_pass_begin
),
answered as (
    select distinct run_id, pass_id, document_id from stg_request where phase = 'measure' and is_final
),
absent as (
    select run_id, pass_id, list(document_id order by document_id) as documents
    from expected
    anti join answered using (run_id, pass_id, document_id)
    group by run_id, pass_id
)
select
    pass_end.run_id,
    pass_end.seq,
    'pass ' || pass_end.pass_id || ' is called completed but ' || len(documents)
    || ' document(s) have no final try: ' || array_to_string(documents[:5], ', ')
    || case when len(documents) > 5 then ', ...' else '' end as message
from stg_pass_end as pass_end
inner join absent using (run_id, pass_id)
where pass_end.pass_outcome = 'completed'
order by pass_end.run_id, pass_end.seq
