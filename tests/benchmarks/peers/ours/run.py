"""One load of this project's client: run.py URL CONCURRENCY STREAMS OUTPUT_TOKENS FOLDER.

The load generator's process and, in this one, what a worker does with each exchange: read its events, judge how it
ended, count its tokens. Both are counted as the client's cost.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from collector.client.messages import ClientDone, ClientJob, Exchange, Limits, Sending, Target
from collector.client.process import LoadGenerator
from collector.engines._exchange import ReadingRules, answer_of
from collector.engines.base import EncodedPrompt, Load

PROMPT = "Receipt 17, Taxi Nord, 5 March 2026, total 42.10 EUR. Give date, amount and category. " * 3


def main(url: str, concurrency: int, streams: int, output_tokens: int, folder: Path) -> None:
    parts = urlsplit(url)
    limits = Limits(connect_s=30, first_token_s=120, request_s=300, retries=0, retry_wait_s=1)
    job = ClientJob(
        target=Target(host=parts.hostname or "", port=parts.port or 80, is_tls=False, headers=[]),
        sendings=[
            Sending(number=number, path="/v1/chat/completions", body=body_of(number, output_tokens))
            for number in range(streams)
        ],
        load=Load(concurrency=concurrency),
        limits=limits,
        reasoning_fields=["reasoning_content", "reasoning"],
    )
    rules = ReadingRules(reasoning_fields=job.reasoning_fields, limits=limits)
    prompt = EncodedPrompt(document_id="prompt", rendered=PROMPT, token_ids=[1] * 64, start_token_count=1)
    generator = LoadGenerator()
    encoder = msgspec.json.Encoder()
    with (folder / "result.jsonl").open("wb") as out:
        for message in generator.run(job):
            if isinstance(message, Exchange):
                answer = answer_of(message, prompt, rules)
                out.write(encoder.encode(answer) + b"\n")
            elif isinstance(message, ClientDone):
                (folder / "window.json").write_bytes(encoder.encode(message.window))
    generator.close()


def body_of(number: int, output_tokens: int) -> bytes:
    """Return the request's body; every prompt differs, as those of documents do."""
    return msgspec.json.encode(
        {
            "model": "replay",
            "messages": [{"role": "user", "content": f"{number} {PROMPT}"}],
            "max_tokens": output_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
