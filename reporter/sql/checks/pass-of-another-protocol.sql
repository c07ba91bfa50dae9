-- one row per pass whose protocol or stage is not that of its run's header
-- severity: finding
-- next: one run has one protocol and one stage; mend the program that wrote the run
select
    passes.run_id,
    passes.seq,
    'pass ' || passes.pass_id || ' is of protocol ' || passes.protocol_id[1:12] || ' in stage ' || passes.stage
    || ', its run of ' || header.protocol_id[1:12] || ' in ' || header.stage as message
from stg_pass_begin as passes
inner join stg_header as header using (run_id)
where passes.protocol_id <> header.protocol_id or passes.stage <> header.stage
order by passes.run_id, passes.seq
