"""The machine, its software and the device of a run, as detected without importing an engine's libraries."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector import host, nvidia
from collector.contract.digests import JsonValue, short_id
from collector.contract.errors import DeviceFault, DossierError
from collector.contract.protocol import EngineChoice, ServerChoice, VariantChoice, engine_of
from collector.contract.records import ENVELOPE, Device, Environment, Record
from collector.contract.records.base import MissingReason
from collector.contract.records.setups import DeviceKind
from collector.missing import explained

PACKAGES = (
    "torch", "transformers", "tokenizers", "accelerate", "safetensors", "gguf", "numpy", "triton", "flash-attn",
    "torchao", "bitsandbytes", "optimum-quanto", "nvidia-ml-py", "msgspec",
)  # fmt: skip
"""Libraries whose version can change a result."""

SERVED, ELSEWHERE = "openai", "elsewhere"
"""Engines as far as the device is concerned: a server that is started here, and one that may be on another machine."""
_DEVICE = re.compile(r"cpu|mps|cuda(:\d{1,3})?")

_CARD_ONLY = (
    "device_uuid", "compute_capability", "mig_profile", "power_limit_mw", "has_ecc", "pcie_generation", "pcie_width",
    "foreign_process_count",
)  # fmt: skip


class Detected(NamedTuple):
    """What a run's records cite."""

    environment: Environment
    devices: list[Device]


def deciding_engine(engine: EngineChoice, servers: Sequence[ServerChoice], variants: Sequence[VariantChoice]) -> str:
    """Return the name of the engine whose device a run is on: the one in process, where any variant runs in process.

    Otherwise SERVED where a server is started here, and ELSEWHERE where all of them run already.
    """
    choices = [engine_of(engine, servers, variant) for variant in variants]
    in_process = [choice.name for choice in choices if choice.server is None]
    if in_process:
        return in_process[0]
    return SERVED if any(choice.server and choice.server.start for choice in choices) else ELSEWHERE


def resolve_device(device: str, engine_name: str) -> str:
    """Return the device that the engine will use: `auto` is the first card that torch is built for, else the CPU.

    Everything after it (engine, meter, records) is told the device found here. Asked without importing torch: whether
    torch can really use the card shows when the engine loads, which fails by name and never falls back unseen. A server
    that is started here has libraries of its own: for it the driver alone is asked.
    """
    if device == "cuda":
        return "cuda:0"
    if device != "auto":
        return device
    if engine_name == SERVED:
        return "cuda:0" if nvidia.has_cuda() else "cpu"
    torch_version = package_versions().get("torch", "+cpu")
    if engine_name in ("scripted", ELSEWHERE) or "+cpu" in torch_version:
        return "cpu"
    has_card = Path("/dev/kfd").exists() if "+rocm" in torch_version else nvidia.has_cuda()
    return "cuda:0" if has_card else "cpu"


def require_device(device: str, engine_name: str) -> None:
    """Raise DossierError for what is no device, and DeviceFault for a card that the driver does not show.

    Before a run file is made, rather than as the failure of every pass of it.
    """
    if not _DEVICE.fullmatch(device):
        raise DossierError(f"{device!r} is no device", next_step="name auto, cpu, or a card such as cuda:0")
    is_unused = engine_name in ("scripted", ELSEWHERE) or not device.startswith("cuda")
    if is_unused or "+rocm" in package_versions().get("torch", ""):
        return
    if nvidia.driver_facts(nvidia.visible_ordinal(device)) is None:
        raise DeviceFault(
            f"{device} is not there: the CUDA driver shows no such card to this process",
            next_step="name another device; or look at `nvidia-smi`, and at CUDA_VISIBLE_DEVICES if it is set",
        )


def detect(
    device: str, *, threads: int | None = None, files: host.Files | None = None, nvml: nvidia.Nvml | None = None
) -> Detected:
    """Return the environment and the devices of a run on `device` (`cpu`, `cuda:0`), ids filled in.

    Nothing here aborts: what cannot be asked is null with its reason, and an entry in `unchecked`.
    """
    files = files or host.Files()
    if device.startswith("cuda"):
        found, card, unchecked = _card(device, nvml or nvidia.Nvml())
    else:
        found, card, unchecked = _processor(device, files), None, []
    environment = _environment(files, found.device_kind, card, threads=threads, unchecked=unchecked)
    environment_id = environment_digest(environment, [found])
    return Detected(
        msgspec.structs.replace(environment, environment_id=environment_id),
        [msgspec.structs.replace(found, environment_id=environment_id)],
    )


def environment_digest(environment: Environment, devices: list[Device]) -> str:
    """Return environment_id: the digest of what stays equal from one start of the collector to the next.

    A card counts with its UUID: another card of the same name is another environment, never pooled unseen.
    """

    def stable(record: Record, *changing: str) -> JsonValue:
        facts: dict[str, JsonValue] = msgspec.to_builtins(record)
        left_out = {*ENVELOPE, "kind", "environment_id", "missing", *changing}
        return {name: value for name, value in facts.items() if name not in left_out}

    return short_id(
        {
            "environment": stable(environment, "load_average_1m", "host_name", "unchecked"),
            "devices": [stable(device, "foreign_process_count") for device in devices],
        }
    )


def package_versions() -> dict[str, str]:
    """Return the installed versions of PACKAGES; what is not installed is left out."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _environment(
    files: host.Files, kind: DeviceKind, card: nvidia.CardFacts | None, *, threads: int | None, unchecked: list[str]
) -> Environment:
    os_name, os_version = host.os_release(files)
    settings = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
    named_threads = os.environ.get("OMP_NUM_THREADS", "")
    record = Environment(
        environment_id="",
        os_name=os_name,
        os_version=os_version,
        kernel_version=platform.release(),
        machine_architecture=platform.machine(),
        cpu_model=host.cpu_model(files),
        cpu_logical_count=os.cpu_count(),
        cpu_usable_count=host.usable_cpu_count(files),
        cpu_flags=host.cpu_flags(files),
        host_memory_bytes=host.memory_total_bytes(files),
        host_memory_limit_bytes=host.memory_limit_bytes(files),
        python_version=platform.python_version(),
        packages=package_versions(),
        driver_version=card.driver_version if card else None,
        cuda_version=card.cuda_version if card else None,
        allocator_backend=_allocator_backend(settings) if kind == "cuda" else None,
        allocator_settings=settings,
        thread_count=threads or (int(named_threads) if named_threads.isdigit() else None),
        is_container=host.is_container(files),
        load_average_1m=host.load_average_1m(),
        unchecked=unchecked,
    )
    of_a_card: MissingReason = "unsupported" if kind == "cuda" else "not_applicable"
    return explained(
        record,
        {
            "cpu_model": "unsupported", "cpu_logical_count": "unsupported", "host_memory_bytes": "unsupported",
            "host_memory_limit_bytes": "not_applicable", "driver_version": of_a_card, "cuda_version": of_a_card,
            "allocator_backend": of_a_card, "allocator_settings": "not_applicable", "thread_count": "not_measured",
            "host_name": "not_measured", "load_average_1m": "unsupported",
        },
    )  # fmt: skip


def _processor(device: str, files: host.Files) -> Device:
    count = host.usable_cpu_count(files)
    model = host.cpu_model(files) or platform.machine() or "processor"
    record = Device(
        environment_id="",
        device_id=device,
        device_kind="mps" if device.startswith("mps") else "cpu",
        device_name=f"{model[:160]} ({count} {'core' if count == 1 else 'cores'})",
        device_memory_bytes=host.memory_limit_bytes(files) or host.memory_total_bytes(files),
    )
    return explained(record, {"device_memory_bytes": "unsupported", **dict.fromkeys(_CARD_ONLY, "not_applicable")})


def _card(device: str, nvml: nvidia.Nvml) -> tuple[Device, nvidia.CardFacts | None, list[str]]:
    is_rocm = "rocm" in package_versions().get("torch", "")
    driver = None if is_rocm else nvidia.driver_facts(nvidia.visible_ordinal(device))
    handle = nvml.card(driver.device_uuid) if driver else None
    facts = nvml.facts(handle) if handle is not None else None
    processes = nvml.processes(handle) if handle is not None else None
    record = Device(
        environment_id="",
        device_id=device,
        device_kind="rocm" if is_rocm else "cuda",
        device_name=driver.device_name if driver else f"{device} (name not readable)",
        device_uuid=driver.device_uuid if driver else None,
        device_memory_bytes=driver.device_memory_bytes if driver else None,
        compute_capability=driver.compute_capability if driver else None,
        mig_profile=facts.mig_profile if facts else None,
        power_limit_mw=facts.power_limit_mw if facts else None,
        has_ecc=facts.has_ecc if facts else None,
        pcie_generation=facts.pcie_generation if facts else None,
        pcie_width=facts.pcie_width if facts else None,
        foreign_process_count=None if processes is None else len(processes),
    )
    reasons: dict[str, MissingReason] = dict.fromkeys((*_CARD_ONLY, "device_memory_bytes"), "unsupported")
    if facts:
        reasons["mig_profile"] = "not_applicable"
    unchecked = [*nvml.unchecked, *([] if driver else [f"{device}: the CUDA driver does not answer"])]
    return explained(record, reasons), facts, unchecked


def _allocator_backend(settings: str | None) -> str:
    for entry in (settings or "").split(","):
        name, _, value = entry.partition(":")
        if name.strip() == "backend":
            return value.strip()
    return "native"
