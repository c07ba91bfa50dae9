"""Numbers, money, dates and words are printed as the language and the unit ask."""

from __future__ import annotations

from typing import Any

import pytest

from reporter.dossier import Figure, Interval, Row
from reporter.figure_text import FigureText, scale_of
from reporter.grids import Column, GridMaker, pivoted
from reporter.translate import PSEUDO_LANGUAGE, Translator

ENGLISH = FigureText(Translator("en"))


def figure(value: Any, unit: Any, **more: Any) -> Figure:
    return Figure(figure_id=f"t/{value}/{unit}", value=value, unit=unit, **({"basis": "measured"} | more))


@pytest.mark.parametrize(
    ("value", "unit", "more", "printed"),
    [
        (189, "documents", {}, "189"),
        (12_000, "documents", {}, "12,000"),
        (int(28.6 * 2**30), "bytes", {}, "28.6\u00a0GiB"),
        (540_000_000, "bytes", {}, "515\u00a0MiB"),
        (1_830_000_000, "nanoseconds", {}, "1.83\u00a0s"),
        (0.0184, "seconds", {}, "18.4\u00a0ms"),
        (9.4, "hours", {}, "9.40\u00a0h"),
        (0.0031, "hours", {}, "11.2\u00a0s"),
        (-0.5, "percentage_points", {}, "\u22120.5"),
        (93.75, "percent", {}, "93.8\u00a0%"),
        (109_200, "minor_units", {"currency": "EUR"}, "1,092.00\u00a0EUR"),
        (250_000, "minor_units", {"currency": "VND"}, "250,000\u00a0VND"),
        (1_234_567, "minor_units", {"currency": "KWD"}, "1,234.567\u00a0KWD"),
        (None, "bytes", {"missing_reason": "unsupported"}, "–"),
    ],
)
def test_a_figure_in_a_sentence_has_its_unit_and_a_fit_precision(
    value: Any, unit: Any, more: Any, printed: str
) -> None:
    assert ENGLISH.in_sentence(figure(value, unit, **more)) == printed


def test_a_column_has_one_unit_and_one_precision() -> None:
    column = [figure(v, "bytes") for v in (2**30, 25 * 2**30, 300 * 2**20)]
    scale = scale_of(column)
    assert scale.unit_word == "GiB"
    assert [ENGLISH.value(f, scale) for f in column] == ["1.00", "25.00", "0.29"]


def test_numbers_dates_and_money_follow_the_language() -> None:
    german = Translator("en")
    german.locale = german.locale.parse("de_DE")
    assert german.number(12345.6, 2) == "12.345,60"
    assert german.money(1_234_560, "EUR") == "12.345,60\u00a0EUR"
    assert german.date("2026-11-30") == "30.\u00a0November\u00a02026"
    assert Translator("en").moment("2026-11-18T08:00:00.000000Z") == "18\u00a0Nov\u00a02026,\u00a008:00\u00a0UTC"


def test_a_derived_figure_names_the_weakest_basis_of_its_inputs() -> None:
    assert ENGLISH.basis(figure(1, "count", basis="example", is_derived=True)) == "derived from example"
    several = figure(1, "count", basis="example", is_derived=True, bases=["example", "quoted"])
    assert ENGLISH.basis(several) == "derived from example, quoted"
    assert ENGLISH.basis(figure(1, "count", basis="quoted")) == "quoted"


def test_the_basis_stands_in_the_head_where_it_is_uniform_and_in_a_column_of_its_own_where_not() -> None:
    figures = {"a": figure(1, "hours"), "b": figure(2, "hours", basis="assumed")}
    rows = [Row(key=k, labels={"label": k}, cells={"hours": k}) for k in figures]
    maker = GridMaker(figures, ENGLISH, 10)
    columns = [Column("label", "candidate"), Column("hours", "hours")]
    mixed = maker.grid(rows, columns)
    assert [(h.role, h.basis) for h in mixed.heads] == [("value", ""), ("value", ""), ("basis", "")]
    assert [r.cells[2].text for r in mixed.rows] == ["measured", "assumed"]
    uniform = maker.grid(rows[:1], columns)
    assert [(h.role, h.basis) for h in uniform.heads] == [("value", ""), ("value", "measured")]


def test_a_missing_value_is_no_zero_and_its_reason_is_noted() -> None:
    figures = {"a": figure(0, "bytes"), "b": figure(None, "bytes", missing_reason="not_exposed_by_engine")}
    rows = [Row(key=k, labels={"label": k}, cells={"peak": k}) for k in figures]
    grid = GridMaker(figures, ENGLISH, 10).grid(rows, [Column("label", ""), Column("peak", "peak")])
    assert [(r.cells[1].text, r.cells[1].is_missing) for r in grid.rows] == [
        ("0", False),
        ("not provided by the engine", True),
    ]
    assert grid.missing == ["not provided by the engine"]


def test_a_long_table_is_cut_and_says_how_much_is_shown() -> None:
    figures = {str(n): figure(n, "count") for n in range(50)}
    rows = [Row(key=k, labels={"label": k}, cells={"n": k}) for k in figures]
    grid = GridMaker(figures, ENGLISH, 20).grid(rows, [Column("label", ""), Column("n", "")])
    assert (grid.shown_count, grid.total_count, grid.is_cut, len(grid.rows)) == (20, 50, True, 20)


def test_a_whole_stands_in_the_head_where_all_rows_share_it_and_beside_the_number_where_not() -> None:
    figures = {"19": figure(19, "documents"), "20": figure(20, "documents"), "30": figure(30, "documents")}
    same = [Row(key="a", cells={"ok": "19", "n": "20"}), Row(key="b", cells={"ok": "19", "n": "20"})]
    other = [same[0], Row(key="c", cells={"ok": "19", "n": "30"})]
    maker = GridMaker(figures, ENGLISH, 10)
    column = [Column("ok", "accepted", of="n")]
    assert maker.grid(same, column).heads[0].of == "20"
    assert [r.cells[0].whole_text for r in maker.grid(other, column).rows] == ["20", "30"]


def test_an_interval_has_its_own_column_in_the_unit_of_the_value() -> None:
    interval = Interval(low=0.5, high=2.0, level_percent=95.0, method="order_statistics")
    figures = {"a": figure(1.0, "seconds", interval=interval)}
    grid = GridMaker(figures, ENGLISH, 10).grid(
        [Row(key="a", cells={"p50": "a"})], [Column("p50", "median", with_interval=True)]
    )
    assert [c.text for c in grid.rows[0].cells] == ["1.00", "0.50 to 2.00"]
    assert grid.level_percent == "95"


def test_pivoting_keeps_figures_and_adds_none() -> None:
    rows = [Row(key=f"x~{p}", labels={"label": "x", "phase": p}, cells={"peak": f"m/{p}"}) for p in ("load", "measure")]
    (row,) = pivoted(rows, across="phase", cells=["peak"], by=["label"])
    assert row.cells == {"peak:load": "m/load", "peak:measure": "m/measure"}


def test_the_pseudo_language_accents_every_letter_and_keeps_placeholders() -> None:
    text = Translator(PSEUDO_LANGUAGE).text("showing %(n)s of {total}")
    assert text == "[šĥóŵíñğ %(n)s óƒ {total}]"


def test_an_unknown_language_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(Exception, match="no translation of the dossier into 'xx'") as refused:
        Translator("xx")
    assert "use one of: en" in str(refused.value)
