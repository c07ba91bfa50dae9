"""The wheel and the sdist carry the data folders once, and both commands run from another folder."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one wheel and one sdist of this checkout, built with the installed backend."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
    )
    return out


def test_wheel_carries_schemas_inside_collector_and_templates_inside_reporter(built: Path) -> None:
    names = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    assert "collector/schemas/request.schema.json" in names
    assert any(name.startswith("reporter/templates/") and name.endswith(".j2") for name in names)
    assert any(name.startswith("reporter/sql/") for name in names)
    assert any(name.startswith("collector/starter/") and name.endswith("documents.jsonl") for name in names)
    assert not [name for name in names if name.startswith(("schemas/", "templates/", "tests/", "sample_runs/"))]
    assert not [name for name in names if "/schemas/" in name and name.endswith(".py")]
    assert not [name for name in names if "/templates/" in name and name.endswith(".py")]


def test_sdist_holds_sources_and_data_and_nothing_else(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert tops == {
        "collector", "reporter", "schemas", "templates", "README.md", "GLOSSARY.md", "CHANGELOG.md", "LICENSE",
        "pyproject.toml", "PKG-INFO", ".gitignore",
    }  # fmt: skip


def test_both_commands_run_from_another_folder_in_a_fresh_environment(built: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    binaries = environment / "bin"
    wheel = next(built.glob("*.whl"))
    subprocess.run([binaries / "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)], check=True)
    site = Path(subprocess.check_output(
        [binaries / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    ).strip())  # fmt: skip
    # Dependencies come from this environment; a path line is not searched for further .pth files, so the editable
    # install of the checkout stays out.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    away = tmp_path / "away"
    away.mkdir()
    for command in ("collector", "reporter"):
        shown = subprocess.run([binaries / command, "--help"], cwd=away, check=True, capture_output=True, text=True)
        assert "Usage:" in shown.stdout
    found = subprocess.check_output(
        [binaries / "python", "-c", "from collector.contract.resources import data_dir as d; "
            "print(d('schemas'), d('templates'))"],
        cwd=away, text=True,
    )  # fmt: skip
    assert found.split() == [str(site / "collector" / "schemas"), str(site / "reporter" / "templates")]
    subprocess.run([binaries / "collector", "init", "trial"], cwd=away, check=True, capture_output=True)
    assert (away / "trial" / "protocol.toml").is_file()
