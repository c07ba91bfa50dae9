-- one row per configuration: its judged pass (repetition 1, last complete attempt)
-- labels: label, configuration_key, purpose
-- figure document_count | documents | measured | documents of the pass, answered or not
-- figure returned_documents | documents | measured | distinct documents with a final try
-- figure accepted_documents | documents | measured | documents accepted by the protocol's rule for one document | n=document_count | interval=wilson(document_count)
-- figure wrong_documents | documents | measured | documents with outcome wrong
-- figure unparseable_documents | documents | measured | documents with outcome unparseable
-- figure truncated_documents | documents | measured | documents with outcome truncated (output limit reached)
-- figure too_long_documents | documents | measured | documents with outcome too long (prompt and output limit exceed the context)
-- figure empty_documents | documents | measured | documents with outcome empty
-- figure failed_documents | documents | measured | documents with outcome failed; a document never answered has failed
-- figure well_formed_documents | documents | measured | answers of the form asked for, right or wrong: one JSON object with its required keys, a readable answer, or an order of candidates only
-- figure several_candidates_documents | documents | measured | answers with more than one JSON object, answer or order; the last was judged
-- figure normalised_documents | documents | measured | documents with a field equal only after Unicode normalisation
select
    passes.configuration_key as row_key,
    passes.configuration_key,
    passes.label,
    passes.purpose,
    count(*) as document_count,
    count(*) filter (where documents.is_returned) as returned_documents,
    count(*) filter (where documents.is_accepted) as accepted_documents,
    count(*) filter (where documents.outcome = 'wrong') as wrong_documents,
    count(*) filter (where documents.outcome = 'unparseable') as unparseable_documents,
    count(*) filter (where documents.outcome = 'truncated') as truncated_documents,
    count(*) filter (where documents.outcome = 'too_long') as too_long_documents,
    count(*) filter (where documents.outcome = 'empty') as empty_documents,
    count(*) filter (where documents.outcome = 'failed') as failed_documents,
    count(*) filter (where documents.is_well_formed) as well_formed_documents,
    count(*) filter (where documents.candidate_count > 1) as several_candidates_documents,
    count(*) filter (where documents.normalisation_count > 0) as normalised_documents,
    all_sources(documents.sources) as sources
from counted_passes as passes
inner join judged_documents as documents using (pass_key, run_id, pass_id)
where passes.is_judged
group by passes.configuration_key, passes.label, passes.purpose, passes.first_begun
order by passes.first_begun, passes.configuration_key
