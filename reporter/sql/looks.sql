-- one row per run on the test documents: each is a look at them
-- labels: run_id, at, plan_id, look, choice, chosen_key, choice_digest, choice_records_digest, dossier_id, configuration_key, is_recorded_before, is_sealed
-- figure answered_documents | documents | measured | distinct test documents with a final try in the run
-- figure accepted_documents | documents | measured | documents that the configuration put to them had accepted in the run, last complete attempt
-- figure reference_accepted | documents | measured | documents that the reference had accepted in the run, last complete attempt
with looked as (
    select * from stg_header where stage = 'test' and source_head_digest is null
),
recorded as (
    select
        run_id,
        max(detail['look']) filter (where decision = 'test_set_looked_at') as look,
        max(detail['label']) filter (where decision = 'choice_confirmed') as choice,
        max(detail['configuration_key']) filter (where decision = 'choice_confirmed') as chosen_key,
        max(detail['choice_digest']) filter (where decision = 'choice_confirmed') as choice_digest,
        max(detail['records_digest']) filter (where decision = 'choice_confirmed') as choice_records_digest,
        max(detail['dossier_id']) filter (where decision = 'choice_confirmed') as dossier_id,
        max(seq) as last_seq,
        list(source order by source) as sources
    from stg_decision
    where decision in ('choice_confirmed', 'test_set_looked_at')
    group by run_id
),
attempts as (
    select attempts.*, configurations.configuration_key, configurations.purpose as configuration_purpose
    from pass_attempts as attempts
    inner join configurations using (configuration_id)
    semi join looked using (run_id)
),
put as (
    select
        run_id,
        min(seq) as first_seq,
        coalesce(
            arg_min(configuration_key, seq) filter (where configuration_purpose <> 'reference'),
            arg_min(configuration_key, seq)
        ) as configuration_key
    from attempts
    group by run_id
),
complete as (
    select *
    from attempts
    where pass_outcome = 'completed' and repetition = 1
    qualify row_number() over (partition by run_id, configuration_id order by attempt desc, seq desc) = 1
),
judged as (
    select
        complete.run_id,
        count(*) filter (where scores.is_accepted and complete.configuration_key = put.configuration_key) as accepted,
        count(*) filter (where scores.is_accepted and complete.configuration_purpose = 'reference') as of_reference,
        bool_or(complete.configuration_key = put.configuration_key) as has_configuration,
        bool_or(complete.configuration_purpose = 'reference') as has_reference,
        list(scores.source order by scores.source) as sources
    from complete
    inner join put using (run_id)
    inner join final_requests as requests using (run_id, pass_id)
    inner join stg_score as scores using (run_id, pass_id, document_id, turn, try_index)
    group by complete.run_id
),
answered as (
    select run_id, count(distinct document_id) as documents
    from final_requests
    semi join looked using (run_id)
    group by run_id
)
select
    looked.run_id as row_key,
    looked.run_id,
    looked.wall_at as at,
    looked.plan_id,
    recorded.look,
    recorded.choice,
    recorded.chosen_key,
    recorded.choice_digest,
    recorded.choice_records_digest,
    recorded.dossier_id,
    put.configuration_key,
    case
        when recorded.look is null or recorded.choice_digest is null then 'no'
        when recorded.last_seq > put.first_seq then 'no'
        else 'yes'
    end as is_recorded_before,
    case when (select bool_or(is_sealed) from run_files where run_files.run_id = looked.run_id) then 'yes' else 'no' end
        as is_sealed,
    coalesce(answered.documents, 0) as answered_documents,
    case when judged.has_configuration then judged.accepted end as accepted_documents,
    case when judged.has_reference then judged.of_reference end as reference_accepted,
    [looked.source] || coalesce(recorded.sources, []) || coalesce(judged.sources, []) as sources
from looked
left join recorded using (run_id)
left join put using (run_id)
left join judged using (run_id)
left join answered using (run_id)
order by looked.wall_at, looked.run_id
