-- one row per document whose prompt differs between passes of one model under one protocol: their answers do not compare
-- severity: finding
-- next: send the same rendered prompt in every pass: same template, same system prompt
with models as (
    select distinct run_id, pass_id, model_id, coalesce(template_digest, '') as template from stg_variant
),
prompts as (
    select passes.protocol_id, models.model_id, requests.document_id, requests.run_id, requests.seq, requests.pass_id, requests.prompt_hmac
    from stg_request as requests
    inner join models using (run_id, pass_id)
    inner join stg_pass_begin as passes using (run_id, pass_id)
    where requests.phase = 'measure' and requests.turn = 0 and requests.prompt_hmac is not null
),
compared as (
    select
        *,
        first_value(prompt_hmac) over (
            partition by protocol_id, model_id, document_id
            order by run_id, seq
        ) as first_prompt
    from prompts
)
select
    run_id, seq, document_id || ' was sent another prompt in pass ' || pass_id || ' than in an earlier one' as message
from compared
where prompt_hmac <> first_prompt
order by run_id, seq
