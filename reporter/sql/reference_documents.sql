-- one row per document of the reference: the first counted pass of the reference in the campaign
-- step: mart
with reference as (
    select run_id, pass_id
    from counted_passes
    where pass_purpose = 'reference' and is_judged
    order by began_at, run_id, pass_id
    limit 1
)
select judged_documents.*
from judged_documents
inner join reference using (run_id, pass_id)
order by document_id
