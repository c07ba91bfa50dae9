-- one row per (dimension, value) of the documents
-- labels: dimension, value
-- figure document_count | documents | measured | documents of the protocol in the group
-- figure cluster_count | count | measured | distinct templates or sources in the group: documents of one are not independent
-- figure prompt_tokens_p50 | tokens | derived | median (smallest value that half of the prompts do not exceed) of the tokens really sent by the reference
-- figure prompt_tokens_max | tokens | measured | longest prompt really sent by the reference
with judged_runs as (
    select distinct run_id from pass_attempts where stage = (select stage from judged_stage)
),
first_seen as (
    select *
    from stg_document
    semi join stg_header using (run_id)
    where role = (select role from judged_stage)
    qualify row_number() over (
        partition by document_id
        order by run_id not in (select run_id from judged_runs), run_id, seq
    ) = 1
),
grouped as (
    select
        groups.dimension, groups.value, groups.dimension_place, documents.document_id, documents.cluster,
        reference.prompt_tokens, list_append(coalesce(reference.sources, []), documents.source) as sources
    from first_seen as documents
    inner join document_groups as groups using (run_id, document_id)
    left join reference_documents as reference using (document_id)
)
select
    dimension || '~' || value as row_key,
    dimension,
    value,
    count(*) as document_count,
    count(distinct cluster) as cluster_count,
    quantile_disc(prompt_tokens, 0.5) as prompt_tokens_p50,
    max(prompt_tokens) as prompt_tokens_max,
    all_sources(sources) as sources
from grouped
group by dimension, value, dimension_place
order by dimension_place, value
