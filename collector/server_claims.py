"""What a server says of itself, asked once when it is ready: nothing here could check it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from collector.contract.protocol import ServerChoice, portable
from collector.contract.records import ServerClaim
from collector.contract.records.base import MissingReason
from collector.contract.server_kinds import KINDS
from collector.scrapes import claims_of_metrics
from collector.server_address import Address, page_of
from collector.server_process import RunningServer

_ASK_S = 10.0
_SAID_LENGTH = 300
"""Characters kept of one claim."""


def server_claim(
    server: RunningServer,
    choice: ServerChoice,
    *,
    headers: Mapping[str, str] | None = None,
    metrics: str | None = None,
) -> ServerClaim:
    """Return what the server claims; pass_id is filled by the worker.

    headers: of every request, the key included; none is recorded. metrics: its metrics page, which is asked for where
    it is not given. A path that does not answer claims nothing. Of a place on the server's machine the last name is
    kept.
    """
    facts = KINDS[choice.kind]
    claims: dict[str, str] = {}
    sources: dict[str, str] = {}
    pages: dict[str, Any] = {}
    for claim in facts.claims:
        if claim.path not in pages:
            pages[claim.path] = _json_at(server.address, claim.path, headers or {})
        value = _at(pages[claim.path], claim.place)
        if value is not None and claim.name not in claims:
            claims[claim.name], sources[claim.name] = value, claim.path
    metrics_path = choice.metrics_path or facts.metrics_path
    if facts.info_claims and metrics_path:
        if metrics is None:
            metrics = page_of(server.address, metrics_path, headers=headers or {}, timeout_s=_ASK_S).text or ""
        for name, value in claims_of_metrics(metrics, choice.kind).items():
            if name not in claims:
                claims[name], sources[name] = _short(value), metrics_path
    missing: dict[str, MissingReason] = {}
    if server.start_ns is None:
        missing = {"start_ns": "failed" if server.is_started else "not_applicable"}
    return ServerClaim(
        pass_id="",
        server_name=choice.name,
        server_kind=choice.kind,
        is_started=server.is_started,
        is_loopback=server.is_loopback,
        claims=claims,
        sources=sources,
        start_ns=server.start_ns,
        missing=missing,
    )


def _json_at(address: Address, path: str, headers: Mapping[str, str]) -> Any:
    """Return the JSON that a path answers, null where it answers none."""
    text = page_of(address, path, headers=headers, timeout_s=_ASK_S).text
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None


def _at(answer: Any, place: str) -> str | None:
    """Return what stands at a place like `data.0.id`, null where nothing plain does."""
    for step in place.split("."):
        try:
            answer = answer[int(step)] if isinstance(answer, list) else answer[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return None if answer is None or isinstance(answer, dict | list) else _short(str(answer))


def _short(value: str) -> str:
    return portable(value)[:_SAID_LENGTH]
