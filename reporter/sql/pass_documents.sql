-- one row per document of a counted pass, answered or not
-- step: mart
with documents as (
    select
        run_id, document_id, role, length_class, is_hard, subsets, cluster, language, source as document_source
    from stg_document
)
select
    passes.configuration_key,
    passes.pass_key,
    passes.label,
    passes.run_id,
    passes.pass_id,
    passes.repetition,
    passes.is_judged,
    documents.* exclude (run_id)
from counted_passes as passes
inner join documents using (run_id)
where documents.role = (select role from judged_stage)
order by passes.first_begun, passes.pass_key, documents.document_id
