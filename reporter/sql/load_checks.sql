-- one row per counted pass of a load: what two counts of the same thing say of one another
-- only with: load_passes
-- labels: label, configuration_key, loop, repetition, is_single, gap_unit, server, speculative, local_tokenizer
-- figure told_prompts | requests | measured | requests whose prompt tokens both the server and the collector counted
-- figure unlike_prompts | requests | measured | of these those that differ by more than 2 percent or 8 tokens, a leading nonce left out
-- figure prompt_gap_tokens | tokens | measured | largest difference of the server's count from the collector's, a leading nonce left out
-- figure token_time_s | seconds | derived | sum of (last token - first token) / sum of (output tokens - 1), completed requests: what the output rate implies
-- figure gap_time_s | seconds | derived | sum of (last token - first token) / number of recorded gaps, the same requests: the mean gap
-- figure gap_factor | ratio | derived | gap_time_s / token_time_s
with requests as (
    select
        passes.pass_key,
        requests.source,
        requests.gap_unit,
        prompt_tokens is not null and local_prompt_tokens is not null and local_prompt_tokens > 0 as is_told,
        -- the nonce may or may not be in the collector's own count: whichever is nearer
        least(
            abs(prompt_tokens - local_prompt_tokens),
            abs(prompt_tokens - coalesce(nonce_tokens, 0) - local_prompt_tokens)
        ) as gap_tokens,
        local_prompt_tokens,
        case
            when request_outcome = 'completed' and output_tokens >= 2 and len(gap_counts) > 0
                and token_count_source not in ('retokenized', 'none')
                then last_token_ns - first_token_ns
        end as decode_ns,
        output_tokens - 1 as further_tokens,
        list_sum(gap_counts) as gap_count
    from load_passes as passes
    inner join stg_request as requests using (run_id, pass_id)
    where requests.phase = 'measure' and requests.is_final
),
summed as (
    select
        pass_key,
        any_value(gap_unit) as gap_unit,
        count(*) filter (where is_told) as told_prompts,
        count(*) filter (where is_told and (gap_tokens > 8 or gap_tokens * 50 > local_prompt_tokens)) as unlike_prompts,
        max(gap_tokens) filter (where is_told) as prompt_gap_tokens,
        sum(decode_ns) as decode_ns,
        sum(further_tokens) filter (where decode_ns is not null) as further_tokens,
        sum(gap_count) filter (where decode_ns is not null) as gap_count,
        list(source order by source) as sources
    from requests
    group by pass_key
),
named as (
    select
        run_id,
        pass_id,
        any_value(server_name || coalesce(' ' || claims['version'], '')) as server,
        any_value(claims['speculative']) as speculative
    from stg_server_claim
    group by run_id, pass_id
),
tokenizers as (
    select run_id, pass_id, any_value(tokenizer_digest) as tokenizer_digest from stg_variant group by run_id, pass_id
)
select
    passes.pass_key as row_key,
    passes.label,
    passes.configuration_key,
    passes.arrivals as loop,
    passes.repetition,
    case when not passes.is_open and passes.concurrency = 1 then 'yes' else 'no' end as is_single,
    summed.gap_unit,
    coalesce(named.server, '') as server,
    coalesce(named.speculative, 'unknown') as speculative,
    coalesce(tokenizers.tokenizer_digest[1:12], '') as local_tokenizer,
    summed.told_prompts,
    summed.unlike_prompts,
    summed.prompt_gap_tokens,
    'not_exposed_by_engine' as prompt_gap_tokens_missing,
    summed.decode_ns / nullif(summed.further_tokens, 0) / 1e9 as token_time_s,
    summed.decode_ns / nullif(summed.gap_count, 0) / 1e9 as gap_time_s,
    summed.further_tokens / nullif(summed.gap_count, 0) as gap_factor,
    'not_exposed_by_engine' as token_time_s_missing,
    'not_exposed_by_engine' as gap_time_s_missing,
    'not_exposed_by_engine' as gap_factor_missing,
    summed.sources
from load_passes as passes
inner join summed using (pass_key)
left join named using (run_id, pass_id)
left join tokenizers using (run_id, pass_id)
order by passes.is_open, passes.variant, passes.first_begun, passes.repetition, passes.pass_key
