"""Tells when nobody is there any more: a started server that ended, or one that refuses every connection."""

from __future__ import annotations

import time

from collector.client.messages import Exchange
from collector.contract.records.base import FailureCause

from ._session import Session
from .faults import EngineFault, ServerLost

GONE_AFTER = 5
"""So many requests in a row without a connection: nobody is there any more."""
_DIED_S = 2.0
"""A server's end is known to the operating system a little after its connections are."""


class ServerWatch:
    """Looks at each try of one job."""

    def __init__(self, session: Session) -> None:
        self._running = session.running
        self._in_a_row = 0

    def is_gone(self, exchange: Exchange) -> bool:
        """Return whether what is left need not be tried."""
        if exchange.ending != "connect_failed":
            self._in_a_row = 0 if exchange.ending == "complete" else self._in_a_row
            return False
        self._in_a_row += 1
        return self._in_a_row >= GONE_AFTER or (self._running.is_started and self._ended() is not None)

    def require_there(self) -> None:
        """Raise ServerLost where the server is gone, with its last words; EngineFault where memory ended it."""
        if (ending := self._ended(wait_s=0.0)) is not None:
            words = self._running.last_words().strip() or "(it printed nothing)"
            cause = _cause(ending, words)
            raise (EngineFault if cause == "out_of_memory" else ServerLost)(
                f"the server {self._running.name!r} ended with {ending}; its last words:\n{words}",
                next_step="read its last words, mend what ended it, and continue the run with --resume",
                cause=cause,
            )
        if self._in_a_row:
            raise ServerLost(
                f"the server {self._running.name!r} takes no connection any more at {self._running.base_url}",
                next_step="see that it runs, and continue the run with --resume",
                cause="connection",
            )

    def _ended(self, wait_s: float = _DIED_S) -> str | None:
        give_up = time.monotonic() + wait_s
        while (ending := self._running.died()) is None and self._running.is_started and time.monotonic() < give_up:
            time.sleep(0.02)
        return ending


def _cause(ending: str, last_words: str) -> FailureCause:
    from collector.worker_faults import says_out_of_memory

    if says_out_of_memory(last_words):
        return "out_of_memory"
    return "killed" if "SIGKILL" in ending or "SIGTERM" in ending else "crashed"
