"""Finds the run files of a plan in a folder by their headers: the one to resume, and whether one is finished."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from collector.append_file import refusal
from collector.contract import chain
from collector.contract.chain import seal_digest
from collector.contract.errors import DossierError
from collector.contract.inspection import inspect_line
from collector.contract.records import ENVELOPE, MAX_LINE_BYTES, Device, Environment, Header, PassBegin
from collector.contract.records.base import Stage
from collector.contract.texts import is_run_file

_TAIL_BYTES = 1 << 16


def newest_unsealed(out_dir: Path, plan_id: str, stage: Stage) -> Path | None:
    """Return the newest run file of this plan and stage that has no seal, by the time in its name; null for none.

    Raises DossierError for a run file that cannot be read: it may be the one to resume.
    """
    return next((path for path in _runs(out_dir, plan_id, stage) if not _ends_in_seal(path)), None)


def resumable(
    out_dir: Path, plan_id: str, stage: Stage, environment: Environment, devices: list[Device]
) -> Path | None:
    """Return the newest open run of this plan and stage that was begun in this environment, null where none is open.

    Raises DossierError where all the open ones were begun elsewhere: several machines may write into one folder, and
    the passes of two machines must not be taken for one run.
    """
    first_elsewhere: DossierError | None = None
    for path in _runs(out_dir, plan_id, stage):
        if _ends_in_seal(path):
            continue
        begun_in, begun_on = _setting(path)
        if not begun_in or any(one.environment_id == environment.environment_id for one in begun_in):
            return path
        first_elsewhere = first_elsewhere or _elsewhere(path, begun_in[-1], begun_on, environment, devices)
    if first_elsewhere is not None:
        raise first_elsewhere
    return None


def _setting(path: Path) -> tuple[list[Environment], list[Device]]:
    """Return the environments and devices that a run file names before its first pass."""
    environments: list[Environment] = []
    devices: list[Device] = []
    for line in chain.scan(path):
        match line.record:
            case Environment() as environment:
                environments.append(environment)
            case Device() as device:
                devices.append(device)
            case PassBegin():
                break
            case _:
                pass
    return environments, devices


def _elsewhere(
    path: Path, begun_in: Environment, begun_on: list[Device], here: Environment, devices: list[Device]
) -> DossierError:
    left_out = {*ENVELOPE, "kind", "environment_id", "missing", "load_average_1m", "host_name", "unchecked"}
    before, now = msgspec.to_builtins(begun_in), msgspec.to_builtins(here)
    differing = sorted(name for name in now if name not in left_out and before.get(name) != now[name])
    what = f"; they differ in {', '.join(differing)}" if differing else ""

    def named(environment: Environment, found: list[Device]) -> str:
        names = [one.device_name for one in found if one.environment_id == environment.environment_id]
        return f"{', '.join(names) or 'a device not recorded'} (environment {environment.environment_id})"

    return DossierError(
        f"the open run {path} was begun on {named(begun_in, begun_on)}, and this is {named(here, devices)}{what}",
        next_step="resume it where it was begun; without --resume a new file is started here",
    )


def newest_sealed(out_dir: Path, plan_id: str, stage: Stage) -> Path | None:
    """Return the newest run file of this plan and stage that is finished, null for none. Raises DossierError."""
    return next((path for path in _runs(out_dir, plan_id, stage) if _ends_in_seal(path)), None)


def looks(out_dir: Path, protocol_id: str) -> dict[str, Path]:
    """Return run id -> file of each look at this protocol's test documents, finished or open, the oldest first.

    Raises DossierError for a run file that cannot be read: it may be a look.
    """
    found: dict[str, Path] = {}
    for path in sorted(filter(is_run_file, out_dir.glob("*.jsonl"))):
        header = _read_header(path) if path.is_file() else None
        if header is None or header.source_head_digest is not None:
            continue
        if (header.protocol_id, header.stage) == (protocol_id, "test"):
            found.setdefault(header.run_id, path)
    return found


def _runs(out_dir: Path, plan_id: str, stage: Stage) -> Iterator[Path]:
    """Yield the run files of a plan, the newest first; files of judgements made again are not among them."""
    for path in sorted(filter(is_run_file, out_dir.glob("*.jsonl")), reverse=True):
        header = _read_header(path) if path.is_file() else None
        if header is None or header.source_head_digest is not None:
            continue
        if (header.plan_id, header.stage) == (plan_id, stage):
            yield path


def _read_header(path: Path) -> Header | None:
    try:
        with path.open("rb") as stream:
            line = stream.readline(MAX_LINE_BYTES + 1)
    except OSError as error:
        raise refusal("cannot be read", path, error) from None
    record = inspect_line(line[:-1]).record if line.endswith(b"\n") else None
    return record if isinstance(record, Header) else None


def _ends_in_seal(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        lines = stream.read().split(b"\n")
    return len(lines) > 1 and lines[-1] == b"" and seal_digest(lines[-2]) is not None
