-- one row per (run, document, dimension, value): the groups that a document belongs to
-- step: mart
with documents as (
    select * from stg_document
)
select run_id, document_id, 'all' as dimension, 'all' as value, 0 as dimension_place from documents
union all
select run_id, document_id, 'role', role, 1 from documents
union all
select run_id, document_id, 'length_class', length_class, 2 from documents
union all
select run_id, document_id, 'language', coalesce(language, 'not stated'), 3 from documents
union all
select run_id, document_id, 'subset', unnest(list_distinct(subsets)), 4 from documents
union all
select run_id, document_id, 'hard', case when is_hard then 'yes' else 'no' end, 5 from documents
order by dimension_place, value, run_id, document_id
