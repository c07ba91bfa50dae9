-- one row per configuration with a batch self-check: the same documents alone and in one batch, before measuring
-- labels: label, configuration_key, environment_id, differing, emptied, padding_side, pad_token_source
-- figure batch | count | measured | requests put into one batch
-- figure checked_documents | documents | measured | documents answered alone and in a batch
-- figure differing_documents | documents | measured | documents whose token ids differ between the two
-- figure emptied_documents | documents | measured | documents with an answer alone and none in the batch
with checked as (
    select passes.configuration_key, passes.label, passes.environment_id, passes.first_begun, checks.*
    from stg_batch_check as checks
    inner join (
        select attempts.run_id, attempts.pass_id, attempts.environment_id, attempts.began_at, attempts.is_counted, configurations.*
            exclude (environment_id, engine_id, variant_id, batch)
        from pass_attempts as attempts
        inner join configurations using (configuration_id)
    ) as passes using (run_id, pass_id)
    qualify row_number() over (
        partition by passes.configuration_key
        order by passes.is_counted desc, passes.began_at desc, checks.run_id, checks.seq
    ) = 1
)
select
    configuration_key as row_key,
    label,
    configuration_key,
    environment_id,
    -- the first token that differs is the one after those that agree
    array_to_string(
        list_transform(
            list_zip(differing_document_ids, first_difference_tokens),
            lambda pair: pair[1] || coalesce(' (' || (pair[2] + 1) || ')', '')
        ),
        ', '
    ) as differing,
    array_to_string(emptied_document_ids, ', ') as emptied,
    padding_side,
    pad_token_source,
    batch,
    len(checked_document_ids) as checked_documents,
    len(differing_document_ids) as differing_documents,
    len(emptied_document_ids) as emptied_documents,
    [source] as sources
from checked
order by first_begun, configuration_key
