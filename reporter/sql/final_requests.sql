-- one row per answered document of a pass: its final try in the measure phase
-- Its times start at the intended send and are null where it did not complete. A ranking by embedding has no tokens of
-- its own: its answer is complete when its order is.
-- step: mart
with final as (
    select * exclude (gap_counts, gap_max_ns, first_chunk_ns, prompt_hmac, prompt_token_hmac, written_at, missing)
    from stg_request
    where phase = 'measure' and is_final
    qualify row_number() over (
        partition by run_id, pass_id, document_id
        order by turn desc, try_index desc, seq desc
    ) = 1
)
select
    final.*,
    case when request_outcome = 'completed' then cast(first_token_ns - intended_ns as double) end as ttft_ns,
    case when request_outcome = 'completed' then cast(first_answer_ns - intended_ns as double) end as ttfat_ns,
    case
        -- what came in one piece shows no time between tokens: it would be a zero that nobody observed
        when request_outcome = 'completed' and output_tokens >= 2 and last_token_ns > first_token_ns
            -- an estimate stands beside the engine's own counts in no statistic: alone it is a labelled fallback
            and (
                token_count_source <> 'retokenized'
                or bool_and(token_count_source = 'retokenized' or request_outcome <> 'completed')
                    over (partition by run_id, pass_id)
            )
            then (last_token_ns - first_token_ns) / (output_tokens - 1)
    end as tpot_ns,
    case
        when request_outcome = 'completed'
            then cast(case when embedding.pass_id is null then last_token_ns else done_ns end - intended_ns as double)
    end as e2e_ns,
    embedding.pass_id is not null as is_embedding
from final
left join embedding_passes as embedding using (run_id, pass_id)
order by run_id, pass_id, document_id
