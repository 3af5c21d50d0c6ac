"""`manage.py doctor`: says what is set and from where, shows no secret, fails on faults."""

from __future__ import annotations

import io
import socket
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitoring import ssh
from monitoring.models import Heartbeat

SECRET = "a-secret-that-nobody-should-see"


@pytest.fixture
def installation(data_dir: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sound one whose clusters beat, with settings from all three places."""
    for name in ("observing", "acting"):
        ssh.generate_key(data_dir / "keys" / name, name)
    (data_dir / "secrets.env").write_text(f"SECRET_KEY={SECRET}\nMETRICS_TOKEN={SECRET}\n")
    (data_dir / ".env").write_text("TIME_ZONE=Europe/Warsaw\n")
    monkeypatch.setenv("ENV_FILE", str(data_dir / ".env"))
    (data_dir / ".env.example").write_text((settings.BASE_DIR / ".env.example").read_text())
    settings.BASE_DIR = data_dir
    for name in ("SECRET_KEY", "METRICS_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("TIME_ZONE", "Europe/Warsaw")
    monkeypatch.setenv("EMAIL_URL", f"smtp://sender:{SECRET}@mail.example.org:25")
    monkeypatch.delenv("DATABASE_URL", raising=False)  # of the test run
    # Browser tests set what this check is against, and need it as long as their loop runs.
    settings.SILENCED_SYSTEM_CHECKS = ["async.E001"]
    now = timezone.now()
    for name in settings.CLUSTER_SIZES:
        Heartbeat.objects.create(
            cluster=name, machine=socket.gethostname(), process_id=1, version="1", beat_at=now
        )
    return data_dir


def doctor() -> str:
    output = io.StringIO()
    call_command("doctor", stdout=output)
    return output.getvalue()


@pytest.mark.django_db
@pytest.mark.usefixtures("installation")
def test_settings_are_shown_with_their_source_and_secrets_are_not() -> None:
    said = doctor()
    assert SECRET not in said
    assert "SECRET_KEY=•••  (secrets.env)" in said
    assert "TIME_ZONE=Europe/Warsaw  (.env)" in said
    assert "EMAIL_URL=smtp://sender:•••@mail.example.org:25  (environment)" in said
    assert "cluster watch: ok" in said


@pytest.mark.django_db
def test_a_fault_fails_the_command(installation: Path) -> None:
    (installation / "keys" / "acting").chmod(0o644)
    Heartbeat.objects.filter(cluster="slow").delete()
    output = io.StringIO()
    # The key is wrong as a part and as a check; the cluster as a part.
    with pytest.raises(CommandError, match="3 problems need a hand"):
        call_command("doctor", stdout=output)
    assert "can be read by others" in output.getvalue()
    assert "cluster slow: It has not run any task yet." in output.getvalue()
