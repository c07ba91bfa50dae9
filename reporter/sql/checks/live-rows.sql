-- one row per pass end whose live rows per decode step do not add up to its tokens
-- severity: finding
-- next: mend the program that wrote the run; rows really processed at a time must not be quoted from this pass
with counted as (
    -- a request that ended at its time limit has tokens too, so failed ones count
    select run_id, pass_id, coalesce(sum(output_tokens), 0) as output_tokens
    from stg_request
    where phase = 'measure'
    group by run_id, pass_id
),
stated as (
    select
        run_id,
        seq,
        pass_id,
        live_row_steps,
        cardinality(live_row_histogram) as row_counts,
        list_sum(
            list_transform(map_entries(live_row_histogram), lambda e: cast(e.key as bigint) * e.value)
        ) as histogram_steps,
        coalesce(output_tokens, 0) as output_tokens
    from stg_pass_end
    left join counted using (run_id, pass_id)
    where live_row_steps is not null
)
select
    run_id,
    seq,
    'pass ' || pass_id || ' ends with ' || live_row_steps || ' live row steps, its ' || case
        when row_counts > 0 and histogram_steps <> live_row_steps then 'histogram gives ' || histogram_steps
        else 'requests have ' || output_tokens || ' output tokens'
    end as message
from stated
where (row_counts > 0 and histogram_steps <> live_row_steps) or output_tokens <> live_row_steps
order by run_id, seq
