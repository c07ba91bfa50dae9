-- one row per (configuration, field)
-- labels: label, configuration_key, field
-- figure document_count | documents | measured | documents of the judged pass, answered or not
-- figure right_documents | documents | measured | documents in which the field is right | n=document_count | interval=wilson(document_count)
with names as (
    select distinct unnest(fields_right || fields_wrong) as field from judged_documents
)
select
    passes.configuration_key || '~' || names.field as row_key,
    passes.label,
    passes.configuration_key,
    names.field,
    count(*) as document_count,
    count(*) filter (where list_contains(documents.fields_right, names.field)) as right_documents,
    all_sources(documents.sources) as sources
from counted_passes as passes
inner join judged_documents as documents using (pass_key, run_id, pass_id)
cross join names
where passes.is_judged
group by passes.configuration_key, passes.label, passes.first_begun, names.field
order by passes.first_begun, passes.configuration_key, names.field
