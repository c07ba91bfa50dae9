"""Turn the starter's campaign into the frame of the user's own, and name what in it is still to be written.

Nothing of the starter's stays as if it were the user's: the volume is the documents at hand, no deadline is claimed,
and the hours carry the basis "example", which every figure derived from them carries too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from collector.contract.errors import Finding

CAMPAIGN = "campaign.toml"
MARK = "TODO: write "
QUESTION = f"{MARK}the question that the dossier shall answer, as whoever decides would ask it"
_VOLUME = f"{MARK}your volume, how many times how many documents; what stands here is what you gave, once"
_DEADLINE = f'{MARK}your deadline, where there is one: deadline_h = "168"'
_HOURS = f'{MARK}your hours, each with basis = "assumed" and by = "your name"; a line removed counts as not foreseen'
_STARTERS_HOURS = re.compile(r'(?m)(?<=basis = )"assumed", by = "the starter\'s author"')
_RULE = "to-write"


def own_campaign(text: str, *, name: str, documents: int) -> str:
    """Return the starter's campaign for `documents` documents of the user's, with a mark at all that is to be written.

    It can be used as it is: the marks are comments, and the question says of itself that it is to be written.
    """
    lines = {
        "question = ": f"question = {json.dumps(QUESTION)}",
        "dossier_id = ": f"dossier_id = {json.dumps(name[:190] + '-001', ensure_ascii=False)}",
        "corpora_wanted = ": f"# {_VOLUME}\ncorpora_wanted = 1",
        "documents_per_corpus = ": f"documents_per_corpus = {documents}",
        "deadline_h = ": f"# {_DEADLINE}",
        "[calendar]": f"[calendar]\n# {_HOURS}",
    }
    found = text.splitlines()
    for beginning, line in lines.items():
        (at,) = [index for index, one in enumerate(found) if one.startswith(beginning)]
        found[at] = line
    return _STARTERS_HOURS.sub('"example"', "\n".join([*found, ""]))


def mark_notices(path: Path) -> list[Finding]:
    """Return a notice for each mark in a campaign, none where no file is."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []  # `freeze` and the reporter say what is wrong with it
    notices = []
    for number, line in enumerate(lines, start=1):
        before, mark, words = line.partition(MARK)
        if mark:
            words = words.strip() if "#" in before else words.partition('"')[0]
            step = "write it, and remove the mark"
            notices.append(Finding(path, number, _RULE, f"still to be written: {words}", step))
    return notices
