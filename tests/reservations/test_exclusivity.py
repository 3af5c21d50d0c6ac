"""Nobody books a GPU twice: real web workers, clients in processes of their own, both databases."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

PROJECT = Path(__file__).resolve().parents[2]
CLIENTS = 16
PASSWORD = "correct horse battery"

# Runs in a process of its own, on the database under test.
PREPARE = f"""
import django
django.setup()
from tests import make
make.everyone_everything()
for number in range({CLIENTS}):
    make.user(f"racer{{number}}")
host = make.host("race")
print(*(make.gpu(host).uuid for _ in range(4)))
"""
OVERLAPS = """
SELECT count(*) FROM reservations_reservationgpu AS one
JOIN reservations_reservationgpu AS other ON other.gpu_id = one.gpu_id AND other.id > one.id
WHERE one.is_standing AND other.is_standing
  AND one.starts_at < other.ends_at AND other.starts_at < one.ends_at
"""
STANDING = "SELECT id FROM reservations_reservation WHERE cancelled_at IS NULL"
SLOTS_WITHOUT_SPAN = """
SELECT count(*) FROM reservations_reservationgpu AS slot
JOIN reservations_reservation AS reservation ON reservation.id = slot.reservation_id
WHERE slot.starts_at <> reservation.starts_at OR slot.ends_at <> reservation.ends_at
"""


@dataclasses.dataclass(frozen=True)
class Site:
    """An installation in processes of its own."""

    folder: Path
    database_url: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            **{
                name: value for name, value in os.environ.items() if name.startswith(("PATH", "LA"))
            },
            "DJANGO_SETTINGS_MODULE": "tensorhive_site.settings",
            "PYTHONPATH": str(PROJECT),
            "DATA_DIR": str(self.folder),
            "DATABASE_URL": self.database_url,
            "SECRET_KEY": "race-only-" + "x" * 50,
            "JWT_SIGNING_KEY": "race-only-" + "y" * 50,
            "THROTTLE_LOGIN": "10000/min",
            "THROTTLE_ANONYMOUS": "10000/min",
        }

    def run(self, *command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=PROJECT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, query: str) -> list[Any]:
        """The first column of what the database answers, past all of our code."""
        if self.database_url.startswith("sqlite"):
            connection: Any = sqlite3.connect(self.folder / "race.sqlite3")
        else:
            connection = psycopg.connect(self.database_url)
        try:
            return [row[0] for row in connection.execute(query).fetchall()]
        finally:
            connection.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'race.sqlite3'}"
    else:
        url = request.getfixturevalue("postgres_database")
    site = Site(tmp_path, url)
    site.run("manage.py", "migrate", "-v0")
    return site


@contextmanager
def web(site: Site) -> Iterator[str]:
    """gunicorn with two workers of four threads each; gives its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    log = site.folder / "web.log"
    command = [
        *(sys.executable, "-m", "gunicorn", "tensorhive_site.wsgi", "--bind", f"127.0.0.1:{port}"),
        *("--workers", "2", "--threads", "4", "--worker-class", "gthread", "--timeout", "60"),
    ]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, cwd=PROJECT, env=site.environment, stdout=output, stderr=output
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_it_answers(url, server, log)
        yield url
    finally:
        server.terminate()
        server.wait(60)


def _wait_until_it_answers(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/api/v1/reservations/", timeout=5)  # noqa: S310  ours
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 401:
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"The web server did not start:\n{log.read_text(errors='replace')[-3000:]}")


def race(url: str, gpus: list[str], count: int) -> list[dict[str, Any]]:
    """What each of the clients, all started at once, has to tell."""
    base = (int(time.time()) // 3600 + 2) * 3600
    clients = [
        subprocess.Popen(
            [
                *(sys.executable, str(Path(__file__).parent / "booking_client.py"), url),
                *(f"racer{number}", PASSWORD, str(count), str(number), str(base), *gpus),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(CLIENTS)
    ]
    told = [client.communicate() for client in clients]
    assert [error for _, error in told if error] == []
    return [json.loads(output) for output, _ in told]


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(12, id="12 each"),
        pytest.param(200, id="200 each", marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
)
def test_overlapping_bookings_never_stand_together(site: Site, count: int) -> None:
    gpus = site.run("-c", PREPARE).split()
    with web(site) as url:
        told = race(url, gpus, count)
    statuses = collections.Counter[str]()
    for one in told:
        statuses.update(one["statuses"])
    odd = [answer for one in told for answer in one["odd"]]
    assert odd == []
    assert set(statuses) <= {"201", "409"}
    assert statuses.total() == CLIENTS * count
    # It was a race: some won, more lost.
    assert 0 < statuses["201"] < statuses["409"]
    acknowledged = [pk for one in told for pk in one["acknowledged"]]
    assert sorted(acknowledged) == sorted(site.ask(STANDING))
    assert site.ask(OVERLAPS) == [0]
    assert site.ask(SLOTS_WITHOUT_SPAN) == [0]
