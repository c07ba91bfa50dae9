"""Say what is installed, what this machine can measure, and what cannot be told before a model is loaded.

Asks the modules that a run asks (environment, memory meters, contention, the engine's own package check), so that what
is said here is what a run will find. Nothing is loaded onto a card and nothing is downloaded.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

import msgspec

from collector import nvidia
from collector.contract.errors import DossierError, MissingDependency
from collector.contract.protocol import EngineChoice, Generation, Limits, Model, VariantChoice
from collector.contract.records import Device, Environment
from collector.engines import engine_module
from collector.engines.base import EngineSetup
from collector.environment import deciding_engine, resolve_device
from collector.installed import Extra, extras
from collector.machine import Machine, ThisMachine
from collector.memory import meter_for
from collector.prompt_fit import check_setup
from collector.protocol_file import LoadedProtocol, load_protocol
from collector.server_address import ports_here
from collector.server_rules import used_servers
from collector.variant_rules import package_findings

PDF_LIBRARIES = {
    "libpango-1.0": ("libpango-1.0.so.0", "libpango-1.0.dylib"),
    "libpangoft2-1.0": ("libpangoft2-1.0.so.0", "libpangoft2-1.0.dylib"),
    "libharfbuzz-subset": ("libharfbuzz-subset.so.0", "libharfbuzz-subset.0.dylib"),
}
PDF_INSTALL = (
    "apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 (Debian, Ubuntu); brew install pango (macOS)"
)
_CARDS_AT_MOST = 64


class MemoryScopeState(msgspec.Struct, frozen=True):
    """How the peak of one scope of one device is measured here; `missing` says why it cannot be."""

    device_id: str
    memory_scope: str
    counter_method: str | None
    sample_interval_ns: int | None
    missing: str | None


WEIGHT_SUFFIXES = (".safetensors", ".bin", ".gguf")


class ModelState(msgspec.Struct, frozen=True):
    """The protocol's model: whether its files are on this machine, and their bytes. `fault`: why it cannot be used.

    Bytes are null where a folder holds no weights: then a server has them, and its tokenizer alone is read here.
    """

    model_id: str
    folder: str | None
    weight_and_tokenizer_bytes: int | None
    fault: str | None


class Lack(msgspec.Struct, frozen=True):
    """A thing without which nothing can be measured, and how to get it."""

    message: str
    next_step: str


class DoctorReport(msgspec.Struct, frozen=True):
    """What was found; `busy` is null on a quiet machine, `model` where no trial was named."""

    extras: list[Extra]
    missing_for_a_run: list[Lack]
    pdf_libraries_missing: list[str]
    environment: Environment
    devices: list[Device]
    memory_scopes: list[MemoryScopeState]
    busy: str | None
    culprits: list[str]
    disk_folder: str
    disk_free_bytes: int
    is_offline: bool
    model: ModelState | None
    not_checked: list[str]


def examine_machine(folder: Path, *, protocol: Path | None = None, machine: Machine | None = None) -> DoctorReport:
    """Look at this machine. `folder` is where records would be written, `protocol` the trial meant, where there is one.

    Raises Refused for a protocol that cannot be read.
    """
    loaded = load_protocol(protocol) if protocol is not None else None
    machine = machine or ThisMachine()
    first = resolve_device("auto", _deciding(loaded))
    names = list(dict.fromkeys([first, *_cards(), "cpu"]))
    detected = [machine.detect(name, threads=None) for name in names]
    devices = [device for each in detected for device in each.devices]
    around = machine.look_around(devices, ports_here(used_servers(loaded.protocol)) if loaded is not None else ())
    place = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    return DoctorReport(
        extras=extras(),
        missing_for_a_run=_missing(loaded),
        pdf_libraries_missing=[name for name, files in PDF_LIBRARIES.items() if not _is_loadable(files)],
        environment=detected[0].environment,
        devices=devices,
        memory_scopes=[scope for name in names for scope in _memory_scopes(name)],
        busy=around.summary if around.is_busy else None,
        culprits=around.culprits,
        disk_folder=str(place),
        disk_free_bytes=shutil.disk_usage(place).free,
        is_offline=os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "ON", "YES", "TRUE"),
        model=_model(loaded) if loaded is not None else None,
        not_checked=_not_checked(detected[0].environment, devices, first),
    )


def _deciding(loaded: LoadedProtocol | None) -> str:
    if loaded is None or loaded.protocol.engine.name == "scripted":
        return "transformers"
    protocol = loaded.protocol
    return deciding_engine(protocol.engine, protocol.servers, protocol.variants)


def _cards() -> list[str]:
    """Return the cards that the CUDA driver shows to this process."""
    if not nvidia.has_cuda():
        return []
    count = next((index for index in range(_CARDS_AT_MOST) if nvidia.driver_facts(index) is None), _CARDS_AT_MOST)
    return [f"cuda:{index}" for index in range(count)]


def _memory_scopes(device: str) -> list[MemoryScopeState]:
    """Measure an empty phase with the meter of a run: what it reads here it reads there."""
    meter = meter_for(device)
    meter.begin("load")
    return [
        MemoryScopeState(
            each.device_id, each.memory_scope, each.counter_method if each.value_bytes is not None else None,
            each.sample_interval_ns, each.missing.get("value_bytes"),
        )
        for each in meter.end("load")
        # The host is the same beside every card. Counters and shares of a process exist once it has used the card.
        if each.statistic == "peak" and each.memory_scope in ("device", "host")
        and (each.memory_scope == "device" or device == "cpu")
    ]  # fmt: skip


def _missing(loaded: LoadedProtocol | None) -> list[Lack]:
    setup = check_setup(loaded) if loaded is not None else _plain_setup()
    engines = [setup.engine]
    if loaded is not None:
        protocol = loaded.protocol
        engines += [protocol.engine_of(variant) for variant in protocol.variants if variant.server is not None]
    for engine in engines:
        try:
            if engine.name != "scripted":
                asked = msgspec.structs.replace(_plain_setup(setup), engine=engine)
                engine_module(engine.name).identity(asked)
        except MissingDependency as fault:
            return [Lack(fault.message, _command(fault.next_step))]
    findings = package_findings(loaded) if loaded is not None else []
    return [Lack(finding.message, finding.next_step) for finding in findings]


def _command(otherwise: str) -> str:
    """Return the exact command for what the collector's extra lacks: the engine names the extra alone."""
    return next((extra.install for extra in extras() if extra.name == "collector" and extra.install), otherwise)


def _plain_setup(setup: EngineSetup | None = None) -> EngineSetup:
    """Return a setup of the reference kind, whose packages every trial of the engine needs."""
    return EngineSetup(
        base_dir=setup.base_dir if setup else ".",
        model=setup.model if setup else Model(id="any/model"),
        engine=setup.engine if setup else EngineChoice(name="transformers"),
        variant=VariantChoice(name="plain"),
        generation=setup.generation if setup else Generation(max_new_tokens=1),
        limits=Limits(),
        device="cpu",
        pass_label="doctor/0/0",
    )


def _is_loadable(files: tuple[str, ...]) -> bool:
    for name in files:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


def _model(loaded: LoadedProtocol) -> ModelState:
    """Look for the model where the engine would find it; the Hub is not asked."""
    from collector.engines._artefact import artefact_files, find_artefact, local_folder

    model = loaded.protocol.model
    if loaded.protocol.engine.name == "scripted":
        return ModelState(model.id, None, None, "the scripted engine loads no model")
    try:
        artefact = find_artefact(check_setup(loaded))
        folder = local_folder(artefact)
    except ImportError:
        return ModelState(model.id, None, None, "the Hub's cache cannot be searched without transformers")
    except DossierError as fault:
        return ModelState(model.id, None, None, fault.message)
    if folder is None:
        return ModelState(model.id, None, None, None)
    files = artefact_files(folder, artefact.gguf_file)
    has_weights = any(path.suffix in WEIGHT_SUFFIXES for path in files)
    total = sum(path.stat().st_size for path in files) if has_weights else None
    return ModelState(model.id, str(folder.resolve()), total, None)


def _not_checked(environment: Environment, devices: list[Device], first: str) -> list[str]:
    found = list(environment.unchecked)
    cards = [device for device in devices if device.device_kind in ("cuda", "rocm")]
    if cards and first == "cpu":
        torch = environment.packages.get("torch")
        why = "torch is not installed" if torch is None else f"torch {torch} is built without CUDA"
        found.append(f"{cards[0].device_id} is there and would not be used: {why}")
    for card in cards:
        found.append(
            f"{card.device_id}: whether torch can use it, and its allocator's counters, show when a model loads"
        )
    found += [
        f"{name}: {reason}" for name, reason in environment.missing.items() if reason in ("unsupported", "failed")
    ]
    return found
