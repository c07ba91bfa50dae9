"""The protocol: what is fixed before the trial. Structs of protocol.toml, of its lock, and the two digests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PureWindowsPath
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from .digests import JsonValue, json_digest
from .records.base import CacheKind, Count, Hmac, Label, LengthClass, Role, Sha256, UtcStamp

FieldType = Literal["date", "money", "label", "text"]
TaskKind = Literal["extraction", "answers", "ranking"]
Quantization = Literal["none", "torchao_int8", "bnb_int8", "bnb_nf4", "quanto_int8", "gguf"]
AnswersBy = Literal["generation", "embedding"]
DecideBy = Literal["rule", "interval"]
ServerKind = Literal["vllm", "sglang", "llamacpp", "tgi", "transformers", "other"]
Arrivals = Literal["poisson", "constant"]
ColdBy = Literal["auto", "request", "nonce"]
Percent = Annotated[
    str, Meta(pattern=r"^[0-9]{1,3}(\.[0-9]{1,4})?$", max_length=8, description="exact decimal, as a string")
]
Decimal10 = Annotated[
    str, Meta(pattern=r"^[0-9]{1,10}(\.[0-9]{1,10})?$", max_length=21, description="exact decimal, as a string")
]
StopText = Annotated[str, Meta(min_length=1, max_length=40)]


def portable(place: str) -> str:
    """Return the last name of a path (absolute, or from `~`, `.` or `..`; POSIX or Windows), anything else as it is.

    Locks and records travel: a machine's folders are nobody else's business, and the same model in another folder of
    another machine is the same plan. What was really in the folder is told by the digests of its files.
    """
    path = PureWindowsPath(place)  # knows both separators
    return path.name or place if path.anchor or place.startswith(("~", ".")) else place


def portable_url(url: str) -> str:
    """Return a server's address as locks and records carry it: loopback as it is, of another machine no name.

    Another machine that serves the same is the same plan, and what it is called inside a house is nobody's business.
    """
    parts = urlsplit(url)
    if parts.hostname is None or parts.hostname in ("localhost", "::1") or parts.hostname.startswith("127."):
        return url
    return f"{parts.scheme}://another-machine{parts.path}"


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of protocol.toml: unknown keys are refused."""


class FieldRule(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field to extract. `labels` only for type label; `day_first` reads 03/04/2026 as 3 April."""

    name: Label
    type: FieldType
    is_required: bool = True
    labels: list[Label] = []
    day_first: bool = True
    unicode_form: Literal["NFC", "NFKC"] = "NFC"


class Example(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One worked example: put through the prompt as a document is, with the answer that the model shall take as model.

    It is an earlier turn of the chat, written by the model's own chat template. `candidates` only in a ranking.
    """

    document: Annotated[str, Meta(min_length=1)]
    answer: Annotated[str, Meta(min_length=1)]
    candidates: dict[str, str] = {}


class RankingRule(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a ranking is judged: the measure over the first `k` candidates, and what a document must reach."""

    metric: Literal["ndcg", "mrr", "recall"] = "ndcg"
    k: Annotated[int, Meta(ge=1, le=10_000)] = 10
    accept_from: Decimal10
    """0 to 1; a document whose value is at least this is accepted."""


class Scorer(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The user's own judging: a Python function or a command. Digests of `files` say which code judged.

    entry_point: `module:function`. command: reads JSON-lines, writes one verdict per line; needs --allow-commands.
    files: relative to the protocol; at least the code itself.
    """

    entry_point: Label | None = None
    command: list[str] = []
    files: Annotated[list[Label], Meta(min_length=1)]
    timeout_s: Annotated[float, Meta(gt=0)] = 60.0


class LockedScorer(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user's scorer in the lock: how it is called, and the digest of its files together."""

    entry_point: Label | None
    command: list[str]
    files_sha256: Sha256
    timeout_s: float


class Task(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of the model. `prompt` contains `{document}` once; `system` may be empty.

    extraction: `fields` says what is read out of each document. answers and ranking have no fields; the prompt of a
    ranking contains `{candidates}` once as well.
    """

    kind: TaskKind
    prompt: str
    system: str = ""
    examples: list[Example] = msgspec.field(name="example", default_factory=list)
    fields: list[FieldRule] = msgspec.field(name="field", default_factory=list)
    missing_value: Literal["null"] = "null"
    """A field that the document does not have is right when the answer gives null, an empty string or no key."""
    ranking: RankingRule | None = None
    """Only for a ranking, which must have it unless a scorer judges."""
    scorer: Scorer | None = None
    """Judges instead of the built-in rules of the kind."""


class Workload(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The documents, who permits their use, how expected values were reviewed.

    `documents` is a JSON-lines file, a CSV file or a folder of texts with its sheet; the path starts at the protocol's
    folder.
    """

    documents: Label
    permission: Label
    """Who permits this use of the documents, and where that is written."""
    review: Label
    """How the expected values were reviewed: by whom or what, and when."""


class Generation(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Greedy decoding with an output limit; the model's context bounds prompt + output."""

    max_new_tokens: Annotated[int, Meta(ge=1)]
    context_limit_tokens: Annotated[int, Meta(ge=2)] | None = None
    """Lower than the model's own context where the protocol wants it so."""
    stop_after: list[StopText] = []
    """An answer ends after the first of these texts, which stays in it; the end token and the limit hold as well."""

    def context_limit(self, *known_tokens: int | None) -> int | None:
        """Return the context that holds: the lowest of the model's own, a server's and the protocol's, of those known.

        Null where none is.
        """
        known = (*known_tokens, self.context_limit_tokens)
        return min((limit for limit in known if limit is not None), default=None)


class SubsetGate(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At least this share of a subset's documents is accepted."""

    subset: Label
    min_accepted_percent: Percent


class Gates(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The acceptance rules, judged in whole documents: lost x 100 <= points x N, accepted x 100 >= percent x N."""

    max_lost_points: Percent | None = None
    """Percentage points that may be lost against the reference."""
    min_accepted_percent: Percent | None = None
    subsets: list[SubsetGate] = msgspec.field(name="subset", default_factory=list)
    decide_by: DecideBy = "rule"


class Limits(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time limits in seconds; reaching one is a failure with cause timeout."""

    load_s: Annotated[float, Meta(gt=0)] = 900.0
    warmup_s: Annotated[float, Meta(gt=0)] = 600.0
    measure_s: Annotated[float, Meta(gt=0)] = 86_400.0
    request_s: Annotated[float, Meta(gt=0)] = 600.0
    """Measured by the worker between tokens; a request over it ends with finish_reason timeout."""


class Model(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Hugging Face id or a local folder (best relative to the protocol), optionally a GGUF file in it."""

    id: Label
    revision: Label | None = None
    gguf_file: Label | None = None
    origin: Label | None = None
    """How the artefact came to be; a converted artefact's own `origin.json` is read as well."""

    @property
    def portable_id(self) -> str:
        """The id as lock and records carry it: of an absolute folder its name alone."""
        return portable(self.id)


class ServerChoice(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request engine behind HTTP: one that each pass starts and stops (`start`), or one that runs already (`url`).

    Nothing secret stands here: keys and secret headers are read from environment variables that are named.
    """

    name: Label
    kind: ServerKind = "other"
    """What speaks the OpenAI interface: decides which metrics, timings and cache controls it has."""
    start: list[Label] = []
    """Command and arguments; {host}, {port}, {model}, {base_dir} and {python} (the collector's own interpreter) are
    filled in. Needs --allow-commands."""
    environment: dict[str, str] = {}
    """Variables for the started server, in the clear; {base_dir} is filled in."""
    url: Label | None = None
    """Scheme, host, port and the path before /v1, e.g. https://gateway.example/llm."""
    model: Label | None = None
    """The model's name in requests; where not given, the only one that the server lists."""
    endpoint: Literal["chat", "completions"] = "chat"
    """completions sends the prompt's own token ids, where the kind takes them, else the rendered text."""
    key_env: Label | None = None
    """Environment variable that holds the API key."""
    headers: dict[str, str] = {}
    """Sent and recorded as they are."""
    header_env: dict[str, str] = {}
    """Header -> environment variable that holds its value."""
    body: dict[str, str | int | float | bool] = {}
    """Further fields of each request's JSON, as the server wants them."""
    ready_path: Label | None = None
    """What answers 200 when the server is ready; where not given, the kind's own."""
    ready_s: Annotated[float, Meta(gt=0)] = 600.0
    stop_s: Annotated[float, Meta(gt=0)] = 20.0
    """From asking a started server to end, to killing it."""
    connect_s: Annotated[float, Meta(gt=0)] = 10.0
    first_token_s: Annotated[float, Meta(gt=0)] = 300.0
    """From sending to the first generated content; the whole answer has limits.request_s."""
    retries: Count = 0
    """How often a request that brought no content is sent again after a lost connection, 429, 502, 503 or 504."""
    retry_wait_s: Annotated[float, Meta(ge=0)] = 1.0
    """Before the first such try, doubled for each further one; a Retry-After of the server is honoured."""
    stop_after_failures: Annotated[int, Meta(ge=1)] | None = None
    """A pass ends after so many requests in a row that failed, whatever each had: the rest would only cost. Where not
    given, all are tried, unless the server refuses the key or is gone."""
    cache_state: Literal["cold", "warm"] = "cold"
    """cold: no request may find its prompt in the server's cache; warm: what is found there is part of the trial."""
    cold_by: ColdBy = "auto"
    """request: the kind's own request field, which leaves the prompt as it is; nonce: an unlike first line in each
    prompt, whose tokens are counted; auto: request where the kind has one, else nonce."""
    reasoning_fields: list[Label] = msgspec.field(default_factory=lambda: ["reasoning_content", "reasoning"])
    """Names under which a stream may carry the model's thinking."""
    metrics_path: Label | None = None
    """Prometheus metrics; where not given, the kind's own, or none."""
    scrape_every_s: Annotated[float, Meta(gt=0)] = 5.0
    has_chunk_capture: bool = False
    """Writes the time of every chunk into the run's steps file."""


class ContinuousChoice(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """transformers' continuous batching: the pool of cache blocks, fixed beforehand. Prefix sharing is off."""

    block_size: Annotated[int, Meta(ge=1)] = 32
    num_blocks: Annotated[int, Meta(ge=1)]
    max_batch_tokens: Annotated[int, Meta(ge=1)]


class EngineChoice(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which engine answers. `script` is the scripted engine's file, relative to the protocol."""

    name: Literal["transformers", "scripted", "openai"]
    server: ServerChoice | None = None
    """Only of the engine openai, which must have it."""
    continuous: ContinuousChoice | None = None
    """Only of the engine transformers: how it runs requests at a concurrency above 1."""
    answers_by: AnswersBy = "generation"
    """`embedding`: query and candidates become vectors (mean pooling) and are ranked by cosine; only for a ranking."""
    has_step_capture: bool = False
    """Writes the time of every token into the run's steps file; of a server, see its has_chunk_capture."""
    script: Label | None = None
    threads: Annotated[int, Meta(ge=1)] | None = None


class VariantChoice(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One variant: weights and compute. Storage and compute dtype are the same where no method is named.

    quantization: how the weights are made smaller after or while loading; `gguf` keeps the model's GGUF blocks as
    stored. dtype is then what is computed in. What was really loaded is read back and recorded.
    """

    name: Label
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    attention: Literal["sdpa", "eager", "flash_attention_2"] = "sdpa"
    cache: CacheKind = "dynamic"
    quantization: Quantization = "none"
    server: Label | None = None
    """Name of the [[server]] that answers for this variant instead of [engine]. dtype and quantization are then what
    the server is started with, which only it can know."""


def engine_of(engine: EngineChoice, servers: Sequence[ServerChoice], variant: VariantChoice) -> EngineChoice:
    """Return the engine that answers for a variant: its server, else the protocol's own engine.

    Raises KeyError for a server that is not there.
    """
    if variant.server is None:
        return engine
    by_name = {server.name: server for server in servers}
    return EngineChoice(name="openai", server=by_name[variant.server])


class PlanChoice(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Order and repetitions. The reference runs first, twice (A/A), the second time in another document order."""

    reference: Label
    """Name of the reference variant."""
    reference_runs: Annotated[int, Meta(ge=1)] = 2
    repetitions: Annotated[int, Meta(ge=1)] = 1
    order_seed: Count = 1
    warmup_requests: Annotated[int, Meta(ge=0)] = 2
    batches: list[Annotated[int, Meta(ge=2)]] = []
    """The reference variant once more with this many requests at a time, growing: the series of the factor batch."""
    concurrencies: list[Annotated[int, Meta(ge=2)]] = []
    """Every variant behind a server (and the reference, with continuous batching) once more with this many requests
    submitted at a time, growing: the series of the factor concurrency."""
    rates: list[Annotated[float, Meta(gt=0)]] = []
    """Every variant behind a server once more with this many arrivals per second, whatever was answered: open loop."""
    arrivals: Arrivals = "poisson"
    in_flight_limit: Annotated[int, Meta(ge=1)] = 256
    """Most requests of an open loop that may be under way; what would be one more waits, and its latency counts it."""
    reload_check: bool = True
    """When all else is measured, each variant is loaded again in a fresh process and asked some documents again."""


class Protocol(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """protocol.toml, whole."""

    format: Literal[1]
    name: Label
    task: Task
    workload: Workload
    generation: Generation
    gates: Gates
    limits: Limits = Limits()
    model: Model
    engine: EngineChoice
    servers: list[ServerChoice] = msgspec.field(name="server", default_factory=list)
    variants: Annotated[list[VariantChoice], Meta(min_length=1)] = msgspec.field(name="variant")
    plan: PlanChoice

    def engine_of(self, variant: VariantChoice) -> EngineChoice:
        """Return the engine that answers for a variant. Raises KeyError for a server that is not there."""
        return engine_of(self.engine, self.servers, variant)


class DocumentLine(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of the documents file. `text` is the document, the question or the query.

    extraction has `expected`, answers has `answers` (and `tolerance` for a number), ranking has `candidates` and
    `relevance`; `check` refuses what does not belong to the kind.
    """

    id: Label
    role: Role
    text: Annotated[str, Meta(min_length=1)]
    expected: dict[str, str | None] = {}
    """Field name -> expected value, or null where the document does not have it."""
    answers: list[Label] = []
    """Known answers: any of them is right."""
    tolerance: Decimal10 | None = None
    """The answer is a number, right within this distance; null for an answer compared as text."""
    candidates: dict[str, str] = {}
    """Candidate id -> text, in the order in which they are shown."""
    relevance: dict[str, Count] = {}
    """Candidate id -> grade; a candidate that is not named has grade 0."""
    length_class: LengthClass = "usual"
    is_hard: bool = False
    subsets: list[Label] = []
    cluster: Label | None = None
    """Template or source; the document itself where not given."""
    language: Label | None = None


class LockedDocument(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document in the lock: everything but its text."""

    document_id: Label
    role: Role
    length_class: LengthClass
    is_hard: bool
    subsets: list[Label]
    cluster: Label
    language: str | None
    text_hmac: Hmac
    expected_hmac: Hmac


class LockedTrial(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What protocol_id covers: documents, prompts, rules, gates, generation, time limits. Texts only as HMACs.

    documents_digest: digest of the lock's documents, so that the trial stays small for any number of them.
    """

    format: Literal[1]
    name: Label
    task_kind: TaskKind
    prompt_hmac: Hmac
    system_hmac: Hmac
    examples_hmac: Hmac | None = None
    """Of all worked examples together; null without any."""
    fields: list[FieldRule]
    missing_value: Literal["null"]
    ranking: RankingRule | None = None
    scorer: LockedScorer | None = None
    permission: Label
    review: Label
    generation: Generation
    gates: Gates
    limits: Limits
    reference: Label
    documents_digest: Sha256


class LockedPlan(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What plan_id covers beside the trial: model, engine, variants, repetitions, order."""

    model: Model
    engine: EngineChoice
    engine_script_sha256: Sha256 | None
    servers: list[ServerChoice] = []
    variants: list[VariantChoice]
    plan: PlanChoice

    def engine_of(self, variant: VariantChoice) -> EngineChoice:
        """Return the engine that answers for a variant. Raises KeyError for a server that is not there."""
        return engine_of(self.engine, self.servers, variant)


class Lock(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """protocol.lock.json. Holds no text, so it travels with the records and is attached to the dossier.

    documents: sorted by id. In a run's header the list is empty: there each is a `document` record.
    """

    lock_format: Literal[1]
    frozen_at: UtcStamp
    protocol_id: Sha256
    plan_id: Sha256
    objective_digest: Sha256 | None = None
    trial: LockedTrial
    plan: LockedPlan
    documents: list[LockedDocument] = []


class LockDigests(NamedTuple):
    """The two digests as a lock's own text gives them."""

    protocol_id: str
    plan_id: str


def lock_digests(text: bytes | str) -> LockDigests:
    """Return the digests of what a lock's JSON says, whatever version wrote it.

    They are taken from the text, not from the decoded Struct: a field that a later version adds would give an older
    lock another digest. Raises KeyError, TypeError or msgspec.DecodeError for what is no lock.
    """
    plain = msgspec.json.decode(text)
    return LockDigests(json_digest(plain["trial"]), _plan_id(plain["protocol_id"], plain["plan"]))


def as_json(value: msgspec.Struct) -> JsonValue:
    """Return the Struct as plain JSON values, for digests."""
    result: JsonValue = msgspec.to_builtins(value)
    return result


def documents_digest(documents: Sequence[LockedDocument]) -> str:
    """Return the digest of the documents in the order of their ids, whatever order they come in."""
    return json_digest([as_json(document) for document in sorted(documents, key=lambda one: one.document_id)])


def protocol_digest(trial: LockedTrial) -> str:
    """Return protocol_id: runs may be pooled only where it is equal (mission B2)."""
    return json_digest(as_json(trial))


def plan_digest(protocol_id: str, plan: LockedPlan) -> str:
    """Return plan_id: changes with model, variants, repetitions or order, while protocol_id stays."""
    return _plan_id(protocol_id, as_json(plan))


def _plan_id(protocol_id: str, plan: JsonValue) -> str:
    return json_digest({"protocol_id": protocol_id, "plan": plan})


def lock_bytes(lock: Lock) -> bytes:
    """Return the lock file's bytes: two blanks of indent, fields in the contract's order, one newline at the end."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=2) + b"\n"


def rule_digest(trial: LockedTrial) -> str:
    """Return the digest of what answers are judged by: fields and missing values, or the kind's own rule."""
    rule: dict[str, JsonValue] = {
        "fields": [as_json(field) for field in trial.fields],
        "missing_value": trial.missing_value,
    }
    if trial.task_kind != "extraction":
        rule["kind"] = trial.task_kind
    if trial.ranking is not None:
        rule["ranking"] = as_json(trial.ranking)
    if trial.scorer is not None:
        rule["scorer"] = as_json(trial.scorer)
    return json_digest(rule)
