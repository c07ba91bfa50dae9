-- one row per (pass of a batch series, document) whose answer differs from that of one request at a time
-- only with: batch_passes
-- labels: label, pass, configuration_key, environment_id, device, batch, document_id, verdict, start_outcome, outcome, language, length_class
select
    pass_key || '~' || document_id as row_key,
    label,
    label || case when batch = 1 then ' (' || repetition || ')' else '' end as pass,
    configuration_key,
    environment_id,
    device,
    batch,
    document_id,
    case when has_other_verdict then 'changed' else 'unchanged' end as verdict,
    start_outcome,
    outcome,
    language,
    length_class,
    list_sort(list_distinct(sources)) as sources
from batch_documents
where has_other_answer or has_other_verdict
order by environment_id, batch, repetition, configuration_key, not has_other_verdict, document_id
