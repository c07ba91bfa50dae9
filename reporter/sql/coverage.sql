-- one row per configuration: how many of the documents that the protocol expects were answered and judged
-- labels: label, configuration_key, purpose, is_complete
-- figure document_count | documents | measured | documents that the protocol expects, answered or not
-- figure returned_documents | documents | measured | distinct documents with a final try
-- figure scored_documents | documents | measured | distinct documents with a judgement of their final try
-- figure covered_percent | percent | derived | 100 x scored_documents / document_count | n=document_count
with counted as (
    select
        passes.configuration_key,
        passes.label,
        passes.purpose,
        passes.first_begun,
        count(*) as document_count,
        count(*) filter (where documents.is_returned) as returned_documents,
        count(*) filter (where documents.is_scored) as scored_documents,
        all_sources(documents.sources) as sources
    from counted_passes as passes
    inner join judged_documents as documents using (pass_key, run_id, pass_id)
    where passes.is_judged
    group by passes.configuration_key, passes.label, passes.purpose, passes.first_begun
)
select
    configuration_key as row_key,
    label,
    configuration_key,
    purpose,
    case when scored_documents = document_count then 'yes' else 'no' end as is_complete,
    document_count,
    returned_documents,
    scored_documents,
    100 * scored_documents / document_count as covered_percent,
    sources
from counted
order by first_begun, configuration_key
