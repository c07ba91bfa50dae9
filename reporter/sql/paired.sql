-- one row per configuration other than the reference: its judged pass against the reference, document by document
-- labels: label, configuration_key, purpose
-- figure document_count | documents | measured | documents judged in both
-- figure both_right | documents | measured | accepted in both
-- figure lost_documents | documents | measured | accepted in the reference only
-- figure gained_documents | documents | measured | accepted in the configuration only
-- figure both_not_right | documents | measured | accepted in neither
-- figure net_documents | documents | derived | gained_documents - lost_documents
-- figure difference_points | percentage_points | derived | 100 x net_documents / document_count | n=document_count | interval=tango(both_right, lost_documents, gained_documents, both_not_right)
with counted as (
    select
        configuration_key,
        label,
        purpose,
        first_begun,
        count(*) as document_count,
        count(*) filter (where is_accepted and reference_is_accepted) as both_right,
        count(*) filter (where not is_accepted and reference_is_accepted) as lost_documents,
        count(*) filter (where is_accepted and not reference_is_accepted) as gained_documents,
        count(*) filter (where not is_accepted and not reference_is_accepted) as both_not_right,
        all_sources(sources) as sources
    from paired_documents
    group by configuration_key, label, purpose, first_begun
)
select
    configuration_key as row_key,
    * exclude (first_begun, sources),
    gained_documents - lost_documents as net_documents,
    100 * (gained_documents - lost_documents) / document_count as difference_points,
    sources
from counted
order by first_begun, configuration_key
