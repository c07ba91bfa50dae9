"""How much memory a device has free now, and how many processes are on it: what a failed start is to be judged by."""

from __future__ import annotations

import psutil

from collector import nvidia

_GIB = 2**30


def free_memory_words(device: str) -> str:
    """Return a device's free memory and the processes on it in words; says so where they cannot be read."""
    if not device.startswith("cuda"):
        return f"{psutil.virtual_memory().available / _GIB:.1f} GiB free"
    facts = nvidia.driver_facts(nvidia.visible_ordinal(device))
    if facts is None:
        return "free memory not readable"
    nvml = nvidia.Nvml()
    card = nvml.card(facts.device_uuid)
    used = nvidia.NvmlDriver().read(facts.device_uuid, pid=0).device
    processes = None if card is None else nvml.processes(card)
    free = "free memory not readable"
    if isinstance(used, int):
        free = f"{(facts.device_memory_bytes - used) / _GIB:.1f} GiB free"
    return free if processes is None else f"{free}, {len(processes)} processes on it"
