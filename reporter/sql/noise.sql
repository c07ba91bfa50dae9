-- one row per repeat of a configuration (the reference's are the A/A repeats), compared with its own first pass
-- labels: label, configuration_key, purpose, repetition
-- figure document_count | documents | measured | documents judged in both passes
-- figure flipped_documents | documents | measured | documents whose acceptance differs between the two passes
-- figure different_answers | documents | measured | documents whose answer text differs (by HMAC); one answered once counts as different
-- figure flip_percent | percent | derived | 100 x flipped_documents / document_count | n=document_count | interval=wilson_percent(flipped_documents, document_count)
-- figure agreement_percent | percent | derived | 100 x (document_count - different_answers) / document_count | n=document_count
with first_passes as (
    select * from judged_documents where is_judged
),
counted as (
    select
        passes.pass_key,
        passes.label,
        passes.configuration_key,
        passes.pass_purpose as purpose,
        passes.first_begun,
        passes.repetition,
        count(*) as document_count,
        count(*) filter (where again.is_accepted <> first_passes.is_accepted) as flipped_documents,
        count(*) filter (where again.answer_hmac is distinct from first_passes.answer_hmac) as different_answers,
        all_sources(again.sources || first_passes.sources) as sources
    from counted_passes as passes
    inner join judged_documents as again using (pass_key, run_id, pass_id)
    inner join first_passes
        on again.configuration_key = first_passes.configuration_key and again.document_id = first_passes.document_id
    where not passes.is_judged
    group by
        passes.pass_key, passes.label, passes.configuration_key, passes.pass_purpose, passes.first_begun,
        passes.repetition
)
select
    pass_key as row_key,
    * exclude (pass_key, first_begun, sources),
    100 * flipped_documents / document_count as flip_percent,
    100 * (document_count - different_answers) / document_count as agreement_percent,
    sources
from counted
order by first_begun, configuration_key, repetition
