-- one row per (counted pass, subset): what each repetition reached in each subset, so that a flipped gate is seen
-- labels: label, configuration_key, purpose, subset
-- figure document_count | documents | measured | documents of the subset, answered or not
-- figure accepted_documents | documents | measured | documents of the subset accepted by the protocol's rule for one document
select
    passes.pass_key || '~subset~' || groups.value as row_key,
    passes.label,
    passes.configuration_key,
    passes.pass_purpose as purpose,
    groups.value as subset,
    count(*) as document_count,
    count(*) filter (where documents.is_accepted) as accepted_documents,
    all_sources(documents.sources) as sources
from counted_passes as passes
inner join judged_documents as documents using (pass_key, run_id, pass_id)
inner join document_groups as groups
    on documents.run_id = groups.run_id and documents.document_id = groups.document_id
where groups.dimension = 'subset'
group by
    passes.pass_key, passes.label, passes.configuration_key, passes.pass_purpose, passes.repetition,
    passes.first_begun, groups.value
order by passes.first_begun, passes.configuration_key, passes.repetition, groups.value
