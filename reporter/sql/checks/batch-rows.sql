-- one row per request that cannot be the row of its batch
-- severity: finding
-- next: mend the program that wrote the run; speed and memory of this pass are not those of its batch
with sent as (
    select request.run_id, request.seq, request.pass_id, batch_number, batch_row, sent_ns, begun.batch
    from stg_request as request
    inner join stg_pass_begin as begun using (run_id, pass_id)
    where phase = 'measure' and sent_ns is not null and begun.batch > 1
),
placed as (
    select
        *,
        row_number() over (partition by run_id, pass_id, batch_number order by seq) as place,
        row_number() over (partition by run_id, pass_id, batch_number, batch_row order by seq) as place_in_row,
        first_value(sent_ns) over (partition by run_id, pass_id, batch_number order by seq) as batch_sent_ns
    from sent
)
select
    run_id,
    seq,
    'batch ' || batch_number || ' of pass ' || pass_id || ': ' || case
        when place > batch then 'this is request ' || place || ', and ' || batch || ' at a time were asked for'
        when place_in_row > 1 then 'row ' || batch_row || ' stands there already'
        else 'sent at ' || sent_ns || ' ns, the first row at ' || batch_sent_ns || ' ns'
    end as message
from placed
where place > batch or place_in_row > 1 or sent_ns <> batch_sent_ns
order by run_id, seq
