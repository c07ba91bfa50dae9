"""The lock: stable, drawn once, and refused when anything drifted from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.cli import main
from collector.clock import FakeClock
from collector.contract.errors import DossierError, Finding, Refused
from collector.contract.protocol import Lock, lock_bytes
from collector.freeze import freeze, judging_again, read_frozen
from collector.lock import expected_text, frozen_ids, lock_path, read_lock

PROTOCOL = """format = 1
name = "receipts"
[task]
kind = "extraction"
prompt = "Read: {document}"
[[task.field]]
name = "date"
type = "date"
[workload]
documents = "documents.jsonl"
permission = "written for this test"
review = "read by the author"
[generation]
max_new_tokens = 10
[gates]
max_lost_points = "5"
[model]
id = "none"
[engine]
name = "scripted"
script = "script.json"
[[variant]]
name = "fp32"
[[variant]]
name = "bf16"
dtype = "bfloat16"
[plan]
reference = "fp32"
"""
CAMPAIGN = """format = 1
question = "q"
dossier_id = "d"
as_of = 2026-01-01
issued = 2026-01-01
documents_per_corpus = 2
[objective]
prefer = "cheapest"
"""
DOCUMENTS = [
    {"id": f"d{number}", "role": role, "text": f"text {number}", "expected": {"date": "2026-04-03"}}
    for number, role in enumerate(["development", "validation", "validation", "test"])
]
SECRETS = ("text 1", "2026-04-03", "Read: ")


def write_documents(folder: Path, documents: list[dict[str, object]]) -> None:
    (folder / "documents.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))


@pytest.fixture
def protocol(tmp_path: Path) -> Path:
    path = tmp_path / "protocol.toml"
    path.write_text(PROTOCOL)
    (tmp_path / "script.json").write_text('{"script_format": 1}')
    write_documents(tmp_path, DOCUMENTS)
    return path


def frozen(path: Path, *, at: str = "2026-01-01T00:00:00.000000Z", campaign: Path | None = None) -> Lock:
    return freeze(path, campaign=campaign, clock=FakeClock(start_utc=at))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def drift(path: Path, campaign: Path | None = None) -> list[Finding]:
    with pytest.raises(Refused) as caught:
        read_frozen(path, campaign)
    assert all(finding.next_step for finding in caught.value.findings)
    return caught.value.findings


def test_freezing_again_gives_the_same_bytes_and_salt_at_any_time(protocol: Path) -> None:
    first = frozen(protocol)
    files = {path.name: path.read_bytes() for path in protocol.parent.iterdir()}
    again = frozen(protocol, at="2027-01-01T00:00:00.000000Z")
    assert again == first
    assert {path.name: path.read_bytes() for path in protocol.parent.iterdir()} == files
    assert set(files) == {"protocol.toml", "documents.jsonl", "script.json", "protocol.lock.json", "protocol.salt"}


def test_the_lock_on_disk_is_the_lock_returned_and_holds_no_text(protocol: Path) -> None:
    lock = frozen(protocol)
    path = protocol.with_name("protocol.lock.json")
    assert read_lock(path) == lock
    assert path.read_bytes() == lock_bytes(lock)
    assert not [secret for secret in SECRETS if secret in path.read_text()]
    assert protocol.with_name("protocol.salt").stat().st_mode & 0o077 == 0


def test_what_is_read_back_is_whole_and_in_the_locks_order(protocol: Path) -> None:
    write_documents(protocol.parent, DOCUMENTS[::-1])
    lock = frozen(protocol)
    found = read_frozen(protocol)
    assert (found.lock, found.base_dir, len(found.salt)) == (lock, protocol.parent, 32)
    assert [document.id for document in found.documents] == ["d0", "d1", "d2", "d3"]
    assert [document.document_id for document in lock.documents] == ["d0", "d1", "d2", "d3"]


def test_order_of_lines_and_blanks_in_the_files_change_no_id(protocol: Path) -> None:
    lock = frozen(protocol)
    write_documents(protocol.parent, DOCUMENTS[::-1])
    protocol.write_text("# a comment\n\n" + PROTOCOL.replace("max_new_tokens = 10", "max_new_tokens   =  10"))
    assert read_frozen(protocol).lock == lock
    assert frozen(protocol) == lock


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('dtype = "bfloat16"', 'dtype = "float16"'),
        ('reference = "fp32"', 'reference = "fp32"\nrepetitions = 3'),
        ('id = "none"', 'id = "other"'),
        ('name = "bf16"', 'name = "half"'),
    ],
)
def test_changing_only_the_plan_keeps_the_protocol_id(protocol: Path, old: str, new: str) -> None:
    before = frozen(protocol)
    edit(protocol, old, new)
    after = frozen(protocol, at="2026-02-02T00:00:00.000000Z")
    assert after.protocol_id == before.protocol_id
    assert after.plan_id != before.plan_id
    assert after.frozen_at == "2026-02-02T00:00:00.000000Z"


def test_another_script_is_another_plan(protocol: Path) -> None:
    before = frozen(protocol)
    protocol.with_name("script.json").write_text('{"script_format": 1, "load_ms": 1}')
    (finding,) = drift(protocol)
    assert (finding.file, finding.line) == (protocol, 21)
    after = frozen(protocol)
    assert (after.protocol_id == before.protocol_id, after.plan_id == before.plan_id) == (True, False)


def change_document(index: int, **changes: object) -> Callable[[Path], None]:
    def change(protocol: Path) -> None:
        documents = [dict(one) for one in DOCUMENTS]
        documents[index] |= changes
        write_documents(protocol.parent, documents)

    return change


DRIFTS: dict[str, tuple[Callable[[Path], None], str, int | None, str]] = {
    "a gate": (lambda p: edit(p, '"5"', '"6"'), "protocol.toml", 16, 'was "5" when frozen and is "6" now'),
    "the prompt": (lambda p: edit(p, "Read: ", "Look: "), "protocol.toml", 5, "`task.prompt` has another content"),
    "a worked example": (
        lambda p: edit(p, "[[task.field]]", '[[task.example]]\ndocument = "x"\nanswer = "y"\n[[task.field]]'),
        "protocol.toml",
        6,
        "`task.example` has another content than when frozen",
    ),
    "a new setting": (
        lambda p: edit(p, "[generation]", "[generation]\ncontext_limit_tokens = 99"),
        "protocol.toml",
        14,
        "`generation.context_limit_tokens` was null when frozen and is 99 now",
    ),
    "a field": (lambda p: edit(p, 'type = "date"', 'type = "text"'), "protocol.toml", 8, "`task.field[0].type`"),
    "a variant": (lambda p: edit(p, "bfloat16", "float16"), "protocol.toml", 26, "`variant[1].dtype`"),
    "one variant more": (
        lambda p: edit(p, "[plan]", '[[variant]]\nname = "fp16"\n[plan]'),
        "protocol.toml",
        27,
        "was not there when frozen",
    ),
    "one variant less": (
        lambda p: edit(p, '[[variant]]\nname = "bf16"\ndtype = "bfloat16"\n', ""),
        "protocol.toml",
        22,
        "is gone",
    ),
    "a limit": (
        lambda p: edit(p, "[model]", "[limits]\nload_s = 5\n[model]"),
        "protocol.toml",
        18,
        "`limits.load_s` was 900.0",
    ),
    "a text": (change_document(1, text="other"), "documents.jsonl", 2, "'d1' changed: text"),
    "an expected value": (
        change_document(2, expected={"date": None}),
        "documents.jsonl",
        3,
        "'d2' changed: expected values",
    ),
    "a role": (change_document(3, role="validation"), "documents.jsonl", 4, "'d3' changed: role"),
    "a document less": (lambda p: write_documents(p.parent, DOCUMENTS[:3]), "documents.jsonl", None, "no longer there"),
    "a document more": (
        lambda p: write_documents(p.parent, [*DOCUMENTS, {**DOCUMENTS[1], "id": "d9", "text": "nine"}]),
        "documents.jsonl",
        5,
        "'d9' was added",
    ),
}


@pytest.mark.parametrize("what", DRIFTS)
def test_drift_is_refused_naming_what_changed(protocol: Path, what: str) -> None:
    change, file, line, said = DRIFTS[what]
    frozen(protocol)
    change(protocol)
    (finding,) = drift(protocol)
    assert (finding.file.name, finding.line, finding.rule) == (file, line, "drift")
    assert said in finding.message
    assert f"collector freeze {protocol}`" in finding.next_step


@pytest.mark.parametrize("what", DRIFTS)
def test_freezing_again_ends_the_drift(protocol: Path, what: str) -> None:
    frozen(protocol)
    DRIFTS[what][0](protocol)
    lock = frozen(protocol)
    assert read_frozen(protocol).lock == lock


def test_all_drift_is_named_at_once(protocol: Path) -> None:
    frozen(protocol)
    for what in ("a gate", "a variant", "a text"):
        DRIFTS[what][0](protocol)
    assert len(drift(protocol)) == 3


def test_a_protocol_that_was_never_frozen_is_refused(protocol: Path) -> None:
    (finding,) = drift(protocol)
    assert "collector freeze" in finding.next_step


@pytest.mark.parametrize("part", ["protocol_id", "plan_id"])
def test_an_edited_lock_is_refused(protocol: Path, part: str) -> None:
    lock = frozen(protocol)
    edit(protocol.with_name("protocol.lock.json"), f'"{part}": "{getattr(lock, part)}"', f'"{part}": "{"0" * 64}"')
    (finding,) = drift(protocol)
    assert finding.rule == "lock-edited"


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"lock_format": 2}'])
def test_an_unreadable_lock_is_refused_and_freezing_replaces_it(protocol: Path, content: bytes) -> None:
    lock = frozen(protocol)
    protocol.with_name("protocol.lock.json").write_bytes(content)
    (finding,) = drift(protocol)
    assert finding.rule == "lock"
    assert frozen(protocol) == lock


def test_another_salt_is_recognised_as_such(protocol: Path) -> None:
    frozen(protocol)
    protocol.with_name("protocol.salt").write_text("ab" * 32 + "\n")
    (finding,) = drift(protocol)
    assert finding.file.name == "protocol.salt"


def test_a_lost_salt_is_never_drawn_again_behind_a_locks_back(protocol: Path) -> None:
    frozen(protocol)
    protocol.with_name("protocol.salt").unlink()
    with pytest.raises(DossierError, match=r"protocol\.salt"):
        read_frozen(protocol)
    with pytest.raises(DossierError, match="another protocol"):
        frozen(protocol)
    assert not protocol.with_name("protocol.salt").exists()


def test_the_objective_is_frozen_with_the_campaign_beside_the_protocol(protocol: Path) -> None:
    assert frozen(protocol).objective_digest is None
    campaign = protocol.with_name("campaign.toml")
    campaign.write_text(CAMPAIGN)
    assert read_frozen(protocol).lock.objective_digest is None  # declared later: the dossier says so
    declared = frozen(protocol)
    assert declared.objective_digest is not None
    campaign.write_text(CAMPAIGN + "# a comment\n")
    assert read_frozen(protocol).lock == declared
    campaign.write_text(CAMPAIGN.replace("cheapest", "fastest_corpus"))
    (finding,) = drift(protocol)
    assert (finding.file, finding.line) == (campaign, 7)
    changed = frozen(protocol)
    assert changed.objective_digest != declared.objective_digest
    assert (changed.protocol_id, changed.plan_id) == (declared.protocol_id, declared.plan_id)


def test_a_campaign_named_on_the_command_line_is_the_one_that_counts(protocol: Path, tmp_path: Path) -> None:
    protocol.with_name("campaign.toml").write_text(CAMPAIGN)
    other = tmp_path / "other.toml"
    other.write_text(CAMPAIGN.replace("cheapest", "most_headroom"))
    lock = frozen(protocol, campaign=other)
    assert read_frozen(protocol, other).lock == lock
    assert drift(protocol)[0].file.name == "campaign.toml"
    with pytest.raises(Refused):
        frozen(protocol, campaign=tmp_path / "absent.toml")


def test_a_folder_that_cannot_be_written_is_a_clear_error_and_nothing_half_written(
    protocol: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = frozen(protocol)
    before = {path.name: path.read_bytes() for path in protocol.parent.iterdir()}
    edit(protocol, '"5"', '"6"')

    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("collector.freeze.os.replace", full)
    with pytest.raises(DossierError, match="No space left"):
        frozen(protocol)
    after = {path.name: path.read_bytes() for path in protocol.parent.iterdir()}
    assert after | {"protocol.toml": b""} == before | {"protocol.toml": b""}
    assert read_lock(protocol.with_name("protocol.lock.json")) == lock


def test_expected_values_have_one_text_whatever_the_order_of_their_keys(protocol: Path) -> None:
    frozen(protocol)
    first = read_frozen(protocol).documents[0]
    assert expected_text(first) == '{"date":"2026-04-03"}'


_LETTERS = st.characters(exclude_categories=["Cc", "Cs"])


@settings(max_examples=10, deadline=None)
@given(text=st.text(min_size=1).filter(str.strip), prompt=st.text(_LETTERS))
def test_any_text_freezes_and_reads_back(tmp_path_factory: pytest.TempPathFactory, text: str, prompt: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = folder / "protocol.toml"
    path.write_text(
        PROTOCOL.replace('"Read: {document}"', json.dumps(prompt.replace("{", "") + " {document}", ensure_ascii=False))
    )
    (folder / "script.json").write_text('{"script_format": 1}')
    write_documents(folder, [{**DOCUMENTS[1], "text": text}])
    lock = frozen(path)
    assert read_frozen(path).lock == lock


def test_a_lock_is_never_replaced_under_another_salt(protocol: Path) -> None:
    """Neither with the protocol as it was, nor while it is being edited."""
    freeze(protocol, campaign=None, clock=FakeClock())
    before = protocol.with_name("protocol.lock.json").read_bytes()
    protocol.with_name("protocol.salt").write_text("ab" * 32 + "\n")
    for text in (PROTOCOL, PROTOCOL.replace("Read: ", "Read again: ")):
        protocol.write_text(text)
        with pytest.raises(DossierError, match="is not the salt of") as refused:
            freeze(protocol, campaign=None, clock=FakeClock())
        assert "copy the salt again" in refused.value.next_step
    assert protocol.with_name("protocol.lock.json").read_bytes() == before


def test_a_new_prompt_and_all_new_documents_are_no_new_salt(protocol: Path) -> None:
    first = freeze(protocol, campaign=None, clock=FakeClock())
    protocol.write_text(PROTOCOL.replace("Read: ", "Read again: "))
    write_documents(
        protocol.parent, [{**one, "id": f"new-{one['id']}", "text": f"new {one['text']}"} for one in DOCUMENTS]
    )
    with pytest.raises(Refused) as drift:
        read_frozen(protocol)
    assert {finding.file.name for finding in drift.value.findings} == {"protocol.toml", "documents.jsonl"}
    assert freeze(protocol, campaign=None, clock=FakeClock()).protocol_id != first.protocol_id


def test_a_salt_that_cannot_be_read_is_refused_by_name(protocol: Path) -> None:
    freeze(protocol, campaign=None, clock=FakeClock())
    protocol.with_name("protocol.salt").unlink()
    protocol.with_name("protocol.salt").mkdir()
    with pytest.raises(DossierError, match=r"protocol\.salt cannot be read"):
        read_frozen(protocol)


@pytest.mark.parametrize(
    ("place", "carried"),
    [
        ("/home/someone/models/tiny", "tiny"),
        ("/home/someone/models/tiny/", "tiny"),
        ("../.cache/models/tiny", "tiny"),
        ("~/models/tiny", "tiny"),
        (r"C:\\models\\tiny", "tiny"),
        ("owner/name-1.5B", "owner/name-1.5B"),
    ],
)
def test_of_a_folder_elsewhere_the_lock_knows_its_name_alone(protocol: Path, place: str, carried: str) -> None:
    protocol.write_text(PROTOCOL.replace('id = "none"', f'id = "{place}"'))
    lock = freeze(protocol, campaign=None, clock=FakeClock())
    assert lock.plan.model.id == carried
    assert "someone" not in protocol.with_name("protocol.lock.json").read_text()
    assert read_frozen(protocol).protocol.model.id == place.replace("\\\\", "\\")


def test_the_same_model_in_another_folder_is_the_same_plan(protocol: Path) -> None:
    plans = set()
    for folder in ("/data/one", "/data/two"):
        protocol.write_text(PROTOCOL.replace('id = "none"', f'id = "{folder}/tiny"'))
        plans.add(freeze(protocol, campaign=None, clock=FakeClock()).plan_id)
    assert len(plans) == 1


def test_a_campaign_asked_for_by_name_is_read_whatever_the_lock_knows(protocol: Path) -> None:
    """One that merely lies beside the protocol and came after freezing is no drift."""
    freeze(protocol, campaign=None, clock=FakeClock())
    with pytest.raises(Refused, match="no such file"):
        read_frozen(protocol, protocol.with_name("absent.toml"))
    protocol.with_name("campaign.toml").write_text(CAMPAIGN)
    read_frozen(protocol)
    read_frozen(protocol, protocol.with_name("campaign.toml"))


SCORER = '[task.scorer]\nentry_point = "scoring:score"\nfiles = ["scoring.py"]\n[workload]'


def test_freezing_a_changed_protocol_or_a_scorer_beside_runs_tells_how_their_answers_are_judged(protocol: Path) -> None:
    first, runs = frozen(protocol), protocol.parent / "runs"
    ids = frozen_ids(lock_path(protocol))
    (protocol.parent / "scoring.py").write_text("def score(asked):\n    return True\n")
    edit(protocol, "[workload]", SCORER)
    scored = frozen(protocol)
    assert judging_again(protocol, scored, ids) is None, "there are no runs"
    runs.mkdir()
    (runs / "a.texts.jsonl").touch()
    assert judging_again(protocol, scored, ids) is None, "texts are no run"
    (runs / "a.jsonl").touch()
    command = f"collector score {runs} --protocol {protocol} --out {runs}"
    said = [judging_again(protocol, scored, before) or "" for before in (ids, None)]
    assert [text.rpartition(": ")[2] for text in said] == [f"{command} --allow-commands"] * 2
    assert judging_again(protocol, first, ids) is None, "it judges as it did before"
    assert (judging_again(protocol, first, frozen_ids(lock_path(protocol))) or "").endswith(command)
    result = CliRunner().invoke(main, ["freeze", str(protocol), "--no-tokens"])
    assert (result.exit_code, command in result.stderr) == (0, True)
