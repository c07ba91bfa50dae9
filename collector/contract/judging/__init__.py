"""Judging: one text in, one verdict out. The reporter judges again with the same code."""

from .gates import GateVerdict, allowed_losses, judge_gates, needed_acceptances
from .judge import SCORER_DIGEST, SCORER_VERSION, Verdict, judge
from .normalise import compare, fold_label, normalise
from .parse import ParsedAnswer, parse_answer

__all__ = [
    "SCORER_DIGEST", "SCORER_VERSION", "GateVerdict", "ParsedAnswer", "Verdict", "allowed_losses", "compare",
    "fold_label", "judge", "judge_gates", "needed_acceptances", "normalise", "parse_answer",
]  # fmt: skip
