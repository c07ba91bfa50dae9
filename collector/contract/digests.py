"""Digests that name things: RFC 8785 canonical JSON + sha256, salted HMACs of texts, and the ids made of them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path
from typing import TypeAlias

import rfc8785

from .errors import DossierError

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

SALT_BYTES = 32
_COPY_SALT = "copy protocol.salt again from the machine that froze the protocol"


def canonical_json(value: JsonValue) -> bytes:
    """Return the RFC 8785 bytes of `value`.

    Raises rfc8785.CanonicalizationError for NaN, infinity, integers from 2^53 and keys that are no strings.
    """
    return rfc8785.dumps(value)


def json_digest(value: JsonValue) -> str:
    """Return the sha256 of `value`'s canonical JSON, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def short_id(value: JsonValue) -> str:
    """Return the first 16 digits of `json_digest`: the id of an environment, engine, variant or pass."""
    return json_digest(value)[:16]


def text_hmac(salt: bytes, text: str) -> str:
    """Return the HMAC-SHA256 of the text's UTF-8 bytes: equal texts compare, short ones cannot be guessed.

    The text is taken as it is: no Unicode normalisation, since the hash stands for what was really sent.
    """
    return hmac.new(salt, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes, read in blocks of 1 MiB."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def new_salt() -> bytes:
    """Return a fresh random salt of 32 bytes."""
    return secrets.token_bytes(SALT_BYTES)


def write_salt(path: Path, salt: bytes) -> None:
    """Write the salt as one line of hexadecimal digits, readable by its owner only; never overwrites."""
    with path.open("x", encoding="ascii") as stream:
        stream.write(salt.hex() + "\n")
    path.chmod(0o600)


def read_salt(path: Path) -> bytes:
    """Return the salt written by `write_salt`.

    Raises DossierError when the file is absent or holds anything else.
    """
    try:
        salt = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        raise DossierError(
            f"{path} is missing",
            next_step="copy protocol.salt beside the lock from the machine that froze the protocol",
        ) from None
    except OSError as error:
        raise DossierError(
            f"{path} cannot be read: {error.strerror}",
            next_step="let its owner run this, or copy protocol.salt again from the machine that froze the protocol",
        ) from None
    except ValueError:
        raise DossierError(f"{path} is not a salt", next_step=_COPY_SALT) from None
    if len(salt) != SALT_BYTES:
        raise DossierError(
            f"{path} holds {len(salt)} bytes, not {SALT_BYTES}",
            next_step=_COPY_SALT,
        )
    return salt
