"""The scripted engine's script: strict Structs of its JSON file, and how layers of it add up to one answer.

Passes are addressed by their label: `fp32/1/1` is variant, repetition, attempt; with batches it is `fp32~b4/1/1`. So
`fp32/*` matches requests one at a time only, `fp32~b*` every batch, and `fp32*` both.
"""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from collector.contract.errors import Finding, Refused
from collector.contract.records.base import CacheKind, FailureCause
from collector.contract.records.requests import FinishReason
from collector.contract.records.setups import ModuleGroup

from .base import RELOAD

Decoded = TypeVar("Decoded")
Milliseconds = Annotated[float, Meta(ge=0)]
EventAt = Literal["load", "warmup", "measure", "reload"]
Action = Literal["raise", "out_of_memory", "hang", "exit", "kill", "segfault", "print", "warn"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the script: unknown keys are refused."""


class AnswerScript(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one document is answered. What is not set comes from the next layer."""

    text: str | UnsetType | None = UNSET
    """The whole answer; null is an answer without content."""
    text_in_batch: str | UnsetType | None = UNSET
    """The same for a request that runs in a batch: padding that changes an answer."""
    replace: dict[str, str | None] | UnsetType = UNSET
    """Fields put over the echoed expected values: a wrong answer without writing it out."""
    drop: list[str] | UnsetType = UNSET
    """Fields left out of the echoed expected values."""
    output_tokens: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    """Default: the words of the text."""
    first_token_ms: Milliseconds | UnsetType = UNSET
    gap_ms: Milliseconds | UnsetType = UNSET
    finish_reason: FinishReason | UnsetType = UNSET
    failure_cause: FailureCause | UnsetType | None = UNSET
    """The request fails for this cause, as an answer and not as an exception."""
    failure_message: str | UnsetType = UNSET


class EventScript(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that happens at the start of a phase, or just before a document of it, or its batch, is answered."""

    at: EventAt
    document: str | None = None
    do: Action
    exception: str = "RuntimeError"
    message: str = "scripted"
    exit_code: int = 3
    times: Annotated[int, Meta(ge=1)] = 1


class GroupScript(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the tensor histogram."""

    module_group: ModuleGroup = "mlp"
    module_class: str = "Linear"
    tensor_class: str = "Parameter"
    storage_dtype: str | None = None
    """Default: the variant's dtype."""
    tensor_count: Annotated[int, Meta(ge=1)] = 1
    element_count: Annotated[int, Meta(ge=0)]
    tensor_bytes: Annotated[int, Meta(ge=0)]


class VariantScript(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a variant turns out to be once loaded. What is not given is as requested, or not reported."""

    weight_storage: str | None = None
    compute_dtype: str | None = None
    attention: str | None = None
    cache_kind: CacheKind | None = None
    output_layer_format: str | None = None
    quantization_method: str | None = None
    origin: str | None = None
    parameter_count: Annotated[int, Meta(ge=1)] | None = None
    weight_bytes: Annotated[int, Meta(ge=0)] | None = None
    claimed_weight_bytes: Annotated[int, Meta(ge=0)] | None = None
    deviations: list[str] = []
    tensor_groups: list[GroupScript] = []


class PassScript(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens in the passes whose label `<variant>/<repetition>/<attempt>` matches; the first match holds.

    A match that ends in `~reload` is for the reload check of such a pass alone; a check that none is for plays the
    part of its pass.
    """

    match: str
    load_ms: Milliseconds | None = None
    defaults: AnswerScript = AnswerScript()
    documents: dict[str, AnswerScript] = {}
    events: list[EventScript] = []


class Script(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file. An answer is made of four layers, the nearest first: document and defaults of the pass that
    matches, then document and defaults of the script."""

    script_format: Literal[1]
    context_limit_tokens: Annotated[int, Meta(ge=1)] | None = None
    answers_from: str | None = None
    """JSON file beside the script: document_id -> expected fields, echoed as JSON. Or a documents file (`.jsonl`):
    its expected fields, its first known answer, or the ids of its candidates, the best graded first."""
    load_ms: Milliseconds = 0.0
    defaults: AnswerScript = AnswerScript()
    documents: dict[str, AnswerScript] = {}
    variants: dict[str, VariantScript] = {}
    passes: list[PassScript] = []

    def for_pass(self, label: str) -> PassScript:
        """Return the part for one attempt; an empty one where nothing matches."""
        of_pass = [part for part in self.passes if not part.match.endswith(RELOAD)]
        of_reload = [part for part in self.passes if part.match.endswith(RELOAD) and label.endswith(RELOAD)]
        for parts, name in ((of_reload, label), (of_pass, label.removesuffix(RELOAD))):
            for part in parts:
                if fnmatch.fnmatchcase(name, part.match):
                    return part
        return PassScript(match=label)

    def answer(self, part: PassScript, document_id: str) -> AnswerScript:
        """Return the four layers as one."""
        layers = [part.documents.get(document_id), part.defaults, self.documents.get(document_id), self.defaults]
        merged = AnswerScript()
        for layer in reversed([layer for layer in layers if layer is not None]):
            given = {name: value for name in layer.__struct_fields__ if (value := getattr(layer, name)) is not UNSET}
            merged = msgspec.structs.replace(merged, **given)
        return merged


class ExpectedValues(msgspec.Struct, frozen=True):
    """Document -> its expected fields, for echoing; or the whole right answer where a kind has no fields."""

    fields: dict[str, dict[str, str | None]]
    texts: dict[str, str] = {}


def read_script(path: Path) -> tuple[Script, ExpectedValues]:
    """Return the script and the values it echoes.

    Raises Refused, naming file and place, for a file that is absent, no JSON or no script.
    """
    script = _decoded(path, Script)
    if script.answers_from is None:
        return script, ExpectedValues({})
    source = path.parent / script.answers_from
    if source.suffix == ".jsonl":
        return script, _expected_of_documents(source)
    return script, ExpectedValues(_decoded(source, dict[str, dict[str, str | None]]))


def _expected_of_documents(path: Path) -> ExpectedValues:
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        fields = {str(line["id"]): dict(line.get("expected", {})) for line in lines}
        texts = {str(line["id"]): text for line in lines if (text := _right_answer(line)) is not None}
        return ExpectedValues(fields, texts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise _refused(path, None, f"cannot be read as documents: {fault}") from None


def _right_answer(line: dict[str, Any]) -> str | None:
    """Return a right answer to a question, or the best order of a query's candidates; null for an extraction."""
    if line.get("answers"):
        return str(line["answers"][0])
    if candidates := line.get("candidates"):
        grades = line.get("relevance", {})
        return json.dumps(sorted(candidates, key=lambda name: -grades.get(name, 0)), ensure_ascii=False)
    if "expected" not in line:
        raise KeyError("neither expected, answers nor candidates")
    return None


def _decoded(path: Path, kind: type[Decoded]) -> Decoded:
    try:
        raw = path.read_bytes()
    except OSError as fault:
        raise _refused(path, None, f"cannot be read: {fault.strerror}") from None
    try:
        json.loads(raw)
        return msgspec.json.decode(raw, type=kind)
    except json.JSONDecodeError as fault:
        raise _refused(path, fault.lineno, f"is not JSON: {fault.msg}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise _refused(path, None, str(fault)) from None


def _refused(path: Path, line: int | None, message: str) -> Refused:
    return Refused([Finding(path, line, "script", message, "correct the scripted engine's file")])
