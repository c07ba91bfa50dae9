-- one row per (counted pass, metric): the median of one repetition, which ran in a process of its own
-- labels: label, configuration_key, metric
-- figure repetition | count | measured | number of the repetition
-- figure valued_count | requests | measured | completed requests that have the metric
-- figure p50_s | seconds | derived | smallest value that 50 % of valued_count do not exceed, within this repetition | n=valued_count
select
    pass_key || '~' || metric as row_key,
    label,
    configuration_key,
    metric,
    repetition,
    valued_count,
    p50_s,
    sources
from repetition_medians
order by first_begun, configuration_key, metric_place, repetition
