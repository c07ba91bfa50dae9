"""A trial of bills played by the scripted engine, and its campaign without offers: where tests of whole paths begin."""

from __future__ import annotations

_PROTOCOL = """format = 1
name = "scripted bills"
[task]
kind = "extraction"
prompt = "Give date and amount: {{document}}"
[[task.field]]
name = "date"
type = "date"
[[task.field]]
name = "amount"
type = "money"
[workload]
documents = "documents.jsonl"
permission = "written for this test"
review = "by its author, by construction"
[generation]
max_new_tokens = 16
[gates]
max_lost_points = "{lost}"
[model]
id = "scripted-model"
[engine]
name = "scripted"
script = "script.json"
[[variant]]
name = "fp32"
[[variant]]
name = "bf16"
dtype = "bfloat16"
[plan]
reference = "fp32"
"""

CAMPAIGN = """format = 1
question = "Which variant reads our bills?"
dossier_id = "TEST-001"
as_of = 2026-11-30
issued = 2026-11-30
documents_per_corpus = 1000
[objective]
prefer = "cheapest"
"""


def protocol(*, max_lost_points: str) -> str:
    """Return protocol.toml with this many points allowed."""
    return _PROTOCOL.format(lost=max_lost_points)
