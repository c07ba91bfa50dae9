-- one row per (pass of a batch series, document): its answer and verdict beside those of one request at a time
-- step: mart
with starts as (
    select documents.document_id, documents.answer_hmac, documents.is_accepted, documents.outcome, documents.sources,
        passes.environment_id
    from judged_documents as documents
    inner join batch_passes as passes using (run_id, pass_id)
    where passes.is_start
)
select
    passes.pass_key,
    passes.environment_id,
    passes.configuration_key,
    passes.label,
    passes.device,
    passes.batch,
    passes.repetition,
    documents.document_id,
    documents.language,
    documents.length_class,
    documents.outcome,
    starts.outcome as start_outcome,
    documents.answer_hmac is distinct from starts.answer_hmac as has_other_answer,
    documents.is_accepted <> starts.is_accepted as has_other_verdict,
    documents.sources || starts.sources as sources
from judged_documents as documents
inner join batch_passes as passes using (run_id, pass_id)
inner join starts using (environment_id, document_id)
where passes.is_counted and not passes.is_start
order by passes.environment_id, passes.batch, passes.repetition, passes.configuration_key, documents.document_id
