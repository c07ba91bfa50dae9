"""Repairs of a tagged PDF that the layout engine leaves undone, so that accessibility checkers find nothing.

Header cells get a scope, running headers and footers become artifacts, annotations get the print flag, and files that
are listed twice as associated are listed once. The picture of no page changes.
"""

from __future__ import annotations

import io
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

PRINT_FLAG = 4


def repaired(raw: bytes) -> bytes:
    """Return the PDF with its tags repaired; the same input gives the same bytes."""
    with pikepdf.open(io.BytesIO(raw)) as pdf:
        used = _Tree(pdf).used
        for page in pdf.pages:
            _mark_artifacts(pdf, page, used.get(page.obj.objgen, set()))
            for annotation in page.obj.get("/Annots", Array()):
                annotation.F = int(annotation.get("/F", 0)) | PRINT_FLAG
        _list_files_once(pdf)
        out = io.BytesIO()
        pdf.save(out, deterministic_id=True)
        return out.getvalue()


class _Tree:
    """Walks the structure tree once: which marked content it uses per page, and scopes for header cells."""

    def __init__(self, pdf: pikepdf.Pdf) -> None:
        self.used: dict[tuple[int, int], set[int]] = {}
        root = pdf.Root.get("/StructTreeRoot")
        if root is not None:
            self._walk(root, page=None, is_head=False)

    def _walk(self, node: Any, page: Any, is_head: bool) -> None:
        stack = [(node, page, is_head)]
        while stack:
            node, page, is_head = stack.pop()
            page = node.get("/Pg", page)
            kind = str(node.get("/S", ""))
            is_head = kind == "/THead" or (is_head and kind not in ("/TBody", "/TFoot"))
            if kind == "/TH":
                _set_scope(node, "/Column" if is_head else "/Row")
            kids = node.get("/K")
            for kid in kids if isinstance(kids, Array) else [] if kids is None else [kids]:
                if isinstance(kid, int):
                    self._use(page, kid)
                elif isinstance(kid, Dictionary) and kid.get("/Type") == Name.MCR:
                    self._use(kid.get("/Pg", page), int(kid.MCID))
                elif isinstance(kid, Dictionary) and "/S" in kid:
                    stack.append((kid, page, is_head))

    def _use(self, page: Any, content_id: int) -> None:
        if page is not None:
            self.used.setdefault(page.objgen, set()).add(int(content_id))


def _set_scope(cell: Any, scope: str) -> None:
    attributes = cell.get("/A")
    holders = list(attributes) if isinstance(attributes, Array) else [attributes] if attributes is not None else []
    for holder in holders:
        if isinstance(holder, Dictionary) and holder.get("/O") == Name.Table:
            if "/Scope" not in holder:
                holder.Scope = Name(scope)
            return
    cell.A = Array([*holders, Dictionary(O=Name.Table, Scope=Name(scope))])


def _mark_artifacts(pdf: pikepdf.Pdf, page: Any, used: set[int]) -> None:
    changed = False
    instructions = []
    for instruction in pikepdf.parse_content_stream(page):
        operands, operator = instruction.operands, str(instruction.operator)
        if operator == "BDC" and isinstance(operands[1], Dictionary):
            content_id = operands[1].get("/MCID")
            if content_id is not None and int(content_id) not in used:
                artifact = [Name.Artifact, Dictionary(Type=Name.Pagination)]
                instruction = pikepdf.ContentStreamInstruction(artifact, pikepdf.Operator("BDC"))
                changed = True
        instructions.append(instruction)
    if changed:
        page.obj.Contents = pdf.make_stream(pikepdf.unparse_content_stream(instructions))


def _list_files_once(pdf: pikepdf.Pdf) -> None:
    files = pdf.Root.get("/AF")
    if files is None:
        return
    kept, seen = [], set()
    for file in files:
        if file.objgen not in seen:
            seen.add(file.objgen)
            kept.append(file)
    pdf.Root.AF = Array(kept)
