"""Runs llama.cpp's native server from the package xllamacpp, with its metrics, until it is told to end.

llamacpp_server.py MODEL.gguf --port 8080 [--host 127.0.0.1] [--context 8192] [--parallel 4] [--threads 1] [--alias A]
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path


def main() -> None:
    """Start the server with the flags given and wait for SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description="llama.cpp's native server, in the foreground")
    parser.add_argument("model", type=Path, help="GGUF file")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--context", type=int, default=8192, help="tokens of all slots together")
    parser.add_argument("--parallel", type=int, default=4, help="slots: requests computed at a time")
    parser.add_argument("--threads", type=int, default=1, help="of decoding and of reading prompts")
    parser.add_argument("--alias", help="the model's name in requests")
    chosen = parser.parse_args()

    # Before the server has threads of its own: they inherit the mask, and the main thread alone takes the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(chosen.model)
    parameters.n_ctx = chosen.context
    parameters.n_parallel = chosen.parallel
    parameters.hostnames = [chosen.host]
    parameters.port = chosen.port
    parameters.endpoint_metrics = True
    parameters.endpoint_props = True
    parameters.cpuparams.n_threads = chosen.threads
    parameters.cpuparams_batch.n_threads = chosen.threads
    if chosen.alias:
        parameters.model_alias = {chosen.alias}
    server = xllamacpp.Server(parameters)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


if __name__ == "__main__":
    main()
