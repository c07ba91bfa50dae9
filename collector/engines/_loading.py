"""What both tasks of the transformers engine load: the tokenizer, and the weights onto one device in one dtype."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal, NamedTuple

from collector.contract.errors import DeviceFault, MissingDependency
from collector.nvidia import visible_ordinal

from ._artefact import Artefact
from ._prompting import model_context_tokens
from ._quantize import load_options, require_packages
from .base import EngineSetup

NEEDED = ("torch", "transformers", "accelerate", "safetensors")
_INSTALL = "pip install 'gpu-dossier[collector]'"

AutoClass = Literal["AutoModel", "AutoModelForCausalLM"]


class TokenizerParts(NamedTuple):
    """The library's tokenizer, and the positions that the model's configuration knows; null where it names none."""

    tokenizer: Any
    context_tokens: int | None


def tokenizer_of(artefact: Artefact) -> TokenizerParts:
    """Return tokenizer and context; reads no weights. Raises OSError or ValueError for what cannot be read."""
    from transformers import AutoConfig, AutoTokenizer

    options = artefact.arguments()
    config = AutoConfig.from_pretrained(artefact.source, trust_remote_code=False, **options)
    tokenizer = AutoTokenizer.from_pretrained(artefact.source, trust_remote_code=False, **options)
    return TokenizerParts(tokenizer, model_context_tokens(config))


def load_model(setup: EngineSetup, artefact: Artefact, auto_class: AutoClass) -> Any:
    """Load the weights onto the device in the variant's dtype, ready to infer.

    Raises DeviceFault for a device that torch does not see, and whatever the library raises.
    """
    import torch
    import transformers

    _quiet_progress_bars()
    if setup.engine.threads is not None:
        torch.set_num_threads(setup.engine.threads)
    _require_device(setup.device)
    variant = setup.variant
    dtype = getattr(torch, variant.dtype)
    options: dict[str, Any] = {**artefact.arguments(), **load_options(setup, dtype)}
    model: Any = getattr(transformers, auto_class).from_pretrained(
        artefact.source,
        dtype=dtype,
        attn_implementation=variant.attention,
        device_map={"": setup.device},
        trust_remote_code=False,
        **options,
    )
    return model.eval()


def require_engine_packages(setup: EngineSetup) -> None:
    """Raise MissingDependency, with the install command, for what the engine or the variant's method needs."""
    needed = [*NEEDED, *(["gguf"] if setup.model.gguf_file is not None else [])]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingDependency(f"the transformers engine needs {', '.join(missing)}", next_step=_INSTALL)
    require_packages(setup.variant.quantization)


def _quiet_progress_bars() -> None:
    """A worker's output is no terminal: bars there would be lines of noise."""
    from transformers.utils import logging

    untyped: Any = logging
    untyped.disable_progress_bar()


def _require_device(device: str) -> None:
    import torch

    try:
        torch.device(device)
    except RuntimeError as fault:
        raise DeviceFault(
            f"{device} is no device that torch knows", next_step="name auto, cpu, or a card such as cuda:0"
        ) from fault
    if not device.startswith("cuda"):
        return
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    index = visible_ordinal(device)
    if index >= count:
        raise DeviceFault(
            f"{device} is not there: torch {torch.__version__} sees {count} CUDA device(s)",
            next_step="name another device, or install a torch built for this machine's driver (pytorch.org)",
        )
