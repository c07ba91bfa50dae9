"""`collector doctor`: what is installed and what can be measured, by the modules that a run uses."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

import collector.doctor as doctor_module
from collector.cli import main
from collector.contention import BusyReport
from collector.doctor import examine_machine
from collector.doctor_text import report_lines
from collector.environment import Detected, detect
from collector.installed import extras, fits
from collector.nvidia import DriverFacts


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Hides packages from the search for them, as if they had never been installed."""
    find_spec, version = importlib.util.find_spec, importlib.metadata.version

    def version_unless_hidden(names: tuple[str, ...], name: str) -> str:
        if name in names:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    def hide(*names: str) -> None:
        monkeypatch.setattr(importlib.metadata, "version", lambda name: version_unless_hidden(names, name))
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *more: None if name in names else find_spec(name, *more)
        )

    return hide


def doctor(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["doctor", *map(str, arguments)])


def quantized_trial(folder: Path) -> Path:
    """The starter with a variant in nf4 instead of its last one."""
    done = CliRunner().invoke(main, ["init", str(folder)])
    assert done.exit_code == 0, done.output
    path = folder / "protocol.toml"
    text = path.read_text().replace('name = "bf16"\ndtype = "bfloat16"', 'name = "nf4"\nquantization = "bnb_nf4"')
    assert "bnb_nf4" in text
    path.write_text(text)
    return path


def test_a_machine_with_everything_says_that_a_run_is_possible() -> None:
    result = doctor()
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "a run is possible here"
    for said in ("for measuring: ", "torch ", "cpu: ", "free in ", "cpu, host: "):
        assert said in result.stdout


def test_the_report_as_json_says_what_a_run_would_record(tmp_path: Path) -> None:
    result = doctor("--json", "--out", tmp_path / "not" / "made" / "yet")
    report = json.loads(result.stdout)
    assert report["environment"]["environment_id"] == detect("cpu").environment.environment_id
    assert [device["device_id"] for device in report["devices"]][-1] == "cpu"
    assert report["disk_folder"] == str(tmp_path)
    assert report["disk_free_bytes"] > 0
    assert {package["name"] for extra in report["extras"] for package in extra["packages"]} >= {"torch", "duckdb"}
    (host,) = [one for one in report["memory_scopes"] if one["device_id"] == "cpu"]
    assert host["memory_scope"] == "host"
    assert host["counter_method"] in ("counter", "sampled")
    assert not (tmp_path / "not").exists()


def test_a_missing_package_is_exit_code_4_and_named(without: Callable[..., None]) -> None:
    without("torch", "accelerate")
    result = doctor()
    assert result.exit_code == 4
    assert "a run is not possible here: the transformers engine needs torch, accelerate" in result.stdout
    assert "next: " in result.stdout.splitlines()[-1]
    assert doctor("--json").exit_code == 4


def test_h01_libraries_that_the_pdf_needs_are_named_with_the_command_and_a_run_is_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor_module, "PDF_LIBRARIES", {"libpango-1.0": ("libpango-1.0.so.77",)})
    result = doctor()
    assert result.exit_code == 0
    assert "for PDF: missing libpango-1.0" in result.stdout
    assert "apt-get install libpango-1.0-0" in result.stdout
    assert "Traceback" not in result.output


def test_h02_a_plan_names_every_package_that_is_missing_for_it_before_anything_is_measured(
    tmp_path: Path, without: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = quantized_trial(tmp_path / "trial")
    monkeypatch.setattr(doctor_module, "PDF_LIBRARIES", {"libpango-1.0": ("libpango-1.0.so.77",)})
    without("bitsandbytes")
    assert doctor().exit_code == 0  # a plan without quantized variants needs none
    result = doctor("--protocol", protocol)
    assert result.exit_code == 4
    assert "for PDF: missing libpango-1.0" in result.stdout
    assert "variant 'nf4': " in result.stdout
    assert "bitsandbytes" in result.stdout.split("a run is not possible here")[1]


def test_a_protocol_that_is_not_there_is_refused(tmp_path: Path) -> None:
    result = doctor("--protocol", tmp_path / "absent.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "absent.toml" in result.stderr


def test_the_model_is_looked_for_where_the_engine_would_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"x" * 3_000_000)
    folder = tmp_path / "trial"
    CliRunner().invoke(main, ["init", str(folder), "--model", str(tmp_path / "model")])
    protocol = folder / "protocol.toml"
    model = examine_machine(tmp_path, protocol=protocol).model
    assert model is not None
    assert (model.model_id, model.weight_and_tokenizer_bytes, model.fault) == ("../model", 3_000_000, None)
    (tmp_path / "model" / "model.safetensors").unlink()
    (tmp_path / "model" / "tokenizer.json").write_text("{}")  # for a server that has the weights
    assert f"../model is in {tmp_path / 'model'}, no weights there" in doctor("--protocol", protocol).stdout
    (tmp_path / "model" / "tokenizer.json").unlink()
    (tmp_path / "model").rmdir()
    assert "does not exist" in doctor("--protocol", protocol).stdout


@pytest.mark.parametrize(("setting", "said"), [("1", "download it before"), ("0", "downloaded at first use")])
def test_a_hub_model_that_is_not_in_the_cache_is_told_and_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, said: str
) -> None:
    CliRunner().invoke(main, ["init", str(tmp_path / "trial"), "--model", "nobody-here/no-such-model"])
    monkeypatch.setenv("HF_HUB_OFFLINE", setting)
    result = doctor("--protocol", tmp_path / "trial" / "protocol.toml")
    assert result.exit_code == 0
    assert f"nobody-here/no-such-model is not in the Hub's cache: {said}" in result.stdout


def test_a_busy_machine_is_told_with_its_culprits(fixed_machine: Any, tmp_path: Path) -> None:
    fixed_machine.look_around = lambda devices, ports: BusyReport(True, "others use 90%", ["make (process 7)"])
    lines = list(report_lines(examine_machine(tmp_path, machine=fixed_machine)))
    assert "  busy: others use 90%" in lines
    assert "    stop before measuring: make (process 7)" in lines


def test_a_card_that_this_torch_cannot_use_is_told_and_scopes_that_nobody_can_read_say_why(
    monkeypatch: pytest.MonkeyPatch, fixed_machine: Any, tmp_path: Path
) -> None:
    """One card by the driver, no NVML, and the torch of this machine."""
    torch = importlib.metadata.version("torch")
    if "+cpu" not in torch:
        pytest.skip(f"torch {torch} is no CPU build")
    facts = DriverFacts("GPU-1", "Example Card", 80 * 2**30, "9.0")
    monkeypatch.setattr("collector.nvidia.has_cuda", lambda: True)
    monkeypatch.setattr("collector.nvidia.driver_facts", lambda ordinal: facts if ordinal == 0 else None)
    monkeypatch.setattr("collector.nvidia.import_module", lambda name: importlib.import_module("no_such_nvml"))

    def detect_card(device: str, *, threads: int | None) -> Detected:
        environment, (found,) = type(fixed_machine).detect(fixed_machine, device, threads=threads)
        is_card = device.startswith("cuda")
        environment = msgspec.structs.replace(environment, packages={"torch": torch})
        kind: Any = "cuda" if is_card else "cpu"
        return Detected(environment, [msgspec.structs.replace(found, device_kind=kind)])

    monkeypatch.setattr(fixed_machine, "detect", detect_card, raising=False)
    report = examine_machine(tmp_path, machine=fixed_machine)
    lines = list(report_lines(report))
    assert [device.device_id for device in report.devices] == ["cpu", "cuda:0"]
    assert "  cuda:0, device: cannot be read (unsupported)" in lines
    assert f"  cuda:0 is there and would not be used: torch {torch} is built without CUDA" in lines


@pytest.mark.parametrize(
    ("installed", "wanted", "is_fitting"),
    [
        ("2.13.0+cpu", ">=2.8", True), ("2.7.1", ">=2.8", False), ("5.17.0", ">=5.17,<6", True),
        ("6.0", "<6,>=5.17", False), ("6", "<6.0", False), ("3.1.6", "", True), ("1.9.0.post1", ">=1.9", True),
        ("0.10", ">=0.9", True),
    ],
)  # fmt: skip
def test_versions_are_compared_by_their_numbers(installed: str, wanted: str, is_fitting: bool) -> None:
    assert fits(installed, wanted) is is_fitting


def test_the_install_command_names_exactly_what_is_absent_or_too_old() -> None:
    found = extras(
        [
            "click>=8.1", "msgspec>=0.1; extra == 'collector'", "no-such-package<2,>=1; extra == 'collector'",
            'pytest>=9999; extra == "reporter"', "build; extra == 'dev'",
        ]
    )  # fmt: skip
    assert [(extra.name, extra.install) for extra in found] == [
        ("collector", f"{sys.executable} -m pip install 'no-such-package<2,>=1'"),
        ("reporter", f"{sys.executable} -m pip install 'pytest>=9999'"),
    ]
