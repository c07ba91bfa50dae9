"""The child that calls a protocol's Python scorer: JSON-lines in, one verdict per line out; prints go to stderr."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any


def main(arguments: list[str]) -> None:
    """Call `module:function` of the working folder once per line of stdin and write what it returns.

    A function that raises has no verdict for that document: its line says `error`.
    """
    (entry_point,) = arguments
    # What a scorer or its libraries print must not stand between the verdicts.
    with open(os.dup(1), "w", encoding="utf-8") as verdicts:
        os.dup2(2, 1)
        sys.path.insert(0, os.getcwd())
        module, _, name = entry_point.partition(":")
        function = getattr(importlib.import_module(module), name)
        for line in sys.stdin.buffer:
            document = json.loads(line)
            document_id = document["document_id"]
            try:
                said = _as_line(function(document))
                encoded = json.dumps({"document_id": document_id, **said}, allow_nan=False)
            except Exception:
                encoded = json.dumps({"document_id": document_id, "error": traceback.format_exc(limit=-3)})
            verdicts.write(encoded + "\n")


def _as_line(said: Any) -> dict[str, Any]:
    if isinstance(said, bool):
        return {"is_accepted": said}
    if isinstance(said, dict):
        return {key: value for key, value in said.items() if key != "document_id"}
    raise TypeError(f"the scorer returned {type(said).__name__}; it returns True, False or a dict with is_accepted")


if __name__ == "__main__":
    main(sys.argv[1:])
