-- one row per configuration that ran more than once in a closed loop: its last pass beside its first
-- only with: load_passes
-- labels: label, configuration_key
-- figure pass_count | passes | measured | counted passes of the configuration
-- figure first_s | seconds | derived | measure phase / completed documents, of the pass that began first
-- figure last_s | seconds | derived | measure phase / completed documents, of the pass that began last
-- figure drift_percent | percent | derived | 100 x (last_s / first_s - 1), without its sign
with timed as (
    select
        passes.configuration_key, passes.label, passes.first_begun, passes.began_at, passes.run_id,
        passes.phase_ns['measure'] / nullif(count(*) filter (where requests.request_outcome = 'completed'), 0) / 1e9
            as document_s,
        list(requests.source order by requests.source) as sources
    from counted_passes as passes
    inner join final_requests as requests using (run_id, pass_id)
    group by passes.configuration_key, passes.label, passes.first_begun, passes.began_at, passes.run_id,
        passes.pass_id, passes.phase_ns['measure']
),
gathered as (
    select
        configuration_key,
        label,
        first_begun,
        count(*) as pass_count,
        arg_min(document_s, (began_at, run_id)) as first_s,
        arg_max(document_s, (began_at, run_id)) as last_s,
        all_sources(sources) as sources
    from timed
    where document_s > 0
    group by configuration_key, label, first_begun
    having count(*) > 1
)
select
    configuration_key as row_key,
    label,
    configuration_key,
    pass_count,
    first_s,
    last_s,
    100 * abs(last_s / first_s - 1) as drift_percent,
    sources
from gathered
order by first_begun, configuration_key
