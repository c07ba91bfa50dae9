"""What a protocol may not say about servers and loads: each finding with its line, and what may not start unasked."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from collector.contract.errors import DossierError, Finding
from collector.contract.protocol import Protocol
from collector.contract.toml_lines import read_toml
from collector.init import init_folder
from collector.lock import content_of
from collector.plan_text import load_lines
from collector.protocol_check import check_protocol, load_protocol
from collector.server_rules import require_startable, server_findings

SERVERS = """
[[server]]
name = "gateway"
kind = "other"
url = "https://gateway.example/llm"
model = "m"
key_env = "TRIAL_GATEWAY_KEY"

[[server]]
name = "own"
kind = "vllm"
start = ["{base_dir}/bin/vllm", "serve", "{model}", "--port", "{port}"]
[server.environment]
OMP_NUM_THREADS = "1"

[[variant]]
name = "behind-gateway"
server = "gateway"
[[variant]]
name = "behind-own"
server = "own"
quantization = "bnb_nf4"

[plan]
concurrencies = [2, 8]
rates = [0.5, 2.0]
"""


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter")
    init_folder(folder, kind="extraction", is_small=True, device="d")
    return folder


@pytest.fixture(autouse=True)
def _in_folder(starter: Path, tmp_path: Path) -> None:
    shutil.copytree(starter, tmp_path, dirs_exist_ok=True)


def written(folder: Path, *edits: tuple[str, str]) -> Path:
    """The starter with two servers and these edits."""
    path = folder / "protocol.toml"
    text = path.read_text(encoding="utf-8").replace("[plan]\n", SERVERS.lstrip(), 1)
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")
    return path


def findings(folder: Path, *edits: tuple[str, str]) -> list[Finding]:
    text = read_toml(written(folder, *edits))
    return list(server_findings(folder / "protocol.toml", msgspec.convert(text.data, Protocol), text.line_of))


def test_servers_with_a_key_by_name_concurrencies_and_rates_are_refused_nothing(tmp_path: Path) -> None:
    assert check_protocol(written(tmp_path), with_tokenizer=False) == []


@pytest.mark.parametrize(
    "more", ['"--max-num-batched-tokens", "4096"', '"--api-key-file", "{base_dir}/key"', '"--enable-auto-tool-choice"']
)  # fmt: skip
def test_flags_that_only_sound_like_a_key_are_refused_nothing(tmp_path: Path, more: str) -> None:
    assert findings(tmp_path, (START, START.replace("]", f", {more}]"))) == []


def test_what_is_refused_is_among_the_findings_of_a_check(tmp_path: Path) -> None:
    path = written(tmp_path, (URL, ""))
    assert [each.rule for each in check_protocol(path, with_tokenizer=False)] == ["server"]


URL = 'url = "https://gateway.example/llm"'
START = 'start = ["{base_dir}/bin/vllm", "serve", "{model}", "--port", "{port}"]'


@pytest.mark.parametrize(
    ("old", "new", "rule", "said"),
    [
        (URL, f'{URL}\nstart = ["x", "{{port}}"]', "server", "both a start command and a url"),
        (URL, "", "server", "neither a start command nor a url"),
        (URL, 'url = "https://me:secret@gateway.example"', "secret", "carries a user or password"),
        (URL, 'url = "https://gateway.example?api-key=1"', "secret", "carries a query"),
        (URL, 'url = "https://gateway.example/v1"', "server", "ends with /v1"),
        (URL, 'url = "gateway.example"', "server", "is no address of a server"),
        (URL, f'{URL}\nheaders = {{ Authorization = "Bearer abc" }}', "secret", "has Authorization, which looks"),
        (URL, f'{URL}\nheaders = {{ X-Api-Key = "1" }}', "secret", "X-Api-Key, which looks like a key"),
        (URL, f'{URL}\nheaders = {{ X-Trial = "sk-abcdef" }}', "secret", "X-Trial, which looks like a key"),
        (URL, f'{URL}\nheader_env = {{ Authorization = "A" }}', "secret", "names a key twice"),
        (URL, f'{URL}\nbody = {{ stop = "x" }}', "server", "has stop, which the protocol says elsewhere"),
        (URL, f'{URL}\nbody = {{ max_completion_tokens = 1 }}', "server", "asks for 1 tokens"),
        (URL, f'{URL}\nendpoint = "completions"\nbody = {{ tools = "x" }}', "server", "tools, which is of chat alone"),
        (URL, f'{URL}\ncold_by = "request"', "server", "has no field for it"),
        (URL, f'{URL}\nenvironment = {{ A = "1" }}', "server", "is for a started one"),
        (START, 'start = ["vllm", "serve"]', "server", "names no {port}"),
        (START, START.replace("]", ', "--api-key", "abc"]'), "secret", "start` gives what looks like a key"),
        (START, START.replace("]", ', "--api-key=abc"]'), "secret", "start` gives what looks like a key"),
        (START, START.replace("]", ', "--hf_token", "abc"]'), "secret", "start` gives what looks like a key"),
        (START, START.replace("[", '["env", "VLLM_API_KEY=abc", '), "secret", "start` gives what looks like a key"),
        (START, START.replace("]", ', "--name", "sk-abc"]'), "secret", "start` gives what looks like a key"),
        (URL, f'{URL}\nbody = {{ api_key = "abc" }}', "secret", "body` has api_key, which looks like a key"),
        (URL, f'{URL}\nbody = {{ user = "sk-abc" }}', "secret", "body` has user, which looks like a key"),
        (URL, 'url = "me:secret@gateway.example"', "server", "'...@gateway.example' is no address of a server"),
        (START, f"{START}\nready_s = 2000.0", "server", "loading is ended after"),
        ('OMP_NUM_THREADS = "1"', 'HF_TOKEN = "abc"', "secret", "HF_TOKEN, which looks like a key"),
        ('server = "gateway"', 'server = "gatway"', "server", "answered by the server 'gatway', and there is none"),
        ('server = "own"', 'server = "gateway"', "server", "no variant is answered by the server 'own'"),
        ('name = "own"', 'name = "gateway"', "duplicate-name", "two servers are named 'gateway'"),
        ("concurrencies = [2, 8]", "concurrencies = [8, 2]", "concurrencies", "each must be larger"),
        ("rates = [0.5, 2.0]", "rates = [2.0, 2.0]", "rates", "each must be larger"),
        ('name = "transformers"', 'name = "openai"', "server", "the engine openai asks a server, and none is named"),
        (
            "\n[[server]]",
            '\n[engine.server]\nname = "x"\nurl = "http://127.0.0.1:1"\n\n[[server]]',
            "server",
            "engine transformers runs in process",
        ),
    ],
)  # fmt: skip
def test_what_contradicts_itself_or_would_record_a_key_is_refused(
    tmp_path: Path, old: str, new: str, rule: str, said: str
) -> None:
    found = [each for each in findings(tmp_path, (old, new)) if said in each.message]
    assert [each.rule for each in found] == [rule]
    assert found[0].line is not None
    assert found[0].line > 1
    assert found[0].next_step


def test_loads_without_any_server_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "protocol.toml"
    text = path.read_text(encoding="utf-8").replace("[plan]\n", "[plan]\nconcurrencies = [2]\nrates = [1.0]\n", 1)
    path.write_text(text, encoding="utf-8")
    rules = {each.rule for each in check_protocol(path, with_tokenizer=False)}
    assert rules == {"concurrencies", "rates"}


def test_a_reference_behind_a_server_has_no_batches(tmp_path: Path) -> None:
    path = written(tmp_path, ("concurrencies = [2, 8]", "batches = [2]"))
    text = path.read_text(encoding="utf-8")
    reference = next(line for line in text.splitlines() if line.startswith("reference ="))
    path.write_text(text.replace(reference, 'reference = "behind-own"'), encoding="utf-8")
    assert [each.rule for each in check_protocol(path, with_tokenizer=False)] == ["batches"]


def test_a_start_command_needs_to_be_allowed_and_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = load_protocol(written(tmp_path)).protocol
    monkeypatch.setenv("TRIAL_GATEWAY_KEY", "k")
    with pytest.raises(DossierError, match=r"nothing was run: '\{base_dir\}/bin/vllm' serve"):
        require_startable(protocol, allow_commands=False)
    require_startable(protocol, allow_commands=True)


def test_an_absent_key_is_told_by_its_variable_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRIAL_GATEWAY_KEY", raising=False)
    with pytest.raises(DossierError, match="its key from the environment variable TRIAL_GATEWAY_KEY"):
        require_startable(load_protocol(written(tmp_path)).protocol, allow_commands=True)


def test_a_lock_has_no_folder_and_no_host_of_anybody(tmp_path: Path) -> None:
    started = START.replace("{base_dir}", "/home/me")
    loaded = load_protocol(written(tmp_path, (START, started)))
    gateway, own = content_of(loaded, bytes(32)).plan.servers
    assert gateway.url == "https://another-machine/llm"
    assert own.start[0] == "vllm"


@pytest.mark.parametrize(
    "value",
    ["sk-live-0123", "sk_live_0123456789", "hf_0123456789", "Bearer abc", "a b", "8KEY", "Ab3dEf0123456789AbCdEf01234"],
)
@pytest.mark.parametrize("field", ["key_env = {}", "header_env = {{ X-Trial = {} }}"])
def test_a_key_in_place_of_its_variable_s_name_is_refused_and_not_repeated(
    tmp_path: Path, field: str, value: str
) -> None:
    old = 'key_env = "TRIAL_GATEWAY_KEY"'
    found = findings(tmp_path, (old, field.format(f'"{value}"')))
    assert [each.rule for each in found] == ["secret"]
    assert "does not hold the name of an environment variable" in found[0].message
    assert value not in f"{found[0].message} {found[0].next_step}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (START, 'start = "vllm serve --api-key hunter2 --port {port}"'),
        (URL, f'{URL}\nheaders = "Authorization: Bearer hunter2"'),
        (URL, f'{URL}\nbody = ["hunter2"]'),
        ('key_env = "TRIAL_GATEWAY_KEY"', 'key_env = ["hunter2"]'),
        ('key_env = "TRIAL_GATEWAY_KEY"', "key_env = hunter2"),
        (URL, "url = https://me:hunter2@gateway.example"),
        (SERVERS.lstrip(), '[server]\nname = "own"\nkey_env = "hunter2"\nurl = "http://me:hunter2@h"\n\n[plan]\n'),
    ],
)
def test_a_key_in_a_value_of_the_wrong_form_is_not_repeated(tmp_path: Path, old: str, new: str) -> None:
    found = check_protocol(written(tmp_path, (old, new)), with_tokenizer=False)
    assert found
    assert "hunter2" not in " ".join(f"{each.message} {each.next_step}" for each in found)


@pytest.mark.parametrize("name", ["KEY", "_key", "OPENAI_API_KEY", "SK_LIVE_KEY", "MY_COMPANY_GATEWAY_TOKEN_2026_PROD"])
def test_names_of_variables_are_refused_nothing(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, ("TRIAL_GATEWAY_KEY", name)) == []


@pytest.mark.parametrize(
    ("old", "new", "said", "step"),
    [
        ('own"\nkind = "vllm"', 'own"\nkind = "llama.cpp"', 'found "llama.cpp"', 'did you mean "llamacpp"?'),
        ('own"\nkind = "vllm"', 'own"\nkind = "openai"', 'found "openai"', '"other" is any gateway'),
        ('name = "transformers"', 'name = "vLLM"', 'found "vLLM"', 'under [engine.server], kind = "vllm"'),
        ("concurrencies = [2, 8]", "concurrencies = [1, 8]", "found 1", "measured one at a time anyway"),
        (START, 'start = "vllm serve --port {port}"', "a list of texts", 'start = ["vllm", ...]'),
    ],
)
def test_words_of_servers_in_the_wrong_place_are_told_where_they_belong(
    tmp_path: Path, old: str, new: str, said: str, step: str
) -> None:
    found = check_protocol(written(tmp_path, (old, new)), with_tokenizer=False)
    assert len(found) == 1
    assert said in found[0].message
    assert step in found[0].next_step


def test_one_table_for_a_list_of_servers_is_told_how_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "protocol.toml"
    text = path.read_text(encoding="utf-8") + '\n[server]\nname = "own"\nurl = "http://127.0.0.1:1"\n'
    path.write_text(text, encoding="utf-8")
    found = check_protocol(path, with_tokenizer=False)
    assert [(each.message.partition(",")[0], each.next_step) for each in found] == [
        ("`server`: one table", "write [[server]] instead of [server]")
    ]


def test_a_rate_at_which_the_documents_cannot_arrive_in_time_is_refused_with_the_one_that_would_do(
    tmp_path: Path,
) -> None:
    found = check_protocol(written(tmp_path, ("rates = [0.5, 2.0]", "rates = [0.00001]")), with_tokenizer=False)
    assert [each.rule for each in found] == ["rates"]
    assert "arrivals per second take" in found[0].message
    rate = float(found[0].next_step.split()[4].rstrip(","))
    again = ("rates = [0.00001]", f"rates = [{rate * 1.01:.6g}]")
    shutil.copytree(tmp_path, tmp_path / "again")
    path = tmp_path / "again" / "protocol.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(*again), encoding="utf-8")
    assert check_protocol(path, with_tokenizer=False) == []


def test_a_check_says_that_running_servers_were_not_asked_and_what_a_nonce_means(tmp_path: Path) -> None:
    one = load_protocol(written(tmp_path, ('server = "own"', 'server = "gateway"'))).protocol
    said = "\n".join(load_lines(one))
    assert "gateway was not asked now" in said
    assert "own was not asked" not in said
    assert "compared with no other engine's" in said
    assert "behind-gateway, behind-own put the same requests to it" in said
