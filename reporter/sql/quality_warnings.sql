-- one row per (configuration, rule) where the quality figure carries a warning
-- labels: label, configuration_key, rule
-- figure affected_documents | documents | measured | documents with the outcome that the rule counts
-- figure document_count | documents | measured | documents of the judged pass
-- figure affected_percent | percent | derived | 100 x affected_documents / document_count
-- figure limit_percent | percent | assumed | share above which the warning is given
with counted as (
    select
        passes.configuration_key,
        passes.label,
        passes.first_begun,
        count(*) as document_count,
        count(*) filter (where documents.outcome = 'unparseable') as unparseable,
        count(*) filter (where documents.outcome = 'truncated') as truncated,
        all_sources(documents.sources) as sources
    from counted_passes as passes
    inner join judged_documents as documents using (pass_key, run_id, pass_id)
    where passes.is_judged
    group by passes.configuration_key, passes.label, passes.first_begun
),
ruled as (
    select *, 'unparseable_share' as rule, unparseable as affected_documents, 5 as limit_percent from counted
    union all by name
    select *, 'truncated_share' as rule, truncated as affected_documents, 5 as limit_percent from counted
)
select
    configuration_key || '~' || rule as row_key,
    label,
    configuration_key,
    rule,
    affected_documents,
    document_count,
    100 * affected_documents / document_count as affected_percent,
    limit_percent,
    sources
from ruled
where affected_documents * 100 > limit_percent * document_count
order by first_begun, configuration_key, rule
