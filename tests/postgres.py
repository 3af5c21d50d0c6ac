"""A PostgreSQL server of the tests' own, for what must hold on both databases."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

_PROGRAMS = Path("/usr/lib/postgresql")
_ACCOUNT = "postgres"
_START_SECONDS = 60


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Address of a server whose account may create databases; its own database is empty.

    `TEST_POSTGRES_URL` names one that runs already; otherwise one is started.
    """
    if given := os.environ.get("TEST_POSTGRES_URL"):
        yield given
        return
    with server() as url:
        yield url


@contextmanager
def server() -> Iterator[str]:
    """A server on loopback in a temporary directory, stopped at the end; gives its address."""
    programs = _newest_programs()
    folder = Path(tempfile.mkdtemp(prefix="tensorhive-postgres-"))
    account = _ACCOUNT if os.geteuid() == 0 else None
    if account:
        owner = pwd.getpwnam(account)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    port = _free_port()
    data = folder / "data"
    initdb: list[str | Path] = [
        programs / "initdb",
        "-D",
        data,
        "-U",
        _ACCOUNT,
        "-A",
        "trust",
        "-E",
        "UTF8",
        "-N",
    ]
    subprocess.run(initdb, check=True, capture_output=True, cwd="/", **_as(account))
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [
                *(programs / "postgres", "-D", data, "-k", folder),
                *("-h", "127.0.0.1", "-p", str(port), "-c", "max_connections=60"),
                # Nothing here outlives the tests, so nothing waits for the disk.
                *("-c", "fsync=off"),
            ],
            cwd="/",
            stdout=output,
            stderr=output,
            **_as(account),
        )
    url = f"postgres://{_ACCOUNT}@127.0.0.1:{port}/postgres"
    try:
        _wait_until_it_answers(url, server, log)
        yield url
    finally:
        server.send_signal(2)  # SIGINT: the fast shutdown
        server.wait(_START_SECONDS)
        shutil.rmtree(folder)


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """The address of a fresh, empty database."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    yield urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}"))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _newest_programs() -> Path:
    versions = sorted(
        (folder / "bin" for folder in _PROGRAMS.glob("*") if (folder / "bin/initdb").exists()),
        key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0),
    )
    if versions:
        return versions[-1]
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    pytest.fail("PostgreSQL is missing: install it with `apt-get install postgresql`.")


def _as(account: str | None) -> dict[str, Any]:
    """Arguments that run a program as the account; PostgreSQL refuses to run as root."""
    return {"user": account, "group": account, "extra_groups": []} if account else {}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_until_it_answers(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"PostgreSQL did not start:\n{log.read_text(errors='replace')[-2000:]}")
