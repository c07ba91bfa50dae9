-- one row per environment, as first detected
-- labels: environment_id, os, kernel, architecture, cpu_model, python, packages, driver, cuda, unchecked
-- figure cpu_usable_count | count | measured | logical processors after affinity and container limits
-- figure host_memory_bytes | bytes | measured | host memory as the operating system states it
-- figure thread_count | count | measured | threads that the engine computes with
-- figure load_average_1m | ratio | measured | load average of one minute before the run
with first_seen as (
    select *
    from stg_environment
    qualify row_number() over (partition by environment_id order by written_at, run_id, seq) = 1
),
packed as (
    select
        environment_id,
        array_to_string(list_sort(list_transform(map_entries(packages), lambda e: e.key || '=' || e.value)), '; ')
            as packages
    from first_seen
)
select
    environment_id as row_key,
    environment_id,
    os_name || ' ' || os_version as os,
    kernel_version as kernel,
    machine_architecture as architecture,
    cpu_model,
    python_version as python,
    packed.packages,
    driver_version as driver,
    cuda_version as cuda,
    array_to_string(list_sort(unchecked), ', ') as unchecked,
    cpu_usable_count,
    host_memory_bytes,
    thread_count,
    load_average_1m,
    missing,
    [source] as sources
from first_seen
inner join packed using (environment_id)
order by environment_id
