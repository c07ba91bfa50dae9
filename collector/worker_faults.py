"""Names the cause of what ended a worker: from its exception, or from its exit and its last words."""

from __future__ import annotations

import signal

from collector.contract.errors import MissingDependency
from collector.contract.records.base import FailureCause, Phase
from collector.engines.faults import EngineFault

_MEMORY_WORDS = (
    "out of memory", "can't allocate memory", "cannot allocate memory", "std::bad_alloc", "alloc_failed",
    "not enough memory",
)  # fmt: skip
_OPERATOR_WORDS = ("could not run '", "not implemented for '", "no kernel found", "no kernel image is available")


def cause_of(error: BaseException, phase: Phase) -> FailureCause:
    """Return the cause that an exception stands for. Library classes are known by name: none is imported here."""
    if isinstance(error, EngineFault):
        return error.cause
    text = str(error).lower()
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names or any(word in text for word in _MEMORY_WORDS):
        return "out_of_memory"
    if isinstance(error, ImportError | MissingDependency):
        return "missing_dependency"
    if isinstance(error, NotImplementedError) or any(word in text for word in _OPERATOR_WORDS):
        return "missing_operator"
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ConnectionError):
        return "connection"
    return "load_failure" if phase == "load" else "engine_error"


def says_out_of_memory(last_words: str) -> bool:
    """Return whether a process says at its end that memory ran out."""
    return any(word in last_words.lower() for word in (*_MEMORY_WORDS, "memoryerror", "outofmemoryerror"))


def cause_of_exit(exit_code: int | None, last_words: str, *, was_killed_for_memory: bool) -> FailureCause:
    """Return the cause of an end without an exception: a signal, or an exit in the middle of the work.

    exit_code: as the operating system reports it, negative for a signal; null where there is no process.
    last_words: the end of what the worker printed; C++ libraries say there why they abort.
    was_killed_for_memory: whether the kernel counted a kill for memory meanwhile.
    """
    if exit_code == -signal.SIGKILL:
        return "out_of_memory" if was_killed_for_memory else "killed"
    if says_out_of_memory(last_words):
        return "out_of_memory"
    if exit_code in (-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP):
        return "killed"
    return "crashed"
