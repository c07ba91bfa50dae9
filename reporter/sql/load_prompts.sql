-- one row per configuration of a request engine: how it is known which tokens its model saw
-- only with: load_passes
-- labels: label, configuration_key, is_shown
-- figure document_count | documents | measured | documents of the judged pass that were sent
-- figure token_ids_documents | documents | measured | documents whose token ids were sent as such
-- figure server_tokenizer_documents | documents | measured | documents for which the server's own tokenizer was asked
-- figure counted_documents | documents | measured | documents whose number of prompt tokens the server confirmed
-- figure unconfirmed_documents | documents | measured | documents of which nothing confirms what the server made of the text
-- figure same_documents | documents | measured | documents whose prompt's token ids have the reference's hash
-- figure different_documents | documents | measured | documents with other token ids, or another number of them, than the reference's
-- figure nonce_documents | documents | measured | of those sent, documents with a line in front that no other request had
-- figure unknown_documents | documents | measured | documents without a hash of token ids: not shown to be the reference's
select
    configuration_key as row_key,
    label,
    configuration_key,
    case when bool_and(likeness = 'same') then 'yes' else 'no' end as is_shown,
    count(*) as document_count,
    count(*) filter (where prompt_evidence = 'token_ids') as token_ids_documents,
    count(*) filter (where prompt_evidence = 'server_tokenizer') as server_tokenizer_documents,
    count(*) filter (where prompt_evidence = 'count') as counted_documents,
    count(*) filter (where prompt_evidence = 'rendered') as unconfirmed_documents,
    count(*) filter (where likeness = 'same') as same_documents,
    count(*) filter (where likeness = 'differs') as different_documents,
    count(*) filter (where nonce_tokens > 0) as nonce_documents,
    count(*) filter (where likeness = 'not_shown') as unknown_documents,
    list(source order by source) as sources
from prompt_documents
group by configuration_key, label, first_begun
order by first_begun, configuration_key
