"""The pages as they are served for real: collected files under hashed names, by gunicorn."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Page, Response, expect

pytestmark = pytest.mark.browser

PASSWORD = "correct horse battery"
SET_UP = f"""
from django.utils import timezone
from accounts.models import User
from monitoring.models import Gpu, Host
User.objects.create_superuser("root", "", "{PASSWORD}")
now = timezone.now()
host = Host.objects.create(name="gpu01", address="127.0.1.1", user="observer")
Gpu.objects.create(uuid="GPU-1", host=host, index=0, first_seen_at=now, last_seen_at=now)
"""


def manage(environment: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an installation of its own, with one administrator, host and GPU."""
    place = tmp_path_factory.mktemp("site")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
        "DJANGO_SETTINGS_MODULE": "tensorhive_site.settings",
        "SECRET_KEY": "tests-only-" + "x" * 50,
        "JWT_SIGNING_KEY": "tests-only-" + "y" * 50,
        "DATA_DIR": str(place),
        "STATIC_ROOT": str(place / "static"),
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "TENSORHIVE_ROLE": "web",
    }
    # The API's documentation is large and has no modules.
    manage(environment, "collectstatic", "--noinput", "--ignore", "drf_spectacular_sidecar*")
    manage(environment, "migrate", "--verbosity", "0")
    manage(environment, "shell", "-c", SET_UP)
    with (place / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "tensorhive_site.wsgi", f"-b127.0.0.1:{port}"],
            cwd=settings.BASE_DIR,
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/login/", place / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(20)


def wait_for(address: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=5):  # noqa: S310  ours, http
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(log.read_text())


@pytest.fixture
def signed_in(page: Page, site: str) -> Page:
    page.goto(f"{site}/login/")
    page.get_by_label("Username").fill("root")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    return page


def scripts_of(page: Page, address: str, site: str) -> dict[str, Response]:
    """Path -> answer of every script that the page loads from us."""
    found: dict[str, Response] = {}

    def note(response: Response) -> None:
        if response.request.resource_type == "script":
            found[response.url.removeprefix(site)] = response

    page.on("response", note)
    page.goto(address, wait_until="networkidle")
    page.remove_listener("response", note)
    return found


@pytest.mark.parametrize("name", ["dashboard", "host", "calendar", "reservations", "jobs"])
def test_every_script_of_a_page_comes_under_its_hashed_name(
    signed_in: Page, site: str, console_errors: list[str], name: str
) -> None:
    path = reverse(name, args=["gpu01"] if name == "host" else [])

    scripts = scripts_of(signed_in, f"{site}{path}", site)

    assert scripts
    unhashed = [path for path in scripts if not re.search(r"\.[0-9a-f]{12}\.js$", path)]
    assert unhashed == []
    for response in scripts.values():
        assert response.status == 200
        assert "immutable" in response.headers["cache-control"]


def test_modules_find_their_neighbours_and_packages(
    signed_in: Page, site: str, console_errors: list[str]
) -> None:
    scripts = scripts_of(signed_in, f"{site}/hosts/gpu01/", site)

    loaded = {re.sub(r"\.[0-9a-f]{12}\.js$", ".js", path) for path in scripts}
    assert "/static/vendor/uplot/uPlot.esm.js" in loaded
    own = {
        f"/static/js/monitoring/{file}.js" for file in ("main", "live", "morph", "ages", "chart")
    }
    assert own <= loaded
    expect(signed_in.get_by_text("No samples in the last hour.")).to_be_visible()
    expect(signed_in.get_by_text("Live, every 5 s")).to_be_visible()


def test_the_import_map_covers_every_module(signed_in: Page, site: str) -> None:
    text = signed_in.locator('script[type="importmap"]').text_content() or ""
    files = (settings.BASE_DIR / "static" / "js").rglob("*.js")

    for file in files:
        assert f'"/static/{file.relative_to(settings.BASE_DIR / "static")}": ' in text


def test_the_console_is_whole_under_hashed_names(
    signed_in: Page, site: str, console_errors: list[str]
) -> None:
    signed_in.goto(f"{site}/admin/monitoring/host/add/", wait_until="networkidle")

    expect(signed_in.get_by_role("link", name="Console")).to_be_visible()
