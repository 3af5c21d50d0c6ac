"""Enforcement after each round of probes: violations opened, confirmed, ended; warnings queued.

`after_probe` only decides and writes rows; whoever must wait for a host is a background task.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from accounts.models import User
from accounts.people import people_by_login
from monitoring import hooks, requests
from monitoring.models import Gpu, Host, HostSnapshot
from monitoring.services import watching
from reservations import enforcement
from reservations.enforcement import Intrusion, Right
from reservations.models import Policy, ReservationGpu, Violation, ViolationStep
from reservations.services.policy import current_policy

QUICK_LOOK = dt.timedelta(seconds=2)  # a first sighting has its host looked at again this soon


@dataclass(frozen=True, slots=True)
class _View:
    """What is known of one host at one moment, ready to be judged."""

    snapshot: HostSnapshot
    gpus: Mapping[str, Gpu]
    intrusions: Sequence[Intrusion]
    seen_before: Collection[tuple[str, int, int, int]]

    @property
    def host(self) -> Host:
        return self.snapshot.host


def after_probe(host_ids: Sequence[int], now: dt.datetime) -> None:
    """Judge the hosts just seen. Called by the watch after its transaction."""
    policy = current_policy()
    if policy.enforcement_level == Policy.Level.OFF:
        end_all(host_ids, now=now)
        return
    with transaction.atomic():
        views = list(_views(host_ids, policy=policy, now=now))
        known = _open_violations(views)
        people = _people({one.intruder for view in views for one in view.intrusions})
        fresh = [
            view.host.pk
            for view in views
            if _judge(view, known[view.host.pk], people, policy=policy, now=now)
        ]
        watching.make_due(fresh, now + QUICK_LOOK)


def end_all(host_ids: Sequence[int], *, now: dt.datetime) -> None:
    """Enforcement is off: what was open ends, what was not confirmed never was."""
    open_ones = Violation.objects.filter(host__in=host_ids, ended_at=None)
    open_ones.filter(confirmed_at=None).delete()
    open_ones.update(ended_at=now)


def _views(host_ids: Sequence[int], *, policy: Policy, now: dt.datetime) -> Iterable[_View]:
    """The hosts among these whose last answer is fresh and complete enough to conclude from."""
    snapshots = [
        snapshot
        for snapshot in HostSnapshot.objects.filter(host__in=host_ids).select_related("host")
        if now - snapshot.taken_at <= snapshot.host.stale_after
        and enforcement.can_judge(snapshot.data)
    ]
    gpus = _gpus_of(snapshots)
    rights = _rights(gpus, now)
    seen = [snapshot.host_id for snapshot in snapshots]
    own: frozenset[tuple[str, int, int, int]] = frozenset().union(
        *hooks.collect("OWN_PROCESSES", seen, now)
    )
    for snapshot in snapshots:
        here = {uuid: gpu for uuid, gpu in gpus.items() if gpu.host_id == snapshot.host_id}
        processes = enforcement.processes_of(
            snapshot.data, gpu_uuids=here.keys() & enforcement.complete_gpus(snapshot.data)
        )
        rules = enforcement.Rules(
            level=policy.enforcement_level,
            uid_min=snapshot.data.get("uid_min") or 1000,
            exempt_logins=frozenset({snapshot.host.user}),
        )
        intrusions = enforcement.find_intrusions(processes, rights, rules=rules, own=own)
        yield _View(snapshot, here, intrusions, _seen_before(snapshot, here.keys()))


def _gpus_of(snapshots: Sequence[HostSnapshot]) -> dict[str, Gpu]:
    hosts = [snapshot.host_id for snapshot in snapshots]
    rows = Gpu.objects.present().filter(host__in=hosts, state=Gpu.State.OK)
    return {gpu.uuid: gpu for gpu in rows.select_related("host")}


def _rights(gpus: Mapping[str, Gpu], now: dt.datetime) -> dict[str, Right]:
    slots = ReservationGpu.objects.filter(
        gpu__in=[gpu.pk for gpu in gpus.values()],
        is_standing=True,
        starts_at__lte=now,
        ends_at__gt=now,
    ).select_related("gpu", "reservation__owner")
    return {
        slot.gpu.uuid: Right(
            reservation_id=slot.reservation_id,
            owner_login=slot.reservation.owner.login_on_hosts,
            owner=slot.reservation.owner.username,
            ends_at=slot.ends_at,
        )
        for slot in slots
    }


def _seen_before(
    snapshot: HostSnapshot, gpu_uuids: Collection[str]
) -> set[tuple[str, int, int, int]]:
    """Identities in the answer before, if that one came right before and was complete."""
    earlier = snapshot.previous_taken_at
    if earlier is None or snapshot.taken_at - earlier > snapshot.host.stale_after:
        return set()
    processes = enforcement.processes_of(snapshot.previous_data or {}, gpu_uuids=gpu_uuids)
    return {process.identity for process in processes}


_Key = tuple[str, str, int | None]  # GPU, intruder, reservation


def _open_violations(views: Sequence[_View]) -> dict[int, dict[_Key, Violation]]:
    """Host -> its open violations, single sightings among them. One query."""
    found: dict[int, dict[_Key, Violation]] = {view.host.pk: {} for view in views}
    rows = Violation.objects.filter(host__in=list(found), ended_at=None).select_related("gpu")
    for violation in rows:
        key = (violation.gpu.uuid, violation.intruder, violation.reservation_id)
        found[violation.host_id][key] = violation
    return found


def _judge(
    view: _View,
    known: dict[_Key, Violation],
    people: Mapping[str, User],
    *,
    policy: Policy,
    now: dt.datetime,
) -> bool:
    """Bring the host's violations in line with what was seen. True after a first sighting."""
    is_new = False
    for intrusion in view.intrusions:
        violation = known.pop(intrusion.key, None)
        if violation is None:
            _open(view, intrusion, person=people.get(intrusion.intruder))
            is_new = True
        elif violation.confirmed_at or _is_confirmed(violation, view, intrusion):
            _continue(violation, view, intrusion, now=now)
            _plan_warning(violation, intrusion, policy=policy, now=now, view=view)
    _end(known.values(), view, now=now)
    return is_new


def _is_confirmed(violation: Violation, view: _View, intrusion: Intrusion) -> bool:
    """Seen in this probe and in the one before, and this is not the probe that opened it."""
    is_later = view.snapshot.taken_at > violation.first_seen_at
    return is_later and enforcement.confirmed(intrusion, view.seen_before)


def _people(logins: set[str]) -> dict[str, User]:
    if not logins:
        return {}
    usernames = people_by_login(logins)
    users = {user.username: user for user in User.objects.filter(username__in=usernames.values())}
    return {login: users[username] for login, username in usernames.items()}


def _open(view: _View, intrusion: Intrusion, *, person: User | None) -> None:
    Violation.objects.create(
        host=view.host,
        gpu=view.gpus[intrusion.gpu_uuid],
        intruder=intrusion.intruder,
        intruder_uid=intrusion.uid,
        person=person,
        reservation_id=intrusion.right.reservation_id if intrusion.right else None,
        rule=intrusion.rule,
        first_seen_at=view.snapshot.taken_at,
        last_seen_at=view.snapshot.taken_at,
        processes=_evidence(intrusion),
        boot_id=view.snapshot.data["boot_id"],
    )


def _continue(violation: Violation, view: _View, intrusion: Intrusion, *, now: dt.datetime) -> None:
    violation.last_seen_at = view.snapshot.taken_at
    violation.processes = _evidence(intrusion)
    if violation.confirmed_at is None:
        violation.confirmed_at = now
        ViolationStep.objects.create(
            violation=violation,
            kind=ViolationStep.Kind.SEEN,
            at=now,
            finished_at=now,
            result=ViolationStep.Result.DONE,
            text=f"Seen in two probes in a row. {intrusion.rule}",
            evidence={
                "probes": [str(view.snapshot.previous_taken_at), str(view.snapshot.taken_at)],
                "processes": violation.processes,
            },
        )
    violation.save(update_fields=["last_seen_at", "processes", "confirmed_at"])


def _end(violations: Iterable[Violation], view: _View, *, now: dt.datetime) -> None:
    """What a complete answer does not show any more has ended; a single sighting never was."""
    shown = enforcement.complete_gpus(view.snapshot.data)
    for violation in violations:
        if violation.gpu.uuid not in shown:
            continue
        if violation.confirmed_at is None:
            violation.delete()
        else:
            violation.ended_at = now
            violation.save(update_fields=["ended_at"])


def _plan_warning(
    violation: Violation, intrusion: Intrusion, *, policy: Policy, now: dt.datetime, view: _View
) -> None:
    """Write down the next terminal warning if it is due, and ring for it."""
    if not policy.warn_terminals:
        return
    last = violation.steps.filter(kind=ViolationStep.Kind.TERMINAL).order_by("round").last()
    if last is not None and not _is_due_again(last, policy=policy, now=now):
        return
    step = ViolationStep(
        violation=violation,
        kind=ViolationStep.Kind.TERMINAL,
        at=now,
        round=0 if last is None else last.round + 1,
    )
    uid_min = view.snapshot.data.get("uid_min") or 1000
    if enforcement.is_system_account(intrusion.uid, uid_min):
        _settle(step, ViolationStep.Result.SKIPPED, "System accounts are recorded, never warned.")
    elif policy.dry_run:
        _settle(
            step,
            ViolationStep.Result.DRY_RUN,
            f"Dry run: {violation.intruder} would have been warned on every terminal.",
        )
    step.save()
    if not step.result:
        requests.ask("warn_terminals", host=view.host, arguments={"step": step.pk})


def _is_due_again(last: ViolationStep, *, policy: Policy, now: dt.datetime) -> bool:
    """Rehearsed steps are recorded once; a real warning follows as soon as the policy is real."""
    if policy.dry_run or last.result == ViolationStep.Result.SKIPPED:
        return False
    return last.result == ViolationStep.Result.DRY_RUN or last.at <= now - settings.WARNING_REPEAT


def _settle(step: ViolationStep, result: ViolationStep.Result, text: str) -> None:
    step.result, step.text, step.finished_at = result, text, step.at


def _evidence(intrusion: Intrusion) -> list[dict[str, Any]]:
    return [asdict(process) for process in intrusion.processes]
