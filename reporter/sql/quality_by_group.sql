-- one row per (configuration, dimension, value): the judged pass within one group of documents
-- labels: label, configuration_key, dimension, value
-- figure document_count | documents | measured | documents of the group, answered or not
-- figure accepted_documents | documents | measured | documents of the group accepted by the protocol's rule for one document | n=document_count | interval=wilson(document_count)
select
    passes.configuration_key || '~' || groups.dimension || '~' || groups.value as row_key,
    passes.label,
    passes.configuration_key,
    groups.dimension,
    groups.value,
    count(*) as document_count,
    count(*) filter (where documents.is_accepted) as accepted_documents,
    all_sources(documents.sources) as sources
from counted_passes as passes
inner join judged_documents as documents using (pass_key, run_id, pass_id)
inner join document_groups as groups
    on documents.run_id = groups.run_id and documents.document_id = groups.document_id
where passes.is_judged and groups.dimension not in ('all', 'role')
group by
    passes.configuration_key, passes.label, passes.first_begun, groups.dimension, groups.value, groups.dimension_place
order by passes.first_begun, passes.configuration_key, groups.dimension_place, groups.value
