-- one row per pass attempt
-- step: mart
with begun as (
    select
        *,
        md5(concat_ws(
            '|', environment_id, engine_id, variant_id, batch, concurrency, coalesce(cast(rate_per_s as varchar), '-'),
            coalesce(cast(context_tokens as varchar), '-'), cache_kind, output_limit_tokens,
            -- null adds nothing: configurations of before there were open loops and servers keep their ids
            case when rate_per_s is not null then arrivals end, case when cache_state = 'warm' then 'warm' end
        )) as configuration_id
    from stg_pass_begin
    -- without a readable header nothing in a file can be interpreted
    semi join stg_header using (run_id, protocol_id)
),
causes as (
    select run_id, pass_id, arg_min(failure_cause, seq) as failure_cause
    from stg_failure
    where failure_scope in ('run', 'variant', 'pass') and pass_id is not null and coalesce(phase, '') <> 'reload'
    group by run_id, pass_id
),
ended as (
    select
        begun.*,
        pass_end.pass_outcome,
        pass_end.distinct_document_count,
        pass_end.phase_ns,
        pass_end.pass_ns,
        pass_end.is_steady,
        causes.failure_cause,
        case when pass_end.source is null then [begun.source] else [begun.source, pass_end.source] end as sources
    from begun
    left join stg_pass_end as pass_end using (run_id, pass_id)
    left join causes using (run_id, pass_id)
),
ranked as (
    select
        *,
        row_number() over (
            partition by configuration_id, stage, repetition, coalesce(pass_outcome, '') = 'completed'
            order by attempt desc, began_at desc, run_id desc, pass_id desc
        ) as place_from_last
    from ended
)
select
    * exclude (place_from_last, pass_outcome),
    coalesce(pass_outcome, 'not_ended') as pass_outcome,
    coalesce(pass_outcome = 'completed' and stage = (select stage from judged_stage) and place_from_last = 1, false) as is_counted,
    case
        when pass_outcome is null then coalesce(failure_cause, 'not_ended')
        when pass_outcome <> 'completed' then coalesce(failure_cause, pass_outcome)
        when stage <> (select stage from judged_stage) then 'other_stage'
        when place_from_last <> 1 then 'superseded'
    end as cause
from ranked
order by began_at, run_id, seq
