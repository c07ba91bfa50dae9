"""The command `collector run` and the group around it: cost of import, help, errors, exit codes, results."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from collector.cli import duration_s, main
from collector.contract.chain import verify
from collector.contract.errors import DossierError
from collector.progress_lines import ProgressLines, brief, stopping_on_signals
from collector.watcher import Ending


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_s_help_ends_with_an_example(name: str) -> None:
    result = invoke(name, "--help")
    assert result.exit_code == 0
    description = main.commands[name].help or ""
    assert description.strip().splitlines()[-1].strip().startswith(f"Example: collector {name} ")


@pytest.mark.parametrize(
    ("text", "seconds"), [("2h", 7200), ("90m", 5400), ("1h30m", 5400), ("45s", 45), ("0.5h", 1800)]
)
def test_durations_are_written_as_people_write_them(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "30m1h", "-1h", "2 h", "2d"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 2h"):
        duration_s(text)


def test_a_run_prints_where_its_records_are_on_stdout_and_progress_on_stderr(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(documents=2)
    result = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu")
    assert result.exit_code == 0, result.output
    path, *rest = result.stdout.splitlines()
    assert rest[:3] == ["fp32/1/1: completed", "fp32/2/1: completed", "bf16/1/1: completed"]
    again = "loaded again in a fresh process: the same artefact, 2 of 2 answers equal"
    assert rest[3:5] == [f"fp32 {again}", f"bf16 {again}"]
    assert rest[5] == f"sealed {verify(Path(path)).head_digest}"
    assert "pass 2 of 5: fp32/2/1, reference repeat: completed" in result.stderr
    assert "pass 5 of 5: bf16/1/1~reload, reload check: completed" in result.stderr


def test_one_series_is_run_alone_in_real_workers_and_leaves_the_file_open(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(documents=4, edit=lambda text: f"{text}\nbatches = [2, 4]\n")
    result = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu", "--series", "batch")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1:3] == ["fp32~b2/1/1: completed", "fp32~b4/1/1: completed"]
    assert result.stdout.splitlines()[-1].startswith("open; continue with --resume")
    unknown = invoke("run", trial.protocol, "--out", trial.out, "--series", "weather")
    assert (unknown.exit_code, "'weather' is not one of" in unknown.stderr) == (2, True)
    empty = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu", "--series", "cache")
    assert (empty.exit_code, "no pass of the series cache" in empty.stderr) == (2, True)


def test_the_result_as_json_says_the_same(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(documents=2)
    result = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu", "--variant", "bf16", "--json")
    found = json.loads(result.stdout)
    assert Path(found["path"]).parent == trial.out
    assert (found["head_digest"], found["stopped_by"]) == (None, None)
    ending = {"outcome": "completed", "cause": None, "phase": None, "is_lost": False, "message": None}
    ending |= {"answered": 2, "failed_by": {}}
    assert found["passes"] == [{"label": "bf16/1/1", **ending}]


def test_a_failed_pass_gives_exit_code_5_after_the_other_passes_ran(make_trial: Callable[..., Any]) -> None:
    trial = make_trial({"passes": [{"match": "fp32/1/*", "events": [{"at": "load", "do": "raise"}]}]}, documents=2)
    result = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu")
    assert result.exit_code == 5
    assert "fp32/1/1: failed, load_failure" in result.stdout
    at = result.stderr.splitlines().index("pass 1 of 5: fp32/1/1, reference: failed, load_failure")
    assert result.stderr.splitlines()[at + 1].startswith("    ")
    assert "bf16/1/1: completed" in result.stdout
    assert "sealed" in result.stdout


def test_stop_after_leaves_the_file_open_and_is_no_error(make_trial: Callable[..., Any]) -> None:
    trial = make_trial({"defaults": {"first_token_ms": 300}}, documents=8)
    result = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu", "--stop-after", "2s")
    assert result.exit_code == 0
    path, *_, last = result.stdout.splitlines()
    assert last == "open, stopped after 2 s; continue with --resume"
    assert not verify(Path(path)).is_sealed


def test_a_second_run_beside_an_open_file_says_that_resume_would_continue_it(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(documents=2)
    first = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu", "--variant", "fp32")
    begun = first.stdout.splitlines()[0]
    assert "note:" not in first.stderr
    second = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu")
    assert second.stderr.startswith(f"note: {begun} is an open run of this plan; --resume continues it.")
    assert second.stdout.splitlines()[0] != begun
    resumed = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu", "--resume")
    assert resumed.stdout.splitlines()[0] == begun
    assert "note:" not in resumed.stderr


def test_a_models_folder_that_is_gone_is_refused_before_a_run_file_is_made(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(documents=2)
    text = trial.protocol.read_text().replace('name = "scripted"\nscript = "script.json"', 'name = "transformers"')
    trial.protocol.write_text(text.replace('id = "scripted-model"', 'id = "./gone"'))
    (trial.folder / "gone").mkdir()
    frozen = invoke("freeze", trial.protocol, "--no-tokens")
    assert frozen.exit_code == 0, frozen.output
    (trial.folder / "gone").rmdir()
    result = invoke("run", trial.protocol, "--out", trial.out, "--device", "cpu")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "gone does not exist" in result.stderr
    assert not trial.out.exists()


def test_a_foreseeable_fault_is_a_message_and_an_exit_code(make_trial: Callable[..., Any], tmp_path: Path) -> None:
    trial = make_trial(documents=2)
    unknown = invoke("run", trial.protocol, "--out", trial.out, "--variant", "int4")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert unknown.stderr.startswith("error: no variant is called 'int4'\n    next: name one of: fp32, bf16")
    absent = invoke("run", tmp_path / "absent.toml", "--out", trial.out)
    assert absent.exit_code == 2
    assert "absent.toml" in absent.stderr
    assert "Traceback" not in unknown.stderr + absent.stderr


def test_a_drifted_protocol_is_refused_before_anything_runs(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(documents=2)
    trial.protocol.write_text(trial.protocol.read_text().replace("max_new_tokens = 16", "max_new_tokens = 17"))
    result = invoke("run", trial.protocol, "--out", trial.out)
    assert result.exit_code == 2
    assert "protocol.toml:" in result.stderr
    assert not trial.out.exists()


def test_a_failed_pass_does_not_leave_the_bar_waiting_for_its_answers() -> None:
    with ProgressLines() as progress:
        progress.plan(passes=2, documents=10)
        progress.begin_pass(label="a/1/1", purpose="reference", documents=5)
        progress.answered("d1")
        progress.end_pass(label="a/1/1", ending=Ending("failed", "killed"))
        assert progress._bar.tasks[0].completed == 5


def test_without_a_terminal_a_line_per_quarter_says_that_a_pass_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    with ProgressLines() as progress:
        progress.plan(passes=1, documents=10)
        progress.begin_pass(label="a/1/1", purpose="reference", documents=10)
        for index in range(10):
            progress.answered(f"d{index}")
        progress.end_pass(label="a/1/1", ending=Ending("completed", None))
    lines = capfd.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == [
        "3 of 10 answered", "6 of 10 answered", "9 of 10 answered", "completed",
    ]  # fmt: skip


def test_a_pass_that_fails_says_why_and_what_to_do_and_the_same_once(capfd: pytest.CaptureFixture[str]) -> None:
    fault = DossierError("nothing answers at http://127.0.0.1:9", next_step="start the server")
    with ProgressLines() as progress:
        progress.plan(passes=2, documents=8)
        for label in ("a/1/1", "b/1/1"):
            progress.begin_pass(label=label, purpose="series", documents=4)
            progress.end_pass(label=label, ending=Ending("failed", "connection", message=str(fault)))
    assert capfd.readouterr().err.splitlines() == [
        "pass 1 of 2: a/1/1, series: failed, connection",
        "    nothing answers at http://127.0.0.1:9",
        "        next: start the server",
        "pass 2 of 2: b/1/1, series: failed, connection",
        "    for the same reason as before",
    ]


def test_of_a_long_message_its_first_and_last_lines_are_said_and_the_advice_is_among_them() -> None:
    said = brief("it broke\n" + "\n".join(f"line {number}" for number in range(100)) + "\n    next: mend it")
    assert said.splitlines()[:3] == ["    it broke", "    line 0", "    line 1"]
    assert "91 lines, see the texts file" in said
    assert said.endswith("line 99\n        next: mend it")


def test_where_documents_failed_progress_and_result_count_them_by_cause(capfd: pytest.CaptureFixture[str]) -> None:
    with ProgressLines() as progress:
        progress.plan(passes=1, documents=4)
        progress.begin_pass(label="a/1/1", purpose="series", documents=4)
        for index in range(4):
            progress.answered(f"d{index}", is_failed=True)
        progress.end_pass(label="a/1/1", ending=Ending("completed", None, failed_by={"protocol": 4}))
    lines = [line.rpartition("series: ")[2] for line in capfd.readouterr().err.splitlines()]
    assert lines[0] == "0 of 4 answered, 1 failed"
    assert lines[-1] == "completed, answered 0, failed 4 (protocol)"
    mixed = Ending("completed", None, answered=2, failed_by={"too_long": 1, "timeout": 2})
    assert mixed.words == "completed, answered 2, failed 3 (too_long 1, timeout 2)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_noted_once_and_the_next_one_acts_as_ever(number: signal.Signals) -> None:
    outside = signal.getsignal(number)
    before = signal.default_int_handler  # what runs these tests may ignore a hangup, as nohup does
    signal.signal(number, before)
    try:
        with stopping_on_signals() as received:
            os.kill(os.getpid(), number)
            assert received == [number.name]
            assert signal.getsignal(number) == before
        assert signal.getsignal(number) == before
    finally:
        signal.signal(number, outside)


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping_on_signals() as received:
            os.kill(os.getpid(), signal.SIGHUP)
        assert received == []
    finally:
        signal.signal(signal.SIGHUP, before)


def test_progress_goes_on_when_its_reader_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed terminal or `| head` must not end a measurement."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1) as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stream)
        with ProgressLines() as progress:
            progress.plan(passes=1, documents=1)
            progress.begin_pass(label="a/1/1", purpose="reference", documents=1)
            progress.end_pass(label="a/1/1", ending=Ending("completed", None))
            progress.notice("said to nobody")
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)  # what the stream still holds has somewhere to go


@pytest.mark.parametrize("command", [["check"], ["freeze"], ["run", "--out", "runs"]])
@pytest.mark.parametrize("place", [".", "folder"])
def test_a_folder_instead_of_the_protocol_is_refused_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], place: str
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    result = invoke(*command, place)
    assert result.exit_code in (1, 2)
    assert "[unreadable] this is a folder" in result.output
    assert "protocol.toml" in result.output
