"""What worker and load generator tell each other: msgpack, one length-prefixed message after the other, over two pipes.

All stamps are nanoseconds of the machine's one monotonic clock, which both processes read.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from collector.contract.records import ENVELOPE, ClientWindow
from collector.engines.base import Load

Ending = Literal[
    "complete", "closed", "connect_failed", "first_token_timeout", "total_timeout", "connect_timeout", "not_http",
]  # fmt: skip
"""How a try ended. complete: the body ended as HTTP says, whatever it holds; closed: the connection ended first."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect, and what every request has in its head."""

    host: str
    port: int
    is_tls: bool
    headers: list[tuple[str, str]]
    """Authorization included; never recorded."""


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """One request to send: `number` names it in what comes back."""

    number: int
    path: str
    body: bytes


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits in seconds and the policy for tries that brought no content."""

    connect_s: float
    first_token_s: float
    request_s: float
    retries: int
    retry_wait_s: float


class ClientJob(msgspec.Struct, frozen=True, kw_only=True, tag="job"):
    """One phase's requests, in the order in which they are due, and how they are put to the server."""

    target: Target
    sendings: list[Sending]
    load: Load
    limits: Limits
    reasoning_fields: list[str]
    scrape_path: str | None = None
    scrape_every_s: float = 5.0


class Exchange(msgspec.Struct, frozen=True, kw_only=True, tag="exchange"):
    """One try, as the socket saw it. `pieces` are the body's parts with the stamp of their receipt, undecoded.

    intended_ns: when the plan wanted it sent. connection_wait_ns: from then to having an open connection. is_final:
    False where another try follows. retry_after_s: what the server asked for.
    """

    number: int
    try_index: int
    is_final: bool
    intended_ns: int
    connection_wait_ns: int | None = None
    sent_ns: int | None = None
    headers_ns: int | None = None
    http_status: int | None = None
    content_type: str | None = None
    pieces: list[tuple[int, bytes]] = []
    done_ns: int | None = None
    ending: Ending
    fault: str | None = None
    """The error's class and words, where there was one."""
    retry_after_s: float | None = None


class ScrapeText(msgspec.Struct, frozen=True, kw_only=True, tag="scrape"):
    """The server's metrics page, when it was read; the text is null where it could not be."""

    stamp_ns: int
    text: str | None


class ClientDone(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The job is over: what the generator measured of itself; pass_id and phase are filled by the engine."""

    window: ClientWindow


class ClientFault(msgspec.Struct, frozen=True, kw_only=True, tag="fault"):
    """The generator itself broke; nothing follows."""

    message: str


ClientMessage = Exchange | ScrapeText | ClientDone | ClientFault

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ClientMessage)


def encode_message(message: ClientMessage) -> bytes:
    """Return a message's bytes. The window travels without its envelope, which the journal fills."""
    if not isinstance(message, ClientDone):
        return _ENCODER.encode(message)
    plain: dict[str, Any] = msgspec.to_builtins(message)
    for name in ENVELOPE:
        plain["window"].pop(name, None)
    return _ENCODER.encode(plain)


def decode_message(data: bytes) -> ClientMessage:
    """Return the message of these bytes. Raises msgspec.DecodeError."""
    return _DECODER.decode(data)
