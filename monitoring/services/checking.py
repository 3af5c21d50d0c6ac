"""The check of a host that an administrator asks for: a readable list of what works and what not.

Runs where the keys are (a worker or a command), never in the web process.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from monitoring import naming, probe, ssh
from monitoring.drawing import SECTIONS
from monitoring.models import Host, HostRequest
from monitoring.requests import RequestFailed
from monitoring.services import host_keys, hosts
from monitoring.services.targets import target_of
from monitoring.snapshot import Section, SectionState, Snapshot

_SCRIPT = (Path(__file__).resolve().parent.parent / "check.sh").read_text()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `ok` None: could not be told, or a remark."""

    name: str
    ok: bool | None
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found; `ok` only if the host can be watched as it is."""

    ok: bool
    findings: tuple[Finding, ...]

    def as_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "findings": [asdict(finding) for finding in self.findings]}


def check(host: Host) -> Report:
    """Look at the host now, over a connection of its own. Never raises for what hosts do."""
    if (
        not host.keys.exclude(accepted_at=None)
        .filter(address=host.address, port=host.port)
        .exists()
    ):
        return _check_unpinned(host)
    nonce = secrets.token_hex(8)
    target = target_of(host)
    answer = ssh.run(
        target,
        f"{probe.function_text()}\n{probe.request_line(nonce, first=True)}\n",
        deadline=settings.SSH_DEADLINE.total_seconds(),
    )
    if not answer.ok:
        _remember_keys(host, answer)
        return Report(False, (Finding("Connection", False, answer.reason), *_key_hint(host)))
    findings = [
        Finding("Connection", True, f"Logged in as {host.user} in {answer.elapsed:.1f} s."),
        *_probe_findings(probe.read_snapshot(answer.stdout, nonce)),
        *_surroundings(ssh.run(target, _SCRIPT, deadline=settings.SSH_DEADLINE.total_seconds())),
    ]
    return Report(all(finding.ok is not False for finding in findings), tuple(findings))


def fetch_keys(host: Host) -> Report:
    """Ask the host (or first its jump host) for its key, without any authentication."""
    return _check_unpinned(host)


def handle_check(request: HostRequest) -> dict[str, Any]:
    """Answer a "check_host" request; the watch looks at the host again at once."""
    host = _host_of(request)
    report = check(host)
    hosts.request_probe(host)
    return report.as_json()


def _host_of(request: HostRequest) -> Host:
    if request.host is None:
        raise RequestFailed("This host was deleted meanwhile.")
    return request.host


def _check_unpinned(host: Host) -> Report:
    """The host's key is not accepted yet: fetch and show it, log in nowhere."""
    jump = target_of(host).jump
    if jump is not None and not jump.pins:
        answer = ssh.fetch_host_keys(jump.address, deadline=10)
        where = "jump host"
    else:
        answer = ssh.fetch_host_keys(ssh.Address(host.address, host.port), jump=jump, deadline=10)
        where = "host"
    if not answer.seen_keys:
        return Report(False, (Finding("Connection", False, answer.reason),))
    _remember_keys(host, answer)
    return Report(False, (Finding("Connection", True, f"The {where} answers."), *_key_hint(host)))


def _remember_keys(host: Host, answer: ssh.Result) -> None:
    """Write down the keys that are not trusted, for the place that showed them."""
    if (where := answer.seen_at) is not None:
        host_keys.record_seen(
            host, address=where.host, port=where.port, lines=answer.seen_keys, now=timezone.now()
        )


def _key_hint(host: Host) -> list[Finding]:
    return [
        Finding(
            "Host key",
            False,
            f"{key.address}:{key.port} offers {key.key_type} {key.fingerprint}, which is not"
            " accepted. Compare it with what the machine itself says, for example"
            " ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub, and accept it in the console.",
        )
        for key in host_keys.pending(host)
    ]


def _probe_findings(snapshot: Snapshot | probe.BrokenAnswer) -> list[Finding]:
    if isinstance(snapshot, probe.BrokenAnswer):
        return [Finding("Probe", False, snapshot.reason)]
    findings = [
        _section_finding(name, section, snapshot) for name, section in snapshot.sections.items()
    ]
    findings += [
        Finding("GPU", False, f"{lost.bus_id or lost.index}: {lost.reason}.")
        for lost in snapshot.lost_gpus
    ]
    if snapshot.clock_seconds is not None:
        skew = snapshot.clock_seconds - timezone.now().timestamp()
        text = f"The host's clock is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}."
        findings.append(Finding("Clock", abs(skew) <= 60, text))
    return findings


def _section_finding(name: str, section: Section, snapshot: Snapshot) -> Finding:
    label = SECTIONS.get(name, name)
    if section.state is SectionState.OK:
        return Finding(label, True, _good_news(name, snapshot))
    # What a host simply does not have is a remark; only GPUs are what we came for.
    ok = None if section.state is SectionState.UNAVAILABLE and name != "gpus" else False
    return Finding(label, ok, section.reason or "No answer.")


def _good_news(name: str, snapshot: Snapshot) -> str:
    match name:
        case "gpus":
            models = ", ".join(
                f"{reading.index}: {reading.name or 'unnamed'}" for reading in snapshot.gpus
            )
            return f"{len(snapshot.gpus)} found ({models})."
        case "processes":
            return f"{len(snapshot.processes)} running."
        case "logins":
            return f"{len(snapshot.logins)} logged in, known from {snapshot.logins_source}."
    return "Read."


def _surroundings(answer: ssh.Result) -> list[Finding]:
    if not answer.ok or b"done" not in answer.stdout:
        return [Finding("Programs", None, answer.reason or "The host did not say what it has.")]
    said = [
        line.partition(" ")[::2]
        for line in naming.printable_lines(answer.stdout.decode(errors="replace"))
    ]
    lacking = [what for word, what in said if word == "lacks"]
    groups = next((what.split() for word, what in said if word == "groups"), [])
    return [
        _terminals(groups),
        _programs(lacking),
        _sight(("sees", "own") in said),
        *_lingering([what for word, what in said if word == "logind"]),
    ]


def _terminals(groups: list[str]) -> Finding:
    if "tty" in groups or "root" in groups:
        return Finding("Warnings", True, "The observing account writes to terminals (group tty).")
    return Finding(
        "Warnings",
        None,
        "The observing account is not in group tty: warnings are written with the acting key,"
        " where the person's account accepts it (ssh_key --acting), and fail otherwise.",
    )


def _programs(lacking: list[str]) -> Finding:
    needless = {"nvidia-smi", "loginctl", "flock"}
    missing = [name for name in lacking if name not in needless]
    if not missing:
        return Finding("Programs", True, "Everything that jobs and warnings need is there.")
    uses = {"screen": "jobs run detached without it and cannot be attached to"}
    text = "; ".join(
        f"{name} is missing" + (f" ({uses[name]})" if name in uses else "") for name in missing
    )
    return Finding("Programs", None, text + ".")


def _sight(is_blind: bool) -> Finding:
    if is_blind:
        return Finding(
            "Processes of others",
            False,
            "The observing account sees only its own processes (hidepid): owners stay unknown."
            " Give it the gid that /proc is mounted with.",
        )
    return Finding("Processes of others", True, "Visible.")


def _lingering(values: list[str]) -> list[Finding]:
    if any(value.strip().lower() in ("yes", "true", "1", "on") for value in values):
        return [
            Finding(
                "Sessions",
                None,
                "KillUserProcesses is on: jobs end when their start's login ends, unless the"
                " person lingers (loginctl enable-linger).",
            )
        ]
    return []
