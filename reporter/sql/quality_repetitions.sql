-- one row per counted pass: what each repetition reached, so that a gate another repetition would flip is seen
-- labels: label, configuration_key, purpose
-- figure repetition | count | measured | number of the repetition
-- figure document_count | documents | measured | documents of the pass, answered or not
-- figure accepted_documents | documents | measured | documents accepted by the protocol's rule for one document | n=document_count | interval=wilson(document_count)
select
    passes.pass_key as row_key,
    passes.label,
    passes.configuration_key,
    passes.pass_purpose as purpose,
    passes.repetition,
    count(*) as document_count,
    count(*) filter (where documents.is_accepted) as accepted_documents,
    all_sources(documents.sources) as sources
from counted_passes as passes
inner join judged_documents as documents using (pass_key, run_id, pass_id)
group by
    passes.pass_key, passes.label, passes.configuration_key, passes.pass_purpose, passes.repetition,
    passes.first_begun
order by passes.first_begun, passes.configuration_key, passes.repetition
