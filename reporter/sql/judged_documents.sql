-- one row per document of a counted pass, with its judgement; a document without a final try or score has failed
-- step: mart
with scores as (
    select *
    from stg_score
    qualify row_number() over (
        partition by run_id, pass_id, document_id, turn, try_index
        order by seq desc
    ) = 1
)
select
    documents.*,
    requests.source is not null as is_returned,
    scores.source is not null as is_scored,
    requests.prompt_tokens,
    requests.answer_hmac,
    coalesce(scores.score_outcome, case when requests.request_outcome = 'too_long' then 'too_long' else 'failed' end)
        as outcome,
    coalesce(scores.is_accepted, false) as is_accepted,
    coalesce(scores.is_well_formed, false) as is_well_formed,
    scores.graded_value,
    coalesce(scores.fields_right, []) as fields_right,
    coalesce(scores.fields_wrong, []) as fields_wrong,
    coalesce(scores.candidate_count, 0) as candidate_count,
    coalesce(scores.normalisation_count, 0) as normalisation_count,
    list_filter([documents.document_source, requests.source, scores.source], lambda s: s is not null) as sources
from pass_documents as documents
left join final_requests as requests using (run_id, pass_id, document_id)
left join scores
    on documents.run_id = scores.run_id
    and documents.pass_id = scores.pass_id
    and documents.document_id = scores.document_id
    and requests.turn = scores.turn
    and requests.try_index = scores.try_index
order by documents.pass_key, documents.document_id
