-- one row: the stage that the dossier judges (validation where there is one, else test, else pilot) and its role
-- step: mart
select
    stage,
    case stage when 'pilot' then 'development' else stage end as role
from (select distinct stage from stg_pass_begin)
order by list_position(['validation', 'test', 'pilot'], stage)
limit 1
