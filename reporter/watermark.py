"""The diagonal words behind every page of a dossier with example prices, as an SVG."""

from __future__ import annotations

from html import escape

from .translate import N_, Translator


def watermark(translator: Translator) -> str:
    """Return the picture: pale, so that the text before it stays legible, and translated like the rest."""
    text = escape(translator.text(N_("EXAMPLE PRICES")))
    size = min(96, 1500 // max(len(text), 1))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 800" width="800" height="800">'
        f'<text x="400" y="400" transform="rotate(-45 400 400)" text-anchor="middle" font-family="Inter, sans-serif"'
        f' font-weight="600" font-size="{size}" fill="#A8321F" fill-opacity="0.09">{text}</text></svg>\n'
    )
