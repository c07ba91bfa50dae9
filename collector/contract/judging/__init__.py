"""Judging: one text in, one verdict out. The reporter judges again with the same code."""

from .gates import GateVerdict, allowed_losses, judge_gates, needed_acceptances
from .judge import SCORER_DIGEST, SCORER_VERSION, judge
from .kinds import SCORER_DIGESTS, Rules, judge_document
from .normalise import compare, fold_label, normalise
from .parse import ParsedAnswer, parse_answer
from .verdict import Given, Verdict

__all__ = [
    "SCORER_DIGEST", "SCORER_DIGESTS", "SCORER_VERSION", "GateVerdict", "Given", "ParsedAnswer", "Rules", "Verdict",
    "allowed_losses", "compare", "fold_label", "judge", "judge_document", "judge_gates", "needed_acceptances",
    "normalise", "parse_answer",
]  # fmt: skip
