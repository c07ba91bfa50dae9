-- one row per (configuration other than the reference, document): both judgements side by side
-- A configuration that is not shown to have sent the reference's prompts is paired with nothing.
-- step: mart
select
    documents.configuration_key,
    documents.label,
    passes.purpose,
    passes.first_begun,
    documents.document_id,
    documents.subsets,
    documents.language,
    documents.length_class,
    documents.is_hard,
    documents.cluster,
    documents.outcome,
    documents.is_accepted,
    documents.fields_right,
    reference.outcome as reference_outcome,
    reference.is_accepted as reference_is_accepted,
    reference.fields_right as reference_fields_right,
    -- null where one of the two wrote nothing that could be hashed
    documents.answer_hmac <> reference.answer_hmac as has_other_answer,
    documents.sources || reference.sources as sources
from judged_documents as documents
inner join counted_passes as passes using (pass_key, run_id, pass_id)
inner join configuration_references as compared on passes.configuration_id = compared.configuration_id
inner join judged_documents as reference
    on compared.reference_run_id = reference.run_id
    and compared.reference_pass_id = reference.pass_id
    and documents.document_id = reference.document_id
anti join unlike_prompts on passes.configuration_id = unlike_prompts.configuration_id
where documents.is_judged and documents.configuration_key <> compared.reference_key
order by passes.first_begun, documents.configuration_key, documents.document_id
