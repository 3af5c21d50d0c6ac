"""Key files of our own, and how public keys are shown."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import stat
from pathlib import Path

import paramiko
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def generate_key(path: Path, comment: str) -> str:
    """Create an ed25519 key (0600, in a directory 0700) and return its public line.

    Raises FileExistsError: a key is never overwritten.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    line = f"{public.decode()} {comment}"
    # Created with its mode: there is no moment at which others could open it.
    _write_new(path, private, 0o600)
    _write_new(path.with_name(path.name + ".pub"), f"{line}\n".encode(), 0o644)
    return line


def public_line(path: Path) -> str:
    """The public line that stands beside a key of ours."""
    return path.with_name(path.name + ".pub").read_text().strip()


def fingerprint(line: str) -> str:
    """The SHA-256 fingerprint of a public key line, as OpenSSH prints it."""
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def check_key_file(path: Path) -> str | None:
    """What is wrong with a private key file, in one sentence; None when it is fine."""
    try:
        found = path.lstat()
        directory = path.parent.stat()
    except OSError:
        return f"The key {path} does not exist."
    if not stat.S_ISREG(found.st_mode):
        return f"The key {path} must be a plain file, not a link."
    if found.st_uid != os.geteuid():
        return f"The key {path} must belong to the account that runs the workers."
    if found.st_mode & 0o077:
        return f"The key {path} can be read by others: chmod 600 {path}."
    if directory.st_mode & 0o077:
        return f"The directory of the key {path} is open to others: chmod 700 {path.parent}."
    return None


def load_key(path: Path) -> paramiko.PKey:
    """The private key; read again only when the file changed. Raises OSError, SSHException."""
    return _load(str(path), path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _load(path: str, changed_at: int) -> paramiko.PKey:
    return paramiko.PKey.from_path(path)


def _write_new(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
