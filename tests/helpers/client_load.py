"""Jobs for the load generator, and running one in this process, without a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import uvloop

from collector.client.generator import LoadRun
from collector.client.messages import ClientJob, Exchange, Limits, ScrapeText, Sending, Target
from collector.contract.records import ClientWindow
from collector.engines.base import Load

PATH = "/v1/chat/completions"


class Ran(NamedTuple):
    """What one job sent back. tries: every exchange, in order of its end."""

    tries: list[Exchange]
    scrapes: list[ScrapeText]
    window: ClientWindow

    @property
    def finals(self) -> list[Exchange]:
        """The last try of each request, by its number."""
        return sorted((each for each in self.tries if each.is_final), key=lambda each: each.number)


def limits(**changed: Any) -> Limits:
    """Limits that no test reaches by chance, without retries."""
    usual: dict[str, Any] = {
        "connect_s": 10.0, "first_token_s": 20.0, "request_s": 30.0, "retries": 0, "retry_wait_s": 0.0
    }  # fmt: skip
    return Limits(**usual | changed)


def job_for(port: int, count: int, *, load: Load | None = None, **changed: Any) -> ClientJob:
    """Return a job of `count` requests to 127.0.0.1; the body of request 3 is `3`."""
    usual: dict[str, Any] = {
        "target": Target(host="127.0.0.1", port=port, is_tls=False, headers=[]),
        "sendings": [Sending(number=number, path=PATH, body=b"%d" % number) for number in range(count)],
        "load": load or Load(), "limits": limits(), "reasoning_fields": ["reasoning_content"],
    }  # fmt: skip
    return ClientJob(**usual | changed)


def run_here(job: ClientJob) -> Ran:
    """Run a job in a loop of this process."""
    said: list[Exchange | ScrapeText] = []

    async def run() -> ClientWindow:
        return await LoadRun(job, said.append).run()

    return sorted_out(said, uvloop.run(run()))


def sorted_out(said: Sequence[Exchange | ScrapeText], window: ClientWindow) -> Ran:
    """Return the tries and the scrapes apart."""
    return Ran(
        [each for each in said if isinstance(each, Exchange)],
        [each for each in said if isinstance(each, ScrapeText)],
        window,
    )


def body_of(exchange: Exchange) -> bytes:
    """Return the body that a try got, whole or not."""
    return b"".join(part for _, part in exchange.pieces)
