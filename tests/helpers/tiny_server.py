"""A server that behaves badly on request, run as a command of its own: `python tiny_server.py PORT [what ...]`.

late=S: answers 503 for S seconds. never: 503 for ever. die: says so and exits 3 at once. die=S: exits 7 after S s.
stubborn: ignores SIGTERM. child: starts a process that sleeps. orphan: one whose parent has ended. touch=MIB: one that
holds so much memory. says=TEXT: prints the text.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

SLEEP = "import time; time.sleep(300)"
HOLD = "import time; block = bytearray({} << 20); block[::4096] = b'x' * len(block[::4096]); time.sleep(300)"


def main() -> None:
    """Do what is asked and serve."""
    port = int(sys.argv[1])
    asked = {word.partition("=")[0]: word.partition("=")[2] for word in sys.argv[2:]}
    if "says" in asked:
        _say(asked["says"])
    if "die" in asked and not asked["die"]:
        _say("this server dies at once")
        sys.exit(3)
    if "stubborn" in asked:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "child" in asked:
        subprocess.Popen([sys.executable, "-c", SLEEP])
    if "orphan" in asked:
        between = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}])"
        subprocess.run([sys.executable, "-c", between], check=True)
    if "touch" in asked:
        subprocess.Popen([sys.executable, "-c", HOLD.format(int(asked["touch"]))])
    if asked.get("die"):
        threading.Timer(float(asked["die"]), lambda: os._exit(7)).start()
    ready_at = float("inf") if "never" in asked else time.monotonic() + float(asked.get("late", 0))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if time.monotonic() >= ready_at else 503)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
