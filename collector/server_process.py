"""Starts a server for one pass, waits until it answers, and stops it with all that it started; nothing else is touched.

start_ns runs from asking for the process to the first answer of its readiness path with status 200, asked every
POLL_S seconds: interpreter start, imports and loading are in it, and it is late by up to one poll.
"""

from __future__ import annotations

import http.client
import os
import re
import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from collector.contract.protocol import ServerChoice
from collector.contract.records.base import FailureCause
from collector.engines.faults import EngineStart, ServerLost
from collector.free_memory import free_memory_words
from collector.processes import LongCommand
from collector.server_address import (
    HOST,
    Address,
    Page,
    address_of,
    free_port,
    is_loopback,
    listens,
    page_of,
)
from collector.server_output import ServerOutput, places_of
from collector.worker_faults import says_out_of_memory

POLL_S = 0.1
_ASK_S = 5.0
"""A server that is busy loading may take its time for an answer."""
_AFTER_KILL_S = 5.0
_MARK = "GPU_DOSSIER_SERVER"
"""Variable with a value of its own for each start: what was started by it is found by that, also where the process in
between has ended."""


class RunningServer:
    """A server that a pass talks to: one that it started, or one that was there.

    pid and start_ns are null for one that was there; start_ns also until `wait_ready` returns.
    """

    def __init__(
        self, choice: ServerChoice, address: Address, command: LongCommand | None, *, mark: str, device: str,
        places: dict[str, str],
    ) -> None:  # fmt: skip
        self.name = choice.name
        self.address = address
        self.base_url = address.url
        self.is_loopback = is_loopback(address.host)
        self.device = device
        self.began_ns = time.perf_counter_ns()
        self.start_ns: int | None = None
        self.free_words_before = free_memory_words(device) if command else ""
        self._stop_s = choice.stop_s
        self._command = command
        self._mark = mark
        self._output = ServerOutput(choice.name, places)
        self._seen: dict[int, psutil.Process] = {}
        self._seen_lock = threading.Lock()  # the memory meter asks from a thread of its own
        self._words = ""
        self._is_stopped = command is None

    @property
    def is_started(self) -> bool:
        """Whether this pass started it."""
        return self._command is not None

    @property
    def pid(self) -> int | None:
        return self._command.pid if self._command else None

    def died(self) -> str | None:
        """Return how a started server ended by itself, in words; null while it runs, and for one that was there."""
        if self._command is None or self._is_stopped or (code := self._command.exit_code()) is None:
            return None
        return exit_words(code)

    def last_words(self) -> str:
        """Return the end of what it printed, 16 KiB at most, without the folders of this machine and without keys."""
        if self._command is not None and not self._is_stopped:
            self._words = self._output.clean(self._command.last_words())
        return self._words

    def log_notes(self) -> None:
        """Pass new lines that speak of warnings or errors on to logging, each text once, MAX_NOTES at most.

        The worker keeps what is logged: so they become records of the phase in which they are read.
        """
        if self._command is not None and not self._is_stopped:
            self._output.log(self._command.new_output())

    def processes(self) -> list[psutil.Process]:
        """Return the server's process and what it started, as far as alive; empty for one that was there."""
        if self._command is None:
            return []
        # Once it is reaped, its number may be somebody else's.
        found = _with_children(self._command.pid) if self._command.exit_code() is None else []
        with self._seen_lock:
            for each in found:
                self._seen.setdefault(each.pid, each)
            seen = list(self._seen.values())
        return [each for each in seen if _is_alive(each)]

    def stop(self) -> None:
        """End what was started: SIGTERM, `stop_s` to comply, then SIGKILL. May be called again, and after any end."""
        if self._command is None or self._is_stopped:
            return
        self.log_notes()
        for each in self.processes():
            _signal(each, signal.SIGTERM)
        self._wait_gone(self._stop_s)
        for _ in range(3):  # one that is forking may leave one behind
            left = {each.pid: each for each in (*self.processes(), *self._marked())}
            if not left:
                break
            for each in left.values():
                _signal(each, signal.SIGKILL)
            with self._seen_lock:
                self._seen.update(left)
            self._wait_gone(_AFTER_KILL_S)
        self._command.wait(_AFTER_KILL_S)
        self.last_words()
        self._is_stopped = True
        self._command.close()

    def _wait_gone(self, timeout_s: float) -> None:
        give_up = time.monotonic() + timeout_s
        while self.died() is None or self.processes():  # asking reaps it; psutil's own wait would take the exit code
            if time.monotonic() >= give_up:
                return
            time.sleep(0.02)

    def _marked(self) -> Iterator[psutil.Process]:
        for each in psutil.process_iter():
            try:
                if each.environ().get(_MARK) == self._mark and _is_alive(each):
                    yield each
            except (psutil.Error, OSError):
                continue


def start_server(
    choice: ServerChoice, *, base_dir: str | Path, model: str, port: int | None = None, device: str = "cpu"
) -> RunningServer:
    """Start the server of a choice with `start`; `wait_ready` says when it can be asked. `stop` ends it.

    model: what {model} stands for. port: a free one where not given. device: whose free memory a failure tells.
    Raises EngineStart for a port that is in use and where no process can be started.
    """
    port = free_port() if port is None else port
    if listens(HOST, port):
        raise _fault(
            f"the server {choice.name!r} cannot be started: port {port} of {HOST} is in use by another process",
            next_step="end what listens there, or let {port} be filled in: each start takes a free one",
        )
    folder = Path(base_dir).resolve()
    filled = {
        "{host}": HOST, "{port}": str(port), "{model}": model, "{base_dir}": str(folder), "{python}": sys.executable,
    }  # fmt: skip
    mark = secrets.token_hex(16)
    environment = {name: _fill(value, filled) for name, value in choice.environment.items()}
    command = [_fill(argument, filled) for argument in choice.start]
    places = _secrets(choice) | places_of(model=model, program=command[0], base_dir=folder)
    try:
        running = LongCommand(command, cwd=folder, environment={**environment, _MARK: mark})
    except OSError as fault:
        raise _fault(
            f"the server {choice.name!r} cannot be started: {fault}",
            next_step=f"try the command by hand: {choice.start[0]}",
        ) from None
    server = RunningServer(
        choice, Address("http", HOST, port, ""), running, mark=mark, device=device, places=places
    )  # fmt: skip
    global _watched
    _watched = server
    return server


_watched: RunningServer | None = None


def watched() -> RunningServer | None:
    """Return the server that this process started last: the memory meter begins before there is one.

    A worker starts one at most.
    """
    return _watched


def server_at(choice: ServerChoice) -> RunningServer:
    """Return the server of a choice with `url`, which runs already; `wait_ready` says whether it is there."""
    return RunningServer(choice, address_of(choice.url or ""), None, mark="", device="cpu", places={})


def wait_ready(server: RunningServer, *, path: str, ready_s: float) -> None:
    """Wait until a GET of the path answers 200, and set `start_ns` of a started server.

    Of one that was there any answer will do, asked once: a gateway may keep its health to itself. Raises EngineStart
    where it ended, or is not ready within `ready_s`, after stopping it; ServerLost where nothing answers at a url, so
    that a resumed run measures every pass again that found nobody.
    """
    if not server.is_started:
        if (answer := page_of(server.address, path, timeout_s=min(ready_s, 30.0))).status is None:
            raise ServerLost(
                f"nothing answers at {server.base_url}: {answer.fault}",
                next_step="start the server, or correct its url in the protocol",
                cause="connection",
            )
        return
    give_up = time.monotonic() + ready_s
    answer = Page(None, None, "never asked")
    while True:
        if ending := server.died():
            raise _failed(server, f"ended with {ending} before it was ready")
        left_s = give_up - time.monotonic()
        if left_s <= 0:
            told = f"status {answer.status}" if answer.status else answer.fault
            raise _failed(server, f"was not ready within {ready_s:g} s; {path}: {told}", is_late=True)
        answer = page_of(server.address, path, timeout_s=min(left_s, _ASK_S))
        if answer.status == http.client.OK and server.died() is None:
            break
        server.processes()
        time.sleep(min(POLL_S, max(0.0, left_s)))
    server.start_ns = time.perf_counter_ns() - server.began_ns
    server.log_notes()
    if (stranger := _stranger(server)) is not None:
        raise _failed(server, f"does not listen on port {server.address.port}: process {stranger} answers there")


def exit_words(code: int) -> str:
    """Return how a process ended, in words: its exit code, or the signal that ended it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def _failed(server: RunningServer, what: str, *, is_late: bool = False) -> EngineStart:
    """Stop the server and return the fault with its last words and the device's free memory then and now."""
    now = free_memory_words(server.device)
    server.stop()
    words = server.last_words().strip()
    cause: FailureCause = "timeout" if is_late else "load_failure"
    if says_out_of_memory(words):
        cause = "out_of_memory"
    return _fault(
        f"the server {server.name!r} {what}\n{server.device} when it was started: {server.free_words_before}; "
        f"when it failed: {now}\nits last words:\n{words or '(it printed nothing)'}",
        next_step="try its start command by hand; its last words say more",
        cause=cause,
    )


def _fault(message: str, *, next_step: str, cause: FailureCause = "load_failure") -> EngineStart:
    return EngineStart(message, next_step=next_step, cause=cause)


def _secrets(choice: ServerChoice) -> dict[str, str]:
    """Return the values of the variables that hold a key: the server inherits them, and may print them."""
    named = filter(None, (choice.key_env, *choice.header_env.values()))
    return {value: f"[{name}]" for name in named if (value := os.environ.get(name))}


def _fill(text: str, filled: dict[str, str]) -> str:
    """Fill in what is known and leave other braces alone: arguments may hold JSON. What is filled in stays as it is."""
    return re.sub("|".join(map(re.escape, filled)), lambda found: filled[found[0]], text)


def _stranger(server: RunningServer) -> int | None:
    """Return who listens on the server's port where that is none of its processes; null where nobody can tell."""
    own = {each.pid for each in server.processes()}
    try:
        listening = {
            each.pid for each in psutil.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN and each.laddr.port == server.address.port and each.pid is not None
        }  # fmt: skip
    except (psutil.Error, OSError):
        return None
    return min(listening) if listening and not listening & own else None


def _with_children(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)  # psutil makes sure that the number still belongs to this process
    except (psutil.Error, OSError):
        return
