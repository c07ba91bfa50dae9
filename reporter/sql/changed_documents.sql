-- one row per (configuration, document) whose acceptance differs from the reference
-- labels: label, configuration_key, document_id, direction, reference_outcome, outcome, fields, subsets, language, length_class
with changed as (
    select *, case when is_accepted then 'gained' else 'lost' end as direction
    from paired_documents
    where is_accepted <> reference_is_accepted
)
select
    configuration_key || '~' || document_id as row_key,
    label,
    configuration_key,
    document_id,
    direction,
    reference_outcome,
    outcome,
    array_to_string(list_sort(case when is_accepted then reference_fields_wrong else fields_wrong end), ', ') as fields,
    array_to_string(list_sort(subsets), ', ') as subsets,
    language,
    length_class,
    list_sort(list_distinct(sources)) as sources
from changed
order by first_begun, configuration_key, direction desc, document_id
