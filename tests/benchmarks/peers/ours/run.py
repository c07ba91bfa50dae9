"""One load of this project's client: run.py URL MODEL CONCURRENCY STREAMS OUTPUT_TOKENS FOLDER.

The engine `openai` as a worker drives it, without warm-up: prompts rendered and counted, a nonce in each, the load
generator in a process of its own, each try read and judged. All processes are counted as the client's cost.
"""

from __future__ import annotations

import sys
from itertools import cycle, islice
from pathlib import Path

import msgspec

from collector.clock import SystemClock
from collector.contract.protocol import EngineChoice, Generation, Limits, Model, ServerChoice, VariantChoice
from collector.contract.records import ClientWindow
from collector.engines import openai_engine
from collector.engines.base import EngineSetup, Load, Prompt

DOCUMENTS = 256
_TEXT = "Receipt {}, Taxi Nord, 5 March 2026, total 42.10 EUR. Give date, amount and category as one JSON object."


def main(url: str, model: str, concurrency: int, streams: int, output_tokens: int, folder: Path) -> None:
    engine = openai_engine.create(setup_of(url, model, output_tokens), SystemClock())
    prompts = [
        Prompt(document_id=f"document-{number}", system="Be short.", user=_TEXT.format(number))
        for number in range(min(streams, DOCUMENTS))
    ]
    encoder = msgspec.json.Encoder()
    try:
        engine.load()
        asked = list(islice(cycle(engine.encode(prompts)), streams))
        with (folder / "result.jsonl").open("wb") as out:
            for answer in engine.answers(asked, "measure", Load(concurrency=concurrency)):
                out.write(encoder.encode(answer) + b"\n")
        windows = [each for each in engine.records() if isinstance(each, ClientWindow)]
        (folder / "window.json").write_bytes(encoder.encode(windows))
    finally:
        engine.close()


def setup_of(url: str, model: str, output_tokens: int) -> EngineSetup:
    """Return the setup of a pass that asks the server at the url."""
    server = ServerChoice(name="replay", url=url, model="replay")
    return EngineSetup(
        base_dir=".",
        model=Model(id=model),
        engine=EngineChoice(name="openai", server=server),
        variant=VariantChoice(name="replay", server="replay"),
        generation=Generation(max_new_tokens=output_tokens),
        limits=Limits(),
        device="cpu",
        pass_label="replay/1/1",
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), Path(sys.argv[6]))
