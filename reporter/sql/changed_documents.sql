-- one row per (configuration, document) whose acceptance differs from the reference; lost ones first, the severe on top
-- labels: label, configuration_key, document_id, direction, severity, reference_outcome, outcome, newly_wrong, newly_right, subsets, language, length_class
with changed as (
    select
        *,
        case when is_accepted then 'gained' else 'lost' end as direction,
        list_filter(reference_fields_right, lambda field: not list_contains(fields_right, field)) as newly_wrong,
        list_filter(fields_right, lambda field: not list_contains(reference_fields_right, field)) as newly_right
    from paired_documents
    where is_accepted <> reference_is_accepted
),
ranked as (
    select
        *,
        case
            when direction = 'lost' and list_has_any(subsets, (select list(subset) from gated_subsets)) then 1
            when direction = 'lost' and is_hard then 2
            else 3
        end as severity_place
    from changed
)
select
    configuration_key || '~' || document_id as row_key,
    label,
    configuration_key,
    document_id,
    direction,
    ['critical', 'hard', 'other'][severity_place] as severity,
    reference_outcome,
    outcome,
    array_to_string(list_sort(newly_wrong), ', ') as newly_wrong,
    array_to_string(list_sort(newly_right), ', ') as newly_right,
    array_to_string(list_sort(subsets), ', ') as subsets,
    language,
    length_class,
    list_sort(list_distinct(sources)) as sources
from ranked
order by first_begun, configuration_key, direction desc, severity_place, document_id
