-- one row per load of a variant whose files have other digests than the first load of it under one protocol
-- severity: finding
-- next: measure the variants of one campaign from the same files, or give the other files a protocol or variant of their own
with loads as (
    select
        passes.protocol_id, variants.variant_id, variants.variant_name, variants.run_id, variants.seq,
        variants.pass_id, variants.written_at, file.key as file_name, file.value as digest
    from stg_variant as variants
    inner join stg_pass_begin as passes using (run_id, pass_id)
    cross join unnest(map_entries(variants.file_digests)) as files (file)
    where variants.observed_at = 'loaded'
),
compared as (
    select
        *,
        first_value(digest) over (
            partition by protocol_id, variant_id, file_name
            order by written_at, run_id, seq
        ) as first_digest
    from loads
)
select
    run_id,
    seq,
    'variant ' || any_value(variant_name) || ' was loaded in pass ' || any_value(pass_id) || ' from another '
    || string_agg(file_name, ', ' order by file_name) || ' than in an earlier pass' as message
from compared
where digest <> first_digest
group by run_id, seq
order by run_id, seq
