"""The one module that starts processes: workers, commands in their own session, servers, git for the commit."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from collector.events import Event, PassJob, decode_event
from collector.workers import Worker, WorkerBabble, WorkerExit, WorkerSilent, WorkerStopped

_POLL_S = 0.1
_STACK_S = 0.3
_LAST_WORDS_BYTES = 16_384
_OUTPUT_BYTES = 1 << 20
"""Kept of what one worker prints between two looks at it."""
_COMMIT_S = 5.0


class ProcessWorkerFactory:
    """Starts each job in a fresh Python process of its own session.

    address_space_bytes: limit of the worker's address space, or null; a way to bound a machine's memory by hand.
    """

    def __init__(self, *, address_space_bytes: int | None = None) -> None:
        self._address_space_bytes = address_space_bytes or 0

    def start(self, job: PassJob) -> Worker:
        return ProcessWorker(job, self._address_space_bytes)


class ProcessWorker:
    """A worker process. Its events come over a private pipe, for libraries print on stdout; that goes to a file."""

    def __init__(self, job: PassJob, address_space_bytes: int) -> None:
        job_read, job_write = os.pipe()
        event_read, event_write = os.pipe()
        self._printed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in `close`
        self._printed_bytes = 0
        command = [
            sys.executable, "-P", "-m", "collector.worker_process",
            str(job_read), str(event_write), str(os.getpid()), str(address_space_bytes),
        ]  # fmt: skip
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=self._printed,
                pass_fds=(job_read, event_write),
                start_new_session=True,  # Ctrl-C reaches the parent alone; a kill reaches all of it
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        finally:
            os.close(job_read)
            os.close(event_write)
        self._job_write = job_write
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, args=(event_read,), daemon=True)
        self._reader.start()
        # A worker that never reads must not block the parent, which alone knows the time limits.
        self._writer = threading.Thread(target=self._send, args=(msgspec.json.encode(job) + b"\n",), daemon=True)
        self._writer.start()
        self._exit: WorkerExit | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def next_event(self, deadline_ns: int, is_stopping: Callable[[], bool]) -> Event | None:
        while True:
            if is_stopping():
                raise WorkerStopped
            left_s = (deadline_ns - time.perf_counter_ns()) / 1e9
            try:
                line = self._queue.get(timeout=max(0.0, min(_POLL_S, left_s)))
            except queue.Empty:
                if left_s <= 0:
                    raise WorkerSilent from None
                continue
            if line is None:
                return None
            try:
                return decode_event(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as fault:
                raise WorkerBabble(f"{fault}: {line.decode('utf-8', 'backslashreplace')}") from None

    def has_event(self) -> bool:
        return not self._queue.empty()

    def output(self) -> list[str]:
        size = os.fstat(self._printed.fileno()).st_size
        begin = max(self._printed_bytes, size - _OUTPUT_BYTES)
        self._printed_bytes = size
        text = os.pread(self._printed.fileno(), size - begin, begin).decode("utf-8", "backslashreplace")
        return [line.strip() for line in text.replace("\r", "\n").split("\n") if line.strip()]

    def end(self, *, grace_s: float, with_stack: bool = False) -> WorkerExit:
        if self._exit is not None:
            return self._exit
        if with_stack:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGUSR1)
            self._await_exit(_STACK_S)
        self._await_exit(grace_s)
        # Before the process is reaped, while its number cannot belong to anyone else: it and all that it started.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        exit_code = self._process.wait()
        for thread in (self._reader, self._writer):
            thread.join()
        os.close(self._job_write)
        size = os.fstat(self._printed.fileno()).st_size
        begin = max(0, size - _LAST_WORDS_BYTES)
        last_words = os.pread(self._printed.fileno(), size - begin, begin).decode("utf-8", "backslashreplace")
        self._exit = WorkerExit(exit_code, last_words)
        return self._exit

    def close(self) -> None:
        self.end(grace_s=0)
        self._printed.close()

    def _await_exit(self, timeout_s: float) -> None:
        """Wait for the exit without reaping it."""
        give_up = time.monotonic() + timeout_s
        while os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if time.monotonic() >= give_up:
                return
            time.sleep(0.005)

    def _send(self, line: bytes) -> None:
        with contextlib.suppress(OSError):  # it died before reading; its end says why
            left = memoryview(line)
            while left:
                left = left[os.write(self._job_write, left) :]

    def _read(self, descriptor: int) -> None:
        with open(descriptor, "rb") as stream:
            for line in stream:
                self._queue.put(line)
        self._queue.put(None)


class PipedProcess:
    """A Python module in a process of its own, with a pipe to it and one from it, in the group of its starter.

    Whoever kills that group ends it too. It is told its descriptors and the starter's process id as arguments.
    """

    def __init__(self, module: str) -> None:
        its_input, self._input = os.pipe()
        output, its_output = os.pipe()
        self._output = open(output, "rb")  # noqa: SIM115  # closed in `end`
        command = [sys.executable, "-P", "-m", module, str(its_input), str(its_output), str(os.getpid())]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(its_input, its_output))
        finally:
            os.close(its_input)
            os.close(its_output)

    @property
    def pid(self) -> int:
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Write all of it. Raises BrokenPipeError where nobody reads."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._input, left) :]

    def read(self, count: int) -> bytes:
        """Return so many bytes, fewer where the process ended before."""
        return self._output.read(count)

    def end(self, *, last_bytes: bytes, grace_s: float) -> int:
        """Write last bytes, close its input, wait, kill it if it is still there, and return its exit code."""
        if not self._output.closed:
            with contextlib.suppress(BrokenPipeError):
                self.write(last_bytes)
            os.close(self._input)
            self._output.close()
        try:
            return self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class CommandEnd(NamedTuple):
    """How a command ended. exit_code: null where it reached its time limit; negative for a signal."""

    exit_code: int | None
    output: bytes
    errors: bytes


def run_command(command: Sequence[str], *, cwd: Path, sent: bytes, timeout_s: float) -> CommandEnd:
    """Run a command in a session of its own with `sent` as its input, and end it and all that it started.

    Raises OSError where it cannot be started.
    """
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        stdin.write(sent)
        stdin.seek(0)
        process = subprocess.Popen(
            command, cwd=cwd, stdin=stdin, stdout=output, stderr=errors, start_new_session=True
        )  # fmt: skip
        exit_code: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                exit_code = process.wait(timeout_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
        return CommandEnd(exit_code, output.read(), errors.read())


class LongCommand:
    """A command that runs until it is stopped, in this process's own group; what it prints goes to a temporary file.

    environment: variables on top of this process's own. It ends with this process: the kernel kills it (Linux), and so
    does whoever kills the group. Raises OSError where no process can be started; a command that is not there ends with
    exit code 127 and says so in what it prints.
    """

    def __init__(self, command: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> None:
        self._printed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in `close`
        self._looked_bytes = 0
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "collector.bound_command",
                    str(os.getpid()),
                    *(f"{name}={value}" for name, value in environment.items()),
                    "--",
                    *command,
                ],
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=self._printed,
            )
        except BaseException:
            self._printed.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return how it ended, negative for a signal; null while it runs."""
        return self._process.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end at most so long; return as `exit_code` does."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self._process.poll()

    def new_output(self) -> str:
        """Return what it printed since the last look, the last MiB of that at most."""
        return self._output(_OUTPUT_BYTES, since=True)

    def last_words(self) -> str:
        """Return the end of what it printed, 16 KiB at most."""
        return self._output(_LAST_WORDS_BYTES, since=False)

    def close(self) -> None:
        """Give up what it printed; the process must have ended."""
        self._printed.close()

    def _output(self, limit_bytes: int, *, since: bool) -> str:
        size = os.fstat(self._printed.fileno()).st_size
        begin = max(0, size - limit_bytes)
        if since:
            begin, self._looked_bytes = max(begin, self._looked_bytes), size
        return os.pread(self._printed.fileno(), size - begin, begin).decode("utf-8", "backslashreplace")


def source_commit(package: Path | None = None) -> str | None:
    """Return the commit of the collector's own checkout, `-dirty` where its files differ, or null without one.

    Null for an installed package, also where it lies in an environment inside somebody else's repository.
    """
    folder = package or Path(__file__).parent
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return f"{commit}-dirty" if commit and changed else commit


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True, text=True, timeout=_COMMIT_S, check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
