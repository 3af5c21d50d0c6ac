"""The secrets of an installation: generated once, never shipped. Plain Python, before Django."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

NAMES = ("SECRET_KEY", "JWT_SIGNING_KEY", "METRICS_TOKEN")


def ensure(data_dir: Path) -> bool:
    """Create `data_dir` (0700) and secrets.env (0600) in it; True when it was made now."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = data_dir / "secrets.env"
    try:
        # Created with its mode: there is no moment at which others could open it.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        # token_urlsafe has letters, digits, dash and underscore only: nothing a reader of
        # environment files would take for a reference or a comment.
        file.writelines(f"{name}={secrets.token_urlsafe(48)}\n" for name in NAMES)
    return True


def data_dir_of(environment: dict[str, str], base: Path) -> Path:
    """Where the data is, as the settings find it: the environment, then .env, then var/."""
    chosen = environment.get("DATA_DIR") or _from_env_file(base / ".env") or str(base / "var")
    return Path(chosen).resolve()


def are_there(environment: dict[str, str], base: Path) -> bool:
    """Whether the settings will find a secret key."""
    if "SECRET_KEY" in environment or "SECRET_KEY_FILE" in environment:
        return True
    return (data_dir_of(environment, base) / "secrets.env").exists()


def _from_env_file(path: Path) -> str | None:
    if not path.exists():
        return None
    for line in path.read_text().splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and name.removeprefix("export ").strip() == "DATA_DIR":
            return value.strip().strip("'\"")
    return None
