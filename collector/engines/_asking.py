"""Short questions to a server outside anything timed: JSON in, JSON out, and what refuses says nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from collector.server_address import Address, page_of

_ASK_S = 30.0


class Asker:
    """Asks one server; the headers are those of its requests, key included."""

    def __init__(self, address: Address, headers: Mapping[str, str], *, timeout_s: float = _ASK_S) -> None:
        self._address = address
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self.last_status: int | None = None
        """Of the last answer, null where none came."""

    def get(self, path: str) -> Any:
        """Return the JSON of a GET, null where the answer is no JSON with status 200 or does not come."""
        return _json(self.text(path))

    def text(self, path: str, body: bytes | None = None) -> str | None:
        """Return the text of a GET, or of a POST of a body, with status 200; null where it does not come."""
        page = page_of(self._address, path, timeout_s=self._timeout_s, headers=self._headers, body=body)
        self.last_status = page.status
        return page.text

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the JSON of a POST, null where the answer is no JSON with status 200 or does not come."""
        return _json(self.text(path, json.dumps(body).encode()))


def _json(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None
