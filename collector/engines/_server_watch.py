"""Tells when going on is of no use: nobody is there any more, who asks is refused, or too many requests failed.

A started server that ended, or one that refuses every connection, is gone. One that answers 401 again and again, or
403 before it answered anything, refuses the key: that changes by no further request. Anything else that fails is a
result, until the protocol's own `stop_after_failures`.
"""

from __future__ import annotations

import time

from collector.client.messages import Exchange
from collector.contract.records.base import FailureCause
from collector.server_address import page_of

from ._session import KEY_REFUSED, Session, key_advice
from .base import Answer
from .faults import EngineFault, ServerLost

GONE_AFTER = 5
"""So many requests in a row without a connection, or refused for their key: further ones fare no better."""
_DIED_S = 2.0
"""A server's end is known to the operating system a little after its connections are."""
_ANSWER_S = 10.0
_RESUME = "and continue the run with --resume"


class ServerWatch:
    """Looks at each try of one pass."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._running = session.running
        self._unconnected = self._refused = self._failed = 0
        """So many of each in a row."""
        self._has_completed = False
        self._stop: EngineFault | None = None

    def unsent(self) -> tuple[FailureCause, str]:
        """Return why what is left was not sent."""
        if self._stop is not None:
            return self._stop.cause, "not sent: the requests before it failed, and the pass was ended"
        return "connection", "not sent: the server was gone"

    def require_there(self) -> None:
        """Raise ServerLost where the server is gone or refuses, with its last words; EngineFault where memory ended
        it."""
        if (ending := self._ended(wait_s=0.0)) is not None:
            words = self._session.without_secrets(self._running.last_words().strip()) or "(it printed nothing)"
            cause = _cause(ending, words)
            raise (EngineFault if cause == "out_of_memory" else ServerLost)(
                f"the server {self._running.name!r} ended with {ending}; its last words:\n{words}",
                next_step=f"read its last words, mend what ended it, {_RESUME}",
                cause=cause,
            )
        if self._unconnected >= GONE_AFTER or (self._unconnected and not self._answers()):
            raise ServerLost(
                f"the server {self._running.name!r} takes no connection any more at {self._running.base_url}",
                next_step=f"see that it runs, {_RESUME}",
                cause="connection",
            )
        if self._stop is not None:
            raise self._stop

    def is_gone(self, exchange: Exchange) -> bool:
        """Return whether nobody is there any more."""
        if exchange.ending != "connect_failed":
            self._unconnected = 0 if exchange.ending == "complete" else self._unconnected
            return False
        self._unconnected += 1
        return self._unconnected >= GONE_AFTER or (self._running.is_started and self._ended() is not None)

    def is_enough(self, answer: Answer) -> bool:
        """Return, once, that requests of no use were enough."""
        if not answer.is_final or self._stop is not None:
            return False
        has_failed = answer.request_outcome == "failed"
        self._has_completed |= not has_failed
        status = answer.wire.http_status if answer.wire is not None else None
        is_refused = status == KEY_REFUSED[0] or (status in KEY_REFUSED and not self._has_completed)
        self._refused = self._refused + 1 if has_failed and is_refused else 0
        self._failed = self._failed + 1 if has_failed else 0
        name, limit = self._running.name, self._session.choice.stop_after_failures
        if self._refused >= GONE_AFTER:
            self._stop = ServerLost(
                f"the server {name!r} refused {self._refused} requests in a row with HTTP {status}: it refuses who "
                "asks",
                next_step=f"{key_advice(self._session.choice)}, {_RESUME}",
                cause="protocol",
            )
        elif limit is not None and self._failed >= limit:
            self._stop = ServerLost(
                f"{self._failed} requests in a row failed, after which the protocol ends a pass through the server "
                f"{name!r}; the last: {answer.failure_message}",
                next_step=f"read what the failed requests say, mend it, {_RESUME}",
                cause=answer.failure_cause or "engine_error",
            )
        return self._stop is not None

    def _answers(self) -> bool:
        """Return whether it takes connections now: the last request may have found none in its busiest moment."""
        path = self._session.choice.ready_path or self._session.facts.ready_path
        return page_of(self._running.address, path, timeout_s=_ANSWER_S).status is not None

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
