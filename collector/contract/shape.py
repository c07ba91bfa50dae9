"""Compare plain data with a Struct and report every difference, where msgspec stops at the first."""

from __future__ import annotations

import difflib
import json
import re
import types
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

Path = tuple[str | int, ...]
ShapeRule = Literal["unknown-field", "missing-field", "wrong-type"]
MAX_SHOWN = 60


class ShapeProblem(NamedTuple):
    """One place where the data is not of the Struct's shape."""

    path: Path
    rule: ShapeRule
    message: str
    next_step: str


def shape_problems(
    kind: type[msgspec.Struct], value: object, path: Path = (), *, whole: str = "the file"
) -> list[ShapeProblem]:
    """Return each unknown field, absent required field and value of a wrong type, in the order of the data.

    `whole` is what messages call the outermost value.
    """
    if not isinstance(value, dict):
        place = f"`{path_text(path)}`" if path else whole
        message = f"{place}: expected a table of named fields, found {shown(value)}"
        return [ShapeProblem(path, "wrong-type", message, f"write {_described(kind)}")]
    problems: list[ShapeProblem] = []
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key, item in value.items():
        if key in fields:
            problems += _value_problems(fields[key].type, item, (*path, key))
        else:
            problems.append(_unknown((*path, key), list(fields)))
    for name, field in fields.items():
        if field.required and name not in value:
            where = f"`{path_text(path)}`" if path else whole
            problems.append(
                ShapeProblem(
                    path, "missing-field", f"{where} has no `{name}`", f"add `{name}` ({_described(field.type)})"
                )
            )
    return problems


def path_text(path: Path) -> str:
    """Return a path as people write it: `variant[1].dtype`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def parse_path(text: str) -> Path:
    """Return the path of msgspec's (`$.variant[1].dtype`) or one's own (`variant[1].dtype`) notation."""
    steps = re.findall(r"\[(\d+)\]|([^.\[\]]+)", text.removeprefix("$"))
    return tuple(int(index) if index else name for index, name in steps)


def shown(value: object) -> str:
    """Return a value as it stands in the file, shortened to 60 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def nearest(name: str, known: list[str]) -> str | None:
    """Return the known name that `name` was probably meant to be."""
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return close[0] if close else None


def _value_problems(kind: Any, value: object, path: Path) -> list[ShapeProblem]:
    """Problems of one value: inside its tables where it has some, else of the value itself."""
    bare = _bare(kind)
    problems: list[ShapeProblem] = []
    if _is_struct(bare) and isinstance(value, dict):
        return shape_problems(bare, value, path)
    if get_origin(bare) is list and isinstance(value, list):
        (element,) = get_args(bare)
        for index, item in enumerate(value):
            problems += _value_problems(element, item, (*path, index))
    if problems:
        return problems
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `")
        inner = (*path, *parse_path(place.removesuffix("`"))) if place and not place.startswith("key") else path
        found = _at(value, inner[len(path) :])
        if "matching regex" in message and isinstance(found, str):
            return [_wrong(inner, *_misspelt(kind, found))]
        said, step = _mistaken(bare, found, str(path[-1]) if path else "") or (_readable(message), _advice(kind))
        return [_wrong(inner, f"{said}, found {shown(found)}", step)]
    return []


def _mistaken(bare: Any, found: object, name: str) -> tuple[str, str] | None:
    """Return message and next step where it can be seen what was meant; null elsewhere."""
    if get_origin(bare) is list and isinstance(found, dict) and _is_struct(_bare(get_args(bare)[0])):
        return "one table, where a list of tables belongs", f"write [[{name}]] instead of [{name}]"
    if get_origin(bare) is list and isinstance(found, str) and _bare(get_args(bare)[0]) is str:
        first = json.dumps((found.split() or [""])[0])
        return (
            "one text, where a list of texts belongs",
            f"write each word in quotes of its own: {name} = [{first}, ...]",
        )
    if get_origin(bare) is Literal and isinstance(found, str):
        words = [word for word in get_args(bare) if isinstance(word, str)]
        close = difflib.get_close_matches(re.sub(r"[ ._-]", "", found.lower()), words, n=2, cutoff=0.8)
        if len(close) == 1:  # of several, none is more likely
            return "not one of the known values", f"did you mean {shown(close[0])}? write {_described(bare)}"
    return None


def _bare(kind: Any) -> Any:
    """Take Annotated and an optional null away from a type."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (types.UnionType, Union):
        others = [part for part in get_args(kind) if part is not type(None)]
        return _bare(others[0]) if len(others) == 1 else kind
    return kind


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _at(value: Any, path: Path) -> object:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            break
    return value


def _readable(message: str) -> str:
    message = message.removeprefix("Invalid enum value")
    if message.startswith(" "):
        return "not one of the known values"
    return message[:1].lower() + message[1:]


def _unknown(path: Path, known: list[str]) -> ShapeProblem:
    meant = nearest(str(path[-1]), known)
    advice = f"did you mean `{meant}`?" if meant else f"known here: {', '.join(known)}"
    return ShapeProblem(
        path, "unknown-field", f"unknown field `{path_text(path)}`", f"remove it, or rename it: {advice}"
    )


def _wrong(path: Path, message: str, next_step: str) -> ShapeProblem:
    return ShapeProblem(path, "wrong-type", f"`{path_text(path) or 'the file'}`: {message}", next_step)


def _misspelt(kind: Any, text: str) -> tuple[str, str]:
    """Return message and next step for a text of the right type that is written otherwise than wanted."""
    advice = _advice(kind)
    if "exact decimal" not in advice:
        return f"not of the form wanted, found {shown(text)}", advice
    if "," in text and (meant := _with_point(text)) is not None:
        return f"not an exact decimal, found {shown(text)}", f'write a decimal point: "{meant}"; {advice}'
    return f"not an exact decimal, found {shown(text)}", f"{advice}, with digits and a decimal point alone"


def _with_point(text: str) -> str | None:
    """Return a number with its decimal comma as a point, null where the comma may part thousands."""
    one_comma = re.fullmatch(r"(-?\d+),(\d+)", text, re.ASCII)
    if one_comma and (len(one_comma[2]) != 3 or one_comma[1].lstrip("-") == "0"):
        return f"{one_comma[1]}.{one_comma[2]}"
    return None


def _advice(kind: Any) -> str:
    return f"write {_described(kind)}"


_WORDS = {
    "str": "a text in quotes", "int": "a whole number", "float": "a number", "bool": "true or false",
    "date": "a date such as 2026-04-03", "dict": "a table", "list": "a list",
}  # fmt: skip


def _described(kind: Any) -> str:
    """Say in words what a value of this type looks like."""
    if get_origin(kind) is Annotated:
        bare, *metas = get_args(kind)
        for meta in metas:
            if meta.pattern:
                return f"a text in quotes: {meta.description or 'of the form ' + meta.pattern}"
            if meta.ge is not None or meta.gt is not None:
                bound = f"of at least {meta.ge}" if meta.ge is not None else f"over {meta.gt}"
                return f"{_described(bare)} {bound}"
            if meta.min_length is not None and get_origin(bare) is None:
                return f"{_described(bare)}, not empty" + (f", of at most {meta.max_length}" if meta.max_length else "")
        return _described(bare)
    if get_origin(kind) in (types.UnionType, Union):
        return " or ".join(_described(part) for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is Literal:
        words = [shown(word) for word in get_args(kind)]
        return "one of " + ", ".join(words) if len(words) > 1 else words[0]
    if get_origin(kind) is list:
        return f"a list, each item {_described(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        return "a table of " + _described(get_args(kind)[1])
    if _is_struct(kind):
        required = [field.encode_name for field in msgspec.structs.fields(kind) if field.required]
        return "a table with " + ", ".join(required) if required else "a table"
    return _WORDS.get(getattr(kind, "__name__", ""), str(kind))
