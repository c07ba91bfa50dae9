"""The bytes of a request's head: the target's own headers win over ours, those that frame the message over all."""

from __future__ import annotations

from collector.client.messages import Target

_STREAM = "text/event-stream"
_TEXT = "text/plain, */*;q=0.5"
_FRAMING = ("content-length", "transfer-encoding", "connection")


def post_of(target: Target, path: str, body: bytes) -> bytes:
    """Return a POST of JSON that asks for a stream. Raises ValueError for what no head can hold."""
    headers = _headers(target, accept=_STREAM, is_json=True)
    return _head("POST", path, {**headers, "Content-Length": str(len(body))}) + body


def get_of(target: Target, path: str) -> bytes:
    """Return a GET after which the server closes the connection. Raises ValueError for what no head can hold."""
    return _head("GET", path, {**_headers(target, accept=_TEXT), "Connection": "close"})


def _headers(target: Target, *, accept: str, is_json: bool = False) -> dict[str, str]:
    """Return our headers and the target's; no compression, which would make pieces unlike what the server wrote.

    Raises ValueError for what no head can hold.
    """
    ours = {"Host": _host(target), "User-Agent": "gpu-dossier", "Accept": accept, "Accept-Encoding": "identity"}
    if is_json:
        ours["Content-Type"] = "application/json"
    theirs = {name: value for name, value in target.headers if name.lower() not in _FRAMING}
    for name, value in theirs.items():
        if not (name + value).isascii() or not (name + value).isprintable():
            raise ValueError(f"the header {name!r} holds a character that HTTP does not allow")  # it may be a key
    names = {name.lower() for name in theirs}
    return {name: value for name, value in ours.items() if name.lower() not in names} | theirs


def _host(target: Target) -> str:
    """The port stands in it only where it is not the scheme's own."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return host if target.port == (443 if target.is_tls else 80) else f"{host}:{target.port}"


def _head(method: str, path: str, headers: dict[str, str]) -> bytes:
    if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
        raise ValueError(f"{path!r} is no path of a request")
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("ascii")
