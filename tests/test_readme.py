"""The README's commands run as they stand there, except those marked slow; it names every command and no dead link."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import collector.cli
import reporter.cli
from collector.contract.server_kinds import KINDS
from collector.init import init_folder
from collector.protocol_check import check_protocol, load_protocol

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = {"collector": collector.cli.main, "reporter": reporter.cli.main}
EVERY_COMMAND = [(program, name) for program, group in PROGRAMS.items() for name in sorted(group.commands)]
OTHER_PROGRAMS = {"make", "pip", "sudo"}


def commands() -> list[str]:
    """Return the lines of the fenced sh blocks, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def tables_of(section: str) -> list[str]:
    """Return the fenced toml blocks of a section, in order."""
    text = README.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def is_slow(line: str) -> bool:
    return re.search(r"# slow\b", line) is not None


def words(line: str) -> list[str]:
    return shlex.split(line, comments=True)


@pytest.mark.parametrize(("program", "command"), EVERY_COMMAND, ids=lambda value: value)
def test_the_readme_shows_every_command(program: str, command: str) -> None:
    shown = [words(line)[:2] for line in commands()]
    assert [program, command] in shown or f"`{program} {command}" in README


@pytest.mark.parametrize(("program", "command"), EVERY_COMMAND, ids=lambda value: value)
def test_the_help_of_every_command_ends_with_an_example_of_it(program: str, command: str) -> None:
    result = CliRunner().invoke(PROGRAMS[program], [command, "--help"])
    assert result.exit_code == 0
    described = " ".join(result.output.split("Options:")[0].split())
    *_, example = described.rpartition("Example: ")
    assert example.startswith(f"{program} {command} "), described


def test_every_line_of_a_command_block_is_one_of_a_known_program() -> None:
    assert {words(line)[0] for line in commands()} <= set(PROGRAMS) | OTHER_PROGRAMS
    assert all(is_slow(line) for line in commands() if words(line)[0] in OTHER_PROGRAMS)


def test_targets_of_make_and_extras_of_pip_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {words(line)[1] for line in commands() if words(line)[0] == "make"}
    targets |= set(re.findall(r"`make ([a-z-]+)", README))
    assert {"demo", "test"} <= targets
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)]
    extras = re.findall(r"pip install '\.\[(\w+)\]'", README)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert extras == ["collector", "reporter", "quantized"]
    assert not [extra for extra in extras if f"\n{extra} = [" not in project]


def test_files_that_the_readme_links_or_names_exist() -> None:
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    named = re.findall(r"`((?:collector|reporter|tests|templates|schemas|sample_runs|\.ci)/[\w./-]*)`", README)
    assert linked
    assert named
    missing = [name for name in (*linked, *named) if not (ROOT / name).exists()]
    assert not missing


def test_the_servers_and_the_block_pool_of_the_readme_are_refused_nothing(tmp_path: Path) -> None:
    init_folder(tmp_path, is_small=True, device="d")
    path = tmp_path / "protocol.toml"
    starter = path.read_text(encoding="utf-8")
    served, pool = tables_of("Through a server")
    text = starter.replace("[plan]\n", served)
    path.write_text(text.replace("[[variant]]", f"{pool}\n[[variant]]", 1), encoding="utf-8")
    assert check_protocol(path, with_tokenizer=False) == []
    protocol = load_protocol(path).protocol
    assert [server.name for server in protocol.servers] == [one.server for one in protocol.variants if one.server]
    assert protocol.engine.continuous is not None


def test_every_kind_of_server_has_its_line_and_each_start_command_is_refused_nothing(tmp_path: Path) -> None:
    _, *lines = re.findall(r"^\| `(\w+)` \| (.*) \|$", README, re.MULTILINE)
    assert {kind for kind, _ in lines} == set(KINDS)
    starts = {kind: found[1] for kind, said in lines if (found := re.match(r"`(\[.*?\])`", said))}
    assert set(starts) == set(KINDS) - {"vllm", "other"}
    init_folder(tmp_path, is_small=True, device="d")
    path = tmp_path / "protocol.toml"
    starter = path.read_text(encoding="utf-8")
    for kind, start in starts.items():
        added = f'[[server]]\nname = "s"\nkind = "{kind}"\nstart = {start}\n[[variant]]\nname = "s"\nserver = "s"\n'
        path.write_text(starter.replace("[plan]\n", f"{added}[plan]\n"), encoding="utf-8")
        assert check_protocol(path, with_tokenizer=False) == [], kind


def test_the_first_screen_says_what_it_is_shows_one_picture_and_two_commands() -> None:
    first = README.split("\n## ")[0]
    assert first.count("![") == 1
    assert [words(line)[:2] for line in commands()[:2]] == [["collector", "run"], ["reporter", "pdf"]]
    assert first.index("collector run") < 1200
    assert "badge" not in README
    assert not re.search(r"\b(easily|simply|blazing|powerful|seamless)", README, re.IGNORECASE)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """The folder of a campaign as README's sections 2 and 3 find it: a recorded campaign, its siblings, own texts."""
    shutil.copytree(ROOT / "sample_runs", tmp_path / "sample_runs")
    for name in ("campaign.toml", "protocol.toml", "protocol.lock.json", "protocol.salt", "documents.jsonl"):
        shutil.copyfile(ROOT / "sample_runs" / "labelled" / name, tmp_path / name)
    shutil.copytree(ROOT / "sample_runs" / "labelled" / "runs", tmp_path / "runs")
    (tmp_path / "my-invoices").mkdir()
    for number in range(12):
        text = f"INVOICE {number}\nDate: 2026-02-{number + 1:02d}\nAmount: {number}.50 EUR\n"
        (tmp_path / "my-invoices" / f"invoice-{number}.txt").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_commands_of_the_readme_run_in_their_order_except_the_slow_ones(trial: Path) -> None:
    scripts = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": scripts + os.pathsep + os.environ["PATH"], "XDG_CACHE_HOME": str(trial / ".cache"),
    }  # fmt: skip
    ran = []
    for line in commands():
        if is_slow(line):
            continue
        done = subprocess.run(words(line), cwd=trial, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        ran.append(" ".join(words(line)[:2]))
    assert {"collector init", "collector check", "collector freeze", "reporter site", "reporter pdf"} <= set(ran)
    for made in (
        "trial/protocol.lock.json", "dossier.pdf", "dossier.html", "choice.json", "public/index.html",
        "public/labelled/dossier.pdf", "my-trial/documents.csv",
    ):  # fmt: skip
        assert (trial / made).stat().st_size > 0, made
