-- one row per configuration whose prompts are not shown to be the reference's: its answers are compared with no other's
-- step: mart
select configuration_id, configuration_key
from prompt_documents
where likeness <> 'same'
group by configuration_id, configuration_key
order by configuration_key
