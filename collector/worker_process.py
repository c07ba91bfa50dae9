"""The worker as a process: its job comes from one pipe, the events of the pass go to another; ends with its parent."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from collector.clock import SystemClock
from collector.events import PassJob, encode_event
from collector.memory import meter_for
from collector.worker import run_job

_PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> None:
    """Run the job that arrives on one file descriptor and write its events to another.

    Arguments: the two descriptors, the parent's process id, and the address-space limit in bytes (0: none). The process
    ends with its parent: the kernel kills it (Linux), and the end of the job's pipe does so elsewhere.
    """
    job_fd, event_fd, parent_pid, address_space_bytes = (int(argument) for argument in arguments)
    _die_with(parent_pid)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    for descriptor in (job_fd, event_fd):
        os.set_inheritable(descriptor, False)
    if address_space_bytes:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes, address_space_bytes))
    jobs = open(job_fd, "rb")  # noqa: SIM115  # stays open: its end is the parent's end
    job = msgspec.json.decode(jobs.readline(), type=PassJob)
    threading.Thread(target=_exit_at_end, args=(jobs,), daemon=True).start()
    with open(event_fd, "wb") as events:
        meter = meter_for(job.setup.device, job.setup.engine.server)
        for event in run_job(job, clock=SystemClock(), meter=meter):
            events.write(encode_event(event))
            events.flush()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # No interpreter shutdown: a library that crashes while cleaning up must not spoil a pass that is complete.
    os._exit(0)


def _die_with(parent_pid: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:  # it died before the kernel was asked
        os._exit(1)


def _exit_at_end(jobs: Any) -> None:
    jobs.read()
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
