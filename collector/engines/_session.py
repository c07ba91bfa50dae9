"""A server that a pass can talk to: started or found, ready, and asked what it is called and what it claims."""

from __future__ import annotations

import os
from typing import NamedTuple

from collector.client.messages import Target
from collector.contract.errors import DossierError
from collector.contract.protocol import ServerChoice
from collector.contract.records import ServerClaim
from collector.contract.server_kinds import KINDS, ServerKindFacts
from collector.server_claims import server_claim
from collector.server_process import RunningServer, server_at, start_server, wait_ready

from ._artefact import Artefact
from ._asking import Asker
from ._served_model import listed_names, other_names, require_listed
from .base import EngineSetup
from .faults import ServerLost

KEY_REFUSED = (401, 403)
"""A server's statuses that say: not you."""


class Session(NamedTuple):
    """A server that is ready. model: its name in requests. metrics_path: null where it has no metrics to read."""

    choice: ServerChoice
    facts: ServerKindFacts
    running: RunningServer
    asker: Asker
    target: Target
    model: str
    claim: ServerClaim
    metrics_path: str | None
    listed: list[str]
    """Names of the models that the server lists; empty where it lists none."""
    secrets: dict[str, str]
    """Environment variable -> its value: what no record may hold."""

    def without_secrets(self, text: str) -> str:
        """Return a server's words with the name of the variable where they repeat its value."""
        for variable, value in self.secrets.items():
            text = text.replace(value, f"[{variable}]")
        return text


def request_headers(choice: ServerChoice) -> dict[str, str]:
    """Return the headers of every request, keys and secrets from the environment included; they are never recorded.

    Raises DossierError for a variable that is not set, and for a value that no request can carry.
    """
    headers = dict(choice.headers)
    for name, variable in choice.header_env.items():
        headers[name] = _from_environment(choice, variable)
    if choice.key_env is not None:
        headers["Authorization"] = f"Bearer {_from_environment(choice, choice.key_env)}"
    for name, value in headers.items():
        if not (name + value).isascii() or not (name + value).isprintable():  # libraries would print it in their words
            raise DossierError(
                f"the header {name!r} of the server {choice.name!r} holds a character that HTTP does not allow",
                next_step="export its variable without line ends and signs beyond ASCII, or correct [server] headers",
            )
    return headers


def secrets_of(choice: ServerChoice) -> dict[str, str]:
    """Return each variable that holds a key or a secret header, with its value. Raises as request_headers does."""
    named = [*choice.header_env.values(), *([choice.key_env] if choice.key_env is not None else [])]
    return {variable: _from_environment(choice, variable) for variable in named}


def key_advice(choice: ServerChoice) -> str:
    """Return what to do where a server refuses who asks; the variables are named, never their values."""
    named = list(dict.fromkeys([*([choice.key_env] if choice.key_env else []), *choice.header_env.values()]))
    if not named:
        return f'name the environment variable that holds its key: key_env = "..." under the server {choice.name!r}'
    return f"check the value of {' and '.join(named)} in the shell that starts the run"


def start(setup: EngineSetup, choice: ServerChoice, artefact: Artefact) -> RunningServer:
    """Start the server of a choice, or return the one that runs already; nothing is waited for."""
    if not choice.start:
        return server_at(choice)
    return start_server(choice, base_dir=setup.base_dir, model=model_place(artefact), device=setup.device)


def model_place(artefact: Artefact) -> str:
    """Return what {model} stands for: the GGUF file where the model is one, else the folder or the Hub's id."""
    if artefact.folder is not None and artefact.gguf_file is not None:
        return str((artefact.folder / artefact.gguf_file).resolve())
    return str(artefact.folder.resolve()) if artefact.folder is not None else artefact.source


def open_session(choice: ServerChoice, running: RunningServer, artefact: Artefact) -> Session:
    """Wait until the server is ready, and ask it what requests have to know.

    Raises EngineStart where it does not get ready, DossierError where its model's name cannot be told.
    """
    facts = KINDS[choice.kind]
    wait_ready(running, path=choice.ready_path or facts.ready_path, ready_s=choice.ready_s)
    headers = request_headers(choice)
    asker = Asker(running.address, headers)
    metrics_path = choice.metrics_path or facts.metrics_path
    metrics = asker.text(metrics_path) if metrics_path else None
    claim = server_claim(running, choice, headers=headers, metrics=metrics)
    address = running.address
    # The path before /v1 stands in the address; the generator is given whole paths.
    target = Target(
        host=address.host, port=address.port, is_tls=address.scheme == "https", headers=list(headers.items())
    )  # fmt: skip
    page = asker.get(facts.models_path)
    listed = listed_names(page)
    if page is None and choice.model is None and asker.last_status in KEY_REFUSED:
        raise ServerLost(
            f"the server {choice.name!r} answers {facts.models_path} with HTTP {asker.last_status}: it refuses who "
            "asks",
            next_step=key_advice(choice),
            cause="protocol",
        )
    model = _model_name(choice, listed, artefact)
    require_listed(choice, model, listed, other_names(page))
    return Session(
        choice, facts, running, asker, target, model, claim, metrics_path if metrics is not None else None, listed,
        secrets_of(choice),
    )  # fmt: skip


def _model_name(choice: ServerChoice, listed: list[str], artefact: Artefact) -> str:
    """Return the model's name in requests: the protocol's, else the only one that the server lists."""
    if choice.model is not None:
        return choice.model.replace("{model}", model_place(artefact))
    if choice.kind == "transformers" and any("{model}" in part for part in choice.start):
        return model_place(artefact)  # it lists what is in the Hub's cache, not what it was started with
    if len(listed) == 1:
        return listed[0]
    path = KINDS[choice.kind].models_path
    found = f"lists {len(listed)} models: {', '.join(listed)}" if listed else f"lists no model at {path}"
    raise DossierError(
        f"the server {choice.name!r} {found}, and the protocol does not say which is asked",
        next_step=f'write model = "..." under the server {choice.name!r}: the name that its requests have',
    )


def _from_environment(choice: ServerChoice, variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise DossierError(
            f"the server {choice.name!r} takes a key from the environment variable {variable}, which is not set here",
            next_step=f"export {variable} in the shell that starts the run; its value is never recorded",
        )
    return value
