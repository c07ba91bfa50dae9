"""What a person at a terminal sees of a run and may do to it: progress on stderr, and a stop by a signal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from collector.watcher import Ending

FIRST_LINES, LAST_LINES, MOST_CHARACTERS = 3, 8, 600
"""Of a failure's message: a library's last words can be pages long, and the records have them whole."""
_INDENT = "    "


class _Unbroken:
    """A stream whose reader may leave (a closed terminal, `| head`): the measurement behind it goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class ProgressLines:
    """Progress on stderr: a bar with the time left on a terminal, a few lines per pass elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        stream = cast("IO[str]", _Unbroken(sys.stderr))
        self._console = Console(file=stream, highlight=False, soft_wrap=True)
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            console=self._console, disable=not self._console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("starting", total=None)
        self._passes = self._begun = self._answers = self._wanted = self._failed = 0
        self._label = self._said = ""

    def __enter__(self) -> ProgressLines:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def plan(self, *, passes: int, documents: int) -> None:
        self._passes = passes
        self._bar.update(self._task, total=documents)

    def begin_pass(self, *, label: str, purpose: str, documents: int) -> None:
        self._begun += 1
        self._answers = self._wanted = documents
        self._failed = 0
        self._label = f"pass {self._begun} of {self._passes}: {label}, {purpose.replace('_', ' ')}"

    def phase(self, phase: str) -> None:
        self._bar.update(self._task, description=f"{self._label}: {phase}")

    def answered(self, document_id: str, *, is_failed: bool = False) -> None:
        self._answers -= 1
        self._failed += is_failed
        self._bar.advance(self._task)
        seen = self._wanted - self._answers
        # Without a bar, a line per quarter of the documents says that the pass goes on.
        if not self._console.is_terminal and self._answers and seen % -(-self._wanted // 4) == 0:
            failed = f", {self._failed} failed" if self._failed else ""
            self._say(f"{self._label}: {seen - self._failed} of {self._wanted} answered{failed}")

    def end_pass(self, *, label: str, ending: Ending) -> None:
        # What a failed pass left unanswered is not waited for.
        self._bar.advance(self._task, self._answers)
        self._say(f"{self._label}: {ending.words}")
        if ending.message is not None:
            said = brief(ending.message)
            self._say(f"{_INDENT}for the same reason as before" if said == self._said else said)
            self._said = said

    def notice(self, message: str) -> None:
        self._say(message)

    def _say(self, message: str) -> None:
        self._console.print(message, markup=False)


def brief(message: str) -> str:
    """Return a failure's message for a terminal: its first and its last lines, where the reason and the advice are."""
    lines = [line.rstrip()[:MOST_CHARACTERS] for line in message.strip().splitlines() if line.strip()]
    if len(lines) > FIRST_LINES + LAST_LINES:
        cut = f"... ({len(lines) - FIRST_LINES - LAST_LINES} lines, see the texts file)"
        lines = [*lines[:FIRST_LINES], cut, *lines[-LAST_LINES:]]
    return "\n".join(_INDENT + line for line in lines)


@contextmanager
def stopping_on_signals() -> Iterator[list[str]]:
    """Give a list that names the signal once Ctrl-C, SIGTERM or a hangup came; a second one ends the process at once.

    A hangup that is ignored (nohup) stays ignored.
    """
    import signal

    received: list[str] = []

    def note(number: int, _: object) -> None:
        received.append(signal.Signals(number).name)
        signal.signal(number, before[signal.Signals(number)])

    stopping = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        stopping.append(signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in stopping}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
