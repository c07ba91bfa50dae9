-- one row per answered document of a pass: its final try in the measure phase
-- step: mart
select * exclude (gap_counts, gap_max_ns, first_chunk_ns, prompt_hmac, prompt_token_hmac, written_at, missing)
from stg_request
where phase = 'measure' and is_final
qualify row_number() over (
    partition by run_id, pass_id, document_id
    order by turn desc, try_index desc, seq desc
) = 1
order by run_id, pass_id, document_id
