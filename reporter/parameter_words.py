"""Words that appear in sentences as parameters with `@`."""

from __future__ import annotations

from .engine_side_wording import PHASE_WORDS
from .load_wording import LOAD_WORDS
from .messages import Wording, say
from .selection_wording import SELECTION_WORDS

PARAMETER_WORDS: dict[str, Wording] = {
    **LOAD_WORDS,
    **PHASE_WORDS,
    # criteria
    "cheapest": say("the package price"),
    "most_headroom": say("free memory"),
    "fastest_corpus": say("the time for the wanted volume"),
    "most_corpora": say("the number of corpora"),
    # phases
    "build": say("building"),
    "load": say("loading"),
    "warmup": say("warm-up"),
    "measure": say("measuring"),
    "reload": say("reloading"),
    "unknown_phase": say("an unknown phase"),
    # failure causes
    "out_of_memory": say("out of memory"),
    "killed": say("killed"),
    "interrupted": say("interrupted"),
    "not_ended": say("the pass did not end"),
    "superseded": say("replaced by a later attempt"),
    "crashed": say("crashed"),
    "timeout": say("time limit reached"),
    "load_failure": say("load failure"),
    "missing_operator": say("missing operator"),
    "missing_dependency": say("missing package"),
    "connection": say("connection"),
    "truncation": say("truncation"),
    "format": say("format"),
    "quality": say("quality"),
    "too_long": say("prompt too long"),
    "engine_error": say("engine error"),
    "protocol": say("protocol"),
    "scorer": say("the scorer"),
    # memory scopes
    "allocated": say("allocated tensors"),
    "reserved": say("reserved by the allocator"),
    "process": say("device memory of the process"),
    "device": say("whole device"),
    "host": say("host memory of the worker"),
    "short_allocated": say("device memory in tensors"),
    "short_reserved": say("device memory reserved"),
    "short_process": say("device memory"),
    "short_device": say("memory of the whole device"),
    "short_host": say("host memory"),
    # parts of a model
    "embedding": say("the embedding"),
    "output_layer": say("the output layer"),
    "attention": say("attention"),
    "mlp": say("the feed-forward layers"),
    "norm": say("the norms"),
    "other": say("other tensors"),
    # roles
    "development": say("development"),
    "calibration": say("calibration"),
    "validation": say("validation"),
    "test": say("test"),
    # rules
    "max_lost_points": say("documents lost"),
    "min_accepted_percent": say("documents accepted"),
    # calendar
    "preparation": say("preparation"),
    "quantization": say("quantization"),
    "load_and_warmup": say("loading and warm-up"),
    "processing": say("processing"),
    "evaluation": say("evaluation"),
    "rejected_trials": say("rejected trials"),
    "restarts": say("restarts"),
    "export": say("export"),
    **SELECTION_WORDS,
}
