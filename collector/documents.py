"""The documents: JSON-lines in strict UTF-8, each problem with its line; and the prompt made of one document."""

from __future__ import annotations

from collector.contract.protocol import DocumentLine, Task
from collector.engines.base import Prompt

PLACEHOLDER = "{document}"


def render_prompt(task: Task, document: DocumentLine) -> Prompt:
    """Return the task's prompt with the document in place of `{document}`; nothing else in it is interpreted."""
    before, _, after = task.prompt.partition(PLACEHOLDER)
    return Prompt(document_id=document.id, system=task.system, user=f"{before}{document.text}{after}")
