"""Records about what was measured on and with: environment, device, engine, variant and its tensors."""

from __future__ import annotations

from typing import Literal

from .base import Bytes, CacheKind, Count, Label, ObservedAt, Positive, Record, Sha256, ShortId

DeviceKind = Literal["cpu", "cuda", "rocm", "mps"]
EngineEvidence = Literal["verified", "claimed"]
ModuleGroup = Literal["embedding", "output_layer", "attention", "mlp", "norm", "other"]


class Environment(Record, frozen=True, kw_only=True, tag="environment"):
    """The machine and its software as detected; a pass cites it by `environment_id`."""

    environment_id: ShortId
    os_name: str
    os_version: str
    kernel_version: str
    machine_architecture: str
    cpu_model: str | None = None
    cpu_logical_count: Count | None = None
    cpu_usable_count: Count | None = None
    """After affinity and container limits."""
    cpu_flags: list[str] = []
    """Only those that decide arithmetic speed: avx2, avx512f, avx512_bf16, amx_bf16 ..."""
    host_memory_bytes: Bytes | None = None
    host_memory_limit_bytes: Bytes | None = None
    python_version: str
    packages: dict[str, str]
    driver_version: str | None = None
    cuda_version: str | None = None
    allocator_backend: str | None = None
    allocator_settings: str | None = None
    thread_count: Count | None = None
    is_container: bool | None = None
    host_name: str | None = None
    """Off by default."""
    load_average_1m: float | None = None
    unchecked: list[str] = []
    """Checks that could not be made here; unchecked is not clean."""


class Device(Record, frozen=True, kw_only=True, tag="device"):
    """One device of an environment."""

    environment_id: ShortId
    device_id: Label
    """As the engine addresses it: `cpu`, `cuda:0`."""
    device_kind: DeviceKind
    device_name: Label
    device_uuid: str | None = None
    device_memory_bytes: Bytes | None = None
    compute_capability: str | None = None
    mig_profile: str | None = None
    power_limit_mw: Count | None = None
    has_ecc: bool | None = None
    pcie_generation: Count | None = None
    pcie_width: Count | None = None
    foreign_process_count: Count | None = None
    """Processes of others on the device before the run."""


class Engine(Record, frozen=True, kw_only=True, tag="engine"):
    """The software that answers requests."""

    engine_id: ShortId
    engine_name: Label
    engine_version: str | None = None
    """Null for a server: what it claims stands in server_claim."""
    engine_flags: dict[str, str]
    engine_evidence: EngineEvidence
    """`claimed`: the server says so and nothing here could check it."""


class Variant(Record, frozen=True, kw_only=True, tag="variant"):
    """One load of one variant: what was asked for and what was found. Written after load and after warm-up."""

    variant_id: ShortId
    pass_id: ShortId
    variant_name: Label
    observed_at: ObservedAt
    model_id: str
    model_revision: str | None = None
    requested: dict[str, str]
    observed: dict[str, str]
    origin: str | None = None
    """How the weights came to be in this form, e.g. stored as 4-bit Q4_1 and dequantized."""
    quantization_method: str | None = None
    quantization_bits: Count | None = None
    """Bits per quantized weight as the method states them; effective_bits is what the whole model takes."""
    quantization_group: Count | None = None
    """Weights that share one scale; null for a scale per row or tensor."""
    excluded_modules: list[str] = []
    """Linear modules left unquantized, by name; empty where no method is used."""
    weight_storage: str | None = None
    compute_dtype: str | None = None
    attention: str | None = None
    cache_kind: CacheKind
    output_layer_format: str | None = None
    has_tied_embeddings: bool | None = None
    parameter_count: Count | None = None
    weight_bytes: Bytes | None = None
    """True bytes: each storage once, quantization scales included."""
    claimed_weight_bytes: Bytes | None = None
    """What the library's own footprint method says."""
    effective_bits: float | None = None
    """8 x weight_bytes / parameter_count."""
    dtype_bytes: dict[str, Bytes] = {}
    """Storage dtype -> bytes."""
    device_map: dict[str, str] = {}
    has_offload: bool | None = None
    file_digests: dict[str, Sha256] = {}
    """File name -> sha256 of the artefact's files."""
    tokenizer_digest: Sha256 | None = None
    template_digest: Sha256 | None = None
    deviations: list[str] = []
    """Where observed differs from requested, in words."""


class TensorGroup(Record, frozen=True, kw_only=True, tag="tensor_group"):
    """One row of the histogram over a variant's modules."""

    variant_id: ShortId
    pass_id: ShortId
    observed_at: ObservedAt
    module_group: ModuleGroup
    module_class: str
    tensor_class: str
    storage_dtype: str
    device_id: Label
    tensor_count: Positive
    element_count: Count
    tensor_bytes: Bytes
    """True bytes of the storages behind the tensors."""
    is_tied: bool = False
    """The storage belongs to another row as well, which counts it: sums over rows leave tied ones out."""
