"""One load of LLMeter, which has no command line: run.py URL CLIENTS REQUESTS_PER_CLIENT FOLDER, in its environment."""

import asyncio
import sys

from llmeter.endpoints.openai import OpenAICompletionStreamEndpoint
from llmeter.runner import Runner

PROMPT = "Receipt 17, Taxi Nord, 5 March 2026, total 42.10 EUR. Give date, amount and category. " * 3


async def main(url: str, clients: int, requests: int, folder: str) -> None:
    endpoint = OpenAICompletionStreamEndpoint(model_id="replay", api_key="none", base_url=f"{url}/v1", max_retries=0)
    payload = OpenAICompletionStreamEndpoint.create_payload(PROMPT, max_tokens=32)
    runner = Runner(endpoint, output_path=folder, timeout=300)
    await runner.run(payload=payload, clients=clients, n_requests=requests, run_name="run")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
