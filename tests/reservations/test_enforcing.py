"""Enforcement on stored answers: rows opened, confirmed, ended; nothing on what is not known."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from monitoring.models import Gpu, Host, HostRequest
from reservations.models import Policy, Reservation, Violation, ViolationStep
from reservations.services import booking, enforcing
from reservations.services.policy import change_policy
from tests import make

pytestmark = pytest.mark.django_db

SECONDS = dt.timedelta(seconds=1)


class Scene:
    """Alice holds the GPU; `probe` stores an answer with these processes and judges it."""

    def __init__(self, alice: User) -> None:
        self.host = make.host("gpu01", last_good_at=timezone.now())
        self.gpu = make.gpu(self.host)
        self.now = timezone.now()
        self.reservation = make.reservation(self.gpu, owner=alice)
        self.taken_at: dt.datetime | None = None
        self.earlier: dict[str, Any] | None = None

    def process(self, **fields: Any) -> dict[str, Any]:
        values = {
            "gpu_uuid": self.gpu.uuid,
            "pid": 4242,
            "start_ticks": 99,
            "uid": 1001,
            "login": "bob",
            "command": "python train.py",
            "memory_used_mib": 1000,
            "owner_confidence": "certain",
        }
        return {**values, **fields}

    def data(self, *processes: dict[str, Any], **fields: Any) -> dict[str, Any]:
        sections = {name: {"state": "ok"} for name in ("gpus", "processes", "owners")}
        return {
            "boot_id": "boot",
            "uid_min": 1000,
            "sections": sections,
            "gpus": [{"uuid": self.gpu.uuid, "state": "ok"}],
            "processes": list(processes),
            "logins": [],
            "logins_source": "who",
            **fields,
        }

    def probe(self, *processes: dict[str, Any], **fields: Any) -> None:
        self.now += 5 * SECONDS
        data = self.data(*processes, **fields)
        make.snapshot(
            self.host,
            taken_at=self.now,
            data=data,
            previous_taken_at=self.taken_at,
            previous_data=self.earlier,
        )
        Host.objects.filter(pk=self.host.pk).update(last_good_at=self.now)
        self.taken_at, self.earlier = self.now, data
        self.judge()

    def judge(self, later: dt.timedelta = dt.timedelta()) -> None:
        enforcing.after_probe([self.host.pk], self.now + later)


@pytest.fixture
def scene(alice: Any, bob: Any) -> Scene:
    change_policy(actor=None, dry_run=False)
    return Scene(alice)


def open_violations() -> list[Violation]:
    return list(Violation.objects.filter(ended_at=None).exclude(confirmed_at=None))


def test_two_probes_in_a_row_make_a_violation_with_its_evidence(scene: Scene, bob: Any) -> None:
    scene.probe(scene.process())
    assert open_violations() == []
    scene.probe(scene.process())
    (violation,) = open_violations()
    assert (violation.intruder, violation.person, violation.reservation) == (
        "bob",
        bob,
        scene.reservation,
    )
    seen = violation.steps.get(kind="seen")
    assert "two probes in a row" in seen.text
    assert "reserved by alice" in seen.text
    assert seen.evidence["processes"][0]["pid"] == 4242
    assert len(seen.evidence["probes"]) == 2


def test_a_first_sighting_has_the_host_looked_at_again_soon(scene: Scene) -> None:
    scene.probe(scene.process())
    scene.host.refresh_from_db()
    assert scene.host.probe_requested_at == scene.now + 2 * SECONDS


def test_a_confirmed_violation_asks_for_one_warning(scene: Scene) -> None:
    for _ in range(4):
        scene.probe(scene.process())
    (step,) = ViolationStep.objects.filter(kind="terminal")
    (request,) = HostRequest.objects.filter(kind="warn_terminals")
    assert request.arguments == {"step": step.pk}


def test_the_warning_is_repeated_after_its_time(scene: Scene, settings: Any) -> None:
    settings.WARNING_REPEAT = 12 * SECONDS
    for _ in range(6):
        scene.probe(scene.process())
    rounds = ViolationStep.objects.filter(kind="terminal").values_list("round", flat=True)
    assert list(rounds) == [0, 1]


def test_a_single_sighting_leaves_nothing_behind(scene: Scene) -> None:
    scene.probe(scene.process())
    scene.probe()
    assert not Violation.objects.exists()


def test_judging_the_same_probe_twice_confirms_nothing(scene: Scene) -> None:
    scene.probe(scene.process())
    scene.earlier = scene.data(scene.process())
    scene.judge()
    assert open_violations() == []


@pytest.mark.parametrize(
    "changed",
    [{"pid": 1}, {"start_ticks": 100}, {"uid": 1002}],
    ids=["another process", "the pid was reused", "another owner"],
)
def test_another_process_does_not_confirm(scene: Scene, changed: dict[str, Any]) -> None:
    scene.probe(scene.process(**changed))
    scene.probe(scene.process())
    assert open_violations() == []


def test_probes_too_far_apart_are_not_in_a_row(scene: Scene) -> None:
    scene.probe(scene.process())
    scene.now += 60 * SECONDS
    scene.probe(scene.process())
    assert open_violations() == []


def _gone(scene: Scene) -> None:
    scene.probe()


def _released(scene: Scene) -> None:
    booking.release(scene.reservation, actor=scene.reservation.owner)
    scene.now = timezone.now()
    scene.probe(scene.process())


def _off(scene: Scene) -> None:
    change_policy(actor=None, enforcement_level=Policy.Level.OFF)
    scene.probe(scene.process())


@pytest.mark.parametrize("deed", [_gone, _released, _off])
def test_a_violation_ends(scene: Scene, deed: Callable[[Scene], None]) -> None:
    scene.probe(scene.process())
    scene.probe(scene.process())
    deed(scene)
    assert Violation.objects.get().ended_at is not None


def test_a_stale_answer_neither_opens_nor_ends(scene: Scene) -> None:
    scene.probe(scene.process())
    scene.judge(later=60 * SECONDS)
    assert Violation.objects.get().confirmed_at is None
    scene.probe(scene.process())
    scene.probe(scene.process())
    scene.earlier = scene.data()
    make.snapshot(scene.host, taken_at=scene.now, data=scene.data())
    scene.judge(later=60 * SECONDS)
    assert len(open_violations()) == 1


@pytest.mark.parametrize("section", ["processes", "owners"])
def test_a_partial_answer_neither_opens_nor_ends(scene: Scene, section: str) -> None:
    broken = scene.data()["sections"] | {section: {"state": "partial"}}
    scene.probe(scene.process(), sections=broken)
    scene.probe(scene.process(), sections=broken)
    assert not Violation.objects.exists()
    scene.probe(scene.process())
    scene.probe(scene.process())
    scene.probe(sections=broken)
    assert len(open_violations()) == 1


@pytest.mark.parametrize("state", [Gpu.State.PARTIAL, Gpu.State.LOST, Gpu.State.UNKNOWN])
def test_a_gpu_that_is_not_well_is_not_judged(scene: Scene, state: str) -> None:
    Gpu.objects.update(state=state)
    scene.probe(scene.process())
    scene.probe(scene.process())
    assert not Violation.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"login": "alice"},
        {"login": "thobserver"},
        {"login": "root", "uid": 0},
        {"owner_confidence": "unknown"},
        {"uid": None},
    ],
    ids=["owner", "observing account", "system account", "in a container", "not seen in /proc"],
)
def test_the_innocent_are_left_alone(scene: Scene, fields: dict[str, Any]) -> None:
    for _ in range(3):
        scene.probe(scene.process(**fields))
    assert not Violation.objects.exists()


def test_level_two_wants_a_reservation(scene: Scene) -> None:
    Reservation.objects.update(cancelled_at=timezone.now())
    scene.probe(scene.process())
    scene.probe(scene.process())
    assert not Violation.objects.exists()
    change_policy(actor=None, enforcement_level=Policy.Level.UNRESERVED)
    scene.probe(scene.process())
    scene.probe(scene.process())
    (violation,) = open_violations()
    assert violation.reservation is None
    assert "asks for a reservation" in violation.rule


def test_system_accounts_are_recorded_at_level_two_and_never_warned(scene: Scene) -> None:
    change_policy(actor=None, enforcement_level=Policy.Level.UNRESERVED)
    for _ in range(4):
        scene.probe(scene.process(login="root", uid=0))
    (violation,) = open_violations()
    assert violation.steps.get(kind="terminal").result == "skipped"
    assert not HostRequest.objects.exists()


def test_a_dry_run_records_once_and_warns_nobody(scene: Scene) -> None:
    change_policy(actor=None, dry_run=True)
    for _ in range(4):
        scene.probe(scene.process())
    assert ViolationStep.objects.get(kind="terminal").result == "dry_run"
    assert not HostRequest.objects.exists()
    change_policy(actor=None, dry_run=False)
    scene.probe(scene.process())
    assert HostRequest.objects.filter(kind="warn_terminals").count() == 1


def test_the_policy_can_leave_terminals_alone(scene: Scene) -> None:
    change_policy(actor=None, warn_terminals=False)
    for _ in range(3):
        scene.probe(scene.process())
    assert len(open_violations()) == 1
    assert not HostRequest.objects.exists()


def test_queries_do_not_grow_with_hosts(alice: Any, django_assert_max_num_queries: Any) -> None:
    scenes = [Scene(alice)]
    for number in range(2, 12):
        one = Scene.__new__(Scene)
        one.__dict__.update(scenes[0].__dict__)
        one.host = make.host(f"gpu{number:02d}", last_good_at=timezone.now())
        one.gpu = make.gpu(one.host)
        scenes.append(one)
    for one in scenes:
        make.snapshot(one.host, taken_at=timezone.now(), data=one.data())
    with django_assert_max_num_queries(12):
        enforcing.after_probe([one.host.pk for one in scenes], timezone.now())
