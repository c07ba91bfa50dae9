"""One record line: what is accepted, what is refused, and by which rule."""

from __future__ import annotations

import copy
import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from collector.contract.columns import without_null
from collector.contract.inspection import inspect_line
from collector.contract.records import ENVELOPE, KINDS, MAX_LINE_BYTES, decode_record, encode_record
from collector.contract.rules import NOTICES, RULES

RECORDS = Path(__file__).parent.parent / "records"
VALID = sorted(RECORDS.glob("valid/*/*.json"))
INVALID = sorted(RECORDS.glob("invalid/*/*.json"))
OF_FILES = {"header", "chain", "seal", "after-seal", "torn-tail", "too-long"}
"""Rules that a single line of ordinary length cannot break."""
WITHIN_ROWS = {"impossible-stamp", "stamp-order", "null-without-reason", "missing-map", "gap-buckets",
               "failure-without-cause", "document-order"}  # fmt: skip


def fixture_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def line_of(path: Path) -> bytes:
    return path.read_bytes().removesuffix(b"\n")


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def rules(line: bytes) -> list[str]:
    return [problem.rule for problem in inspect_line(line).problems]


@pytest.mark.parametrize("path", VALID, ids=fixture_id)
def test_an_accept_fixture_breaks_no_rule_and_comes_back_byte_for_byte(path: Path) -> None:
    record, problems, envelope = inspect_line(line_of(path))
    assert problems == ()
    assert envelope is None
    assert record is not None
    assert type(record) is KINDS[path.parent.name]
    assert encode_record(record) == line_of(path)


def test_every_kind_has_at_least_two_accept_fixtures() -> None:
    counts = {kind: sum(path.parent.name == kind for path in VALID) for kind in KINDS}
    assert min(counts.values()) >= 2, counts
    assert len(VALID) == sum(counts.values())


@pytest.mark.parametrize("path", INVALID, ids=fixture_id)
def test_a_reject_fixture_breaks_the_rule_in_its_name_and_no_other(path: Path) -> None:
    rule = path.stem.split(".")[0]
    record, problems, _ = inspect_line(line_of(path))
    errors = {problem.rule for problem in problems if not problem.is_notice}
    assert rule in {problem.rule for problem in problems}
    assert errors == {rule} - NOTICES
    assert (record is None) == (bool(errors) or rule == "unknown-kind")


def test_every_rule_that_one_line_can_break_has_a_reject_fixture() -> None:
    assert {path.stem.split(".")[0] for path in INVALID} == set(RULES) - OF_FILES


# Mutations of the accept fixtures: each makes one thing wrong and names the rule that must find it.


def fields_of(path: Path) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(KINDS[path.parent.name])}


def mutated(path: Path, name: str, value: Any) -> bytes:
    return dump({**json.loads(line_of(path)), name: value})


WRONG = {
    inspect.StrType: 7, inspect.LiteralType: 7, inspect.IntType: "12", inspect.FloatType: "1.5",
    inspect.BoolType: "yes", inspect.ListType: {"a": 1}, inspect.DictType: ["a"],
}  # fmt: skip


def outside(found: Any) -> Iterator[tuple[str, Any]]:
    """(rule, value) pairs, each just outside what a type allows."""
    match found:
        case inspect.LiteralType():
            yield "vocabulary", "no_such_word"
        case inspect.StrType(min_length=least, max_length=most, pattern=pattern):
            if pattern:
                yield "pattern", "x"
            if least:
                yield "bound", ""
            if most:
                yield "bound", "0" * (most + 1)
        case inspect.IntType(ge=least, le=most):
            assert least is not None
            assert most == 2**63 - 1, "every integer of the contract fits into 64 bits"
            yield ("bound" if least > -(2**63) else "integer-range"), least - 1
            yield "integer-range", most + 1
        case inspect.ListType(item_type=inner):
            for rule, value in [
                ("wrong-type", WRONG[type(without_metadata(inner))]),
                *outside(without_metadata(inner)),
            ]:
                yield rule, [value]
        case inspect.DictType(value_type=inner):
            for rule, value in [
                ("wrong-type", WRONG[type(without_metadata(inner))]),
                *outside(without_metadata(inner)),
            ]:
                yield rule, {"some key": value}
        case inspect.FloatType() | inspect.BoolType():
            return


def without_metadata(found: Any) -> Any:
    return found.type if isinstance(found, inspect.Metadata) else found


@pytest.mark.parametrize("path", VALID, ids=fixture_id)
def test_a_dropped_required_field_is_refused_by_name(path: Path) -> None:
    whole = json.loads(line_of(path))
    required = ["kind", *ENVELOPE, *(name for name, field in fields_of(path).items() if field.required)]
    for name in required:
        record, problems, _ = inspect_line(dump({key: value for key, value in whole.items() if key != name}))
        assert record is None
        assert [p.rule for p in problems if not p.is_notice] == ["envelope" if name in ENVELOPE else "missing-field"]
        assert name in problems[0].message


@pytest.mark.parametrize("path", VALID, ids=fixture_id)
def test_d22_a_dropped_optional_field_reads_as_its_default(path: Path) -> None:
    whole = json.loads(line_of(path))
    for name, field in fields_of(path).items():
        if field.required or name in ENVELOPE or whole[name] != json.loads(msgspec.json.encode(default_of(field))):
            continue
        record, problems, _ = inspect_line(dump({key: value for key, value in whole.items() if key != name}))
        assert problems == ()
        assert getattr(record, name) == default_of(field)


@pytest.mark.parametrize("path", VALID, ids=fixture_id)
def test_d22_no_dropped_field_raises(path: Path) -> None:
    whole = json.loads(line_of(path))
    for name in whole:
        record, problems, _ = inspect_line(dump({key: value for key, value in whole.items() if key != name}))
        assert (record is None) == any(not problem.is_notice for problem in problems)


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


@pytest.mark.parametrize("path", VALID, ids=fixture_id)
def test_a_field_of_the_wrong_type_is_refused(path: Path) -> None:
    for name, field in fields_of(path).items():
        line = mutated(path, name, WRONG[type(without_null(field.type))])
        assert rules(line) == ["envelope" if name in ENVELOPE else "wrong-type"], (name, line)
    assert rules(mutated(path, "kind", 7)) == ["wrong-type"]


@pytest.mark.parametrize("path", VALID, ids=fixture_id)
def test_a_fraction_where_an_integer_belongs_is_refused(path: Path) -> None:
    names = [n for n, f in fields_of(path).items() if isinstance(without_null(f.type), inspect.IntType)]
    for name in names:
        assert rules(mutated(path, name, 2.6)) == ["envelope" if name in ENVELOPE else "wrong-type"]


@pytest.mark.parametrize("path", VALID, ids=fixture_id)
def test_a_value_outside_its_vocabulary_pattern_or_bound_is_refused(path: Path) -> None:
    for name, field in fields_of(path).items():
        for rule, value in outside(without_null(field.type)):
            expected = "envelope" if name in ENVELOPE and rule != "integer-range" else rule
            assert rules(mutated(path, name, value)) == [expected], (name, value)


@pytest.mark.parametrize("path", VALID, ids=fixture_id)
def test_a_null_where_no_null_is_allowed_is_refused(path: Path) -> None:
    for name, field in fields_of(path).items():
        if not isinstance(inspect.type_info(field.type), inspect.UnionType):
            assert rules(mutated(path, name, None)) == ["envelope" if name in ENVELOPE else "wrong-type"]


@pytest.mark.parametrize("path", VALID, ids=fixture_id)
def test_a_digest_followed_by_a_newline_is_refused(path: Path) -> None:
    """A regular expression's `$` alone would let it pass."""
    for name, field in fields_of(path).items():
        found = without_null(field.type)
        if isinstance(found, inspect.StrType) and found.pattern:
            value = json.loads(line_of(path))[name] or "0" * (found.max_length or 0)
            assert rules(mutated(path, name, value + "\n")) == ["envelope" if name in ENVELOPE else "bound"], name


def test_d11_a_duplicate_key_is_refused_at_any_depth() -> None:
    assert rules(b'{"run_id":"a","run_id":"b"}')[0] == "duplicate-key"
    line = line_of(RECORDS / "valid/scrape/before.json")
    assert rules(line.replace(b'{"vllm', b'{"a":1.0,"a":1.0,"vllm')) == ["duplicate-key"]


def test_d09_anything_after_the_object_is_refused() -> None:
    line = line_of(RECORDS / "valid/request/completed.json")
    for tail in (b" xyz", b"{}", b",", b"\x00", b"]"):
        record, problems, _ = inspect_line(line + tail)
        assert record is None
        assert [problem.rule for problem in problems] == ["trailing-data"]


@pytest.mark.parametrize("literal", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e999"])
def test_a_number_that_is_not_finite_is_refused_and_never_read_as_null(literal: bytes) -> None:
    line = line_of(RECORDS / "valid/probe/perplexity.json").replace(b"21.4375", literal)
    assert rules(line) == ["not-finite"]


@pytest.mark.parametrize("literal", [b"9223372036854775808", b"-9223372036854775809", b"1" * 5000])
def test_an_integer_beyond_64_bits_is_refused_even_where_the_field_holds_a_float(literal: bytes) -> None:
    assert rules(line_of(RECORDS / "valid/probe/perplexity.json").replace(b"21.4375", literal)) == ["integer-range"]
    assert rules(line_of(RECORDS / "valid/failure/killed_by_a_signal.json").replace(b"-9", literal)) == [
        "integer-range"
    ]


@pytest.mark.parametrize("junk", [b"", b" ", b"null", b"[]", b"7", b'"x"', b"{", b"\x00\x00", b"[" * 100_000])
def test_junk_is_refused_without_an_exception(junk: bytes) -> None:
    record, problems, envelope = inspect_line(junk)
    assert (record, envelope) == (None, None)
    assert problems[0].rule in ("not-json", "wrong-type")


def test_d14_a_line_of_one_megabyte_is_refused() -> None:
    line = line_of(RECORDS / "valid/decision/batch_reduced.json")
    room = MAX_LINE_BYTES - 1 - len(line.replace(b'"16"', b'""'))
    assert rules(line.replace(b'"16"', b'"' + b"x" * room + b'"')) == []
    assert rules(line.replace(b'"16"', b'"' + b"x" * (room + 1) + b'"')) == ["too-long"]


def test_an_unknown_field_is_told_and_the_rest_is_read() -> None:
    record, problems, _ = inspect_line(line_of(RECORDS / "invalid/decision/unknown-field.json"))
    assert [problem.rule for problem in problems] == ["unknown-field"]
    assert record == decode_record(line_of(RECORDS / "valid/decision/batch_reduced.json"))


def test_an_unknown_kind_keeps_its_envelope_so_that_the_chain_goes_through_it() -> None:
    record, _, envelope = inspect_line(line_of(RECORDS / "invalid/decision/unknown-kind.json"))
    assert record is None
    assert envelope is not None
    assert (envelope.kind, envelope.seq) == (
        "omen",
        json.loads(line_of(RECORDS / "valid/decision/batch_reduced.json"))["seq"],
    )


def test_an_integer_written_for_a_float_reads_as_the_same_number() -> None:
    line = line_of(RECORDS / "valid/probe/perplexity.json").replace(b"21.4375", b"21")
    record, problems, _ = inspect_line(line)
    assert [problem.rule for problem in problems] == ["not-canonical"]
    assert record is not None


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_has_a_next_step(rule: str) -> None:
    assert RULES[rule]


# Round trips of generated records.


def values(found: Any) -> st.SearchStrategy[Any]:
    match without_metadata(found):
        case inspect.UnionType(types=members):
            return st.one_of([values(member) for member in members])
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=least, le=most):
            return st.integers(least, most)
        case inspect.FloatType():
            return st.floats(allow_nan=False, allow_infinity=False)
        case inspect.LiteralType(values=words):
            return st.sampled_from(words)
        case inspect.StrType(pattern=pattern) if pattern and "T" in pattern:
            moments = st.datetimes(min_value=dt.datetime(1000, 1, 1))
            return moments.map(lambda moment: moment.isoformat(timespec="microseconds") + "Z")
        case inspect.StrType(pattern=pattern, max_length=length) if pattern:
            return st.text("0123456789abcdef", min_size=length or 0, max_size=length)
        case inspect.StrType(min_length=least, max_length=most):
            return st.text(st.characters(exclude_categories=["Cs"]), min_size=least or 0, max_size=min(most or 20, 20))
        case inspect.ListType(item_type=inner):
            return st.lists(values(inner), max_size=3)
        case inspect.DictType(key_type=key, value_type=inner):
            return st.dictionaries(values(key), values(inner), max_size=3)
    raise AssertionError(found)


@pytest.mark.parametrize("kind", KINDS)
def test_any_record_survives_encode_decode_encode(kind: str) -> None:
    struct = KINDS[kind]
    strategy = st.fixed_dictionaries(
        {field.name: values(inspect.type_info(field.type)) for field in msgspec.structs.fields(struct)}
    )

    @settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def round_trip(content: dict[str, Any]) -> None:
        record = struct(**copy.deepcopy(content))
        line = encode_record(record)
        decoded = decode_record(line)
        assert decoded == record
        assert encode_record(decoded) == line
        assert json.loads(line) == {"kind": kind, **content}
        assert {problem.rule for problem in inspect_line(line).problems} <= WITHIN_ROWS | {"newer-format"}

    round_trip()
