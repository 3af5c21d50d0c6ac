"""`make run` from a clone, as a person types it: up, used, refused a second time, stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.site.cluster_site import wait_until
from tests.site.processes import processes_of
from tests.site.running import BASE_DIR, PASSWORD, environment

pytestmark = [pytest.mark.timeout(900)]
# Ctrl-C: everything that needs an answer gets it, nobody waits for a time limit.
STOP_SECONDS = 35
_OF_THE_TEST_RUN = (
    *("DJANGO_SETTINGS_MODULE", "ENV_FILE", "PYTHONPATH"),
    *("VENV", "MAKEFLAGS", "MAKELEVEL"),
)
OPENER = urllib.request.build_opener()


class Installation:
    """A clone with its own data; at most one `make run` at a time."""

    def __init__(self, clone: Path, *, venv: Path | None) -> None:
        self.clone = clone
        self.data_dir = clone / "my data"
        self.output = clone / "output"
        self.printed = ""
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        # Relative, with a space: both are what people write.
        self.environment = environment(Path("my data"), ADMIN_USERNAME="boss")
        (clone / ".env").write_text(f"PORT={self.port}\nHEARTBEAT_SECONDS=2\n")
        for name in _OF_THE_TEST_RUN:
            self.environment.pop(name, None)
        if venv:
            self.environment["VENV"] = str(venv)

    def start(self, seconds: float = 300) -> None:
        """Start and wait until it is well; `printed` is what it said."""
        with self.output.open("wb") as output:
            self.make = subprocess.Popen(
                ["make", "run"],
                cwd=self.clone,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        wait_until(self._is_well_or_over, f"health\n{self.output.read_text()}", seconds)
        assert self.make.poll() is None, self.output.read_text()
        self.printed = self.output.read_text()

    def _is_well_or_over(self) -> bool:
        return self.make.poll() is not None or self.health() == 200

    def health(self) -> int | None:
        try:
            with OPENER.open(f"{self.address}/healthz", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def interrupt(self) -> None:
        """Ctrl-C reaches the terminal's foreground group."""
        os.killpg(self.make.pid, signal.SIGINT)

    def refused(self, **more: str) -> str:
        """What a `make run` that must not start says."""
        done = subprocess.run(
            ["make", "run"],
            cwd=self.clone,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        return done.stderr

    def end(self) -> None:
        for pid in processes_of(self.data_dir):
            os.kill(pid, signal.SIGKILL)
        if hasattr(self, "make"):
            self.make.wait(STOP_SECONDS)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def cloned(target: Path, *, with_packages: bool) -> Path:
    """The files that git would clone, as they are now."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=BASE_DIR, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (source := BASE_DIR / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / name)
    if with_packages:
        shutil.copytree(BASE_DIR / "node_modules", target / "node_modules")
    return target


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One that runs, with the packages of the test run."""
    clone = cloned(tmp_path_factory.mktemp("clone"), with_packages=True)
    made = Installation(clone, venv=Path(sys.prefix))
    try:
        made.start()
        yield made
    finally:
        made.end()


def test_it_says_where_it_is_and_does_not_repeat_a_given_password(
    installation: Installation,
) -> None:
    assert f"TensorHive is at {installation.address}" in installation.printed
    assert "The first administrator is boss" in installation.printed
    assert PASSWORD not in installation.printed


def test_the_first_administrator_signs_in_on_the_page(installation: Installation) -> None:
    cookies = CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    with browser.open(f"{installation.address}/") as page:
        assert page.url.startswith(f"{installation.address}/login/")
    token = next(cookie.value for cookie in cookies if cookie.name == "csrftoken")
    form = {"username": "boss", "password": PASSWORD, "csrfmiddlewaretoken": token}
    browser.addheaders = [("Referer", f"{installation.address}/login/")]
    with browser.open(f"{installation.address}/login/", urlencode(form).encode()) as page:
        assert page.url == f"{installation.address}/"
        text = page.read().decode()
    stylesheet = text.split('href="/static/css/app.')[1].split('"')[0]
    with browser.open(f"{installation.address}/static/css/app.{stylesheet}") as answer:
        assert "immutable" in answer.headers["Cache-Control"]


def test_the_api_gives_a_token(installation: Installation) -> None:
    connection = HTTPConnection("127.0.0.1", installation.port, timeout=30)
    body = json.dumps({"username": "boss", "password": PASSWORD})
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/api/v1/auth/token/", body, headers)
    answer = connection.getresponse()
    assert (answer.status, {"access", "refresh"} <= json.load(answer).keys()) == (200, True)
    connection.close()


def test_the_password_is_in_no_process_and_the_role_in_each(installation: Installation) -> None:
    found = processes_of(installation.data_dir).values()
    assert len(found) > 15
    assert [one.arguments for one in found if "ADMIN_PASSWORD" in one.environment] == []
    web = [one for one in found if "gunicorn" in one.arguments]
    assert {one.environment["TENSORHIVE_ROLE"] for one in web} == {"web"}


def test_a_second_start_says_what_is_in_the_way(installation: Installation) -> None:
    assert "is running already" in installation.refused(PORT=str(free_port()))
    assert "Choose another PORT=" in installation.refused(DATA_DIR="other data")
    assert installation.health() == 200


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"BIND": "0.0.0.0"}, "would serve passwords over plain HTTP"),  # noqa: S104
        ({"PORT": "http"}, "PORT=http is not a port number"),
        ({"PORT": "70000"}, "PORT=70000 is not a port number"),
        ({"DATA_DIR": "/proc/nowhere"}, "Cannot write to DATA_DIR"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(
    installation: Installation, given: dict[str, str], sentence: str
) -> None:
    assert sentence in installation.refused(**given)


def test_ctrl_c_leaves_nothing_and_the_next_start_goes_on(installation: Installation) -> None:
    before = (installation.data_dir / "secrets.env").read_text()
    installation.interrupt()
    installation.make.wait(STOP_SECONDS)
    assert processes_of(installation.data_dir) == {}
    installation.start()
    assert "password" not in installation.printed
    assert (installation.data_dir / "secrets.env").read_text() == before
    # The process manager dies and cannot tell anybody: its programs notice.
    manager = int((installation.data_dir / "run" / "supervisord.pid").read_text())
    os.kill(manager, signal.SIGKILL)
    wait_until(lambda: not processes_of(installation.data_dir), "the end of all", STOP_SECONDS)


@pytest.mark.long
def test_a_fresh_clone_makes_its_own_environment_in_time(tmp_path: Path) -> None:
    clone = cloned(tmp_path, with_packages=False)
    made = Installation(clone, venv=None)
    began = time.monotonic()
    try:
        made.start()
        assert time.monotonic() - began < 300
        assert (clone / ".venv" / "bin" / "python").exists()
        assert (clone / "node_modules" / "uplot" / "dist").is_dir()
        made.interrupt()
        made.make.wait(STOP_SECONDS)
        assert processes_of(made.data_dir) == {}
    finally:
        made.end()
