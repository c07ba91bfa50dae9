"""What a run is asked for, and what it left behind: plain values between the command line and the runner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from collector.contract.records import Decision
from collector.contract.records.base import Stage
from collector.plan import Chosen
from collector.watcher import Ending


class RunOptions(NamedTuple):
    """What the command line says about a run.

    only, only_series: names of the variants and of the series to run; empty for all.
    configurations: what to run beside the reference instead of the plan's own; reference_runs: how often the reference
    itself, or null for the plan's number. Such a list is a whole plan: the finished run is sealed.
    opening: decisions that a new file starts with, after what it describes; a resumed one has them already.
    repetitions: how often each of them; null for the plan's number.
    document_limit: only so many documents of each pass, the first in its order; null for all.
    is_reloading: whether artefacts are loaded again at the end, where the plan wants it.
    rental_id: the rental of the campaign that this machine is paid by, or null.
    stop_after_s: seconds after which the run stops, or null.
    allow_commands: whether what the protocol names may run: its scorer, the commands that start its servers.
    commit: the collector's own commit, where it runs from a checkout.
    """

    stage: Stage = "validation"
    device: str = "auto"
    only: Sequence[str] = ()
    only_series: Sequence[str] = ()
    configurations: Sequence[Chosen] | None = None
    reference_runs: int | None = None
    repetitions: int | None = None
    opening: Sequence[Decision] = ()
    document_limit: int | None = None
    is_reloading: bool = True
    rental_id: str | None = None
    is_resuming: bool = False
    stop_after_s: float | None = None
    allow_commands: bool = False
    commit: str | None = None


class RunReport(NamedTuple):
    """What a run left behind. `head_digest` is null for a file that stays open."""

    path: Path
    run_id: str
    head_digest: str | None
    stopped_by: str | None
    endings: dict[str, Ending]
    """Label of the attempt -> how it ended; passes that an earlier start had finished are not in it."""
    reloads: dict[str, str] = {}
    """Variant -> what its reload check found, in words."""
    has_failed_reload: bool = False
    left: tuple[str, ...] = ()
    """What a stopped run has not measured, in the order in which --resume will."""
