"""What a server's no means: whether sending the like again could fare better, its words, and what to do about it."""

from __future__ import annotations

from collector.client.messages import Exchange
from collector.contract.protocol import ServerChoice

from ._exchange_faults import BUSY
from ._session import KEY_REFUSED, key_advice

BODY_CHARACTERS = 200
_KEY = 401


def is_of_no_use(status: int | None, *, has_answered: bool) -> bool:
    """Return whether a status says no to whatever is sent: a redirection or a 4xx, `busy` aside, and nothing answered.

    After an answer it may be about one document: its content, its length. Only a key is refused whatever was sent.
    """
    if status is None or not 300 <= status < 500 or status in BUSY:
        return False
    return status == _KEY or not has_answered


def body_words(exchange: Exchange) -> str:
    """Return the whole body as text."""
    return b"".join(piece for _, piece in exchange.pieces).decode("utf-8", "backslashreplace").strip()


def advice(choice: ServerChoice, status: int | None) -> str:
    """Return what to look at where a server with this status, or with none, answered nothing."""
    under = f"under the server {choice.name!r}"
    if status in KEY_REFUSED:
        return key_advice(choice)
    if status is not None and (300 <= status < 400 or status in (404, 405)):
        return f"check url (scheme, host and port, without /v1), endpoint and model {under}"
    if status is not None and 400 <= status < 500 and status not in BUSY:
        return f"check model, endpoint and body {under} against what the server says"
    if status in BUSY or (status is not None and status >= 500):
        return "read what the server itself printed, and see that it answers a request by hand"
    return f"see that the server runs and answers a request by hand, and check url and time limits {under}"
