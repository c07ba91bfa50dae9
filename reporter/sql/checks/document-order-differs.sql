-- one row per pass whose order is not the run's documents of its stage, each once
-- severity: finding
-- next: a pass covers all documents of its stage; mend the program that wrote the run
with wanted as (
    select run_id, role, list(document_id order by document_id) as documents from stg_document group by run_id, role
)
select
    passes.run_id,
    passes.seq,
    'pass ' || passes.pass_id || ' orders ' || len(passes.document_order) || ' documents, the run holds '
    || coalesce(len(wanted.documents), 0) || ' of its stage, or others' as message
from stg_pass_begin as passes
left join wanted
    on passes.run_id = wanted.run_id
    and wanted.role = case passes.stage when 'pilot' then 'development' else passes.stage end
where list_sort(passes.document_order) is distinct from wanted.documents
order by passes.run_id, passes.seq
