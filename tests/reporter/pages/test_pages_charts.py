"""Charts draw what the tables hold, name it directly, and survive odd data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from reporter.board import Chart
from reporter.charts import MOST_OFFERS, ChartMaker, clear_of
from reporter.dossier import Dossier, Figure, Row, Table
from reporter.drawing import drawn
from reporter.figure_text import FigureText
from reporter.translate import Translator

SVG = "{http://www.w3.org/2000/svg}"
TEXT = FigureText(Translator("en"))


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def charts_of(dossier: Dossier) -> list[Chart]:
    maker = ChartMaker(dossier, TEXT)
    drawn = [maker.difference("d"), maker.memory("m"), maker.times("e2e_s", "t"), maker.packages("p")]
    return [chart for chart in drawn if chart is not None]


def with_labels(dossier: Dossier, change: Callable[[str], str]) -> Dossier:
    def changed(row: Row) -> Row:
        labels = {k: change(v) if k in ("label", "candidate") else v for k, v in row.labels.items()}
        return msgspec.structs.replace(row, labels=labels)

    tables = {name: msgspec.structs.replace(t, rows=[changed(r) for r in t.rows]) for name, t in dossier.tables.items()}
    return msgspec.structs.replace(dossier, tables=tables)


def test_the_difference_chart_names_each_configuration_its_value_and_the_rule(dossier: Dossier) -> None:
    chart = ChartMaker(dossier, TEXT).difference("Two variants lose more")
    assert chart is not None
    for svg in (chart.wide, chart.narrow):
        shown = texts(svg)
        assert {"L40S 48 GB · int8 · 8", "−0.5", "−3.5", "rule: lose at most 2 of 200"} <= set(shown)
        assert "accepted documents against the reference, percentage points" in shown


def test_a_failing_configuration_is_dashed_and_has_another_mark_not_only_another_colour(dossier: Dossier) -> None:
    chart = ChartMaker(dossier, TEXT).difference("x")
    assert chart is not None
    lines = [n for n in ElementTree.fromstring(chart.wide).iter(f"{SVG}line") if "s-warning" in n.get("class", "")]
    assert len(lines) == 2
    assert all(line.get("stroke-dasharray") for line in lines)


def test_e12_each_chart_is_an_image_with_a_title_and_its_numbers_in_words(dossier: Dossier) -> None:
    for chart in charts_of(dossier):
        root = ElementTree.fromstring(chart.wide)
        assert root.get("role") == "img"
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None
        assert description is not None
        assert root.get("aria-labelledby") == title.get("id")
        assert "L40S 48 GB" in str(description.text)


def test_charts_carry_no_inline_style_and_no_colour_without_a_class(dossier: Dossier) -> None:
    for chart in charts_of(dossier):
        for svg in (chart.wide, chart.narrow):
            for node in ElementTree.fromstring(svg).iter():
                assert "style" not in node.attrib
                for name, prefix in (("fill", "f-"), ("stroke", "s-")):
                    if node.get(name, "none").startswith("#"):
                        assert prefix in node.get("class", ""), node.attrib


def test_charts_are_the_same_text_each_time(dossier: Dossier) -> None:
    once = charts_of(dossier)
    drawn.cache_clear()
    assert charts_of(dossier) == once


def test_a_dossier_without_evidence_has_no_charts(dossier: Dossier) -> None:
    assert charts_of(msgspec.structs.replace(dossier, tables={})) == []


def test_one_configuration_without_interval_is_drawn(dossier: Dossier) -> None:
    figure = Figure(figure_id="p/x", value=0.0, unit="percentage_points", basis="measured")
    row = Row(key="x", labels={"label": "only one"}, cells={"difference_points": "p/x"})
    lone = msgspec.structs.replace(
        dossier, tables={"paired": Table(name="paired", grain="", rows=[row])}, figures={"p/x": figure}
    )
    chart = ChartMaker(lone, TEXT).difference("x")
    assert chart is not None
    assert "only one" in texts(chart.wide)


def test_a_missing_reading_is_a_named_gap_not_a_zero(dossier: Dossier) -> None:
    key = next(f for f in dossier.figures if f.startswith("memory/int8~l40s~b1~c8~process~load/peak"))
    gone = Figure(figure_id=key, value=None, unit="bytes", basis="measured", missing_reason="unsupported")
    chart = ChartMaker(msgspec.structs.replace(dossier, figures={**dossier.figures, key: gone}), TEXT).memory("x")
    assert chart is not None
    assert "– not supported here" in texts(chart.wide)
    assert "load: not supported here" in chart.description


def test_hostile_labels_are_text_in_a_chart(dossier: Dossier) -> None:
    hostile = '</svg><script>alert(1)</script>" onload="x" {{ 7*7 }} 😀'
    for chart in charts_of(with_labels(dossier, lambda _: hostile)):
        for svg in (chart.wide, chart.narrow):
            root = ElementTree.fromstring(svg)
            assert not list(root.iter(f"{SVG}script"))
            assert not [a for n in root.iter() for a in n.attrib if a.startswith("on")]
            assert "{{ 7*7 }}" in re.sub(r"\s+", " ", "".join(root.itertext()))


@pytest.mark.parametrize("name", ["difference", "memory", "times", "packages"])
def test_e14_twelve_long_labels_neither_overlap_nor_leave_the_picture(dossier: Dossier, name: str) -> None:
    long = "NVIDIA RTX PRO 6000 Blackwell Server Edition (MIG 1g.24gb) · bf16 · 8"
    tables: dict[str, Table] = {}
    for table in ("paired", "memory", "latency", "packages"):
        rows: list[Any] = []
        for n in range(12 if table in ("paired", "latency") else 3):
            source = next(r for r in dossier.tables[table].rows if r.labels.get("metric", "e2e_s") == "e2e_s")
            labels = source.labels | {"label": f"{n} {long}", "candidate": f"{n} {long}"}
            rows.append(msgspec.structs.replace(source, key=str(n), labels=labels))
        tables[table] = msgspec.structs.replace(dossier.tables[table], rows=rows)
    maker = ChartMaker(msgspec.structs.replace(dossier, tables=tables), TEXT)
    chart = maker.times("e2e_s", "x") if name == "times" else getattr(maker, name)("x")
    for svg in (chart.wide, chart.narrow):
        boxes = label_boxes(svg)
        width = float(str(ElementTree.fromstring(svg).get("width")))
        assert boxes
        for left, top, right, bottom in boxes:
            assert left >= -1
            assert right <= width + 1
            assert not [b for b in boxes if b != (left, top, right, bottom) and overlaps(b, (left, top, right, bottom))]


def overlaps(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def label_boxes(svg: str) -> list[tuple[float, float, float, float]]:
    """Return the boxes of the long labels, by the widths that Inter gives them, in the picture's pixels."""
    from fontTools.ttLib import TTFont

    from collector.contract.resources import data_dir

    with TTFont(data_dir("templates") / "fonts" / "Inter-Regular.ttf") as font:
        cmap, advances, unit = font.getBestCmap(), font["hmtx"], font["head"].unitsPerEm
        found: list[tuple[float, float, float, float]] = []

        def walk(node: ElementTree.Element, x: float, y: float) -> None:
            for dx, dy in re.findall(r"translate\(([-\d.]+),([-\d.]+)\)", node.get("transform", "")):
                x, y = x + float(dx), y + float(dy)
            if (
                node.tag == f"{SVG}text"
                and "".join(node.itertext())[:1].isdigit()
                and "NVIDIA" in "".join(node.itertext())
            ):
                lines = [t.text or "" for t in node.iter(f"{SVG}tspan")] or [node.text or ""]
                size = float(node.get("font-size", "10px").removesuffix("px"))
                wide = max(sum(advances[cmap[ord(c)]][0] for c in line) for line in lines) * size / unit
                left = {"end": x - wide, "middle": x - wide / 2}.get(node.get("text-anchor", "start"), x)
                found.append((left, y - size * 0.75, left + wide, y - size * 0.75 + size + 12 * (len(lines) - 1)))
            for child in node:
                walk(child, x, y)

        walk(ElementTree.fromstring(svg), 0.0, 0.0)
    return found


def test_a_value_behind_a_line_stands_clear_of_the_rule() -> None:
    behind = clear_of(-5.0, room=4.0)
    assert [behind(end) for end in (-20.0, -8.9, -5.1, -5.0, 3.0)] == [-20.0, -5.0, -5.0, -5.0, 3.0]
    assert clear_of(None, room=4.0)(-6.0) == -6.0


def test_g06_the_chart_leaves_out_offers_that_cannot_win_unless_no_other_is_there(dossier: Dossier) -> None:
    source = dossier.tables["packages"]
    priced = [row for row in source.rows if "price_net" in row.cells and "paid_hours" in row.cells]
    rows = [
        msgspec.structs.replace(
            row, key=f"{reason}{n}", labels=row.labels | {"offer": f"offer {reason}", "blocked": reason}
        )
        for n, (row, reason) in enumerate((row, reason) for row in priced[:2] for reason in ("", "expired"))
    ]
    for shown, expected in ((rows, "offer "), (rows[1::2], "offer expired")):
        tables = dossier.tables | {"packages": msgspec.structs.replace(source, rows=shown)}
        chart = ChartMaker(msgspec.structs.replace(dossier, tables=tables), TEXT).packages("p")
        assert chart is not None
        named = {text.strip().rpartition("· ")[2] for text in texts(chart.wide) if "· offer" in text}
        assert named == {expected.strip()}


def test_of_more_offers_than_fill_a_page_each_candidates_cheapest_is_drawn(dossier: Dossier) -> None:
    """The table beneath has every offer, and the axis says what was left out."""
    source = dossier.tables["packages"]
    priced = [row for row in source.rows if "price_net" in row.cells and "paid_hours" in row.cells]
    cheap, dear = sorted(priced, key=lambda row: float(str(dossier.figures[row.cells["price_net"]].value)))[
        :: len(priced) - 1
    ]
    rows = [
        msgspec.structs.replace(row, key=f"{n}/{offer}", labels=row.labels | {"candidate": f"c{n}", "offer": offer})
        for n in range(MOST_OFFERS)
        for offer, row in (("dear", dear), ("cheap", cheap))
    ]
    tables = dossier.tables | {"packages": msgspec.structs.replace(source, rows=rows)}
    chart = ChartMaker(msgspec.structs.replace(dossier, tables=tables), TEXT).packages("p")
    assert chart is not None
    said = texts(chart.wide)
    assert [text for text in said if "· dear" in text] == []
    assert [text for text in said if "· cheap" in text] == [f"c{n} · cheap" for n in range(MOST_OFFERS)]
    assert any(text.startswith("cheapest offers;") for text in said)
