"""The request engine: any server with an OpenAI interface, started by the pass or found at a url.

The pass's process starts the server and the load generator, a process that does nothing but send and stamp; prompts
are rendered here with the model's own tokenizer, as in process, and compared with what the server makes of them. Load
phase: from creating the engine to the server being ready; it is stopped when the pass is over.
"""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Iterator, Sequence

from collector.client.process import NEEDED as CLIENT_NEEDED
from collector.client.process import LoadGenerator
from collector.clock import Clock
from collector.contract.errors import DossierError, MissingDependency
from collector.contract.protocol import ServerChoice, portable, portable_url
from collector.contract.records import AnyRecord, TensorGroup, Variant, Warning
from collector.contract.records.base import ObservedAt, Phase
from collector.server_process import RunningServer

from ._artefact import Artefact, find_artefact
from ._cold import cold_method
from ._hub import at_hand
from ._loading import tokenizer_of
from ._prompting import TemplateEncoder
from ._served_variant import served_variant
from ._serving import Serving
from ._session import Session, open_session, request_headers, start
from .base import (
    ONE_AT_A_TIME,
    RELOAD,
    Answer,
    EncodedPrompt,
    Engine,
    EngineIdentity,
    EngineSetup,
    Load,
    Padding,
    Prompt,
)

CLIENT_LOOP = "open-and-closed-2"
"""Changes when the load generator's stamps or schedule would."""
NEEDED = ("transformers", "jinja2", *CLIENT_NEEDED, "psutil")
NOT_SEEN = "server_not_seen"
"""Warning of a pass whose server may run on a machine that nobody looked at."""
_INSTALL = "pip install 'gpu-dossier[collector]'"


def identity(setup: EngineSetup) -> EngineIdentity:
    """Return what is requested of the server, nothing started; its own version is claimed by each pass apart.

    Nothing secret is in it: of keys and secret headers only the names of their variables.

    Raises MissingDependency.
    """
    _require_packages(setup)
    choice = _server(setup)
    flags = {
        "server": choice.name, "endpoint": choice.endpoint, "client_loop": CLIENT_LOOP, "cold_by": cold_method(choice),
        "cache_state": choice.cache_state, "retries": str(choice.retries), "retry_wait_s": f"{choice.retry_wait_s:g}",
        "connect_s": f"{choice.connect_s:g}", "first_token_s": f"{choice.first_token_s:g}",
    }  # fmt: skip
    if choice.start:
        flags["start"] = shlex.join(portable(part) for part in choice.start)
    else:
        flags["url"] = portable_url(choice.url or "")
    if choice.model is not None:
        flags["model"] = choice.model
    if choice.key_env is not None:
        flags["key_env"] = choice.key_env
    for prefix, given in (
        ("environment", {name: portable(value) for name, value in choice.environment.items()}),
        ("header", choice.headers), ("header_env", choice.header_env), ("body", choice.body),
    ):  # fmt: skip
        flags |= {f"{prefix}.{name}": str(value) for name, value in given.items()}
    return EngineIdentity(
        engine_name="openai" if choice.kind == "other" else choice.kind,
        engine_version=None, engine_flags=flags,
    )  # fmt: skip


def create(setup: EngineSetup, clock: Clock) -> Engine:
    """Return the engine, nothing started. Raises MissingDependency, and DossierError for a model or key not there."""
    _require_packages(setup)
    request_headers(_server(setup))
    return OpenAiEngine(setup, _server(setup), at_hand(find_artefact(setup)), clock)


def encoder(setup: EngineSetup) -> TemplateEncoder:
    """Return the local tokenizer, chat template and context limit. Raises as the engine in process does."""
    _require_packages(setup)
    try:
        return TemplateEncoder(*tokenizer_of(at_hand(find_artefact(setup))))
    except (OSError, ValueError) as fault:
        raise DossierError(
            f"the tokenizer of {setup.model.id} cannot be read: {fault}",
            next_step="check [model] id and revision: prompts are rendered and counted here also for a server; "
            "--no-tokens leaves them uncounted",
        ) from fault


class OpenAiEngine:
    """One variant behind one server. `load` first; then `observe`, `encode` and `answers`; `close` in any case."""

    def __init__(self, setup: EngineSetup, choice: ServerChoice, artefact: Artefact, clock: Clock) -> None:
        self._setup = setup
        self._choice = choice
        self._artefact = artefact
        self._clock = clock
        self._generator: LoadGenerator | None = None
        self._running: RunningServer | None = None
        self._parts: tuple[Session, TemplateEncoder, Serving] | None = None
        self._records: list[AnyRecord] = []
        self._observed: Variant | None = None

    def load(self) -> None:
        """Read the tokenizer, start load generator and server, and wait until the server is ready.

        Raises EngineStart where it does not get ready, DossierError where its model's name cannot be told.
        """
        encoder = TemplateEncoder(*tokenizer_of(self._artefact))
        if self._choice.endpoint == "chat" and not encoder.has_template:
            raise DossierError(
                f"{self._setup.model.portable_id} has no chat template, so nobody knows what a server's chat makes of "
                "its prompts",
                next_step=f'write endpoint = "completions" under the server {self._choice.name!r}',
            )
        self._generator = LoadGenerator()
        self._running = start(self._setup, self._choice, self._artefact)
        session = open_session(self._choice, self._running, self._artefact)
        self._parts = session, encoder, Serving(self._setup, session, self._generator, encoder, self._clock)
        self._records.append(session.claim)
        if not self._running.is_loopback:
            self._records.append(Warning(phase="load", warning_class=NOT_SEEN))

    def observe(self, observed_at: ObservedAt) -> tuple[Variant, list[TensorGroup]]:
        """Return what is requested and claimed; nothing of a server's weights can be looked at from here."""
        session, encoder, serving = self._loaded()
        self._observed = served_variant(
            self._setup, self._artefact, session, encoder, observed_at, answering=serving.answering,
            earlier=self._observed,
        )  # fmt: skip
        return self._observed, []

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        """Return the prompts as rendered here; the server's tokenizer is asked as well, where it has one."""
        return self._loaded()[2].encode(prompts)

    def answers(
        self, prompts: Sequence[EncodedPrompt], phase: Phase, load: Load = ONE_AT_A_TIME
    ) -> Iterator[Answer]:  # fmt: skip
        """Yield one final answer per prompt, the tries before it, and in the warm-up further rounds.

        Raises EngineFault, after all answers, where the server ended or is gone.
        """
        if load.batch > 1:
            raise DossierError(
                f"a server puts its batches together itself, and the plan asks for batches of {load.batch}",
                next_step="write concurrencies instead of batches",
            )
        yield from self._loaded()[2].answers(prompts, phase, load)
        if self._running is not None:
            self._running.log_notes()

    def records(self) -> list[AnyRecord]:
        """Return claims, windows and scrapes since the last call; none of a reload check, which is no pass."""
        taken, self._records = self._records, []
        if self._parts is not None:
            taken += self._parts[2].take_records()
        return [] if self._setup.pass_label.endswith(RELOAD) else taken

    def close(self) -> None:
        """Stop the server, if this pass started it, and the load generator; also after a failure.

        The generator last: until then it ends what was started, should this process be killed.
        """
        generator, self._generator = self._generator, None
        running, self._running = self._running, None
        self._parts = None
        try:
            if running is not None:
                running.stop()
        finally:
            if generator is not None:
                generator.close()

    def padding(self) -> Padding:
        raise DossierError("a server pads its batches itself", next_step="write concurrencies instead of batches")

    def _loaded(self) -> tuple[Session, TemplateEncoder, Serving]:
        if self._parts is None:
            raise DossierError("nothing is loaded yet", next_step="call load() before anything else")
        return self._parts


def _server(setup: EngineSetup) -> ServerChoice:
    if setup.engine.server is None:
        raise DossierError("the engine openai asks a server, and none is named", next_step="add [engine.server]")
    return setup.engine.server


def _require_packages(setup: EngineSetup) -> None:
    """A server needs neither torch nor accelerate here: prompts alone are rendered. A GGUF file's tokenizer does."""
    needed = [*NEEDED, *(["gguf", "torch"] if setup.model.gguf_file is not None else [])]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingDependency(f"asking a server needs {', '.join(missing)}", next_step=_INSTALL)
