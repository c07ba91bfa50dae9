"""Each kind of broken protocol is refused by the command line, with file, line, value and next step, all at once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from collector.cli import main
from collector.protocol_check import check_protocol, examine

PROTOCOL = """format = 1
name = "receipts"

[task]
kind = "extraction"
prompt = "Read: {document}"
[[task.field]]
name = "date"
type = "date"
[[task.field]]
name = "amount"
type = "money"
[[task.field]]
name = "category"
type = "label"
labels = ["travel", "meals"]

[workload]
documents = "documents.jsonl"
permission = "written for this test, see LICENSE"
review = "read by the author on 2026-01-01"

[generation]
max_new_tokens = 10

[gates]
max_lost_points = "5"
[[gates.subset]]
subset = "critical"
min_accepted_percent = "60"

[model]
id = "none"

[engine]
name = "scripted"
script = "script.json"

[[variant]]
name = "fp32"
[[variant]]
name = "bf16"
dtype = "bfloat16"

[plan]
reference = "fp32"
"""

Document = dict[str, Any]


def document(name: str, role: str, **changes: object) -> Document:
    expected = {"date": "2026-04-03", "amount": "42.10", "category": "travel"}
    return {"id": name, "role": role, "text": f"text of {name}", "expected": expected, **changes}


@dataclass
class Trial:
    """A protocol of four documents that has nothing to refuse, to be broken in one place."""

    folder: Path
    protocol: str = PROTOCOL
    documents: list[Document | bytes] = field(default_factory=list)
    script: dict[str, object] = field(default_factory=lambda: {"script_format": 1, "context_limit_tokens": 100})

    def __post_init__(self) -> None:
        self.documents = [
            document("dev-1", "development"),
            document("val-1", "validation", subsets=["critical"]),
            document("val-2", "validation", expected={"date": None, "amount": "1.234,50 EUR", "category": "MEALS"}),
            document("test-1", "test", subsets=["critical"]),
        ]

    def replace(self, old: str, new: str) -> None:
        assert self.protocol.count(old) == 1, old
        self.protocol = self.protocol.replace(old, new)

    def change(self, index: int, **changes: object) -> None:
        line = self.documents[index]
        assert isinstance(line, dict)
        self.documents[index] = {**line, **changes}

    def expect(self, index: int, **values: object) -> None:
        line = self.documents[index]
        assert isinstance(line, dict)
        self.change(index, expected={**line["expected"], **values})

    def write(self) -> Path:
        lines = [
            line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode()
            for line in self.documents
        ]
        (self.folder / "documents.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        (self.folder / "script.json").write_text(json.dumps(self.script))
        path = self.folder / "protocol.toml"
        path.write_text(self.protocol, encoding="utf-8")
        return path


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


Breaking = Callable[[Trial], object]

BROKEN: dict[str, tuple[Breaking, str, int, str, str]] = {
    # what is broken: (how, file, line, rule, what the message says)
    "duplicate id": (lambda t: t.change(2, id="val-1"), "documents.jsonl", 3, "duplicate-id", "line 2"),
    "same text under two ids": (
        lambda t: t.change(2, text="text of val-1"),
        "documents.jsonl",
        3,
        "same-text",
        "'val-2'",
    ),
    "same text but for blanks and composition": (
        lambda t: (t.change(1, text="Hóa  đơn\n1"), t.change(2, text="Ho\u0301a đơn 1 ")),
        "documents.jsonl",
        3,
        "same-text",
        "'val-1' (line 2)",
    ),
    "overlap between roles by id": (
        lambda t: t.change(3, id="val-1"),
        "documents.jsonl",
        4,
        "role-overlap",
        "validation",
    ),
    "overlap between roles by content": (
        lambda t: t.change(3, text="text  of val-1"),
        "documents.jsonl",
        4,
        "role-overlap",
        "test here and validation",
    ),
    "a worked example that is measured": (
        lambda t: t.replace("[workload]", '[[task.example]]\ndocument = "text of  val-1"\nanswer = "{}"\n\n[workload]'),
        "documents.jsonl",
        2,
        "role-overlap",
        "worked example 1",
    ),
    "empty expected value": (lambda t: t.expect(1, date=" "), "documents.jsonl", 2, "expected-empty", "'date'"),
    "no expected value for a field": (
        lambda t: t.change(1, expected={"date": None, "amount": None}),
        "documents.jsonl",
        2,
        "expected-missing",
        "'category'",
    ),
    "expected value for no field": (
        lambda t: t.expect(1, amout="1"),
        "documents.jsonl",
        2,
        "expected-unknown-field",
        "'amout'",
    ),
    "expected value of no date": (lambda t: t.expect(1, date="soon"), "documents.jsonl", 2, "expected-value", '"soon"'),
    "expected value of no amount": (
        lambda t: t.expect(1, amount="1.2.3"),
        "documents.jsonl",
        2,
        "expected-value",
        '"1.2.3"',
    ),
    "expected label that is none": (
        lambda t: t.expect(1, category="meal"),
        "documents.jsonl",
        2,
        "expected-label",
        '"meal"',
    ),
    "conflicting expected values": (
        lambda t: (t.change(2, text="text of val-1"), t.expect(2, date="2026-04-04")),
        "documents.jsonl",
        3,
        "conflicting-expected",
        "2026-04-04",
    ),
    "missing review statement": (
        lambda t: t.replace('review = "read by the author on 2026-01-01"\n', ""),
        "protocol.toml",
        18,
        "missing-review",
        "`review`",
    ),
    "empty review statement": (
        lambda t: t.replace("read by the author on 2026-01-01", ""),
        "protocol.toml",
        21,
        "missing-review",
        '""',
    ),
    "review statement to be written": (
        lambda t: t.replace("read by the author on 2026-01-01", "TODO"),
        "protocol.toml",
        21,
        "missing-review",
        '"TODO"',
    ),
    "missing permission": (
        lambda t: t.replace('permission = "written for this test, see LICENSE"\n', ""),
        "protocol.toml",
        18,
        "missing-permission",
        "`permission`",
    ),
    "missing reference": (
        lambda t: t.replace('reference = "fp32"', ""),
        "protocol.toml",
        45,
        "missing-reference",
        "`reference`",
    ),
    "reference that is no variant": (
        lambda t: t.replace('reference = "fp32"', 'reference = "fp23"'),
        "protocol.toml",
        46,
        "missing-reference",
        "'fp23'",
    ),
    "unknown role": (lambda t: t.change(1, role="train"), "documents.jsonl", 2, "wrong-type", '"train"'),
    "unknown field of the protocol": (
        lambda t: t.replace("max_new_tokens = 10", "max_new_tokens = 10\nmax_token = 5"),
        "protocol.toml",
        25,
        "unknown-field",
        "`generation.max_token`",
    ),
    "unknown field of a document": (lambda t: t.change(1, lang="vi"), "documents.jsonl", 2, "unknown-field", "`lang`"),
    "wrong type in the protocol": (
        lambda t: t.replace("max_new_tokens = 10", 'max_new_tokens = "10"'),
        "protocol.toml",
        24,
        "wrong-type",
        'found "10"',
    ),
    "wrong type in a document": (lambda t: t.change(1, is_hard="no"), "documents.jsonl", 2, "wrong-type", 'found "no"'),
    "wrong encoding of documents": (
        lambda t: t.documents.insert(1, b'{"id": "caf\xe9"}'),
        "documents.jsonl",
        2,
        "encoding",
        "0xe9",
    ),
    "duplicate key in a document": (
        lambda t: t.documents.insert(1, b'{"id": "a", "id": "b"}'),
        "documents.jsonl",
        2,
        "duplicate-key",
        '"id"',
    ),
    "empty subset": (
        lambda t: t.replace('subset = "critical"', 'subset = "kritical"'),
        "protocol.toml",
        29,
        "empty-subset",
        "'kritical'",
    ),
    "subset without a test document": (
        lambda t: t.change(3, subsets=[]),
        "protocol.toml",
        29,
        "empty-subset",
        "no test",
    ),
    "no validation documents": (
        lambda t: (t.change(1, role="calibration"), t.change(2, role="calibration")),
        "protocol.toml",
        19,
        "empty-subset",
        "none of the 4 documents",
    ),
    "threshold that no outcome could meet": (
        lambda t: t.replace('min_accepted_percent = "60"', 'min_accepted_percent = "100.5"'),
        "protocol.toml",
        30,
        "threshold",
        "100.5",
    ),
    "threshold that no outcome could fail": (
        lambda t: t.replace('max_lost_points = "5"', 'max_lost_points = "101"'),
        "protocol.toml",
        27,
        "threshold",
        "101",
    ),
    "negative threshold": (
        lambda t: t.replace('max_lost_points = "5"', 'max_lost_points = "-5"'),
        "protocol.toml",
        27,
        "wrong-type",
        '"-5"',
    ),
    "no acceptance rule": (
        lambda t: t.replace(
            'max_lost_points = "5"\n[[gates.subset]]\nsubset = "critical"\nmin_accepted_percent = "60"\n', ""
        ),
        "protocol.toml",
        26,
        "no-gate",
        "every configuration would pass",
    ),
    "prompt that does not fit with its output limit": (
        lambda t: t.change(2, text="word " * 90),
        "documents.jsonl",
        3,
        "prompt-too-long",
        "91 tokens and 10 output tokens",
    ),
    "output limit as large as the context": (
        lambda t: t.replace("max_new_tokens = 10", "max_new_tokens = 4096\ncontext_limit_tokens = 4096"),
        "protocol.toml",
        24,
        "prompt-too-long",
        "4096 output tokens leave no room for a prompt in a context of 4096",
    ),
    "prompt without a place for the document": (
        lambda t: t.replace("Read: {document}", "Read:"),
        "protocol.toml",
        6,
        "prompt-placeholder",
        "0 times",
    ),
    "two fields of one name": (
        lambda t: t.replace('name = "amount"', 'name = "date"'),
        "protocol.toml",
        11,
        "duplicate-name",
        "'date'",
    ),
    "two variants of one name": (
        lambda t: t.replace('name = "bf16"', 'name = "fp32"'),
        "protocol.toml",
        42,
        "duplicate-name",
        "'fp32'",
    ),
    "a label given twice": (
        lambda t: t.replace('["travel", "meals"]', '["travel", "meals", "Meals"]'),
        "protocol.toml",
        16,
        "labels",
        "'Meals'",
    ),
    "batches that do not grow": (
        lambda t: t.replace('reference = "fp32"', 'reference = "fp32"\nbatches = [4, 2, 4]'),
        "protocol.toml",
        47,
        "batches",
        "`plan.batches` is [4, 2, 4]",
    ),
    "a batch of one": (
        lambda t: t.replace('reference = "fp32"', 'reference = "fp32"\nbatches = [1, 2]'),
        "protocol.toml",
        47,
        "wrong-type",
        "`plan.batches[0]`: expected `int` >= 2, found 1",
    ),
    "no such documents file": (
        lambda t: t.replace("documents.jsonl", "other.jsonl"),
        "protocol.toml",
        19,
        "unreadable",
        "no such file",
    ),
    "no such script": (lambda t: t.replace("script.json", "other.json"), "protocol.toml", 37, "script", "'other.json'"),
    "broken TOML": (
        lambda t: t.replace('name = "receipts"', "name = receipts"),
        "protocol.toml",
        2,
        "toml-syntax",
        "TOML",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_protocol_is_refused_with_file_line_value_and_next_step(kind: str, trial: Trial) -> None:
    breaking, file, line, rule, said = BROKEN[kind]
    breaking(trial)
    result = CliRunner().invoke(main, ["check", str(trial.write())])
    assert result.exit_code == 1
    assert result.exception is None or isinstance(result.exception, SystemExit)
    head, next_step = re.split(r"\n    next: ", _finding(result.stdout, file, line, rule), maxsplit=1)
    assert said in head
    assert next_step.strip()


def _finding(stdout: str, file: str, line: int, rule: str) -> str:
    findings = re.findall(r"^\S.*\n    next: .*$", stdout, re.MULTILINE)
    matching = [one for one in findings if re.match(rf"\S*/{re.escape(file)}:{line}: \[{rule}\]", one)]
    assert len(matching) == 1, stdout
    return str(matching[0])


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_protocol_is_not_frozen(kind: str, trial: Trial) -> None:
    BROKEN[kind][0](trial)
    path = trial.write()
    result = CliRunner().invoke(main, ["freeze", str(path)])
    assert result.exit_code == 2
    assert f"[{BROKEN[kind][3]}]" in result.stderr
    assert sorted(one.name for one in trial.folder.iterdir()) == ["documents.jsonl", "protocol.toml", "script.json"]


def test_a_good_protocol_has_nothing_to_refuse_and_its_lengths_are_told(trial: Trial) -> None:
    result = CliRunner().invoke(main, ["check", str(trial.write())])
    assert result.exit_code == 0, result.output
    assert "documents: 1 development, 1 test, 2 validation" in result.stdout
    assert "longest 4 tokens + 10 output tokens; context 100 tokens" in result.stdout
    assert "not frozen yet" in result.stdout


def test_a_drifted_lock_is_refused(trial: Trial) -> None:
    path = trial.write()
    assert CliRunner().invoke(main, ["freeze", str(path)]).exit_code == 0
    assert "lock: agrees" in CliRunner().invoke(main, ["check", str(path)]).stdout
    trial.replace('max_lost_points = "5"', 'max_lost_points = "6"')
    trial.write()
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 1
    finding = _finding(result.stdout, "protocol.toml", 27, "drift")
    assert '`gates.max_lost_points` was "5" when frozen and is "6" now' in finding


def test_everything_wrong_in_both_files_is_reported_in_one_go(trial: Trial) -> None:
    for kind in ("missing review statement", "unknown field of the protocol", "negative threshold", "duplicate id"):
        BROKEN[kind][0](trial)
    trial.change(0, role="train")
    rules = [finding.rule for finding in check_protocol(trial.write())]
    assert sorted(rules) == ["duplicate-id", "missing-review", "unknown-field", "wrong-type", "wrong-type"]


def test_c17_each_document_that_does_not_fit_is_named_with_its_token_count(trial: Trial) -> None:
    trial.script = {"script_format": 1, "context_limit_tokens": 512}
    trial.replace("max_new_tokens = 10", "max_new_tokens = 64")
    for index, count in enumerate((300, 511, 513, 4000)):
        trial.change(index, text=" ".join(f"w{index}" for _ in range(count - 1)))
    findings = check_protocol(trial.write())
    assert [(one.line, one.rule) for one in findings] == [(line, "prompt-too-long") for line in (2, 3, 4)]
    assert [re.findall(r"\d+ tokens", one.message)[0] for one in findings] == [
        "511 tokens",
        "513 tokens",
        "4000 tokens",
    ]


def test_c18_the_protocols_own_context_limit_counts_where_it_is_lower(trial: Trial) -> None:
    trial.replace("max_new_tokens = 10", "max_new_tokens = 10\ncontext_limit_tokens = 13")
    (first, *_) = check_protocol(trial.write())
    assert "a prompt of 4 tokens and 10 output tokens do not fit into a context of 13 tokens" in first.message
    report = examine(trial.write(), with_tokenizer=False)
    assert (report.findings, report.longest_prompt_tokens) == ([], None)


def test_a_tokenizer_that_is_not_there_is_a_finding_and_no_crash(trial: Trial) -> None:
    trial.replace('name = "scripted"\nscript = "script.json"', 'name = "transformers"')
    trial.replace('id = "none"', 'id = "./no-tokenizer-in-it"')
    (trial.folder / "no-tokenizer-in-it").mkdir()
    (finding,) = check_protocol(trial.write())
    assert (finding.rule, finding.line) == ("tokenizer", 33)


@pytest.mark.parametrize(
    ("model_id", "step"),
    [
        ("models/tiny.Q4_1.gguf", 'gguf_file = "tiny.Q4_1.gguf"'),
        ("./no-such-folder", "it starts at the protocol's folder"),
        ("~/no-such-folder", "it starts at the protocol's folder"),
        ("/no/such/folder", "it starts at the protocol's folder"),
        ("../cache/no/such", "it starts at the protocol's folder"),
        ("a/b/c", "it starts at the protocol's folder"),
        ("C:\\\\xyz\\\\w", "it starts at the protocol's folder"),
        ("models/smal", "did you mean 'small' in the same folder?"),
    ],
)
def test_a_models_folder_that_is_not_there_is_refused_before_any_lookup(trial: Trial, model_id: str, step: str) -> None:
    (trial.folder / "models" / "small").mkdir(parents=True)
    trial.replace('name = "scripted"\nscript = "script.json"', 'name = "transformers"')
    trial.replace('id = "none"', f'id = "{model_id}"')
    (finding,) = check_protocol(trial.write(), with_tokenizer=False)
    assert (finding.rule, finding.line) == ("no-such-folder", 33)
    assert "there is no such folder" in finding.message
    assert step in finding.next_step


@pytest.mark.parametrize("model_id", ["org/model", "gpt2", "models/small"])
def test_hub_ids_and_folders_that_are_there_are_not_refused(trial: Trial, model_id: str) -> None:
    (trial.folder / "models" / "small").mkdir(parents=True)
    trial.replace('name = "scripted"\nscript = "script.json"', 'name = "transformers"')
    trial.replace('id = "none"', f'id = "{model_id}"')
    assert check_protocol(trial.write(), with_tokenizer=False) == []


def test_an_output_limit_below_the_shortest_expected_answer_is_refused(trial: Trial) -> None:
    """The scripted engine counts words, and the shortest answer of all documents has two: `1.234,50 EUR`."""
    for index in (0, 1, 3):
        trial.expect(index, amount="1 234,50 EUR")
    trial.replace("max_new_tokens = 10", "max_new_tokens = 2")
    assert check_protocol(trial.write()) == []
    trial.replace("max_new_tokens = 2", "max_new_tokens = 1")
    (finding,) = check_protocol(trial.write())
    assert (finding.rule, finding.line) == ("output-limit", 24)
    assert "is 1, and the shortest expected answer has 2" in finding.message
    assert "1.234,50 EUR" in finding.message
    assert "(3 tokens)" in finding.next_step
    assert check_protocol(trial.write(), with_tokenizer=False) == []


def test_a_protocol_with_a_byte_order_mark_or_absent_is_refused_without_a_traceback(trial: Trial) -> None:
    path = trial.write()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (finding,) = check_protocol(path)
    assert (finding.rule, finding.line) == ("encoding", 1)
    (finding,) = check_protocol(path.with_name("absent.toml"))
    assert finding.rule == "unreadable"


def test_the_installed_command_refuses_too(trial: Trial) -> None:
    trial.change(2, id="val-1")
    done = subprocess.run(
        [sys.executable, "-m", "collector.cli", "check", str(trial.write())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "documents.jsonl:3: [duplicate-id]" in done.stdout
    assert "Traceback" not in done.stderr
