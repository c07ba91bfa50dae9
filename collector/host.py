"""What the operating system's files say of this host: processor, memory, container limits; null where they do not."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import NamedTuple

DECISIVE_CPU_FLAGS = (
    "avx2", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx_vnni", "amx_bf16", "amx_int8", "amx_tile",
    "fma", "f16c", "asimd", "asimdhp", "bf16", "i8mm", "sve", "sve2",
)  # fmt: skip
"""Processor features that decide arithmetic speed."""

_UNLIMITED_BYTES = 2**60


class Files(NamedTuple):
    """The operating system's files under a root; tests give a folder of their own."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """Return a file's text, or null where it cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def words(self, path: str) -> list[str]:
        """Return the words of a file, none where it cannot be read."""
        return (self.text(path) or "").split()

    def has(self, path: str) -> bool:
        """Return whether the file is there."""
        return (self.root / path).exists()


def usable_cpu_count(files: Files) -> int:
    """Return how many whole processors this process may use: affinity and container quota, at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affinity, *(int(quota) for quota in _cpu_quotas(files))]))


def memory_total_bytes(files: Files) -> int | None:
    """Return the host's memory, or null where the system does not say."""
    for line in (files.text("proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def memory_limit_bytes(files: Files) -> int | None:
    """Return the smallest memory limit of this process's control groups, or null where there is none."""
    paths = [*cgroup_files(files, "memory.max"), "sys/fs/cgroup/memory/memory.limit_in_bytes"]
    limits = [int(words[0]) for path in paths if (words := files.words(path)) and words[0].isdigit()]
    return min((limit for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def cpu_model(files: Files) -> str | None:
    """Return the processor's model name with single spaces, or null where the system does not say."""
    for line in (files.text("proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "model name" and value.strip():
            return " ".join(value.split())
    return platform.processor() or None


def cpu_flags(files: Files) -> list[str]:
    """Return those of DECISIVE_CPU_FLAGS that the processor has, sorted."""
    for line in (files.text("proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() in ("flags", "features"):
            return sorted(set(value.split()) & set(DECISIVE_CPU_FLAGS))
    return []


def os_release(files: Files) -> tuple[str, str]:
    """Return the operating system's name and version."""
    facts: dict[str, str] = {}
    for line in (files.text("etc/os-release") or "").splitlines():
        name, _, value = line.partition("=")
        facts[name.strip()] = value.strip().strip("\"'")
    if "NAME" in facts:
        return facts["NAME"], facts.get("VERSION_ID", "")
    return platform.system(), platform.version()


def is_container(files: Files) -> bool:
    """Return whether a container's usual marks are here."""
    marks = files.has(".dockerenv") or files.has("run/.containerenv") or "KUBERNETES_SERVICE_HOST" in os.environ
    return marks or any(word in (files.text("proc/1/cgroup") or "") for word in ("docker", "kubepods", "containerd"))


def load_average_1m() -> float | None:
    """Return the load average of the last minute, or null where the system has none."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def throttled_ns(files: Files) -> int | None:
    """Return how long the container's processor quota has held its processes back so far, or null."""
    for path in cgroup_files(files, "cpu.stat"):
        words = files.words(path)
        if "throttled_usec" in words:
            return int(words[words.index("throttled_usec") + 1]) * 1000
    return None


def oom_kill_count(files: Files) -> int | None:
    """Return how often the kernel has killed for memory: in our control group, else on the whole host, or null."""
    for path in (*cgroup_files(files, "memory.events"), "proc/vmstat"):
        words = files.words(path)
        if "oom_kill" in words:
            return int(words[words.index("oom_kill") + 1])
    return None


def cgroup_files(files: Files, name: str) -> list[str]:
    """Return where a control file of this process's group may lie: its own group first, then each parent."""
    group = next((line[3:] for line in (files.text("proc/self/cgroup") or "").split() if line.startswith("0::")), "/")
    parts = [part for part in group.split("/") if part not in ("", "..")]
    return ["/".join(["sys/fs/cgroup", *parts[:depth], name]) for depth in range(len(parts), -1, -1)]


def _cpu_quotas(files: Files) -> list[float]:
    quotas: list[float] = []
    for path in cgroup_files(files, "cpu.max"):
        words = files.words(path)
        if len(words) == 2 and words[0].isdigit():
            quotas.append(int(words[0]) / int(words[1]))
    quota, period = (
        files.words("sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
        files.words("sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    )
    if quota and period and quota[0].isdigit():
        quotas.append(int(quota[0]) / int(period[0]))
    return quotas
