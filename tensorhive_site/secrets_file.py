"""The secrets of an installation: generated once, never shipped. Needs no settings."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent
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


def env_file(base: Path = BASE_DIR) -> Path:
    """The file of settings; `ENV_FILE` names another one, or /dev/null for none."""
    return Path(os.environ.get("ENV_FILE") or base / ".env")


def data_dir(base: Path = BASE_DIR) -> Path:
    """Where the data is, as the settings find it: the environment, then .env, then var/."""
    environ.Env.read_env(env_file(base))
    return Path(os.environ.get("DATA_DIR") or base / "var").resolve()


def are_there(base: Path = BASE_DIR) -> bool:
    """Whether the settings will find a secret key."""
    folder = data_dir(base)
    if "SECRET_KEY" in os.environ or "SECRET_KEY_FILE" in os.environ:
        return True
    return (folder / "secrets.env").exists()
