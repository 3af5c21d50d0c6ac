"""Writing a warning to the terminals of an intruder. Runs in the actions cluster."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from accounts.models import zone_of
from monitoring import ssh
from monitoring.models import HostRequest, HostSnapshot
from monitoring.services.targets import target_of
from reservations import enforcement
from reservations.models import Violation, ViolationStep
from reservations.services.policy import current_policy

_SCRIPT = (Path(__file__).resolve().parent.parent / "terminal.sh").read_text()
_DEADLINE = 12.0  # seconds for one attempt; there are two, by each key
_OVERDUE = dt.timedelta(minutes=3)


def handle_warn(request: HostRequest) -> dict[str, Any]:
    """Answer a "warn_terminals" request: take the step it names, and complete its row."""
    step = (
        ViolationStep.objects.select_related(
            "violation__host",
            "violation__gpu__host",
            "violation__reservation__owner",
            "violation__person",
        )
        .filter(pk=request.arguments["step"], result="")
        .first()
    )
    if step is None:
        return {}
    if reason := _no_longer(step.violation, timezone.now()):
        _complete(step, ViolationStep.Result.SKIPPED, reason)
    else:
        _complete(step, *_warn(step.violation))
    return {"result": step.result, "text": step.text}


def fail_overdue(now: dt.datetime) -> None:
    """Steps whose worker died in between: what happened on the host is not known."""
    open_ones: QuerySet[ViolationStep] = ViolationStep.objects.filter(
        result="", at__lt=now - _OVERDUE
    )
    open_ones.update(
        result=ViolationStep.Result.FAILED,
        text="The worker that was to do this was interrupted.",
        finished_at=now,
    )


def _no_longer(violation: Violation, now: dt.datetime) -> str | None:
    """Why nobody is warned after all, looked at again right before writing."""
    policy = current_policy()
    if policy.dry_run or not policy.enforcement_level:
        return "The policy changed before the warning was written."
    if violation.ended_at is not None:
        return "It had ended before the warning was written."
    reservation = violation.reservation
    if reservation is not None and (
        reservation.cancelled_at is not None
        or not reservation.starts_at <= now < reservation.ends_at
    ):
        return "The reservation had ended before the warning was written."
    if violation.host.is_stale(now):
        return "The host stopped answering: nothing is done on old knowledge."
    return None


def _warn(violation: Violation) -> tuple[ViolationStep.Result, str]:
    """Write to every terminal of the intruder; by the observing account, else in their own name."""
    terminals = _terminals(violation)
    if terminals is None:
        return (
            ViolationStep.Result.FAILED,
            "The host could not tell who is logged in, so no terminal is known.",
        )
    if not terminals:
        return (
            ViolationStep.Result.SKIPPED,
            f"{violation.intruder} has no terminal open on {violation.host.name}.",
        )
    message = _message(violation)
    sent, refused = _write(violation, terminals, message, key="observing")
    if refused:
        also, refused = _write(violation, list(refused), message, key="acting", earlier=refused)
        sent += also
    return _outcome(sent, refused)


def _terminals(violation: Violation) -> list[str] | None:
    data = HostSnapshot.objects.get(host=violation.host_id).data
    if data.get("logins_source") is None:
        return None
    found = {
        row["terminal"]
        for row in data.get("logins", ())
        if row.get("terminal") and row.get("login") == violation.intruder
    }
    return sorted(found)


def _write(
    violation: Violation,
    terminals: Sequence[str],
    message: str,
    *,
    key: str,
    earlier: Mapping[str, str] | None = None,
) -> tuple[list[str], dict[str, str]]:
    """Try with one key: the terminals written to, and those that were not, each with its reason."""
    if key == "acting":
        target = target_of(violation.host, key="acting", user=violation.intruder)
    else:
        target = target_of(violation.host)
    answer = ssh.run(
        target,
        _SCRIPT,
        arguments=[str(violation.intruder_uid), message, *terminals],
        deadline=_DEADLINE,
    )
    said = dict(
        line.split(" ", 1)
        for line in answer.stdout.decode("ascii", errors="replace").splitlines()
        if " " in line
    )
    sent = [terminal for terminal in terminals if said.get(terminal) == "sent"]
    # Where the second way fails as well, the first reason tells more.
    fault = (earlier or {}).get
    return sent, {
        terminal: fault(terminal) or _reason(said.get(terminal), answer)
        for terminal in terminals
        if terminal not in sent
    }


def _reason(said: str | None, answer: ssh.Result) -> str:
    match said:
        case "gone":
            return "it was closed"
        case "other":
            return "it belongs to somebody else by now"
        case "failed":
            return "the observing account may not write there and the acting key was not accepted"
        case None if not answer.ok:
            return answer.reason
    return "the host gave no result"


def _outcome(sent: Sequence[str], refused: Mapping[str, str]) -> tuple[ViolationStep.Result, str]:
    parts = []
    if sent:
        parts.append(f"Written to {', '.join(sent)}.")
    parts += [f"Not written to {terminal}: {reason}." for terminal, reason in refused.items()]
    result = ViolationStep.Result.DONE if sent else ViolationStep.Result.FAILED
    return result, " ".join(parts)


def _message(violation: Violation) -> str:
    reservation = violation.reservation
    zone = zone_of(violation.person)
    ends_at = reservation.ends_at.astimezone(zone) if reservation else None
    return enforcement.warning_text(
        gpus=f"{violation.host.name} GPU {violation.gpu.index}",
        intruder_processes=[(row["pid"], row["command"]) for row in violation.processes],
        owner=reservation.owner.username if reservation else None,
        until=f"{ends_at:%a %d %b %H:%M %Z}" if ends_at else None,
        calendar_url=settings.PUBLIC_URL + reverse("calendar"),
        consequence="The administrators can see this.",
    )


def _complete(step: ViolationStep, result: ViolationStep.Result, text: str) -> None:
    step.result, step.text, step.finished_at = result, text[:1000], timezone.now()
    ViolationStep.objects.filter(pk=step.pk, result="").update(
        result=step.result, text=step.text, finished_at=step.finished_at
    )
