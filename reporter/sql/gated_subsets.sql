-- one row per subset that a rule of the protocol names: its documents must not fail
-- step: mart
select distinct unnest(json_extract_string(protocol_json, '$.trial.gates.subset[*].subset')) as subset
from stg_header
order by subset
