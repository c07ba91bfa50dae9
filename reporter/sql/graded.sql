-- one row per configuration whose answers are judged by degrees: its judged pass (repetition 1, last complete attempt)
-- labels: label, configuration_key, purpose
-- figure document_count | documents | measured | documents of the pass, answered or not
-- figure valued_count | documents | measured | documents with a value from 0 to 1; one that was not answered readably has none, which is not 0
-- figure mean_value | ratio | derived | sum of the values / valued_count | n=valued_count | interval=mean_of_values(graded_values)
-- figure median_value | ratio | measured | smallest value that 50 % of valued_count do not exceed | n=valued_count
-- figure low_value | ratio | measured | smallest value that 25 % of valued_count do not exceed | n=valued_count
-- figure tenth_value | ratio | measured | smallest value that 10 % of valued_count do not exceed | n=valued_count
-- figure worst_value | ratio | measured | smallest value | n=valued_count
-- figure perfect_documents | documents | measured | documents with the value 1 | n=document_count | interval=wilson(document_count)
-- figure nothing_documents | documents | measured | documents with the value 0 | n=document_count | interval=wilson(document_count)
with grouped as (
    select
        passes.configuration_key,
        passes.label,
        passes.purpose,
        passes.first_begun,
        count(*) as document_count,
        count(documents.graded_value) as valued_count,
        -- summed in one order: a sum of doubles depends on it
        list(documents.graded_value order by documents.graded_value) filter (where documents.graded_value is not null)
            as graded_values,
        count(*) filter (where documents.graded_value = 1) as perfect_documents,
        count(*) filter (where documents.graded_value = 0) as nothing_documents,
        all_sources(documents.sources) as sources
    from counted_passes as passes
    inner join judged_documents as documents using (pass_key, run_id, pass_id)
    where passes.is_judged
    group by passes.configuration_key, passes.label, passes.purpose, passes.first_begun
)
select
    configuration_key as row_key,
    configuration_key,
    label,
    purpose,
    document_count,
    valued_count,
    list_sum(graded_values) / valued_count as mean_value,
    graded_values[cast(ceil(0.5 * valued_count) as bigint)] as median_value,
    graded_values[cast(ceil(0.25 * valued_count) as bigint)] as low_value,
    graded_values[cast(ceil(0.1 * valued_count) as bigint)] as tenth_value,
    graded_values[1] as worst_value,
    perfect_documents,
    nothing_documents,
    graded_values,
    sources
from grouped
where valued_count > 0
order by first_begun, configuration_key
