"""The reporter's commands: result on stdout, progress on stderr, exit codes, an example in every help, no traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from collector.contract.errors import MissingDependency
from reporter import cli, document

Kit = Any
COMMANDS = sorted(cli.main.commands)


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(cli.main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def trial(tmp_path: Path, campaign_records: Kit, campaign_text: Any) -> tuple[Path, Path]:
    text = campaign_text.candidate("CPU fp32", "fp32", "dear").candidate("CPU bf16", "bf16", "cheap")
    path = text.offer("dear", {3: "300.00"}).offer("cheap", {3: "100.00"}).write()
    return campaign_records(tmp_path / "runs").runs, path


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_ends_with_an_example(command: str) -> None:
    result = run(*([command] if command else []), "--help")
    assert result.exit_code == 0
    assert f"Example: reporter {command}" in result.output


def test_check_finds_nothing_in_sound_records_and_names_a_changed_byte(trial: tuple[Path, Path]) -> None:
    runs, _ = trial
    assert run("check", runs).exit_code == 0
    (file,) = runs.glob("*.jsonl")
    content = file.read_bytes()
    file.write_bytes(content.replace(b'"is_accepted":true', b'"is_accepted":null', 1))
    result = run("check", runs)
    assert result.exit_code == 1
    assert f"{file.name}:" in result.stdout
    assert "next:" in result.stdout
    report = json.loads(run("check", runs, "--json").stdout)
    assert report["findings"]
    assert report["files"][0]["sealed"] in (True, False)


def test_check_reads_a_campaign_file_beside_the_runs_or_alone(trial: tuple[Path, Path]) -> None:
    runs, campaign = trial
    for given in ((runs, "--campaign", campaign), ("--campaign", campaign)):
        result = run("check", *given)
        assert (result.exit_code, f"{campaign}: a campaign" in result.stdout) == (0, True)
    lines = campaign.read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, start=1) if text.startswith("tax_percent"))
    lines[line - 1] = 'tax_percent = "7,7"'
    campaign.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for given in ((runs, "--campaign", campaign), ("--campaign", campaign)):
        result = run("check", *given)
        assert result.exit_code == 1
        assert f"{campaign}:{line}: [wrong-type]" in result.stdout
        assert 'write a decimal point: "7.7"' in result.stdout
    assert run("check").exit_code == 2
    missing = run("check", "--campaign", campaign.with_name("none.toml"))
    assert (missing.exit_code, "no such file" in missing.output) == (2, True)


@pytest.mark.parametrize(
    ("name", "content", "what", "reads"),
    [
        ("campaign.toml", None, "a campaign file", "reporter check --campaign"),
        ("prices.toml", None, "a campaign file", "reporter check --campaign"),
        ("campaign.toml", "format = = 1", "a campaign file", "reporter check --campaign"),
        ("protocol.toml", "[task]\n", "a protocol", "collector check"),
        ("protocol.lock.json", '{"lock_format": 1}', "the lock of a protocol", "collector check"),
        ("choice.json", '{"choice_format": 1}', "a choice", "collector confirm PROTOCOL --choice"),
    ],
)
@pytest.mark.parametrize("command", ["check", "summary"])
def test_a_file_that_holds_no_records_is_named_with_what_reads_it(
    trial: tuple[Path, Path], tmp_path: Path, command: str, name: str, content: str | None, what: str, reads: str
) -> None:
    runs, campaign = trial
    path = tmp_path / "mixed-up" / name
    path.parent.mkdir()
    path.write_text(campaign.read_text(encoding="utf-8") if content is None else content, encoding="utf-8")
    result = run(command, runs, path)
    assert result.exit_code == 2
    assert f"{path} is {what} and holds no records" in result.output
    assert f"`{reads}" in result.output


def test_a_candidate_that_fits_no_record_is_told_with_its_line_and_what_was_measured(trial: tuple[Path, Path]) -> None:
    runs, campaign = trial
    text = campaign.read_text(encoding="utf-8")
    campaign.write_text(text.replace('device = "Example CPU 2 cores"', 'device = "Example CPU"'), encoding="utf-8")
    result = run("summary", runs, "--campaign", campaign)
    assert result.exit_code == 0
    line = text.splitlines().index("[[candidate]]") + 1
    said = (
        f'{campaign}:{line}: [not-measured] 2 candidates were not measured: "CPU fp32" (fp32 on "Example CPU", batch 1'
    )
    assert said in result.stderr
    measured = 'measured: bf16 on "Example CPU 2 cores", fp32 on "Example CPU 2 cores"'
    assert result.stderr.count(measured) == result.stderr.count("note: ") == 1, "for all of them once"
    one = text.replace('device = "Example CPU 2 cores"', 'device = "Example CPU"', 1)
    campaign.write_text(one, encoding="utf-8")
    said = f'{campaign}:{line}: [not-measured] candidate "CPU fp32" (fp32 on "Example CPU", batch 1, concurrency 1)'
    assert said in run("summary", runs, "--campaign", campaign).stderr


@pytest.mark.parametrize("command", ["choose", "html"])
def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(trial: tuple[Path, Path], command: str) -> None:
    runs, campaign = trial
    (runs.parent / "file").write_text("")
    result = run(command, runs, "--campaign", campaign, "-o", runs.parent / "file" / "out.json")
    assert result.exit_code == 2
    assert "out.json cannot be written" in result.stderr
    folder = runs.parent / "folder"
    (folder / "out.json").mkdir(parents=True)
    assert run(command, runs, "--campaign", campaign, "-o", folder / "out.json").exit_code == 2
    assert [path.name for path in folder.iterdir()] == ["out.json"]


def test_runs_of_a_newer_format_alone_are_refused_with_the_advice_to_upgrade(trial: tuple[Path, Path]) -> None:
    runs, campaign = trial
    (file,) = runs.glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b'"format":1', b'"format":2', 1))
    result = run("summary", runs, "--campaign", campaign)
    assert result.exit_code == 2
    assert "upgrade gpu-dossier" in result.stderr
    assert file.name in result.stderr


def test_summary_prints_the_verdict_of_every_candidate(trial: tuple[Path, Path]) -> None:
    runs, campaign = trial
    result = run("summary", runs, "--campaign", campaign)
    assert result.exit_code == 0
    for text in ("CPU bf16", "recommended", "reference; 200.00", "20 / 24", "Which machine should read our invoices?"):
        assert text in result.stdout, text
    assert json.loads(run("summary", runs, "--json").stdout)["decision"]["has_winner"] is False


def test_summary_prints_how_long_each_timed_configuration_makes_one_wait(trial: tuple[Path, Path]) -> None:
    runs, campaign = trial
    lines = run("summary", runs, "--campaign", campaign).stdout.splitlines()
    heads = [place for place, line in enumerate(lines) if "percentile" in line]
    timed = [line.split() for line in lines[heads[-1] + 1 :]]
    assert ["CPU", "bf16", "closed", "loop"] in [words[:4] for words in timed]
    assert all(words[-1] in ("ms", "s", "–") for words in timed), timed


def test_a_piped_summary_cuts_no_verdict(tmp_path: Path, campaign_records: Kit, campaign_text: Any) -> None:
    kit = campaign_records
    runs = kit(tmp_path / "runs", variants=[kit.fp32, kit.variant(name="bf16", failure="out_of_memory")]).runs
    path = campaign_text.candidate("A configuration with a name that is rather long", "bf16").write()
    lines = run("summary", runs, "--campaign", path).stdout.splitlines()
    assert any(
        line.startswith("A configuration with a name that is rather long")
        and line.rstrip().endswith("failed: out of memory in loading")
        for line in lines
    )


def test_choose_writes_the_choice(trial: tuple[Path, Path], tmp_path: Path) -> None:
    runs, campaign = trial
    out = tmp_path / "out" / "choice.json"
    result = run("choose", runs, "--campaign", campaign, "-o", out)
    assert result.exit_code == 0
    assert json.loads(out.read_bytes())["chosen"]["variant"] == "bf16"
    assert list(out.parent.iterdir()) == [out]


def test_html_is_written_with_its_sentences(trial: tuple[Path, Path], tmp_path: Path) -> None:
    runs, campaign = trial
    result = run("html", runs, "--campaign", campaign, "-o", tmp_path / "dossier.html")
    assert (result.exit_code, result.stdout.strip()) == (0, str(tmp_path / "dossier.html"))
    page = (tmp_path / "dossier.html").read_text(encoding="utf-8")
    assert "Which machine should read our invoices?" in page
    assert "100.00" in page


def test_pdf_carries_records_lock_and_campaign_and_texts_only_when_asked(
    trial: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, campaign = trial
    (file,) = runs.glob("*.jsonl")
    texts = file.with_name(file.name.removesuffix(".jsonl") + ".texts.jsonl")
    texts.write_text("{}\n", encoding="utf-8")
    given: list[dict[str, bytes]] = []

    def keep(dossier: Any, out: Path, *, lang: str, attachments: list[Path]) -> None:
        given.append({path.name: path.read_bytes() for path in attachments})

    monkeypatch.setattr(document, "write_pdf", keep)
    for more in ([], ["--attach", "texts"]):
        assert run("pdf", runs, "--campaign", campaign, "-o", tmp_path / "d.pdf", *more).exit_code == 0
    plain, with_texts = given
    assert set(plain) == {file.name, "protocol.lock.json", "campaign.toml"}
    assert set(with_texts) - set(plain) == {texts.name}
    assert plain[file.name] == file.read_bytes()
    lock = json.loads(plain["protocol.lock.json"])
    assert lock == json.loads((tmp_path / "protocol.lock.json").read_bytes())


def test_a_missing_system_library_is_exit_code_4_with_the_packages_to_install(
    trial: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, campaign = trial

    def missing(*_: object, **__: object) -> None:
        raise MissingDependency("Pango is missing", next_step="apt-get install libpango-1.0-0")

    monkeypatch.setattr(document, "write_pdf", missing)
    result = run("pdf", runs, "--campaign", campaign, "-o", tmp_path / "d.pdf")
    assert result.exit_code == 4
    assert "apt-get install libpango-1.0-0" in result.stderr


def test_a_refused_campaign_is_exit_code_2_with_file_line_and_next_step(trial: tuple[Path, Path]) -> None:
    runs, campaign = trial
    campaign.write_text(campaign.read_text(encoding="utf-8").replace('"300.00"', '"300.001"'), encoding="utf-8")
    result = run("summary", runs, "--campaign", campaign)
    assert result.exit_code == 2
    assert "campaign.toml:" in result.stderr
    assert "next: write the amount with at most 2 decimals" in result.stderr
    assert "Traceback" not in result.output


def test_records_that_are_not_there_are_exit_code_2(tmp_path: Path) -> None:
    result = run("summary", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_a_newer_file_is_set_aside_counted_and_the_exit_is_not_zero(
    trial: tuple[Path, Path], campaign_records: Kit, tmp_path: Path
) -> None:
    runs, campaign = trial
    written = campaign_records(tmp_path / "other", start="2026-01-05T09:00:00")
    newer = runs / written.path.name
    newer.write_bytes(written.path.read_bytes().replace(b'"format":1', b'"format":9', 1))
    out = tmp_path / "dossier.html"
    result = run("html", runs, "--campaign", campaign, "-o", out)
    assert result.exit_code == 1
    assert newer.name in result.stderr
    assert "upgrade" in result.stderr
    assert newer.name in out.read_text(encoding="utf-8")


def test_as_of_must_be_a_day(trial: tuple[Path, Path]) -> None:
    runs, campaign = trial
    assert run("summary", runs, "--campaign", campaign, "--as-of", "soon").exit_code == 2
    result = run("summary", runs, "--campaign", campaign, "--as-of", "2026-03-01")
    assert result.exit_code == 0
    assert "no quote valid on" in " ".join(result.stdout.split())
