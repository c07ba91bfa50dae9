"""Becomes another command that ends with the process that asked for it; `python -m collector.bound_command`.

Arguments: the process id of the one that asks, variables as NAME=VALUE, `--`, the command. On Linux the kernel kills
it when that one ends, however it ends; elsewhere nothing but the asker's own stop does. Its process id stays the same.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

NOT_STARTED = 127
"""Exit code of a command that cannot be started, as shells have it."""
_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Ask for the kernel's kill and turn into the command."""
    end = arguments.index("--")
    parent_pid, variables, command = int(arguments[0]), arguments[1:end], arguments[end + 1 :]
    # Set here and not for this interpreter, which a variable like PYTHONHOME of another one would break.
    for variable in variables:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:  # it ended before the kernel was asked
        os._exit(1)
    try:
        os.execvp(command[0], command)
    except OSError as fault:
        os.write(2, f"cannot start {command[0]}: {fault.strerror}\n".encode("utf-8", "backslashreplace"))
        os._exit(NOT_STARTED)


if __name__ == "__main__":
    main(sys.argv[1:])
