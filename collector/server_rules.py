"""What a protocol may not say about servers and about how requests are put to them: in three groups.

Which engine answers for whom; each server's own table; concurrencies and rates.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from collector.contract.errors import DossierError, Finding
from collector.contract.protocol import DocumentLine, LockedPlan, Protocol, ServerChoice
from collector.contract.server_kinds import KINDS
from collector.contract.shape import nearest
from collector.server_address import address_of

_SECRET_NAME = re.compile(r"auth|api.?key|token(?![a-z])|secret|password|credential|cookie", re.IGNORECASE)
_KEY_VALUE = re.compile(r"(bearer|basic)\s|sk-|hf_|gh[pousr]_|xox[bp]-", re.IGNORECASE)
_SECRET_VALUE = re.compile(rf"{_KEY_VALUE.pattern}|[A-Za-z0-9+/_=-]{{32,}}$", re.IGNORECASE)
_KEY_FLAG = re.compile(
    r"--?([\w-]*(api[-_]?key|secret|password)|((hf|api|auth|access|bearer)[-_])?token)", re.IGNORECASE
)  # fmt: skip
"""Not every flag that speaks of tokens: most count those of a model."""
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[^{].*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONG_VALUE = re.compile(r"sk_(live|test)_.*|(?=.*[a-z])(?=.*[0-9])(?=.*[A-Z]).{24,}|[0-9a-f]{32,}")
"""No name of a variable is written so, and many keys are."""
_OWN_FIELDS = {
    "model": "write model under the server",
    "messages": "remove it: the prompt is the task's",
    "prompt": "remove it: the prompt is the task's",
    "stream": "remove it: answers are read as they are generated",
    "n": "remove it: one answer is asked for",
    "max_tokens": "write generation.max_new_tokens",
    "stop": "write generation.stop_after",
    "stream_options": "remove it: counts are asked for where the kind has them",
}
_CHAT_ONLY = (
    "chat_template", "chat_template_kwargs", "add_generation_prompt", "tools", "tool_choice", "response_format",
    "reasoning_effort",
)  # fmt: skip


class _Fault(NamedTuple):
    place: str
    rule: str
    message: str
    next_step: str


def server_findings(path: Path, protocol: Protocol, line_of: Callable[[str], int | None]) -> Iterator[Finding]:
    """Yield every finding about servers, in the order of the file's parts."""
    faults = [*_engines(protocol), *_unused(protocol), *_loads(protocol)]
    for place, server in _placed(protocol):
        faults += [*_address(place, server), *_secrets(place, server), *_body(place, server, protocol)]
        faults += _times(place, server, protocol)
    for fault in faults:
        yield Finding(path, _line(line_of, fault.place), fault.rule, fault.message, fault.next_step)


def rate_findings(
    path: Path, protocol: Protocol, documents: Sequence[DocumentLine], line_of: Callable[[str], int | None]
) -> Iterator[Finding]:
    """Yield a finding where documents that arrive at the slowest rate have not all arrived when a pass must end."""
    counts = Counter(document.role for document in documents if document.role != "development")
    if not protocol.plan.rates or not counts:
        return
    slowest, limit_s = min(protocol.plan.rates), protocol.limits.measure_s
    ((role, count),) = counts.most_common(1)
    if count / slowest > limit_s:
        message = (
            f"{count} {role} documents at {slowest:g} arrivals per second take {count / slowest:,.0f} s to arrive, and "
            f"measuring is ended after limits.measure_s = {limit_s:g}"
        )
        step = f"raise the rate above {count / limit_s:.4g}, or raise limits.measure_s"
        yield Finding(path, _line(line_of, "plan.rates"), "rates", message, step)


def used_servers(protocol: Protocol | LockedPlan) -> list[ServerChoice]:
    """Return the servers that answer for a variant, each once, in the order of the variants."""
    found = [protocol.engine_of(variant).server for variant in protocol.variants]
    return [server for place, server in enumerate(found) if server is not None and server not in found[:place]]


def require_startable(protocol: Protocol, *, allow_commands: bool) -> None:
    """Raise DossierError for a server's command that was not allowed, and for a key whose variable is not set.

    Before anything runs: whoever runs a protocol from elsewhere shall have read its commands, and a request without its
    key would be refused one by one.
    """
    for server in used_servers(protocol):
        if server.start and not allow_commands:
            raise DossierError(
                f"the server {server.name!r} is started by a command of the protocol, which runs only where it is "
                f"allowed; nothing was run: {shlex.join(server.start)}",
                next_step="read the command, then give --allow-commands",
            )
        wanted = {"its key": server.key_env, **{f"its header {name}": env for name, env in server.header_env.items()}}
        for what, variable in wanted.items():
            if variable is not None and not os.environ.get(variable):
                raise DossierError(
                    f"the server {server.name!r} takes {what} from the environment variable {variable}, which is not "
                    "set here; nothing was run",
                    next_step=f"export {variable} in the shell that starts the run; its value is never recorded",
                )


def _placed(protocol: Protocol) -> Iterator[tuple[str, ServerChoice]]:
    if protocol.engine.server is not None:
        yield "engine.server", protocol.engine.server
    for index, server in enumerate(protocol.servers):
        yield f"server[{index}]", server


def _line(line_of: Callable[[str], int | None], place: str) -> int:
    """The line of a place, or of the table that it would stand in."""
    while place:
        if (line := line_of(place)) is not None:
            return line
        place = place.rpartition(".")[0]
    return 1


def _engines(protocol: Protocol) -> Iterator[_Fault]:
    engine = protocol.engine
    names = [server.name for server in protocol.servers]
    for index, name in enumerate(names):
        if name in names[:index]:
            message = f"two servers are named {name!r}"
            yield _Fault(f"server[{index}].name", "duplicate-name", message, "give each server its own name")
    if engine.name == "openai" and engine.server is None:
        message = "the engine openai asks a server, and none is named"
        yield _Fault("engine.name", "server", message, "add [engine.server] with name, kind and start or url")
    if engine.name != "openai" and engine.server is not None:
        message = f"engine {engine.name} runs in process, and [engine.server] names a server"
        step = 'write name = "openai", or make it a [[server]] and name it in the variants that it answers for'
        yield _Fault("engine.server", "server", message, step)
    if engine.name == "openai" and engine.threads is not None:
        message = f"`engine.threads` is {engine.threads}, which a server does not read"
        yield _Fault("engine.threads", "server", message, "give its start command the number of threads")
    if engine.name != "transformers" and engine.continuous is not None:
        message = f"continuous batching in process is of the engine transformers, and the engine is {engine.name}"
        yield _Fault("engine.continuous", "server", message, "remove [engine.continuous]")
    for index, variant in enumerate(protocol.variants):
        if variant.server is not None and variant.server not in names:
            meant = nearest(variant.server, names)
            step = f"did you mean {meant!r}?" if meant else "add a [[server]] of that name, or remove it"
            message = f"variant {variant.name!r} is answered by the server {variant.server!r}, and there is none"
            yield _Fault(f"variant[{index}].server", "server", message, step)
    is_served = engine.name == "openai" or any(variant.server for variant in protocol.variants)
    if engine.answers_by == "embedding" and is_served:
        message = "the engine ranks by embedding, which only the engine transformers does, and a server generates"
        yield _Fault(
            "engine.answers_by", "answers-by", message, 'write answers_by = "generation", or leave servers out'
        )


def _unused(protocol: Protocol) -> Iterator[_Fault]:
    used = {variant.server for variant in protocol.variants}
    for index, server in enumerate(protocol.servers):
        if server.name not in used:
            message = f"no variant is answered by the server {server.name!r}"
            step = f'write server = "{server.name}" in a [[variant]], or remove it'
            yield _Fault(f"server[{index}].name", "server", message, step)


def _address(place: str, server: ServerChoice) -> Iterator[_Fault]:
    name = server.name
    if bool(server.start) == (server.url is not None):
        both = "both a start command and a url" if server.url is not None else "neither a start command nor a url"
        step = "write start = [...] for a server that each pass starts and stops, or url = ... for one that runs"
        yield _Fault(f"{place}.{'url' if server.url else 'name'}", "server", f"the server {name!r} has {both}", step)
    if server.start and not any("{port}" in part for part in server.start):
        message = f"`{place}.start` names no {{port}}, so the server would not listen where it is asked"
        yield _Fault(f"{place}.start", "server", message, 'write "{port}" where the command takes its port')
    if not server.start and server.environment:
        message = f"the server {name!r} is not started here, and `{place}.environment` is for a started one"
        yield _Fault(f"{place}.environment", "server", message, "remove it")
    if server.url is not None:
        yield from _url(f"{place}.url", server.url)


def _url(place: str, url: str) -> Iterator[_Fault]:
    try:
        address = address_of(url)
    except DossierError as fault:
        yield _Fault(place, "server", fault.message, fault.next_step)
        return
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        message = f"`{place}` carries a user or password, which the lock would keep"
        yield _Fault(place, "secret", message, "take it out, and name the variable that holds the key: key_env")
    if parts.query or parts.fragment:
        message = f"`{place}` carries a query, which the lock would keep, and requests have their own path"
        yield _Fault(place, "secret", message, "take it out; a key goes into key_env or header_env")
    if address.path.endswith(("/v1", "/completions")):
        message = f"`{place}` ends with {address.path}, and requests add /v1 and what follows themselves"
        yield _Fault(place, "server", message, "write the address up to what stands before /v1")


def _secrets(place: str, server: ServerChoice) -> Iterator[_Fault]:
    for name, value in server.headers.items():
        if _SECRET_NAME.search(name) or _SECRET_VALUE.match(value):
            message = f"`{place}.headers` has {name}, which looks like a key, and headers are recorded as they are"
            step = 'write key_env = "VARIABLE" for a bearer key, or header_env with the variable that holds the value'
            yield _Fault(f"{place}.headers", "secret", message, step)
    for name, value in server.environment.items():
        if _SECRET_NAME.search(name) or (_SECRET_VALUE.match(value) and "/" not in value):
            message = f"`{place}.environment` has {name}, which looks like a key, and it is recorded as it is"
            step = "take it out and export it in the shell that starts the run"
            yield _Fault(f"{place}.environment", "secret", message, step)
    for index, part in enumerate(server.start):
        flag, _, value = part.partition("=")
        if not value:
            flag, value = server.start[index - 1] if index else "", part
        is_named = _ASSIGNED.fullmatch(part) is not None and _SECRET_NAME.search(flag) is not None
        if is_named or (_KEY_FLAG.fullmatch(flag) and not value.startswith("-")) or _KEY_VALUE.match(value):
            message = f"`{place}.start` gives what looks like a key, and the lock would keep it"
            step = "take it out and export it in the shell that starts the run, as the variable that the server reads"
            yield _Fault(f"{place}.start", "secret", message, step)
    for name, given in server.body.items():
        if _SECRET_NAME.fullmatch(name) or (isinstance(given, str) and _KEY_VALUE.match(given)):
            message = f"`{place}.body` has {name}, which looks like a key, and bodies are recorded as they are"
            yield _Fault(f"{place}.body", "secret", message, "take it out; a key goes into key_env or header_env")
    named = [("key_env", server.key_env), *(("header_env", each) for each in server.header_env.values())]
    for field, variable in named:
        if variable is not None and not _is_variable(variable):
            message = f"`{place}.{field}` does not hold the name of an environment variable; its value is not repeated"
            step = (
                "write the variable's name, e.g. GATEWAY_KEY, and export the key itself in the shell that starts the "
                "run; a key that was written here should be withdrawn if anybody else has seen this file"
            )
            yield _Fault(f"{place}.{field}", "secret", message, step)
    if server.key_env is not None and "authorization" in map(str.lower, server.header_env):
        message = f"the server {server.name!r} names a key twice: key_env, and Authorization in header_env"
        yield _Fault(f"{place}.header_env", "secret", message, "keep one of them")


def _is_variable(name: str) -> bool:
    is_key = _KEY_VALUE.match(name) is not None or _LONG_VALUE.fullmatch(name) is not None
    return _VARIABLE.fullmatch(name) is not None and not is_key


def _body(place: str, server: ServerChoice, protocol: Protocol) -> Iterator[_Fault]:
    for name in server.body:
        if name in _OWN_FIELDS:
            message = f"`{place}.body` has {name}, which the protocol says elsewhere"
            yield _Fault(f"{place}.body", "server", message, _OWN_FIELDS[name])
        elif server.endpoint == "completions" and name in _CHAT_ONLY:
            message = f"`{place}.body` has {name}, which is of chat alone, and the endpoint is completions"
            yield _Fault(f"{place}.body", "server", message, 'remove it, or write endpoint = "chat"')
    limit = server.body.get("max_completion_tokens")
    if limit is not None and limit != protocol.generation.max_new_tokens:
        message = f"`{place}.body` asks for {limit} tokens, and `generation.max_new_tokens` is not that"
        step = f"write max_completion_tokens = {protocol.generation.max_new_tokens}"
        yield _Fault(f"{place}.body", "server", message, step)
    if server.cache_state == "cold" and server.cold_by == "request" and KINDS[server.kind].cold_field is None:
        message = f"`{place}.cold_by` is request, and a server of kind {server.kind} has no field for it"
        yield _Fault(f"{place}.cold_by", "server", message, 'write cold_by = "nonce", or leave it out')


def _times(place: str, server: ServerChoice, protocol: Protocol) -> Iterator[_Fault]:
    if server.start and server.ready_s >= protocol.limits.load_s:
        message = f"`{place}.ready_s` is {server.ready_s:g}, and loading is ended after {protocol.limits.load_s:g} s"
        yield _Fault(f"{place}.ready_s", "server", message, "lower it, or raise limits.load_s above it")


def _loads(protocol: Protocol) -> Iterator[_Fault]:
    plan, engine = protocol.plan, protocol.engine
    by_name = {variant.name: variant for variant in protocol.variants}
    has_server = engine.name == "openai" or any(variant.server for variant in protocol.variants)
    for name, grown in (("concurrencies", plan.concurrencies), ("rates", plan.rates)):
        if list(grown) != sorted(set(grown)):
            shown = ", ".join(f"{each:g}" for each in sorted(set(grown)))
            message = f"`plan.{name}` is {list(grown)}, and each must be larger than the one before"
            yield _Fault(f"plan.{name}", name, message, f"write {name} = [{shown}]")
    if plan.concurrencies and not has_server and engine.continuous is None:
        message = "`plan.concurrencies` is for variants behind a server or continuous batching, and there is neither"
        step = "remove it, add a [[server]], or write batches = [...] for static batches"
        yield _Fault("plan.concurrencies", "concurrencies", message, step)
    if plan.rates and not has_server:
        message = "`plan.rates` is for variants behind a server, and there is none"
        yield _Fault("plan.rates", "rates", message, "remove it, or add a [[server]] and variants that it answers for")
    reference = by_name.get(plan.reference)
    if plan.batches and reference is not None and (reference.server or engine.name == "openai"):
        message = f"`plan.batches` batches the reference {plan.reference!r}, and its server batches by itself"
        yield _Fault("plan.batches", "batches", message, f"write concurrencies = {plan.batches} instead")
