"""A certificate of this machine's loopback address, for servers that speak TLS."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def self_signed_certificate(folder: Path) -> Path:
    """Make a self-signed certificate of 127.0.0.1, its key in the same file; skips the test without openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("makes a certificate with the command openssl, which is not installed")
    made = folder / "certificate.pem"
    subprocess.run(
        [
            openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", str(folder / "key.pem"), "-out", str(made),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    made.write_bytes(made.read_bytes() + (folder / "key.pem").read_bytes())
    return made
