"""Arrows of the design: cli -> steps -> contract, reporter -> collector.contract, and nothing else crosses."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {"torch", "transformers", "accelerate", "safetensors", "gguf"}


def imports(path: Path) -> set[str]:
    """Dotted names imported anywhere in a file, relative ones resolved."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names.update({module, *(f"{module}.{alias.name}" for alias in node.names)})
    return names


def sources(wing: str) -> list[Path]:
    return sorted((ROOT / wing).rglob("*.py"))


def roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("path", sources("reporter"), ids=lambda p: str(p.relative_to(ROOT)))
def test_reporter_imports_only_the_contract_and_never_torch(path: Path) -> None:
    crossing = {n for n in imports(path) if n.split(".")[0] == "collector"}
    assert all(n == "collector" or n.startswith("collector.contract") for n in crossing), crossing
    assert not roots(path) & HEAVY


@pytest.mark.parametrize("path", sources("collector"), ids=lambda p: str(p.relative_to(ROOT)))
def test_collector_never_imports_reporter_and_torch_only_behind_engines_and_probes(path: Path) -> None:
    assert "reporter" not in roots(path)
    if not {"engines", "probes"} & set(path.relative_to(ROOT).parts) and path.name != "memory.py":
        assert not roots(path) & HEAVY


@pytest.mark.parametrize("path", sources("collector/contract"), ids=lambda p: str(p.relative_to(ROOT)))
def test_contract_imports_nothing_of_the_collector_and_no_click(path: Path) -> None:
    inward = {n for n in imports(path) if n.split(".")[0] == "collector"}
    assert all(n.startswith("collector.contract") for n in inward), inward
    assert "click" not in roots(path)


@pytest.mark.parametrize("path", [*sources("collector"), *sources("reporter")], ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_command_line_imports_click_and_nothing_imports_the_command_line(path: Path) -> None:
    if path.name != "cli.py":
        assert "click" not in roots(path)
        assert not {"collector.cli", "reporter.cli"} & imports(path)


@pytest.mark.parametrize("folder", ["schemas", "templates"])
def test_data_folders_hold_no_python(folder: str) -> None:
    assert not list((ROOT / folder).rglob("*.py"))


def loaded_packages(code: str) -> set[str]:
    """Top-level packages outside the standard library that a fresh interpreter has loaded after the code."""
    report = "import sys; print(*{name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], check=True, capture_output=True, text=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("wing", ["collector", "reporter"])
def test_help_loads_click_and_nothing_heavier(wing: str) -> None:
    """Speed itself is measured in tests/benchmarks/help_time.py."""
    shown = f"from {wing}.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    assert loaded_packages(shown) - loaded_packages("import click") <= {"collector", "reporter"}
