"""Making, changing, cancelling and releasing reservations, as services do it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
import time_machine
from django.core.exceptions import PermissionDenied, ValidationError

from accounts.models import Grant
from monitoring.models import AuditEntry, Gpu, Host
from reservations.models import Reservation
from reservations.services import booking
from reservations.services.policy import change_policy
from tests import make

NOW = dt.datetime(2026, 6, 1, 12, 0, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_noon() -> Any:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture(autouse=True)
def granted(db: None) -> Grant:
    return make.everyone_everything()


@pytest.fixture
def gpus(db: None) -> list[Gpu]:
    first, second = make.host("gpu01"), make.host("gpu02")
    return [make.gpu(first), make.gpu(first), make.gpu(second)]


def reserve(
    actor: Any, gpus: list[Gpu], begin: float = 1, end: float = 3, **fields: Any
) -> Reservation:
    return booking.reserve(
        actor=actor,
        gpus=gpus,
        starts_at=NOW + begin * HOUR,
        ends_at=NOW + end * HOUR,
        title=fields.pop("title", "Training"),
        **fields,
    )


def test_one_reservation_holds_gpus_of_several_hosts(alice: Any, gpus: list[Gpu]) -> None:
    made = reserve(alice, gpus)
    assert set(made.gpus.all()) == set(gpus)
    assert {(slot.starts_at, slot.ends_at) for slot in made.slots.all()} == {
        (made.starts_at, made.ends_at)
    }


def test_a_taken_gpu_refuses_the_whole_and_names_who_has_it(
    alice: Any, bob: Any, gpus: list[Gpu]
) -> None:
    reserve(alice, gpus[:1])
    with pytest.raises(
        booking.GpuTaken, match=r"gpu01:0 is reserved by alice from Mon 1 Jun 2026 13:00 UTC"
    ):
        reserve(bob, gpus, 2, 4)
    assert Reservation.objects.count() == 1


def test_touching_reservations_do_not_collide(alice: Any, bob: Any, gpus: list[Gpu]) -> None:
    reserve(alice, gpus, 1, 3)
    reserve(bob, gpus, 3, 5)
    assert Reservation.objects.count() == 2


def test_a_cancelled_reservation_is_in_nobodys_way(alice: Any, bob: Any, gpus: list[Gpu]) -> None:
    booking.cancel(reserve(alice, gpus), actor=alice)
    reserve(bob, gpus)


@pytest.mark.parametrize(
    ("begin", "end", "code"),
    [
        pytest.param(-1, 3, "in_the_past", id="past"),
        pytest.param(1, 1.25, "too_short", id="a quarter of an hour"),
        pytest.param(1, 1 + 8 * 24 + 1, "too_long", id="more than eight days"),
        pytest.param(89 * 24, 91 * 24, "too_far_ahead", id="beyond the horizon"),
        pytest.param(1.01, 3, "off_the_step", id="odd start"),
        pytest.param(1, 3.01, "off_the_step", id="odd end"),
        pytest.param(3, 1, "ends_before_start", id="backwards"),
    ],
)
def test_limits_refuse_with_their_code(
    alice: Any, gpus: list[Gpu], begin: float, end: float, code: str
) -> None:
    with pytest.raises(booking.RuleRefusal) as refused:
        reserve(alice, gpus, begin, end)
    assert refused.value.code == code
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(("begin", "end"), [(1, 1.5), (1, 1 + 8 * 24), (-1 / 60, 2), (0.01, 2)])
def test_the_edges_of_the_limits_are_allowed(
    alice: Any, gpus: list[Gpu], begin: float, end: float
) -> None:
    assert reserve(alice, gpus, begin, end).pk


def test_without_a_grant_the_first_uncovered_moment_is_named(
    alice: Any, gpus: list[Gpu], granted: Grant
) -> None:
    granted.ends_at = NOW + 2 * HOUR
    granted.save()
    with pytest.raises(
        booking.RuleRefusal, match=r"gpu01:0 at Mon 1 Jun 2026 14:00 UTC"
    ) as refused:
        reserve(alice, gpus)
    assert refused.value.code == "not_granted"


def test_grants_are_judged_for_the_owner(
    root: Any, alice: Any, gpus: list[Gpu], granted: Grant
) -> None:
    granted.everyone = False
    granted.save()
    granted.users.add(alice)
    assert reserve(root, gpus[:1], owner=alice).owner == alice
    with pytest.raises(booking.RuleRefusal, match="root"):
        reserve(root, gpus[1:])


def test_an_administrator_overrides_and_the_audit_says_so(
    root: Any, gpus: list[Gpu], granted: Grant
) -> None:
    granted.delete()
    made = reserve(root, gpus, 1, 1.1, override_access=True)
    assert made.override_access
    entry = AuditEntry.objects.get(action="reservation.create")
    assert entry.changes["override_access"] == [False, True]


def test_overriding_never_takes_what_another_has(root: Any, alice: Any, gpus: list[Gpu]) -> None:
    reserve(alice, gpus)
    with pytest.raises(booking.GpuTaken):
        reserve(root, gpus, override_access=True)


@pytest.mark.parametrize("fields", [{"override_access": True}, {"owner": "bob"}])
def test_people_do_neither_override_nor_book_for_others(
    alice: Any, bob: Any, gpus: list[Gpu], fields: dict[str, Any]
) -> None:
    if "owner" in fields:
        fields = {"owner": bob}
    with pytest.raises(PermissionDenied):
        reserve(alice, gpus, **fields)


def test_gpus_at_once_are_limited_per_person(alice: Any, bob: Any, gpus: list[Gpu]) -> None:
    change_policy(actor=None, max_gpus_at_once=2)
    reserve(alice, gpus[:2], 1, 3)
    with pytest.raises(booking.RuleRefusal) as refused:
        reserve(alice, gpus[2:], 2, 4)
    assert refused.value.code == "too_many_gpus"
    reserve(alice, gpus[2:], 3, 4)
    reserve(bob, gpus[2:], 1, 3)


def test_hours_per_week_are_limited(alice: Any, gpus: list[Gpu]) -> None:
    change_policy(actor=None, max_hours_per_week=6)
    reserve(alice, gpus[:2], 1, 3)
    with pytest.raises(booking.RuleRefusal) as refused:
        reserve(alice, gpus[:1], 5, 8)
    assert refused.value.code == "too_many_hours"
    reserve(alice, gpus[:1], 7 * 24, 7 * 24 + 6)


def test_short_notice_is_free_of_the_limits(alice: Any, gpus: list[Gpu]) -> None:
    change_policy(actor=None, max_gpus_at_once=1, short_notice_hours=4)
    reserve(alice, gpus, 1, 3)
    with pytest.raises(booking.RuleRefusal):
        reserve(alice, gpus, 5, 6)


def test_maintenance_and_retired_gpus_are_not_bookable(alice: Any, gpus: list[Gpu]) -> None:
    Gpu.objects.filter(pk=gpus[0].pk).update(is_retired=True)
    with pytest.raises(booking.RuleRefusal, match="not there any more"):
        reserve(alice, gpus[:1])
    Host.objects.filter(name="gpu02").update(in_maintenance=True)
    with pytest.raises(booking.RuleRefusal, match="maintenance"):
        reserve(alice, gpus[2:])


@pytest.mark.parametrize("title", ["", "x" * 61, "two\nlines", "bidi \u202e"])
def test_bad_titles_are_refused(alice: Any, gpus: list[Gpu], title: str) -> None:
    with pytest.raises(ValidationError) as refused:
        reserve(alice, gpus, title=title)
    assert "title" in refused.value.message_dict
    assert not Reservation.objects.exists()


def test_upcoming_changes_wholly_and_atomically(alice: Any, gpus: list[Gpu]) -> None:
    made = reserve(alice, gpus[:1])
    changed = booking.change(
        made, actor=alice, gpus=gpus[1:], starts_at=NOW + 4 * HOUR, ends_at=NOW + 6 * HOUR
    )
    assert set(changed.gpus.all()) == set(gpus[1:])
    assert {slot.starts_at for slot in changed.slots.all()} == {NOW + 4 * HOUR}


def test_moving_onto_anothers_time_changes_nothing(alice: Any, bob: Any, gpus: list[Gpu]) -> None:
    made = reserve(alice, gpus[:1], 1, 3)
    reserve(bob, gpus[1:], 1, 3)
    with pytest.raises(booking.GpuTaken):
        booking.change(made, actor=alice, gpus=gpus)
    assert [gpu.pk for gpu in made.gpus.all()] == [gpus[0].pk]


def test_limits_hold_for_changes_too(alice: Any, gpus: list[Gpu]) -> None:
    made = reserve(alice, gpus)
    with pytest.raises(booking.RuleRefusal, match="past"):
        booking.change(made, actor=alice, starts_at=NOW - HOUR)
    with pytest.raises(booking.RuleRefusal, match="at most"):
        booking.change(made, actor=alice, ends_at=NOW + 300 * HOUR)


def test_running_gives_only_its_end(alice: Any, gpus: list[Gpu]) -> None:
    made = make.reservation(gpus[0], owner=alice, starts_at=NOW - HOUR, ends_at=NOW + 2 * HOUR)
    for fields in ({"starts_at": NOW}, {"gpus": gpus}):
        with pytest.raises(booking.WrongState, match="stay as they are"):
            booking.change(made, actor=alice, **fields)
    with pytest.raises(booking.WrongState, match="Release"):
        booking.change(made, actor=alice, ends_at=NOW - HOUR / 2)
    assert booking.change(made, actor=alice, ends_at=NOW + 5 * HOUR).ends_at == NOW + 5 * HOUR
    assert booking.change(made, actor=alice, title="Other").title == "Other"


def test_release_ends_a_running_one_now(alice: Any, bob: Any, gpus: list[Gpu]) -> None:
    made = make.reservation(gpus[0], owner=alice, starts_at=NOW - HOUR, ends_at=NOW + 2 * HOUR)
    released = booking.release(made, actor=alice)
    assert released.ends_at == NOW
    assert released.state(NOW) == Reservation.State.FINISHED
    assert reserve(bob, gpus[:1], 0, 1).pk


def test_release_in_the_first_moment_leaves_a_length(alice: Any, gpus: list[Gpu]) -> None:
    made = make.reservation(gpus[0], owner=alice, starts_at=NOW, ends_at=NOW + HOUR)
    assert booking.release(made, actor=alice).ends_at > NOW


def test_what_is_over_stays_written(root: Any, alice: Any, gpus: list[Gpu]) -> None:
    over = make.reservation(gpus[0], owner=alice, starts_at=NOW - 3 * HOUR, ends_at=NOW - HOUR)
    for deed in (booking.cancel, booking.release):
        with pytest.raises(booking.WrongState):
            deed(over, actor=root)
    with pytest.raises(booking.WrongState, match="finished"):
        booking.change(over, actor=root, title="Rewritten")


def test_cancelling_a_running_one_points_to_release(alice: Any, gpus: list[Gpu]) -> None:
    made = make.reservation(gpus[0], owner=alice, starts_at=NOW - HOUR, ends_at=NOW + HOUR)
    with pytest.raises(booking.WrongState, match="release it instead"):
        booking.cancel(made, actor=alice)


def test_others_are_left_alone(alice: Any, bob: Any, root: Any, gpus: list[Gpu]) -> None:
    made = reserve(alice, gpus)
    for deed in (booking.cancel, booking.release):
        with pytest.raises(PermissionDenied):
            deed(made, actor=bob)
    with pytest.raises(PermissionDenied):
        booking.change(made, actor=bob, title="Mine")
    assert booking.cancel(made, actor=root).cancel_reason == "Cancelled by root."


def test_moving_to_another_gpu_asks_nothing_of_the_old_one(
    alice: Any, bob: Any, gpus: list[Gpu]
) -> None:
    """The GPU given up is taken at the new time, and that is nobody's concern."""
    made = reserve(alice, gpus[:1], 1, 3)
    reserve(bob, gpus[:1], 4, 6)
    changed = booking.change(
        made, actor=alice, gpus=gpus[1:2], starts_at=NOW + 4 * HOUR, ends_at=NOW + 6 * HOUR
    )
    assert [slot.gpu_id for slot in changed.slots.all()] == [gpus[1].pk]


def test_a_refusal_tells_from_when_on_all_of_them_are_free(
    alice: Any, bob: Any, gpus: list[Gpu]
) -> None:
    reserve(alice, gpus[:1], 1, 3)
    reserve(alice, gpus[1:2], 4, 5)
    with pytest.raises(booking.GpuTaken) as refused:
        reserve(bob, gpus[:2], 1, 3)
    # From 15:00 to 16:00 there is only an hour.
    assert str(refused.value).endswith(
        "All 2 are free for this long from Mon 1 Jun 2026 17:00 UTC on."
    )


def test_moments_are_said_in_the_readers_zone(alice: Any, bob: Any, gpus: list[Gpu]) -> None:
    reserve(alice, gpus[:1], 1, 3)
    bob.time_zone = "Europe/Warsaw"
    with pytest.raises(booking.GpuTaken, match="to Mon 1 Jun 2026 17:00 CEST"):
        reserve(bob, gpus[:1], 1, 3)


@pytest.fixture
def running(alice: Any, gpus: list[Gpu]) -> Reservation:
    return make.reservation(gpus[0], owner=alice, starts_at=NOW - 2 * HOUR, ends_at=NOW + 2 * HOUR)


def test_running_is_prolonged_within_the_limits(alice: Any, running: Reservation) -> None:
    assert booking.change(running, actor=alice, ends_at=NOW + 4 * HOUR).ends_at == NOW + 4 * HOUR
    with pytest.raises(booking.RuleRefusal, match="at most 8 days"):
        booking.change(running, actor=alice, ends_at=NOW + 8 * 24 * HOUR)


def test_only_what_is_added_to_a_running_one_is_judged(
    alice: Any, running: Reservation, granted: Grant
) -> None:
    granted.ends_at = NOW + HOUR
    granted.save()
    shorter = booking.change(running, actor=alice, ends_at=NOW + 1.5 * HOUR)
    assert shorter.ends_at == NOW + 1.5 * HOUR
    with pytest.raises(booking.RuleRefusal, match=r"No grant lets alice use gpu01:0 at .* 13:30"):
        booking.change(running, actor=alice, ends_at=NOW + 3 * HOUR)
    assert booking.change(running, actor=alice, title="Still mine").title == "Still mine"


def test_prolonging_counts_for_the_limits_of_a_person(
    alice: Any, running: Reservation, gpus: list[Gpu]
) -> None:
    change_policy(actor=None, max_gpus_at_once=2)
    make.reservation(
        *gpus[1:], owner=alice, starts_at=NOW + 2 * HOUR, ends_at=NOW + 4 * HOUR, title="Later"
    )
    with pytest.raises(booking.RuleRefusal, match="this would make 3"):
        booking.change(running, actor=alice, ends_at=NOW + 3 * HOUR)


def test_a_start_right_now_is_no_short_notice(alice: Any, gpus: list[Gpu]) -> None:
    change_policy(actor=None, max_gpus_at_once=2)
    with pytest.raises(booking.RuleRefusal, match="this would make 3"):
        reserve(alice, gpus, -0.01, 2)


def test_an_odd_start_that_stays_is_not_judged_again(alice: Any, gpus: list[Gpu]) -> None:
    made = make.reservation(
        gpus[0],
        owner=alice,
        starts_at=NOW + HOUR + dt.timedelta(seconds=7),
        ends_at=NOW + 3 * HOUR,
    )
    assert booking.change(made, actor=alice, ends_at=NOW + 4 * HOUR).ends_at == NOW + 4 * HOUR


def test_an_override_never_reaches_into_the_past(root: Any, gpus: list[Gpu]) -> None:
    with pytest.raises(booking.RuleRefusal, match="past"):
        reserve(root, gpus, -2, 2, override_access=True)
    made = reserve(root, gpus, 1, 2)
    with pytest.raises(booking.RuleRefusal, match="past"):
        booking.change(made, actor=root, starts_at=NOW - HOUR, override_access=True)


def test_an_override_of_a_change_is_recorded(root: Any, alice: Any, gpus: list[Gpu]) -> None:
    made = reserve(alice, gpus[:1])
    booking.change(made, actor=root, ends_at=NOW + 1.1 * HOUR, override_access=True)
    entry = AuditEntry.objects.get(action="reservation.change")
    assert entry.changes["override_access"] == [False, True]


def test_nothing_changed_leaves_no_trace(alice: Any, gpus: list[Gpu]) -> None:
    made = reserve(alice, gpus)
    booking.change(made, actor=alice, title=" Training ", gpus=gpus[::-1], ends_at=made.ends_at)
    assert not AuditEntry.objects.filter(action="reservation.change").exists()


def test_the_grid_and_the_week_are_those_of_the_policys_zone(alice: Any, gpus: list[Gpu]) -> None:
    change_policy(actor=None, time_zone="Asia/Kolkata", step=HOUR)
    with pytest.raises(booking.RuleRefusal, match="for example Mon 1 Jun 2026 18:00 IST"):
        reserve(alice, gpus, 1, 3)
    assert reserve(alice, gpus, 1.5, 3.5).pk


def test_a_disabled_host_is_not_bookable(alice: Any, gpus: list[Gpu]) -> None:
    Host.objects.filter(name="gpu01").update(is_enabled=False)
    with pytest.raises(booking.RuleRefusal, match="gpu01 is disabled"):
        reserve(alice, gpus[:1])


def test_a_failed_audit_takes_the_booking_back(
    alice: Any, gpus: list[Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("no audit")

    monkeypatch.setattr(booking.audit, "record", fail)
    with pytest.raises(RuntimeError):
        reserve(alice, gpus)
    assert not Reservation.objects.exists()
