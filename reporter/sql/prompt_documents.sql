-- one row per (configuration of a request engine, document) of its judged pass: its prompt's tokens beside the reference's
-- step: mart
with own as (
    select
        passes.configuration_id, passes.configuration_key, passes.label, passes.first_begun,
        requests.document_id, requests.prompt_evidence, requests.prompt_token_hmac, requests.nonce_tokens,
        requests.source,
        compared.reference_run_id, compared.reference_pass_id, models.model_id
    from counted_passes as passes
    inner join stg_pass_begin as begun using (run_id, pass_id)
    inner join stg_request as requests using (run_id, pass_id)
    left join (select distinct run_id, pass_id, model_id from stg_variant) as models using (run_id, pass_id)
    left join configuration_references as compared on passes.configuration_id = compared.configuration_id
    where
        passes.is_judged and begun.cache_state is not null
        and requests.phase = 'measure' and requests.turn = 0 and requests.is_final
        -- what was never sent was sent to nobody in another form
        and requests.sent_ns is not null
),
reference as (
    select requests.run_id, requests.pass_id, requests.document_id, requests.prompt_token_hmac, models.model_id
    from stg_request as requests
    inner join (select distinct run_id, pass_id, model_id from stg_variant) as models using (run_id, pass_id)
    where requests.phase = 'measure' and requests.turn = 0 and requests.is_final
)
select
    own.* exclude (reference_run_id, reference_pass_id, prompt_token_hmac, model_id),
    case
        when own.prompt_evidence = 'differs' then 'differs'
        -- without a hash nothing shows that the tokens are the reference's
        when own.prompt_token_hmac is null then 'not_shown'
        when reference.document_id is null or reference.model_id <> own.model_id then 'same'
        when reference.prompt_token_hmac is null then 'not_shown'
        when reference.prompt_token_hmac <> own.prompt_token_hmac then 'differs'
        else 'same'
    end as likeness
from own
left join reference
    on own.reference_run_id = reference.run_id
    and own.reference_pass_id = reference.pass_id
    and own.document_id = reference.document_id
order by own.first_begun, own.configuration_key, own.document_id
