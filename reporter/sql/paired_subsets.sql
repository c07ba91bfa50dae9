-- one row per (configuration other than the reference, subset): its judged pass against the reference in the subset
-- labels: label, configuration_key, subset
-- figure document_count | documents | measured | documents of the subset judged in both
-- figure lost_documents | documents | measured | accepted in the reference only: new failures
-- figure gained_documents | documents | measured | accepted in the configuration only
with listed as (
    select *, unnest(list_distinct(subsets)) as subset from paired_documents
)
select
    configuration_key || '~' || subset as row_key,
    label,
    configuration_key,
    subset,
    count(*) as document_count,
    count(*) filter (where not is_accepted and reference_is_accepted) as lost_documents,
    count(*) filter (where is_accepted and not reference_is_accepted) as gained_documents,
    all_sources(sources) as sources
from listed
group by configuration_key, label, first_begun, subset
order by first_begun, configuration_key, subset
