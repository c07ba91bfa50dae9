"""A protocol that ranks by embedding may not ask for what nothing generates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collector.init import init_folder
from collector.protocol_check import check_protocol, examine

ONE_WORD_A_TOKEN = {"script_format": 1}


def findings_after(folder: Path, *edits: tuple[str, str]) -> list[tuple[str, int | None, str]]:
    """The ranking starter with these edits: (rule, line, message) of each finding."""
    init_folder(folder, kind="ranking", device="d")
    path = folder / "protocol.toml"
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")
    return [(each.rule, each.line, each.message) for each in check_protocol(path, with_tokenizer=False)]


def test_the_starter_of_rankings_is_refused_nothing(tmp_path: Path) -> None:
    assert findings_after(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('prompt = "{document}"', 'prompt = "{document}"\nsystem = "Rank."', "an embedding has no system text"),
        ("max_new_tokens = 1 ", "max_new_tokens = 32 ", "is 32, and an embedding generates no token"),
        ("max_new_tokens = 1 ", 'stop_after = ["x"]\nmax_new_tokens = 1 ', "names texts, and an embedding generates"),
        ("[engine]", 'gguf_file = "m.gguf"\n\n[engine]', "the model is a GGUF file"),
        ('name = "bf16"', 'name = "bf16"\ncache = "static"', "asks for a static cache, and an embedding keeps none"),
        (
            "[task.ranking]",
            '[[task.example]]\ndocument = "q"\nanswer = \'["A"]\'\ncandidates = { A = "a" }\n\n[task.ranking]',
            "1 worked example(s), and an embedding takes none",
        ),
    ],
)
def test_what_an_embedding_would_leave_out_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    found = [each for each in findings_after(tmp_path, (old, new)) if each[0] == "answers-by"]
    assert len(found) == 1
    (_, line, message), text = found[0], (tmp_path / "protocol.toml").read_text(encoding="utf-8")
    assert said in message
    assert line is not None
    changed = text.split(new)[0].count("\n") + 1
    assert changed <= line <= changed + new.count("\n")


def test_gguf_blocks_have_no_meaning_for_an_embedding(tmp_path: Path) -> None:
    rules = findings_after(tmp_path, ('name = "bf16"', 'name = "bf16"\nquantization = "gguf"'))
    assert [rule for rule, _, _ in rules] == ["quantization"]


def test_only_candidates_can_be_ranked(tmp_path: Path) -> None:
    init_folder(tmp_path, kind="answers", device="d")
    path = tmp_path / "protocol.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('name = "transformers"', 'name = "transformers"\nanswers_by = "embedding"'), "utf-8")
    messages = [each.message for each in check_protocol(path, with_tokenizer=False) if each.rule == "answers-by"]
    assert "the engine answers by embedding, which ranks candidates, and the task is of kind answers" in messages


def test_c17_a_text_that_cannot_be_embedded_at_once_is_named_with_its_tokens(tmp_path: Path) -> None:
    """By itself, not the sum of all texts: that one may exceed what can be embedded at once."""
    init_folder(tmp_path, kind="ranking", device="d")
    path = tmp_path / "protocol.toml"
    text = path.read_text(encoding="utf-8").replace('name = "transformers"', 'name = "scripted"\nscript = "s.json"')
    path.write_text(text.replace("context_limit_tokens = 256", "context_limit_tokens = 30"), "utf-8")
    (tmp_path / "s.json").write_text(json.dumps(ONE_WORD_A_TOKEN))
    report = examine(path)
    assert report.findings == []
    assert report.longest_prompt_tokens is not None
    assert report.longest_prompt_tokens <= 30
    documents = tmp_path / "documents.jsonl"
    first, *others = documents.read_text(encoding="utf-8").splitlines()
    line = json.loads(first)
    line["candidates"]["B"] = "word " * 31
    documents.write_text("\n".join([json.dumps(line), *others]) + "\n", encoding="utf-8")
    (finding,) = examine(path).findings
    assert finding.rule == "prompt-too-long"
    assert finding.message == "document 'dev-01': candidate 'B' has 31 tokens, and 30 can be embedded at once"
    assert finding.line == 1
