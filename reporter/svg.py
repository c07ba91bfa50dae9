"""SVG from the chart converter made fit for pages: no inline style, colours as classes, a title and a description."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG = "http://www.w3.org/2000/svg"

INK, QUIET, RULE, HAIRLINE, ACCENT, WARNING = "#14171A", "#5B6470", "#C9CED6", "#E3E6EA", "#0B6E6E", "#A8321F"
GROUND = "#FFFFFF"
_CLASS_OF = {
    INK: "ink", QUIET: "quiet", RULE: "rule", HAIRLINE: "hairline", ACCENT: "accent", WARNING: "warning",
    GROUND: "ground",
}  # fmt: skip
_DROPPED = {"style", "aria-roledescription", "aria-label", "aria-hidden", "role", "xml:space"}
_FONT_PART = re.compile(r"(?:(italic)\s+)?(?:(bold|[1-9]00)\s+)?([\d.]+px)\s+(.+)")


def fit_for_page(svg: str, *, chart_id: str, title: str, description: str, css_class: str) -> str:
    """Return the SVG as an inline image: `role=img`, named by its title, described by its numbers in words.

    Every `style` becomes presentation attributes, and each colour of the palette also a class `f-<name>` (fill) or
    `s-<name>` (stroke), so that a dark theme can change it where the page's policy forbids inline style.
    """
    root = ElementTree.fromstring(svg)
    for node in root.iter():
        _clean(node)
    _number_clips(root, chart_id)
    ids = (f"{chart_id}-title", f"{chart_id}-desc")
    for index, (tag, identifier, text) in enumerate((("title", ids[0], title), ("desc", ids[1], description))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": identifier})
        element.text = text
        root.insert(index, element)
    root.set("role", "img")
    root.set("aria-labelledby", ids[0])
    root.set("aria-describedby", ids[1])
    root.set("class", css_class)
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _number_clips(root: ElementTree.Element, chart_id: str) -> None:
    """Give clip paths names of this chart: the converter counts them per process, so its names differ per call."""
    names: dict[str, str] = {}
    for clip in root.iter(f"{{{SVG}}}clipPath"):
        names[f"url(#{clip.get('id', '')})"] = f"{chart_id}-clip{len(names)}"
        clip.set("id", f"{chart_id}-clip{len(names) - 1}")
    for node in root.iter():
        if node.get("clip-path") in names:
            node.set("clip-path", f"url(#{names[node.get('clip-path', '')]})")


def _clean(node: ElementTree.Element) -> None:
    for declaration in node.get("style", "").split(";"):
        name, _, value = declaration.partition(":")
        if value:
            node.set(name.strip(), value.strip())
    font = _FONT_PART.fullmatch(node.attrib.pop("font", "").strip())
    if font:
        italic, weight, size, family = font.groups()
        node.set("font-size", size)
        node.set("font-family", family)
        if italic:
            node.set("font-style", italic)
        if weight:
            node.set("font-weight", weight)
    for name in _DROPPED & set(node.attrib):
        del node.attrib[name]
    node.attrib.pop("class", None)
    names = [
        f"{prefix}-{_CLASS_OF[colour.upper()]}"
        for prefix, colour in (("f", node.get("fill", "")), ("s", node.get("stroke", "")))
        if colour.upper() in _CLASS_OF
    ]
    if names:
        node.set("class", " ".join(names))
