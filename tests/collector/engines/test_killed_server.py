"""A started server that is killed in the middle of a pass: failures with causes, partial texts, a run to resume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from command_line import run

from collector import cli
from collector.contract.records import Failure, PassEnd, Record, Request, Seal, ServerClaim

pytestmark = pytest.mark.slow

STUB = Path(__file__).parent.parent.parent / "helpers" / "stub_server.py"
TOKENS = 16
FAILED = 5
"""Exit code of a run with a failed pass."""
DOCUMENTS = 6
PROTOCOL = """format = 1
name = "a server that is killed"
[task]
kind = "answers"
prompt = "{{document}}"
[workload]
documents = "documents.jsonl"
permission = "written for this test"
review = "by its author, by construction"
[generation]
max_new_tokens = 32
[gates]
max_lost_points = "50"
[model]
id = "{model}"
[engine]
name = "openai"
[engine.server]
name = "stub"
start = ["{{python}}", "{stub}", "--port", "{{port}}", "--tokens", "{tokens}", "--gap-ms", "25"]
model = "stub"
stop_s = 2
[[variant]]
name = "served"
[plan]
reference = "served"
reference_runs = 2
warmup_requests = 1
reload_check = false
"""


@pytest.fixture
def trial(tmp_path: Path, models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A frozen trial behind a stub that takes 0.4 s for an answer."""
    lines = [
        {"id": f"{role[0]}{number}", "role": role, "text": f"question {role} {number}", "answers": ["t0"]}
        for role, count in (("validation", DOCUMENTS), ("test", 1))
        for number in range(count)
    ]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "protocol.toml").write_text(
        PROTOCOL.format(model=models_dir / "llama", stub=STUB, tokens=TOKENS)
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    result = run(cli.main, "freeze", "protocol.toml")
    assert result.exit_code == 0, result.output
    return tmp_path


def stubs() -> list[psutil.Process]:
    """Return the started servers of this trial that are alive, whoever their parent is."""
    found = []
    for each in psutil.process_iter():
        try:
            if str(STUB) in each.cmdline() and each.cwd() == os.getcwd() and each.status() != psutil.STATUS_ZOMBIE:
                found.append(each)
        except psutil.Error:
            continue
    return found


def run_file(runs: Path) -> Path | None:
    found = [path for path in runs.glob("*.jsonl") if ".texts" not in path.name]
    assert len(found) <= 1
    return found[0] if found else None


def wait_until(is_so: Callable[[str], bool], runs: Path, collector: subprocess.Popen[str]) -> None:
    """Wait until the run file's text is so."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        path = run_file(runs)
        if path is not None and is_so(path.read_text()):
            return
        if collector.poll() is not None:
            break
        time.sleep(0.01)
    raise AssertionError(f"it did not come to that: {collector.stderr.read() if collector.stderr else ''}")


def measured(text: str) -> int:
    return sum('"kind":"request"' in line and '"phase":"measure"' in line for line in text.splitlines())


def test_killing_the_server_leaves_failures_with_causes_partial_texts_and_a_run_to_resume(
    trial: Path, records_of: Callable[[Path], list[Record]], texts_of: Callable[[Path], dict[str, str]]
) -> None:
    """The server is killed in the first pass, the collector in the second, and the run is resumed."""
    runs = trial / "runs"
    command = "from collector.cli import main; main()"
    options = ["--out", "runs", "--device", "cpu", "--allow-commands"]
    collector = subprocess.Popen(
        [sys.executable, "-c", command, "run", "protocol.toml", *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_until(lambda text: measured(text) >= 2, runs, collector)
        time.sleep(0.15)  # into the next answer
        (server,) = stubs()
        server.kill()
        wait_until(lambda text: '"kind":"pass_end"' in text, runs, collector)
        wait_until(lambda text: text.count('"kind":"pass_begin"') == 2, runs, collector)
    finally:
        collector.kill()
        collector.communicate()
    deadline = time.monotonic() + 20
    while stubs() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not stubs(), "no server outlives its collector"

    path = run_file(runs)
    assert path is not None
    records, texts = records_of(path), texts_of(path)
    requests = [each for each in records if isinstance(each, Request) and each.phase == "measure"]
    outcomes = Counter(each.request_outcome for each in requests)
    assert outcomes["completed"] >= 2
    assert outcomes["completed"] + outcomes["failed"] == len(requests) == DOCUMENTS, "every document has its outcome"
    failed = [each for each in requests if each.request_outcome == "failed"]
    assert {each.failure_cause for each in failed} == {"connection"}
    (partial,) = [each for each in failed if each.chunk_count]
    text = texts[partial.answer_hmac or ""]
    assert text.startswith("t0 t1")
    assert f"t{TOKENS - 1}" not in text, "what had come of the answer that was under way"
    (of_pass,) = [each for each in records if isinstance(each, Failure) and each.failure_scope == "pass"]
    assert (of_pass.failure_cause, of_pass.phase) == ("killed", "measure")
    assert "ended with signal SIGKILL" in texts[of_pass.message_hmac or ""]

    again = run(cli.main, "run", "protocol.toml", *options, "--resume")
    assert again.exit_code in (0, FAILED), again.output
    after = records_of(path)
    assert isinstance(after[-1], Seal)
    ends = [(each.pass_id, each.pass_outcome) for each in after if isinstance(each, PassEnd)]
    assert ends[0][1] == "failed", "it stays on record, whatever is measured again"
    assert [outcome for _, outcome in ends[1:]] == ["completed", "completed"], "both passes, with a server each"
    complete = [each for each in after if isinstance(each, Request) and each.pass_id == ends[-1][0]]
    assert Counter(each.request_outcome for each in complete if each.phase == "measure") == {"completed": DOCUMENTS}
    claims = [each for each in after if isinstance(each, ServerClaim)]
    assert [each.pass_id for each in claims][-1] == ends[-1][0], "the server was started once more"
    assert not stubs()
