"""From `collector init --kind` to a page, for rankings by embedding and for known answers, played by the script."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import done

from collector import cli as collector_cli
from collector.starter import starter_documents
from reporter import cli as reporter_cli

FIRST_QUERY: dict[str, Any] = next(
    line for line in map(json.loads, starter_documents("ranking").splitlines()) if line["id"] == "val-01"
)
BEST = max(FIRST_QUERY["relevance"], key=FIRST_QUERY["relevance"].__getitem__)
OTHERS = [name for name in FIRST_QUERY["candidates"] if name != BEST]
SECOND = [OTHERS[0], BEST, *OTHERS[1:]]
"""An order of val-01's candidates with the best one on the second place."""
CUT = "val-03"
"""Its answer names no candidate, so it has no value."""


class Trial(NamedTuple):
    """What the two commands left: the dossier as data, and its page as text."""

    folder: Path
    dossier: dict[str, Any]
    page: str

    def cell(self, table: str, row_key_end: str, column: str) -> dict[str, Any]:
        """The figure of the only row whose key ends so."""
        (row,) = [row for row in self.rows(table) if row["key"].endswith(row_key_end)]
        found: dict[str, Any] = self.dossier["figures"][row["cells"][column]]
        return found

    def rows(self, table: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.dossier["tables"][table]["rows"]
        return found


def trial(folder: Path, kind: str, script: dict[str, Any]) -> Trial:
    """The starter of this kind, with the scripted engine and nothing else changed."""
    place = folder / "trial"
    done(collector_cli.main, "init", place, "--kind", kind)
    text = (place / "protocol.toml").read_text(encoding="utf-8")
    text = text.replace('name = "transformers"', 'name = "scripted"\nscript = "script.json"')
    (place / "protocol.toml").write_text(text, encoding="utf-8")
    (place / "script.json").write_text(json.dumps({"script_format": 1, "answers_from": "documents.jsonl"} | script))
    protocol, runs, campaign = place / "protocol.toml", place / "runs", place / "campaign.toml"
    assert "nothing to refuse" in done(collector_cli.main, "check", protocol)
    done(collector_cli.main, "freeze", protocol)
    assert "sealed" in done(collector_cli.main, "run", protocol, "--out", runs)
    assert done(reporter_cli.main, "check", runs)
    dossier = json.loads(done(reporter_cli.main, "summary", runs, "--campaign", campaign, "--json"))
    done(reporter_cli.main, "html", runs, "--campaign", campaign, "-o", place / "dossier.html")
    html = (place / "dossier.html").read_text(encoding="utf-8")
    text = " ".join(re.sub(r"<style.*?</style>|<[^>]+>", " ", html, flags=re.S).split())
    return Trial(place, dossier, re.sub(r" (?=[.,:;])", "", text))


def queries(place: Path) -> dict[str, dict[str, Any]]:
    lines = (place / "documents.jsonl").read_text(encoding="utf-8").splitlines()
    found = {line["id"]: line for line in map(json.loads, lines) if line["role"] == "validation"}
    assert len(found) == 40
    return found


@pytest.fixture(scope="module")
def ranking(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Every query in the best order but two: of one the best candidate stands second, one is not answered by bf16."""
    return trial(
        tmp_path_factory.mktemp("ranking"), "ranking",
        {
            "defaults": {"first_token_ms": 2.0},
            "documents": {"val-01": {"text": json.dumps(SECOND)}},
            "passes": [{"match": "bf16/*", "documents": {CUT: {"text": "none of them helps"}}}],
        },
    )  # fmt: skip


def test_a_ranking_is_accepted_by_its_value_and_the_page_says_by_which_rule(ranking: Trial) -> None:
    assert "Ranking of candidates by embedding, 40 validation queries." in ranking.page
    assert "A ranking is accepted only when its nDCG over the first 5 places is at least 0.8." in ranking.page
    accepted = {row["labels"]["label"]: row["cells"]["accepted_documents"] for row in ranking.rows("quality")}
    values = {label: ranking.dossier["figures"][cell]["value"] for label, cell in accepted.items()}
    assert values == {"fp32": 39, "bf16": 38}
    for word in ("nDCG", "MRR", "recall", "The two ends of the scale", "By group"):
        assert word in ranking.page
    assert "Fields right" not in ranking.page
    assert "required field" not in ranking.page


def test_values_are_those_computed_again_from_the_grades(ranking: Trial) -> None:
    grades = [FIRST_QUERY["relevance"].get(name, 0) for name in SECOND]
    best = sorted(grades, reverse=True)

    def gain(order: list[int]) -> float:
        return sum(grade / math.log2(place + 1) for place, grade in enumerate(order[:5], start=1))

    value = gain(grades) / gain(best)
    assert 0 < value < 0.8
    by_label = {row["labels"]["label"]: row["key"] for row in ranking.rows("graded")}
    mean = ranking.cell("graded", by_label["fp32"], "mean_value")
    assert mean["value"] == pytest.approx((39 + value) / 40)
    assert mean["n"] == 40
    assert mean["interval"]["high"] <= 1
    assert ranking.cell("graded", by_label["fp32"], "worst_value")["value"] == pytest.approx(value)
    assert ranking.cell("graded", by_label["fp32"], "median_value")["value"] == 1
    assert ranking.cell("graded", by_label["fp32"], "perfect_documents")["value"] == 39
    without = ranking.cell("graded", by_label["bf16"], "mean_value")
    assert (without["n"], without["value"]) == (39, pytest.approx((38 + value) / 39)), "no value is not 0"
    assert ranking.cell("graded", by_label["bf16"], "valued_count")["value"] == 39
    assert ranking.cell("graded", by_label["bf16"], "document_count")["value"] == 40


def test_an_embedding_has_no_first_token_anywhere_and_its_tokens_are_those_embedded(ranking: Trial) -> None:
    assert {row["labels"]["metric"] for row in ranking.rows("latency")} == {"e2e_s"}
    whole = [row for row in ranking.rows("latency") if row["labels"]["length_class"] == "all"]
    for row in whole:
        median = ranking.dossier["figures"][row["cells"]["p50_s"]]
        assert median["value"] >= 0.002
        assert median["n"] == 40
    words = sum(
        len(text.split())
        for query in queries(ranking.folder).values()
        for text in [query["text"], *query["candidates"].values()]
    )
    for row in ranking.rows("durations"):
        figures = {name: ranking.dossier["figures"][cell] for name, cell in row["cells"].items()}
        assert figures["embedded_tokens"]["value"] == words
        assert figures["output_tokens"]["value"] is None
        assert figures["output_tokens"]["missing_reason"] == "not_applicable"
        assert figures["output_tokens_per_s"]["missing_reason"] == "not_applicable"
    for words_of_generation in ("first token, all documents", "time per further token", "output rate"):
        assert words_of_generation not in ranking.page
    assert "embedding rate" in ranking.page


def test_records_say_that_token_stamps_do_not_apply_and_hold_the_tokens_embedded(ranking: Trial) -> None:
    (path,) = [path for path in (ranking.folder / "runs").glob("*.jsonl") if ".texts" not in path.name]
    requests = [line for line in map(json.loads, path.read_text("utf-8").splitlines()) if line["kind"] == "request"]
    assert requests
    for line in requests:
        for name in ("first_token_ns", "last_token_ns", "output_tokens", "gap_max_ns"):
            assert line[name] is None
            assert line["missing"][name] == "not_applicable"
        assert line["finish_reason"] == "embedded"
        assert line["prompt_tokens"] > 50
        assert line["prompt_token_hmac"]


def test_known_answers_are_shown_with_their_own_words(tmp_path: Path) -> None:
    found = trial(tmp_path, "answers", {"passes": [{"match": "bf16/*", "documents": {"val-01": {"text": "12"}}}]})
    assert "Known answers, 14 validation questions." in found.page
    assert "An answer is accepted only when it is one of the known ones" in found.page
    assert "within the tolerance" in found.page
    assert "Values by which" not in found.page
    assert found.rows("graded") == []
    accepted = {row["labels"]["label"]: row["cells"]["accepted_documents"] for row in found.rows("quality")}
    assert {label: found.dossier["figures"][cell]["value"] for label, cell in accepted.items()} == {
        "fp32": 14, "bf16": 13,
    }  # fmt: skip
    assert "time to first token" in found.page
