-- one row per configuration other than the reference: its judged pass against the reference, document by document
-- labels: label, configuration_key, purpose
-- figure document_count | documents | measured | documents judged in both
-- figure both_right | documents | measured | accepted in both
-- figure lost_documents | documents | measured | accepted in the reference only
-- figure gained_documents | documents | measured | accepted in the configuration only
-- figure both_not_right | documents | measured | accepted in neither
-- figure compared_answers | documents | measured | documents answered in both, whose texts' hashes could be compared
-- figure other_answers | documents | measured | of those, documents whose answer differs in at least one character
-- figure net_documents | documents | derived | gained_documents - lost_documents
-- figure difference_points | percentage_points | derived | 100 x net_documents / document_count | n=document_count | interval=tango(both_right, lost_documents, gained_documents, both_not_right)
-- figure cluster_count | count | measured | distinct templates or sources behind the documents
-- figure clustered_points | percentage_points | derived | difference_points, its documents taken as clusters; null where each document is its own or fewer than 15 clusters exist | n=cluster_count | interval=tango_clustered(both_right, lost_documents, gained_documents, both_not_right, cluster_count, net_net, net_size, size_size)
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
        count(has_other_answer) as compared_answers,
        count(*) filter (where has_other_answer) as other_answers,
        all_sources(sources) as sources
    from paired_documents
    group by configuration_key, label, purpose, first_begun
),
clusters as (
    select
        configuration_key,
        coalesce(cluster, document_id) as cluster,
        count(*) as size,
        cast(sum(cast(is_accepted as integer) - cast(reference_is_accepted as integer)) as bigint) as net
    from paired_documents
    group by configuration_key, coalesce(cluster, document_id)
),
clustered as (
    select
        configuration_key,
        count(*) as cluster_count,
        max(size) as largest_size,
        cast(sum(net * net) as bigint) as net_net,
        cast(sum(net * size) as bigint) as net_size,
        cast(sum(size * size) as bigint) as size_size
    from clusters
    group by configuration_key
)
select
    configuration_key as row_key,
    counted.* exclude (first_begun, sources),
    gained_documents - lost_documents as net_documents,
    100 * (gained_documents - lost_documents) / document_count as difference_points,
    clustered.* exclude (configuration_key),
    case when largest_size > 1 and cluster_count >= 15 then difference_points end as clustered_points,
    case when largest_size > 1 then 'too_few_samples' else 'not_applicable' end as clustered_points_missing,
    sources
from counted
inner join clustered using (configuration_key)
order by first_begun, configuration_key
