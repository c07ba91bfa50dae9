-- one row per pass of a batch series, failed ones included, and one per batch that was not tried
-- only with: batch_passes
-- labels: label, configuration_key, environment_id, device, purpose, repetition, outcome, cause, phase, reduced_to, skipped_because, peak_scope, peak_phase
-- figure batch | count | measured | requests put into one batch, as asked for; the last batch of a pass may hold fewer
-- figure batch_count | count | measured | batches that were sent in the measure phase
-- figure live_rows | rows | derived | sum over decode steps of rows still generating / decode steps
-- figure padding_percent | percent | derived | 100 x padding tokens / (prompt tokens + padding tokens), final tries in the measure phase
-- figure seconds_per_document | seconds | derived | measure_ns / completed documents / 10^9
-- figure ttft_p50_s | seconds | derived | median of first token - intended send over the completed requests of this pass | n=ttft_count
-- figure e2e_p50_s | seconds | derived | median of complete answer - intended send over the completed requests of this pass | n=e2e_count
-- figure peak_bytes | bytes | measured | highest peak over the phases of this pass, in the widest scope that was read; reload apart
-- figure document_count | documents | measured | documents judged here and one request at a time
-- figure different_answers | documents | measured | documents whose answer text differs from one request at a time (by HMAC); one answered once counts as different
-- figure flipped_documents | documents | measured | documents whose acceptance differs from one request at a time
-- figure flip_percent | percent | derived | 100 x flipped_documents / document_count | n=document_count | interval=wilson_percent(flipped_documents, document_count)
with answered as (
    select
        passes.pass_key,
        case when any_value(passes.batch) > 1 then count(distinct requests.batch_number) end as batch_count,
        sum(requests.padding_tokens) as padding_tokens,
        sum(requests.prompt_tokens) filter (where requests.padding_tokens is not null) as prompt_tokens,
        count(*) filter (where requests.request_outcome = 'completed') as completed_documents,
        list(requests.source order by requests.source) as sources
    from batch_passes as passes
    inner join final_requests as requests using (run_id, pass_id)
    where passes.is_counted
    group by passes.pass_key
),
steps as (
    select
        run_id,
        pass_id,
        list_sum(map_values(live_row_histogram)) as step_count,
        list_sum(list_transform(map_entries(live_row_histogram), lambda e: cast(e.key as bigint) * e.value)) as live_row_steps
    from stg_pass_end
),
changes as (
    select
        pass_key,
        count(*) as document_count,
        count(*) filter (where has_other_answer) as different_answers,
        count(*) filter (where has_other_verdict) as flipped_documents,
        all_sources(sources) as sources
    from batch_documents
    group by pass_key
),
waiting as (
    select
        pass_key,
        any_value(p50_s) filter (where metric = 'ttft_s') as ttft_p50_s,
        any_value(valued_count) filter (where metric = 'ttft_s') as ttft_count,
        any_value(p50_s) filter (where metric = 'e2e_s') as e2e_p50_s,
        any_value(valued_count) filter (where metric = 'e2e_s') as e2e_count
    from repetition_medians
    group by pass_key
),
-- One pass of a variant is loaded again: its reload would be compared with passes that have none.
peaks as (
    select
        passes.pass_key,
        readings.memory_scope as peak_scope,
        readings.phase as peak_phase,
        readings.value_bytes as peak_bytes,
        readings.source
    from batch_passes as passes
    inner join stg_reading as readings using (run_id, pass_id)
    where
        passes.is_counted and readings.statistic = 'peak' and readings.phase <> 'reload'
        and readings.value_bytes is not null
    qualify row_number() over (
        partition by passes.pass_key
        order by
            list_position(['device', 'process', 'reserved', 'allocated', 'host'], readings.memory_scope),
            readings.value_bytes desc, readings.seq
    ) = 1
),
phases as (
    select run_id, pass_id, arg_min(phase, seq) as phase
    from stg_failure
    where failure_scope in ('run', 'variant', 'pass') and pass_id is not null and coalesce(phase, '') <> 'reload'
    group by run_id, pass_id
),
reduced as (
    select run_id, pass_id, max(detail['to']) as reduced_to, list(source order by source) as sources
    from stg_decision
    where decision = 'batch_reduced'
    group by run_id, pass_id
),
tried as (
    select
        passes.pass_key as row_key,
        passes.label,
        passes.configuration_key,
        passes.environment_id,
        passes.device,
        passes.purpose,
        passes.outcome,
        passes.cause,
        phases.phase,
        reduced.reduced_to,
        cast(null as varchar) as skipped_because,
        passes.batch,
        passes.repetition,
        answered.batch_count,
        case when passes.is_counted and steps.step_count > 0 then steps.live_row_steps / steps.step_count end as live_rows,
        case
            when answered.prompt_tokens > 0
                then 100 * answered.padding_tokens / (answered.prompt_tokens + answered.padding_tokens)
        end as padding_percent,
        case
            when answered.completed_documents > 0
                then passes.phase_ns['measure'] / answered.completed_documents / 1e9
        end as seconds_per_document,
        waiting.ttft_p50_s,
        waiting.ttft_count,
        waiting.e2e_p50_s,
        waiting.e2e_count,
        peaks.peak_scope,
        peaks.peak_phase,
        peaks.peak_bytes,
        changes.document_count,
        changes.different_answers,
        changes.flipped_documents,
        100 * changes.flipped_documents / changes.document_count as flip_percent,
        case
            when not passes.is_counted then coalesce(passes.cause, 'not_measured')
            when passes.is_start then 'not_applicable'
            else 'not_measured'
        end as reason,
        case
            when not passes.is_counted then coalesce(passes.cause, 'not_measured')
            when passes.batch = 1 or embedding.pass_id is not null then 'not_applicable'
            else 'not_exposed_by_engine'
        end as reason_of_rows,
        case
            when not passes.is_counted then coalesce(passes.cause, 'not_measured')
            when embedding.pass_id is not null then 'not_applicable'
            else 'not_exposed_by_engine'
        end as reason_of_first_token,
        case when not passes.is_counted then coalesce(passes.cause, 'not_measured') else 'not_measured' end
            as reason_of_pass,
        passes.sources || if(peaks.source is null, [], [peaks.source]) || coalesce(answered.sources, []) || coalesce(changes.sources, []) || coalesce(reduced.sources, [])
            as sources
    from batch_passes as passes
    left join answered using (pass_key)
    left join waiting using (pass_key)
    left join peaks using (pass_key)
    left join changes using (pass_key)
    left join steps using (run_id, pass_id)
    left join embedding_passes as embedding using (run_id, pass_id)
    left join phases using (run_id, pass_id)
    left join reduced using (run_id, pass_id)
),
skipped as (
    select
        'skipped~' || decisions.detail['variant'] || '~b' || decisions.detail['batch'] || '~' || decisions.run_id[1:6]
            as row_key,
        decisions.detail['variant'] as label,
        runs.environment_id,
        runs.device,
        'series' as purpose,
        'skipped' as outcome,
        decisions.detail['reason'] as skipped_because,
        cast(decisions.detail['batch'] as bigint) as batch,
        'not_tried' as reason,
        'not_tried' as reason_of_rows,
        'not_tried' as reason_of_first_token,
        'not_tried' as reason_of_pass,
        [decisions.source] as sources
    from stg_decision as decisions
    inner join (select distinct run_id, environment_id, device from batch_passes) as runs using (run_id)
    where decisions.decision = 'skipped' and decisions.detail['batch'] is not null
    qualify row_number() over (partition by row_key order by decisions.seq) = 1
),
together as (
    select * from tried
    union all by name
    select * from skipped
)
select
    * exclude (reason, reason_of_rows, reason_of_first_token, reason_of_pass, sources),
    reason_of_first_token as ttft_p50_s_missing,
    reason_of_pass as e2e_p50_s_missing,
    reason_of_pass as peak_bytes_missing,
    reason_of_rows as batch_count_missing,
    reason_of_rows as live_rows_missing,
    reason_of_rows as padding_percent_missing,
    reason as seconds_per_document_missing,
    reason as document_count_missing,
    reason as different_answers_missing,
    reason as flipped_documents_missing,
    reason as flip_percent_missing,
    sources
from together
order by environment_id, batch, repetition nulls last, row_key
