"""Which processes are a pass's own, and their processor time: its worker's whole tree, and a server that was there.

The tree: who is in the worker's session, and whom the worker started, also in a session of its own. A process that
ended and was waited for is in its parent's time. Of one that nobody in the tree waits for, what it used since the last
look is lost, and only that.

A look costs a few milliseconds of the parent's processor and nothing of the worker's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class OwnProcess(NamedTuple):
    """One process and its processor time so far, with that of its children which it has waited for."""

    parent_pid: int
    processor_s: float


def own_processes(psutil: Any, worker_pid: int, server_ports: Sequence[int] = ()) -> dict[int, OwnProcess] | None:
    """Return a pass's own processes by their ids; null where a server that was there cannot be told from others.

    server_ports: where servers listen, on this machine, that the pass asks and did not start.
    """
    own = {pid for pid in psutil.pids() if _session(pid) == worker_pid} | with_descendants(psutil, [worker_pid])
    if server_ports:
        servers = server_pids(psutil, server_ports)
        if servers is None:
            return None
        own |= servers
    found: dict[int, OwnProcess] = {}
    for pid in own:
        try:
            process = psutil.Process(pid)
            times = process.cpu_times()
            spent_s = times.user + times.system + times.children_user + times.children_system
            found[pid] = OwnProcess(process.ppid(), float(spent_s))
        except (psutil.Error, OSError):  # it has just ended
            continue
    return found


def spent_between(before: Mapping[int, OwnProcess], after: Mapping[int, OwnProcess]) -> float:
    """Return the seconds of processor time between two looks, of those that ended as far as their parents tell it."""
    lost = {pid for pid, one in before.items() if pid not in after and one.parent_pid not in before}
    began_s = sum(one.processor_s for pid, one in before.items() if pid not in lost)
    return max(0.0, sum(one.processor_s for one in after.values()) - began_s)


def server_pids(psutil: Any, ports: Sequence[int]) -> set[int] | None:
    """Return who listens on these ports of this machine, whom they started included; null where one is not seen.

    Another user's process is not, nor one in a container.
    """
    try:
        listening = {
            each.laddr.port: each.pid for each in psutil.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN and each.pid is not None and each.laddr.port in ports
        }  # fmt: skip
    except (psutil.Error, OSError):
        return None
    return with_descendants(psutil, listening.values()) if set(listening) == set(ports) else None


def with_descendants(psutil: Any, roots: Iterable[int]) -> set[int]:
    """Return these processes, as far as they are there, and all that they started."""
    own: set[int] = set()
    for pid in roots:
        try:
            own |= {pid, *(each.pid for each in psutil.Process(pid).children(recursive=True))}
        except (psutil.Error, OSError):
            continue
    return own


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
