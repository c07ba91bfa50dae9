"""Every sentence that selection and assembly can say: key -> English message with named placeholders.

Rendering: `gettext(message)`, or `ngettext(message, plural, n)` with n the value of the parameter named by `by`, then
`.format(**parameters)`. Each parameter is printed by its first character: `#` a figure (counts, points and ratios as
bare numbers; bytes, durations, percent and money with their unit), `@` a word of WORDS, `~` an ISO date, anything
else as it is. Extraction: keywords `say` and `say_counted:1,2`.
"""

from __future__ import annotations

from string import Formatter

from .allocation_wording import ALLOCATION
from .confirmation_wording import CONFIRMATION
from .cost_wording import COST
from .decision_wording import DECISION
from .dossier import Sentence
from .engine_side_wording import ENGINE_SIDE
from .kinds_wording import KINDS
from .load_wording import LOAD
from .messages import Wording
from .parameter_words import PARAMETER_WORDS
from .rejudged_wording import REJUDGED
from .scope_wording import SCOPE
from .selection_wording import SELECTION
from .sensitivity_wording import SENSITIVITY
from .series_wording import BATCHES, WEIGHTS
from .statistics_wording import STATISTICS


def placeholders(message: str) -> set[str]:
    """Return the names between braces."""
    return {name for _, name, _, _ in Formatter().parse(message) if name is not None}


def sentence(key: str, /, **parameters: str) -> Sentence:
    """Return the sentence.

    Raises KeyError for an unknown key and ValueError where the parameters are not those of the message.
    """
    wording = SENTENCES[key]
    wanted = placeholders(wording.message)
    if wording.plural is not None:
        wanted |= placeholders(wording.plural) | {str(wording.by)}
    if wanted != set(parameters):
        raise ValueError(f"{key} wants {sorted(wanted)}, got {sorted(parameters)}")
    return Sentence(key=key, parameters=parameters)


SENTENCES: dict[str, Wording] = {
    **DECISION, **SELECTION, **COST, **CONFIRMATION, **SCOPE, **KINDS, **STATISTICS, **BATCHES, **WEIGHTS,
    **ALLOCATION, **SENSITIVITY, **REJUDGED, **ENGINE_SIDE, **LOAD,
}  # fmt: skip
WORDS: dict[str, Wording] = PARAMETER_WORDS
"""Vocabulary words that appear as parameters with `@`."""
