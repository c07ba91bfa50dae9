-- one row per record that cites a pass that its run did not begin
-- severity: finding
-- next: mend the program that wrote the run; what belongs to no pass is not counted
select run_id, seq, kind || ' cites pass ' || pass_id || ', which this run did not begin' as message
from records
anti join stg_pass_begin using (run_id, pass_id)
-- judgements made again cite the passes of the run that they judge
anti join rejudging using (run_id)
where pass_id is not null and kind <> 'pass_begin'
order by run_id, seq
