"""Short questions to a server outside anything timed: JSON in, JSON out, and what refuses says nothing."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any

from collector.server_address import Address

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
        text = self._asked("GET", path, None)
        return _json(text)

    def text(self, path: str) -> str | None:
        """Return the text of a GET with status 200, null where it does not come."""
        found = self._asked("GET", path, None)
        return None if found is None else found.decode("utf-8", "replace")

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the JSON of a POST, null where the answer is no JSON with status 200 or does not come."""
        return _json(self._asked("POST", path, json.dumps(body).encode()))

    def _asked(self, method: str, path: str, body: bytes | None) -> bytes | None:
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._address.host, self._address.port, timeout=self._timeout_s)
        self.last_status = None
        headers = {**self._headers, "Content-Type": "application/json", "Connection": "close"}
        try:
            connection.request(method, self._address.path + path, body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read()
            self.last_status = answer.status
            return text if answer.status == http.client.OK else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


def _json(text: bytes | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None
