-- one row per role: the protocol's documents, measured here or not
-- labels: role
-- figure document_count | documents | measured | distinct documents of the protocol with that role
with first_seen as (
    select *
    from stg_document
    semi join stg_header using (run_id)
    qualify row_number() over (partition by role, document_id order by run_id, seq) = 1
)
select
    role as row_key,
    role,
    count(*) as document_count,
    list(source order by source) as sources
from first_seen
group by role
order by list_position(['development', 'calibration', 'validation', 'test'], role)
