"""Which tries are made again, and after how long.

A try is made again where it brought no generated content and the connection could not be had or was lost, or the server
said that it cannot now (429, 502, 503, 504). A time limit that was reached is an answer, not a reason to ask again: the
next try would put the same work on a server that is late already.
"""

from __future__ import annotations

import email.utils

from collector.client.messages import Ending

BUSY_STATUSES = frozenset({429, 502, 503, 504})
_LOST: frozenset[Ending] = frozenset({"closed", "connect_failed", "connect_timeout"})


def is_tried_again(*, ending: Ending, http_status: int | None, has_content: bool) -> bool:
    """True where the policy has another try, as long as tries are left."""
    return not has_content and (ending in _LOST or (ending == "complete" and http_status in BUSY_STATUSES))


def wait_before_s(try_index: int, *, retry_wait_s: float, asked_s: float | None, most_s: float) -> float:
    """Return the seconds from the end of try `try_index` to the next: doubled each time, or longer if so asked.

    most_s bounds it: a server that asks for an hour must not stop the run.
    """
    return min(max(retry_wait_s * 2.0**try_index, asked_s or 0.0), most_s)


def asked_wait_s(retry_after: bytes | None, *, date: bytes | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, or null.

    A moment counts from the same answer's Date: both are the server's clock, and ours has no say.
    """
    if retry_after is None:
        return None
    text = retry_after.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    if date is None:
        return None
    try:
        until, since = (email.utils.parsedate_to_datetime(each) for each in (text, date.decode("latin-1")))
        return max(0.0, (until - since).total_seconds())
    except (ValueError, TypeError):
        return None
