"""Count tokens before anything is measured: prompt + output limit must fit the context, an answer the output limit.

Where texts are embedded, each by itself, the longest of a document must fit the model's positions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from collector.contract.errors import DossierError, Finding, Refused
from collector.contract.protocol import DocumentLine, Task
from collector.contract.shape import shown
from collector.documents import render_prompt
from collector.engines import engine_module
from collector.engines.base import EncodedPrompt, EngineSetup, PromptEncoder, longest_text
from collector.protocol_file import LoadedProtocol


class PromptLengths(NamedTuple):
    """Tokens of the longest prompt, template included, or of the longest text embedded by itself; and of the context.

    Null where not known.
    """

    longest_prompt_tokens: int | None
    context_limit_tokens: int | None
    findings: list[Finding]


def prompt_lengths(loaded: LoadedProtocol) -> PromptLengths:
    """Encode every document's prompt with the engine's own tokenizer and chat template; no weights are read.

    A document that does not fit is a finding with both numbers: nothing is ever cut to fit.
    """
    protocol = loaded.protocol
    try:
        setup = check_setup(loaded)
        encoder = engine_module(setup.engine.name).encoder(setup)
        prompts = [render_prompt(protocol.task, document) for document in loaded.documents]
        encoded = encoder.encode(prompts)
        counts = [longest_text(each).tokens for each in encoded]
        own_limit = encoder.context_limit_tokens()
        findings = _too_small_a_limit(loaded, encoder)
    except Refused as refused:
        return PromptLengths(None, None, refused.findings)
    except DossierError as fault:
        return PromptLengths(None, None, [_engine_finding(loaded, fault.message, fault.next_step)])
    # Whatever a tokenizer library raises for an absent or unusable model is the user's fault to mend, not a crash.
    except Exception as error:
        message = (
            f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"
        )
        next_step = "check `model.id`, the network or the local folder; `--no-tokens` checks everything else"
        return PromptLengths(None, None, [_engine_finding(loaded, message, next_step)])
    limit = protocol.generation.context_limit(own_limit)
    findings += _too_long(loaded, encoded, limit) if limit is not None else []
    return PromptLengths(max(counts, default=None), limit, findings)


def _too_small_a_limit(loaded: LoadedProtocol, encoder: PromptEncoder) -> list[Finding]:
    """Refuse an output limit within which not even the shortest expected answer can be written."""
    task, limit = loaded.protocol.task, loaded.protocol.generation.max_new_tokens
    answers = [answer for document in loaded.documents if (answer := _shortest_answer(task, document)) is not None]
    if not answers:
        return []
    tokens, answer = min((encoder.count_tokens(answer), answer) for answer in answers)
    if tokens <= limit:
        return []
    line = loaded.line_of("generation.max_new_tokens")
    message = f"`generation.max_new_tokens` is {limit}, and the shortest expected answer has {tokens}: {shown(answer)}"
    step = f"raise it to more than the longest one needs ({max(map(encoder.count_tokens, answers))} tokens)"
    return [Finding(loaded.path, line, "output-limit", message, step)]


def _shortest_answer(task: Task, document: DocumentLine) -> str | None:
    """Return the shortest answer that would be accepted, null where it is not known (rankings)."""
    if task.kind == "answers":
        return min(document.answers, key=len, default=None)
    if task.kind == "ranking":
        return None
    required = {
        rule.name: value for rule in task.fields if rule.is_required and (value := document.expected.get(rule.name))
    }
    return json.dumps(required, ensure_ascii=False, separators=(",", ":"))


def _too_long(loaded: LoadedProtocol, encoded: Sequence[EncodedPrompt], limit: int) -> list[Finding]:
    is_embedding = loaded.protocol.engine.answers_by == "embedding"
    output = 0 if is_embedding else loaded.protocol.generation.max_new_tokens
    findings: list[Finding] = []
    for document, line, prompt in zip(loaded.documents, loaded.document_lines, encoded, strict=True):
        name, count = longest_text(prompt)
        if count + output <= limit:
            continue
        if is_embedding:
            message = f"document {document.id!r}: {name} has {count} tokens, and {limit} can be embedded at once"
            next_step = "shorten the text, or use a model with more positions; nothing is ever cut to fit"
        else:
            message = (
                f"document {document.id!r}: a prompt of {count} tokens and {output} output tokens do not fit "
                f"into a context of {limit} tokens"
            )
            next_step = "shorten the document, lower generation.max_new_tokens, or use a model with a longer context"
        findings.append(Finding(loaded.documents_path, line, "prompt-too-long", message, next_step))
    return findings


def check_setup(loaded: LoadedProtocol) -> EngineSetup:
    """Return what an engine needs to know for anything but loading, on the processor.

    The variant is the first that the protocol's own engine answers for, else the first: its prompts are the same.
    """
    protocol = loaded.protocol
    variant = next((each for each in protocol.variants if each.server is None), protocol.variants[0])
    return EngineSetup(
        base_dir=str(loaded.path.parent),
        model=protocol.model,
        engine=protocol.engine_of(variant),
        variant=variant,
        generation=protocol.generation,
        limits=protocol.limits,
        device="cpu",
        pass_label="check/0/0",
    )


def _engine_finding(loaded: LoadedProtocol, message: str, next_step: str) -> Finding:
    line = loaded.line_of("model.id") or loaded.line_of("engine.name")
    return Finding(loaded.path, line, "tokenizer", f"prompts cannot be counted: {message}", next_step)
