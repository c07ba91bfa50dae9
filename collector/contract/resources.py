"""Where the data folders are: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def data_dir(name: str) -> Path:
    """Return the folder `schemas` or `templates`.

    A wheel carries `schemas` inside `collector` and `templates` inside `reporter`; a checkout (and so an editable
    install) has both beside the packages. The package is asked first.

    Raises FileNotFoundError when neither place has it.
    """
    owner = {"schemas": "collector", "templates": "reporter"}[name]
    package = Path(str(files(owner)))
    for candidate in (package / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"data folder {name!r} is neither in {package} nor beside it; reinstall gpu-dossier")
