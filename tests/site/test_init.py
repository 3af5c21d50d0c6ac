"""`manage.py init`, in a process of its own and an empty data directory."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.site.running import environment, manage


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not there yet, and a name that a careless script would fall apart on."""
    return tmp_path_factory.mktemp("init") / "data of ours #1 (100%)"


@pytest.fixture(scope="module")
def first(data_dir: Path) -> str:
    """What the first `init` prints."""
    given = environment(data_dir)
    del given["ADMIN_PASSWORD"]
    done = manage(given, "init")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_other_commands_refuse_in_one_line_without_secrets(tmp_path: Path) -> None:
    done = manage(environment(tmp_path / "none"), "migrate")
    assert done.returncode != 0
    assert done.stderr.splitlines() == [
        "This installation has no secrets yet. Run manage.py init first."
    ]
    assert not (tmp_path / "none").exists()


def test_secrets_and_keys_are_for_the_account_alone(data_dir: Path, first: str) -> None:
    modes = {
        path.relative_to(data_dir).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in data_dir.rglob("*")
    }
    assert modes["secrets.env"] == 0o600
    assert modes["keys/observing"] == modes["keys/acting"] == 0o600
    assert stat.S_IMODE(data_dir.stat().st_mode) == modes["keys"] == 0o700
    assert [name for name, mode in modes.items() if mode & 0o022] == []
    assert modes["tensorhive.sqlite3"] & 0o077 == 0


def test_every_secret_is_long_and_another(data_dir: Path, first: str) -> None:
    lines = (data_dir / "secrets.env").read_text().splitlines()
    values = dict(line.split("=", 1) for line in lines)
    assert values.keys() == {"SECRET_KEY", "JWT_SIGNING_KEY", "METRICS_TOKEN"}
    assert len(set(values.values())) == 3
    assert min(map(len, values.values())) >= 60


def test_the_password_is_shown_once_and_nothing_is_made_twice(data_dir: Path, first: str) -> None:
    assert "The first administrator is admin, password: " in first
    before = _contents(data_dir)
    again = manage(environment(data_dir, ADMIN_USERNAME="second"), "init")
    assert again.returncode == 0, again.stderr
    assert "password" not in again.stdout
    assert _contents(data_dir) == before
    people = manage(
        environment(data_dir),
        "shell",
        "--no-imports",
        "-c",
        "from accounts.models import User; print(*User.objects.values_list('username'))",
    )
    assert people.stdout.strip() == "('admin',)", people.stderr


def test_a_given_password_is_taken_and_not_shown(tmp_path: Path) -> None:
    done = manage(environment(tmp_path, ADMIN_USERNAME="boss"), "init")
    assert "The first administrator is boss, with the password from ADMIN_PASSWORD." in done.stdout
    assert "shown this once" not in done.stdout
    assert "correct horse battery" not in done.stdout + done.stderr


def test_a_weak_password_is_refused_in_one_sentence(tmp_path: Path) -> None:
    done = manage(environment(tmp_path, ADMIN_PASSWORD="short"), "init")
    assert done.returncode != 0
    assert "ADMIN_PASSWORD" in done.stderr
    assert "Traceback" not in done.stderr


def _contents(data_dir: Path) -> dict[str, bytes]:
    """Secrets and keys, byte by byte."""
    files = [data_dir / "secrets.env", *sorted((data_dir / "keys").iterdir())]
    return {file.name: file.read_bytes() for file in files}
