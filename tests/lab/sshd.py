"""Configuration of a lab host's sshd."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# sshd insists on being called by its whole path.
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


@cache
def version() -> tuple[int, int]:
    """OpenSSH's version, as (9, 2); sshd and the client come from one package source."""
    said = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=True).stderr
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def sshd_config(
    *,
    address: str,
    port: int,
    directory: Path,
    host_keys: Sequence[Path],
    path: str,
    log_level: str,
) -> str:
    lines = [
        f"ListenAddress {address}:{port}",
        *(f"HostKey {key}" for key in host_keys),
        "PidFile none",
        f"LogLevel {log_level}",
        f"AuthorizedKeysFile {directory}/keys/%u .ssh/authorized_keys",
        # The lab's directory lies below /tmp, which everybody may write to.
        "StrictModes no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "UsePAM no",
        "UseDNS no",
        "PrintMotd no",
        "PrintLastLog no",
        "MaxStartups 200:30:400",
        "MaxSessions 64",
        f'SetEnv "PATH={path}"',
        "Subsystem sftp internal-sftp",
    ]
    if version() >= (9, 8):
        lines.append("PerSourcePenalties no")
    return "".join(f"{line}\n" for line in lines)
