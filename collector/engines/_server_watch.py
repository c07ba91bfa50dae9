"""Tells when going on is of no use: nobody is there any more, who asks is refused, or too many requests failed.

A started server that ended, or one that refuses every connection, is gone. One that says no to whatever it is sent, by
a status that no further try mends, will say so to the rest. A warm-up that brought no answer at all, whatever the
reason, leaves nothing to measure. Anything else that fails is a result, until the protocol's own `stop_after_failures`.
"""

from __future__ import annotations

import time

from collector.client.messages import Exchange
from collector.contract.records.base import FailureCause
from collector.server_address import page_of

from ._refusals import BODY_CHARACTERS, advice, body_words, is_of_no_use
from ._session import Session
from .base import Answer
from .faults import EngineFault, ServerLost

GONE_AFTER = 5
"""So many requests in a row without a connection, or refused: further ones fare no better."""
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
        self._has_answered = False
        self._last_words = ""
        """What the last failed request was told."""
        self._last: tuple[int | None, FailureCause] = (None, "engine_error")
        self._stop: EngineFault | None = None

    def unsent(self) -> tuple[FailureCause, str]:
        """Return why what is left was not sent."""
        if self._stop is not None:
            return self._stop.cause, "not sent: the requests before it failed, and the pass was ended"
        return "connection", "not sent: the server was gone"

    def require_there(self) -> None:
        """Raise ServerLost where the server is gone or refuses, in its words; EngineFault where memory ended it."""
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

    def require_answers(self, phase: str) -> None:
        """Raise ServerLost where requests of a phase failed and none was answered: the next phase would fare alike."""
        if self._failed and not self._has_answered:
            raise self._useless(f"answered no request of the {phase}")

    def is_enough(self, answer: Answer, exchange: Exchange, url: str) -> bool:
        """Return, once, that requests of no use were enough. url: where this one went."""
        if not answer.is_final or self._stop is not None:
            return False
        has_failed = answer.request_outcome == "failed"
        self._has_answered |= not has_failed
        if has_failed:
            self._last = exchange.http_status, answer.failure_cause or "engine_error"
            self._last_words = self._words(answer, exchange, url)
        is_refused = is_of_no_use(exchange.http_status, has_answered=self._has_answered)
        self._refused = self._refused + 1 if has_failed and is_refused else 0
        self._failed = self._failed + 1 if has_failed else 0
        name, limit = self._running.name, self._session.choice.stop_after_failures
        if self._refused >= GONE_AFTER:
            self._stop = self._useless(f"refused {self._refused} requests in a row with HTTP {exchange.http_status}")
        elif limit is not None and self._failed >= limit:
            self._stop = ServerLost(
                f"{self._failed} requests in a row failed, after which the protocol ends a pass through the server "
                f"{name!r}; the last: {answer.failure_message}",
                next_step=f"read what the failed requests say, mend it, {_RESUME}",
                cause=answer.failure_cause or "engine_error",
            )
        return self._stop is not None

    def _useless(self, what: str) -> ServerLost:
        status, cause = self._last
        return ServerLost(
            f"the server {self._running.name!r} {what}; the last: {self._last_words}",
            next_step=f"{advice(self._session.choice, status)}, {_RESUME}",
            cause=cause,
        )

    def _words(self, answer: Answer, exchange: Exchange, url: str) -> str:
        """Return what a failed request was told: its status, the body's begin, and where it went."""
        refusal = exchange.http_status is not None and exchange.http_status >= 300
        said = self._session.without_secrets(body_words(exchange)) if refusal else answer.failure_message or ""
        status = f"HTTP {exchange.http_status}: " if refusal else ""
        return f"{status}{said[:BODY_CHARACTERS] or 'no words'} (POST {url})"

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
