-- one row per run file
-- labels: file, run_id, stage, is_sealed, head_digest, began_at, ended_at, plan_id, judges
-- figure record_count | records | measured | lines read as records
with written as (
    select run_id, max(written_at) as ended_at from records group by run_id
),
marks as (
    select run_id, list(source order by seq) as sources
    from (
        select run_id, seq, source from stg_header
        union all
        select run_id, seq, source from stg_seal
    )
    group by run_id
),
headers as (
    select run_id, stage, wall_at, plan_id from stg_header
    union all
    select run_id, stage, wall_at, plan_id from rejudging
),
judges as (
    select by_run_id as run_id, any_value(rejudged.run_id) as judges from rejudged group by by_run_id
),
numbered as (
    select *, row_number() over (partition by run_id order by sha256) as place from run_files
)
select
    coalesce(files.run_id, files.sha256) || case when files.place > 1 then '~' || files.place else '' end as row_key,
    files.file_name as file,
    files.run_id,
    header.stage,
    case when files.is_sealed then 'yes' else 'no' end as is_sealed,
    files.head_digest,
    header.wall_at as began_at,
    written.ended_at,
    header.plan_id,
    judges.judges,
    files.record_count,
    marks.sources
from numbered as files
left join headers as header using (run_id)
left join judges using (run_id)
left join written using (run_id)
left join marks using (run_id)
order by header.wall_at nulls last, files.run_id, files.sha256
