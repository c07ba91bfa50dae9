-- one row per (configuration, metric): its repetitions' medians together, and against those of its reference
-- labels: label, configuration_key, metric, reference_key, is_reference, is_repeated
-- figure repetition_count | count | measured | counted passes, each in a process of its own
-- figure reference_repetition_count | count | measured | counted passes of the reference, each in a process of its own
-- figure p50_mean_s | seconds | derived | mean of the repetitions' medians | n=repetition_count | interval=t_of_means(medians)
-- figure p50_ratio | ratio | derived | geometric mean of the repetitions' medians / that of the reference | n=repetition_count | interval=welch_of_logs(medians, reference_medians)
with gathered as (
    select
        configuration_key, label, first_begun, metric, metric_place,
        count(*) as repetition_count,
        list(p50_s order by repetition) as medians,
        all_sources(sources) as sources
    from repetition_medians
    group by configuration_key, label, first_begun, metric, metric_place
),
compared as (
    select distinct configuration_key, reference_key from configuration_references
)
select
    own.configuration_key || '~' || own.metric as row_key,
    own.label,
    own.configuration_key,
    own.metric,
    compared.reference_key,
    case when own.configuration_key = compared.reference_key then 'yes' else 'no' end as is_reference,
    case when own.repetition_count > 1 then 'yes' else 'no' end as is_repeated,
    own.repetition_count,
    reference.repetition_count as reference_repetition_count,
    own.medians,
    reference.medians as reference_medians,
    list_sum(own.medians) / own.repetition_count as p50_mean_s,
    case
        when own.configuration_key <> compared.reference_key
            then exp(
                list_sum(list_transform(own.medians, lambda x: ln(x))) / own.repetition_count
                - list_sum(list_transform(reference.medians, lambda x: ln(x))) / reference.repetition_count
            )
    end as p50_ratio,
    case when own.configuration_key = compared.reference_key then 'not_applicable' else 'not_measured' end
        as p50_ratio_missing,
    case when own.configuration_key = compared.reference_key then own.sources else own.sources || reference.sources end
        as sources
from gathered as own
left join compared using (configuration_key)
left join gathered as reference
    on compared.reference_key = reference.configuration_key and own.metric = reference.metric
order by own.first_begun, own.configuration_key, own.metric_place
