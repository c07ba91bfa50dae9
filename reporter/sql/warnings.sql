-- one row per (warning class, phase)
-- labels: warning_class, phase
-- figure repeat_count | count | measured | times the warning was given, over all passes
select
    warning_class || '~' || coalesce(phase, 'none') as row_key,
    warning_class,
    phase,
    sum(repeat_count) as repeat_count,
    list(source order by source) as sources
from stg_warning
group by warning_class, phase
order by warning_class, phase nulls first
