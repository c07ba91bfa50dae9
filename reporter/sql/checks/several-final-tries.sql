-- one row per final try of a document beyond its first in the same pass
-- severity: finding
-- next: each document has exactly one final try per pass; mend the program that wrote the run
with tries as (
    select
        *,
        row_number() over (partition by run_id, pass_id, document_id, turn order by try_index, seq) as place
    from stg_request
    where phase = 'measure' and is_final
)
select run_id, seq, document_id || ' has another final try in pass ' || pass_id as message
from tries
where place > 1
order by run_id, seq
