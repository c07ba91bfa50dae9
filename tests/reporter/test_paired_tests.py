"""What pairs of documents show: within chance or a repeat's noise it is no difference; few documents decide little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.contract import protocol as p
from reporter.book import Book
from reporter.dossier import Dossier, Row
from reporter.paired_tests import caution_few_documents, margin_caveat

Kit = Any
CPU = "example-cpu-2-cores~b1~c1"
FP32, BF16 = f"fp32~{CPU}", f"bf16~{CPU}"


def row(found: Dossier, table: str, key: str) -> Row:
    return next(r for r in found.tables[table].rows if r.key == key)


def value(found: Dossier, table: str, key: str, column: str) -> Any:
    return found.figures[row(found, table, key).cells[column]].value


def book_of(found: Dossier) -> Book:
    return Book(found.figures, found.tables)


def wrong(*indexes: int) -> dict[int, str]:
    return dict.fromkeys(indexes, "wrong")


@pytest.fixture(scope="module")
def many(decide: Any) -> Dossier:
    """200 documents, 8 templates; every repeat of the reference changes three; variants lose 3, 30 and gain none."""

    def write(kit: Kit, runs: Path) -> object:
        reference = kit.variant(outcomes=wrong(0, 1), changed_in_repeat=frozenset({10, 90, 150}))
        close = kit.variant(name="close", dtype="bfloat16", outcomes=wrong(0, 1, 20, 21, 22))
        far = kit.variant(name="far", dtype="bfloat16", outcomes=wrong(0, *range(40, 70)))
        gates = p.Gates(
            max_lost_points="5", subsets=[p.SubsetGate(subset="critical", min_accepted_percent="60")]
        )  # fmt: skip
        return kit(runs, documents=200, critical=60, variants=(reference, close, far), gates=gates)

    found: Dossier = decide("many", None, write=write)
    return found


def test_c02_a_difference_within_what_repeats_change_is_worded_as_no_difference_shown(
    many: Dossier, said: Callable[..., str]
) -> None:
    assert value(many, "noise", f"{FP32}~ref2", "flip_percent") == 1.5
    close = row(many, "paired_tests", f"close~{CPU}")
    assert close.labels["shown"] == "no_difference_shown"
    assert value(many, "paired_tests", close.key, "lost_documents") == 3
    assert value(many, "paired_tests", close.key, "repeat_flips") == 3
    assert said(many, close.sentences[0]) == "no difference shown"
    assert many.decision.has_winner is False


def test_a_difference_beyond_chance_and_noise_is_shown_with_its_adjusted_p(
    many: Dossier, said: Callable[..., str]
) -> None:
    far = row(many, "paired_tests", f"far~{CPU}")
    assert far.labels["shown"] == "lower"
    assert said(many, far.sentences[0]) == "fewer accepted than the reference"
    # 30 lost, 1 gained: p = 2 x (1 + 31) / 2^31; the smaller of two is doubled by Holm
    assert value(many, "paired_tests", far.key, "mcnemar_p") == pytest.approx(64 / 2**31)
    assert value(many, "paired_tests", far.key, "holm_p") == pytest.approx(128 / 2**31)
    assert said(many, far.sentences[1]) == "loses more than 5 points also among other documents like these"


def test_an_open_margin_says_how_many_documents_an_equally_good_variant_needs(
    many: Dossier, said: Callable[..., str], decide: Any
) -> None:
    def write(kit: Kit, runs: Path) -> object:
        return kit(runs, documents=40, variants=(kit.variant(), kit.variant(name="bf16", dtype="bfloat16")))

    small = decide("forty", None, write=write)
    found = row(small, "paired_tests", BF16)
    assert (found.labels["outcome"], found.labels["share_from"]) == ("inconclusive", "repeat")
    needed = value(small, "paired_tests", BF16, "needed_documents")
    assert needed == 73  # the fewest whose interval without a changed document stays within 5 points
    assert said(small, found.sentences[1]).endswith("open, 73 documents would show it")
    caveat = margin_caveat(book_of(small), BF16)
    assert caveat is not None
    assert "the rule is applied to the 40 documents counted" in said(small, caveat)
    assert row(many, "paired_tests", f"close~{CPU}").labels["outcome"] == "accept"
    assert margin_caveat(book_of(many), f"close~{CPU}") is None


def test_a_choice_from_three_documents_carries_a_caution_and_one_from_two_hundred_does_not(
    many: Dossier, said: Callable[..., str], decide: Any
) -> None:
    def write(kit: Kit, runs: Path) -> object:
        return kit(runs, documents=3, critical=1, variants=(kit.variant(), kit.variant(name="bf16", dtype="bfloat16")))

    few = decide("three", None, write=write)
    for key in (BF16, FP32):  # the variant, and the reference that is compared with nothing
        book = book_of(few)
        caution = caution_few_documents(book, key)
        assert caution is not None
        text = said(msgspec.structs.replace(few, figures=book.figures), caution)
        assert text.startswith("Caution: 3 documents are little evidence.")
        assert "lose up to 56.1 points" in text
    for key in (f"close~{CPU}", FP32):
        assert caution_few_documents(book_of(many), key) is None
    assert caution_few_documents(book_of(many), "no such configuration") is None


def test_changed_documents_are_listed_severe_first_with_the_fields_that_changed(decide: Any) -> None:
    def write(kit: Kit, runs: Path) -> object:
        variant = kit.variant(name="bf16", dtype="bfloat16", outcomes={4: "unparseable", 9: "wrong", 12: "wrong"})
        return kit(runs, documents=20, critical=5, variants=(kit.variant(outcomes=wrong(15)), variant))

    found = decide("changed", None, write=write)
    listed = [
        (r.labels["document_id"], r.labels["direction"], r.labels["severity"], r.labels["newly_wrong"],
         r.labels["newly_right"])
        for r in found.tables["changed_documents"].rows
    ]  # fmt: skip
    assert listed == [
        ("doc-005", "lost", "critical", "amount, category, date", ""),
        ("doc-010", "lost", "hard", "category", ""),
        ("doc-013", "lost", "other", "category", ""),
        ("doc-016", "gained", "other", "", "category"),
    ]


def test_a_critical_subset_says_what_so_few_documents_support_and_how_many_one_percent_needs(
    many: Dossier, said: Callable[..., str]
) -> None:
    clean, failed = row(many, "critical_subsets", f"close~{CPU}~critical"), f"far~{CPU}~critical"
    assert value(many, "critical_subsets", clean.key, "document_count") == 60
    assert value(many, "critical_subsets", clean.key, "new_failures") == 3
    assert value(many, "critical_subsets", failed, "new_failures") == 20
    assert value(many, "critical_subsets", clean.key, "supported_percent") == pytest.approx(12.41, abs=0.01)
    assert value(many, "critical_subsets", clean.key, "needed_documents") == 773
    assert said(many, clean.sentences[0]) == "supports only <= 12.4 %"


def test_missing_answers_stay_in_the_count_and_the_coverage_says_so(decide: Any) -> None:
    def write(kit: Kit, runs: Path) -> object:
        missing = kit.variant(name="bf16", dtype="bfloat16", missing=frozenset({1, 2}))
        return kit(runs, documents=20, variants=(kit.variant(), missing))

    found = decide("missing", None, write=write)
    columns = ("document_count", "returned_documents", "scored_documents", "covered_percent")
    assert [value(found, "coverage", BF16, column) for column in columns] == [20, 18, 18, 90.0]
    assert row(found, "coverage", BF16).labels["is_complete"] == "no"
    assert value(found, "paired_tests", BF16, "document_count") == 20
    assert value(found, "paired_tests", BF16, "lost_documents") == 2


def test_where_each_document_is_judged_the_coverage_is_complete(many: Dossier) -> None:
    assert {r.labels["is_complete"] for r in many.tables["coverage"].rows} == {"yes"}


def test_documents_of_too_few_templates_have_no_interval_by_cluster_and_that_is_told(many: Dossier) -> None:
    found = row(many, "paired_tests", f"far~{CPU}")
    figure = many.figures[found.cells["clustered_points"]]
    assert (figure.value, figure.missing_reason, figure.n) == (None, "too_few_samples", 8)
    assert found.labels["clusters"] == "few"
