"""What the project's extras want and what of it is installed, from package metadata alone: nothing is imported."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires, version

import msgspec

PROJECT = "gpu-dossier"
PURPOSES = {
    "collector": "measuring",
    "quantized": "variants with quantized weights",
    "reporter": "the dossier",
}
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<wanted>[^;]*);.*extra == [\"'](?P<extra>[\w-]+)[\"']")
_COMPARISON = re.compile(r"(>=|<=|==|<|>)\s*([0-9.]+)")


class Package(msgspec.Struct, frozen=True):
    """A package that an extra wants. `installed` is null where it is absent."""

    name: str
    wanted: str
    installed: str | None
    is_fitting: bool
    """Installed, in a version that is wanted."""


class Extra(msgspec.Struct, frozen=True):
    """An extra: what it is for, its packages, and the command that installs what is missing (null for nothing)."""

    name: str
    purpose: str
    packages: list[Package]
    install: str | None


def extras(requirements: list[str] | None = None) -> list[Extra]:
    """Return the extras for measuring and for the dossier; `requirements` by default those of the installed project."""
    if requirements is None:
        try:
            requirements = requires(PROJECT) or []
        except PackageNotFoundError:
            requirements = []
    found: dict[str, list[Package]] = {}
    for requirement in requirements:
        if match := _REQUIREMENT.match(requirement):
            wanted = match["wanted"].strip().strip("()")
            found.setdefault(match["extra"], []).append(_package(match["name"], wanted))
    return [
        Extra(name, purpose, found[name], install_command(found[name]))
        for name, purpose in PURPOSES.items()
        if name in found
    ]


def install_command(packages: list[Package]) -> str | None:
    """Return the command that installs what is absent or too old, into the Python that runs now."""
    wanted = [shlex.quote(package.name + package.wanted) for package in packages if not package.is_fitting]
    return " ".join([shlex.quote(sys.executable), "-m", "pip", "install", *wanted]) if wanted else None


def _package(name: str, wanted: str) -> Package:
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Package(name, wanted, None, False)
    return Package(name, wanted, installed, fits(installed, wanted))


def fits(installed: str, wanted: str) -> bool:
    """Return whether a version's release numbers meet every comparison, as in `>=5.17,<6`."""
    have = _release(installed)
    for comparison, text in _COMPARISON.findall(wanted):
        bound = _release(text)
        width = max(len(have), len(bound))
        left, right = (numbers + (0,) * (width - len(numbers)) for numbers in (have, bound))
        is_met = {
            ">=": left >= right, "<=": left <= right, "==": left == right, "<": left < right, ">": left > right,
        }[comparison]  # fmt: skip
        if not is_met:
            return False
    return True


def _release(text: str) -> tuple[int, ...]:
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(number) for number in match[0].split(".")) if match else ()
