"""Where a protocol may ask for the time of every chunk or token: not where writing them would disturb what is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from collector.contract.errors import Finding
from collector.contract.protocol import EngineChoice, Protocol

RULE = "capture"
MAX_CONCURRENCY = 64
MAX_RATE_PER_S = 50.0
"""At 64 requests of 50 chunks per second each, 3,200 stamps per second are kept and written."""


def capture_findings(path: Path, protocol: Protocol, line_of: Callable[[str], int | None]) -> Iterator[Finding]:
    """Yield each capture that is asked for and cannot be, or would disturb: it is refused, without a way around.

    Loads are tried with and without it in two protocols; the one without is what speed is read from.
    """

    def say(place: str, message: str, next_step: str) -> Finding:
        return Finding(path, line_of(place) or 1, RULE, message, next_step)

    engine = protocol.engine
    places = [f"server[{number}].has_chunk_capture" for number, each in enumerate(protocol.servers)
              if each.has_chunk_capture]  # fmt: skip
    if engine.server is not None and engine.server.has_chunk_capture:
        places.append("engine.server.has_chunk_capture")
    if engine.has_step_capture and (why := _has_no_steps(engine)) is not None:
        yield say("engine.has_step_capture", *why)
    elif engine.has_step_capture and engine.continuous is not None:
        places.append("engine.has_step_capture")
    for place in places:
        concurrencies = [each for each in protocol.plan.concurrencies if each > MAX_CONCURRENCY]
        rates = [] if place == "engine.has_step_capture" else protocol.plan.rates
        if concurrencies:
            message = f"`{place}` writes every chunk, and `plan.concurrencies` goes up to {max(concurrencies)}"
            yield say(place, message, f"remove it, or keep concurrencies to {MAX_CONCURRENCY} at most")
        if fast := [each for each in rates if each > MAX_RATE_PER_S]:
            message = f"`{place}` writes every chunk, and `plan.rates` goes up to {max(fast):g} per second"
            yield say(place, message, f"remove it, or keep rates to {MAX_RATE_PER_S:g} per second at most")


def _has_no_steps(engine: EngineChoice) -> tuple[str, str] | None:
    """Return what is wrong and the next step, where the engine gives no token of its own."""
    if engine.name == "openai":
        message = "`engine.has_step_capture` is for an engine in process, and openai asks a server"
        return message, "write has_chunk_capture = true under [engine.server]"
    if engine.answers_by == "embedding":
        return "`engine.has_step_capture` asks for tokens, and an embedding generates none", "remove it"
    return None
