"""SSH keys of hosts and people."""

import subprocess
from pathlib import Path


def make_key(path: Path, *, kind: str = "ed25519", comment: str = "lab") -> Path:
    """Write a new private key (0600) to path, in place of an old one, and its public key beside."""
    path.unlink(missing_ok=True)
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", comment, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


def public_line(private: Path) -> str:
    """The line for authorized_keys, without a line end."""
    return private.with_name(private.name + ".pub").read_text().strip()


def fingerprint(private: Path) -> str:
    """As ssh shows it: SHA256:…"""
    public = private.with_name(private.name + ".pub")
    command = ["ssh-keygen", "-l", "-E", "sha256", "-f", str(public)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1]
