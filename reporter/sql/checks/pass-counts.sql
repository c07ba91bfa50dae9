-- one row per pass end whose counts are not those of its requests
-- severity: finding
-- next: mend the program that wrote the run; figures are counted from the requests
with counted as (
    select
        run_id,
        pass_id,
        count(*) as try_count,
        count(distinct document_id) filter (where is_final) as distinct_document_count,
        count(*) filter (where request_outcome = 'completed') as completed_request_count,
        count(*) filter (where request_outcome <> 'completed') as failed_request_count,
        coalesce(sum(output_tokens), 0) as output_token_count
    from stg_request
    where phase = 'measure'
    group by run_id, pass_id
),
compared as (
    select
        ended.run_id,
        ended.seq,
        ended.pass_id,
        unnest([
            {'name': 'try_count', 'stated': ended.try_count, 'found': coalesce(counted.try_count, 0)},
            {
                'name': 'distinct_document_count', 'stated': ended.distinct_document_count,
                'found': coalesce(counted.distinct_document_count, 0)
            },
            {
                'name': 'completed_request_count', 'stated': ended.completed_request_count,
                'found': coalesce(counted.completed_request_count, 0)
            },
            {
                'name': 'failed_request_count', 'stated': ended.failed_request_count,
                'found': coalesce(counted.failed_request_count, 0)
            },
            {
                'name': 'output_token_count', 'stated': ended.output_token_count,
                'found': coalesce(counted.output_token_count, 0)
            }
        ]) as pair
    from stg_pass_end as ended
    left join counted using (run_id, pass_id)
)
select
    run_id,
    seq,
    'pass ' || pass_id || ' ends with ' || pair.name || ' ' || pair.stated || ', its requests give ' || pair.found
        as message
from compared
where pair.stated <> pair.found
order by run_id, seq, pair.name
