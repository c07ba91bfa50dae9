"""The doctor's report as lines to read: by subject, what is there, what is missing and how to get it."""

from __future__ import annotations

from collections.abc import Iterator

from collector.doctor import PDF_INSTALL, DoctorReport
from collector.installed import Extra


def report_lines(report: DoctorReport) -> Iterator[str]:
    """Yield the report, line by line."""
    yield "packages"
    for extra in report.extras:
        yield from _extra_lines(extra)
    if report.pdf_libraries_missing:
        yield f"  for PDF: missing {', '.join(report.pdf_libraries_missing)}"
        yield f"    next: {PDF_INSTALL}; HTML needs none of them"
    else:
        yield "  for PDF: the Pango libraries are there"
    yield "machine"
    yield from (f"  {line}" for line in _machine_lines(report))
    yield "memory peaks"
    yield from (f"  {line}" for line in _scope_lines(report))
    yield "model"
    yield from (f"  {line}" for line in _model_lines(report))
    if report.not_checked:
        yield "not checked, or not possible here"
        yield from (f"  {line}" for line in report.not_checked)
    if not report.missing_for_a_run:
        yield "a run is possible here"
    for lack in report.missing_for_a_run:
        yield f"a run is not possible here: {lack.message}"
        yield f"    next: {lack.next_step}"


def _extra_lines(extra: Extra) -> Iterator[str]:
    there = [f"{package.name} {package.installed}" for package in extra.packages if package.is_fitting]
    yield f"  for {extra.purpose}: {', '.join(there) or 'none'}"
    for package in extra.packages:
        if not package.is_fitting:
            found = "missing" if package.installed is None else f"{package.installed} is not the version wanted"
            yield f"    {package.name}{package.wanted}: {found}"
    if extra.install is not None:
        yield f"    next: {extra.install}"


def _machine_lines(report: DoctorReport) -> Iterator[str]:
    environment = report.environment
    where = ", in a container" if environment.is_container else ""
    yield f"{environment.os_name} {environment.os_version}, Python {environment.python_version}{where}"
    for device in report.devices:
        memory = "memory not known" if device.device_memory_bytes is None else gib(device.device_memory_bytes)
        yield f"{device.device_id}: {device.device_name}, {memory}"
    cores = f"{environment.cpu_usable_count} of {environment.cpu_logical_count} logical processors may be used"
    limit = environment.host_memory_limit_bytes
    yield f"{cores}; memory limit of the control group: {'none' if limit is None else gib(limit)}"
    yield f"free in {report.disk_folder}: {gib(report.disk_free_bytes)}"
    if report.busy is None:
        yield "no other process is busy"
    else:
        yield f"busy: {report.busy}"
        yield from (f"  stop before measuring: {culprit}" for culprit in report.culprits)


def _scope_lines(report: DoctorReport) -> Iterator[str]:
    for scope in report.memory_scopes:
        if scope.missing is not None:
            how = f"cannot be read ({scope.missing.replace('_', ' ')})"
        elif scope.sample_interval_ns is not None:
            how = f"sampled every {scope.sample_interval_ns // 1_000_000} ms: a lower bound"
        else:
            how = "counted by the kernel and reset for each phase: exact"
        yield f"{scope.device_id}, {scope.memory_scope}: {how}"


def _model_lines(report: DoctorReport) -> Iterator[str]:
    offline = "HF_HUB_OFFLINE is set: nothing is downloaded" if report.is_offline else "a model may be downloaded"
    if (model := report.model) is None:
        yield f"{offline}; name a trial with --protocol to look for its model"
    elif model.fault is not None:
        yield f"{model.model_id}: {model.fault}"
    elif model.folder is None:
        step = "download it before, or unset HF_HUB_OFFLINE" if report.is_offline else "downloaded at first use"
        yield f"{model.model_id} is not in the Hub's cache: {step}"
    else:
        size = "no weights there" if model.weight_and_tokenizer_bytes is None else gib(model.weight_and_tokenizer_bytes)
        yield f"{model.model_id} is in {model.folder}, {size}"


def gib(size_bytes: int) -> str:
    """Return bytes in GiB, or in MiB below one."""
    return f"{size_bytes / 2**30:.1f} GiB" if size_bytes >= 2**30 else f"{size_bytes / 2**20:.0f} MiB"
