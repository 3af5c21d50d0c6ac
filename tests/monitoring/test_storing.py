"""Storing answers: hosts, snapshots, samples and the rows of GPUs, with few statements."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from monitoring import states
from monitoring.models import AuditEntry, Gpu, Host, HostKey, HostSample, HostSnapshot
from monitoring.probe import BrokenAnswer
from monitoring.services import storing
from monitoring.services.storing import store
from monitoring.snapshot import CpuCounters, LostGpu, Section, SectionState
from monitoring.ssh import Address, Status
from tests import make
from tests.monitoring.looks import after, card, look, process, silence, snapshot, uuid

pytestmark = pytest.mark.django_db


@pytest.fixture
def host() -> Host:
    return make.host("gpu01", state=Host.State.PENDING, last_good_at=None)


@pytest.fixture
def other() -> Host:
    return make.host("gpu02", state=Host.State.PENDING, last_good_at=None)


def fresh(host: Host) -> Host:
    return Host.objects.get(pk=host.pk)


def data_of(host: Host) -> dict[str, Any]:
    data: dict[str, Any] = HostSnapshot.objects.get(host=host).data
    return data


def gpu_row(number: int = 0) -> Gpu:
    return Gpu.objects.get(uuid=uuid(number))


def test_a_good_answer_fills_all_rows(host: Host) -> None:
    found = snapshot(card(0), card(1), processes=(process(),), clock_seconds=after(3).timestamp())
    assert store([look(host, found, 0, interval_seconds=30.0)]) == [host.pk]
    row = fresh(host)
    assert (row.state, row.reason, row.failures_in_a_row) == (Host.State.OK, "", 0)
    assert row.state_since == row.last_probe_at == row.last_good_at == after(0)
    assert (row.boot_id, row.machine_id, row.interval_seconds) == ("boot-1", "machine-1", 30.0)
    kept = HostSnapshot.objects.get(host=host)
    assert (kept.taken_at, kept.probe_seconds, kept.previous_data) == (after(0), 0.05, None)
    assert kept.data["clock_skew_seconds"] == 3.0
    gpu = gpu_row(1)
    assert (gpu.host, gpu.index, gpu.state, gpu.memory_total_mib) == (host, 1, Gpu.State.OK, 40960)
    assert gpu.first_seen_at == gpu.last_seen_at == gpu.state_since == after(0)
    sample = HostSample.objects.get()
    assert (sample.host, sample.taken_at, sample.load_1m) == (host, after(0), 3.5)
    assert sample.gpus[uuid(0)] == [50.0, 1000, None, None, None, None]


def test_stored_answers_have_the_shape_that_others_read(host: Host) -> None:
    store([look(host, snapshot(card(0), processes=(process(),)))])
    data = data_of(host)
    assert set(data) >= {
        *("gpus", "processes", "logins", "logins_source", "sections", "cpu_percent", "cpu"),
        *("memory_total_mib", "memory_used_mib", "load", "disks", "boot_id", "machine_id"),
        *("uptime_seconds", "clock_skew_seconds", "uid_min"),
    }
    assert set(data["gpus"][0]) == {
        *("uuid", "index", "name", "bus_id", "driver_version", "memory_total_mib"),
        *("memory_used_mib", "memory_free_mib", "memory_reserved_mib", "utilization_percent"),
        *("memory_utilization_percent", "temperature_celsius", "power_watts"),
        *("power_limit_watts", "fan_percent", "performance_state", "mig_mode", "parent_uuid"),
        *("absent", "state", "reason"),
    }
    assert set(data["processes"][0]) == {
        *("gpu_uuid", "pid", "uid", "login", "start_ticks", "started_at", "memory_used_mib"),
        *("name", "command", "cgroup", "container_id", "container_runtime", "login_uid", "kind"),
        "owner_confidence",
    }
    assert data["processes"][0]["started_at"] == "2026-06-01T11:59:00Z"
    assert data["sections"]["gpus"] == {"state": "ok", "fault": None, "reason": None}
    assert data["logins"] == [
        {"login": "bob", "terminal": "pts/0", "uid": 1001, "origin": "10.0.0.7"}
    ]
    assert data["gpus"][0]["temperature_celsius"] is None
    assert data["uptime_seconds"] is None


def test_the_answer_before_stays_beside_the_new_one(host: Host) -> None:
    for at, pid in [(0, 1), (5, 2), (10, 3)]:
        store([look(host, snapshot(card(), processes=(process(pid),)), at)])
    kept = HostSnapshot.objects.get(host=host)
    assert (kept.taken_at, kept.previous_taken_at) == (after(10), after(5))
    assert kept.previous_data is not None
    assert [row["pid"] for row in kept.previous_data["processes"]] == [2]
    assert kept.previous_data["boot_id"] == "boot-1"
    assert "command" not in kept.previous_data["processes"][0]
    assert HostSample.objects.count() == 3


def test_cpu_use_needs_two_answers_of_one_boot(host: Host) -> None:
    def used(at: float, busy: int, boot_id: str) -> float | None:
        found = snapshot(cpu=CpuCounters(busy, 10_000 - busy, 64), boot_id=boot_id)
        store([look(host, found, at)])
        value: float | None = data_of(host)["cpu_percent"]
        return value

    assert used(0, 1000, "a") is None
    assert used(5, 1000, "b") is None
    store([look(host, snapshot(cpu=CpuCounters(1030, 9070, 64), boot_id="b"), 10)])
    assert data_of(host)["cpu_percent"] == 30.0


def test_a_failed_look_keeps_the_last_good_values(host: Host) -> None:
    store([look(host, snapshot(card()), 0)])
    assert store([silence(host, 5)]) == []
    row = fresh(host)
    assert (row.state, row.failures_in_a_row, row.last_probe_at) == ("ok", 1, after(5))
    store([silence(host, 10)])
    row = fresh(host)
    assert (row.state, row.state_since) == (Host.State.UNREACHABLE, after(10))
    assert row.reason == "It failed: timeout."
    assert row.last_good_at == after(0)
    assert HostSnapshot.objects.get(host=host).taken_at == after(0)
    store([silence(host, 20)])
    assert fresh(host).state_since == after(10)
    store([look(host, snapshot(card()), 25)])
    row = fresh(host)
    assert (row.state, row.reason, row.state_since) == ("ok", "", after(25))


def test_a_new_host_says_why_its_first_look_failed(host: Host) -> None:
    store([silence(host, 0)])
    row = fresh(host)
    assert row.state == Host.State.PENDING
    assert row.reason == "The first look failed: It failed: timeout."


@pytest.mark.parametrize("change", [{"is_enabled": False}, {"in_maintenance": True}])
def test_hosts_that_are_no_longer_watched_are_left_alone(
    host: Host, change: dict[str, bool]
) -> None:
    Host.objects.filter(pk=host.pk).update(
        state="disabled", reason="By an administrator.", **change
    )
    assert store([look(host, snapshot(card()))]) == []
    assert store([silence(host, 5)]) == []
    assert (fresh(host).state, fresh(host).reason) == ("disabled", "By an administrator.")
    assert not Gpu.objects.exists()
    assert not HostSnapshot.objects.exists()


def test_a_deleted_host_does_not_come_back(host: Host, other: Host) -> None:
    answer = look(host, snapshot(card()))
    host.delete()
    assert store([answer, look(other, snapshot())]) == [other.pk]
    assert list(Host.objects.all()) == [other]


def test_what_administrators_set_is_not_written(host: Host) -> None:
    before = fresh(host)
    store([look(host, snapshot(card()))])
    now = fresh(host)
    for name in ("name", "address", "port", "user", "created_at", "probe_requested_at"):
        assert getattr(now, name) == getattr(before, name)


def test_keys_are_recorded_where_they_were_shown(host: Host) -> None:
    line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJUv2fTRj0nAFDVUxVDbDoSPGgRuSFHHPlEqCHQqYNKC"
    jump = Address("10.9.9.9", 2222, "jumper")
    store([silence(host, 0, status=Status.HOSTKEY_CHANGED, seen_keys=(line,), seen_at=jump)])
    key = HostKey.objects.get()
    assert (key.address, key.port, key.accepted_at) == ("10.9.9.9", 2222, None)
    assert fresh(host).state == Host.State.KEY_CHANGED


def test_a_gpu_that_a_complete_answer_leaves_out_is_lost_and_comes_back(host: Host) -> None:
    store([look(host, snapshot(card(0), card(1)), 0)])
    lost = (LostGpu(1, "00000000:02:00.0", "GPU is lost"),)
    store([look(host, snapshot(card(0), lost_gpus=lost), 5)])
    gpu = gpu_row(1)
    assert (gpu.state, gpu.state_since) == (Gpu.State.LOST, after(5))
    assert "GPU is lost" in gpu.reason
    assert gpu_row(0).state == Gpu.State.OK
    store([look(host, snapshot(card(0), card(1)), 10)])
    gpu = gpu_row(1)
    assert (gpu.state, gpu.reason, gpu.state_since) == (Gpu.State.OK, "", after(10))


def test_gpus_are_unknown_while_nvidia_smi_fails(host: Host) -> None:
    store([look(host, snapshot(card(0)), 0)])
    stuck = Section(SectionState.ERROR, "timeout", "nvidia-smi hangs.")
    left_alone = states.LeftAlone(2, after(125))
    found = snapshot(sections={"gpus": stuck})
    store([look(host, found, 5, left_alone=left_alone)])
    assert (gpu_row().state, gpu_row().reason) == (Gpu.State.UNKNOWN, "nvidia-smi hangs.")
    assert fresh(host).state == Host.State.PARTIAL
    assert data_of(host)["memory_used_mib"] == 41_000
    assert data_of(host)["gpus_left_alone"] == {"times": 2, "until": "2026-06-01T12:02:05+00:00"}


def test_a_gpu_changes_its_index_but_not_its_row(host: Host) -> None:
    store([look(host, snapshot(card(0), card(1)), 0)])
    pk = gpu_row(1).pk
    store([look(host, snapshot(card(1, index=0)), 5)])
    assert (gpu_row(1).pk, gpu_row(1).index, gpu_row(1).last_seen_at) == (pk, 0, after(5))


def test_a_retired_gpu_that_is_there_again_is_retired_no_more(host: Host) -> None:
    store([look(host, snapshot(card()), 0)])
    Gpu.objects.update(is_retired=True)
    store([look(host, snapshot(), 5)])
    assert gpu_row().state == Gpu.State.OK  # nobody minds its absence
    store([look(host, snapshot(card()), 10)])
    assert not gpu_row().is_retired


def test_an_unchanged_gpu_is_written_once_a_minute(host: Host) -> None:
    store([look(host, snapshot(card()), 0)])
    store([look(host, snapshot(card()), 30)])
    assert gpu_row().last_seen_at == after(0)
    store([look(host, snapshot(card()), 61)])
    assert gpu_row().last_seen_at == after(61)


def test_instances_hang_on_their_card(host: Host) -> None:
    instance = card(1, uuid="MIG-1", parent_uuid=uuid(0))
    store([look(host, snapshot(card(0), instance), 0)])
    assert Gpu.objects.get(uuid="MIG-1").parent == gpu_row(0)


def test_a_uuid_twice_in_one_answer_is_one_gpu(host: Host) -> None:
    store([look(host, snapshot(card(0), card(0, index=5)))])
    assert (Gpu.objects.count(), gpu_row().index) == (1, 0)


def test_a_gpu_moves_when_its_old_host_is_silent_for_long(host: Host, other: Host) -> None:
    store([look(host, snapshot(card()), 0)])
    store([look(other, snapshot(card()), 60)])
    assert (gpu_row().host, gpu_row().state) == (other, Gpu.State.OK)
    entry = AuditEntry.objects.get(action="gpu.move")
    assert entry.changes == {"host": ["gpu01", "gpu02"]}
    assert entry.actor_name == ""


def test_a_gpu_moves_when_its_old_host_does_not_show_it_for_long(host: Host, other: Host) -> None:
    store([look(host, snapshot(card()), 0)])
    store([look(host, snapshot(), 5), look(other, snapshot(card()), 6)])
    assert gpu_row().host == host  # a moment is not enough
    for at in range(10, 120, 5):
        store([look(host, snapshot(), at), look(other, snapshot(card()), at + 1)])
    assert (gpu_row().host, gpu_row().state) == (other, Gpu.State.OK)


@pytest.mark.parametrize("owner_first", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_a_gpu_that_two_hosts_show_is_disputed_as_long_as_both_do(
    host: Host, other: Host, owner_first: bool, together: bool
) -> None:
    def round_at(at: float) -> None:
        both = [look(host, snapshot(card(0), card(7)), at), look(other, snapshot(card(0)), at)]
        both = both if owner_first else both[::-1]
        if together:
            store(both)
        else:
            for one in both:
                store([one])
                if at:  # from the second round on at every moment
                    assert gpu_row().state == Gpu.State.PARTIAL

    store([look(host, snapshot(card(0), card(7)), -5)])
    for at in range(0, 300, 5):
        round_at(at)
    gpu = gpu_row()
    assert (gpu.host, gpu.state) == (host, Gpu.State.PARTIAL)
    assert gpu.reason == "gpu01 and gpu02 both claim this GPU; an administrator must look."
    assert gpu.state_since == after(0)
    assert gpu_row(7).state == Gpu.State.OK
    for one in (host, other):
        assert data_of(one)["gpus"][0]["state"] == "partial"
    assert not AuditEntry.objects.filter(action="gpu.move").exists()

    for at in range(300, 330, 5):
        store([look(host, snapshot(card(0), card(7)), at), look(other, snapshot(), at)])
    assert (gpu_row().host, gpu_row().state, gpu_row().reason) == (host, Gpu.State.OK, "")


def test_two_new_hosts_that_show_one_new_gpu_dispute_it(host: Host, other: Host) -> None:
    store([look(host, snapshot(card()), 0), look(other, snapshot(card()), 0)])
    store([look(host, snapshot(card()), 5), look(other, snapshot(card()), 5)])
    assert (gpu_row().host, gpu_row().state) == (host, Gpu.State.PARTIAL)


def test_an_answer_that_cannot_be_stored_costs_only_its_own_host(host: Host, other: Host) -> None:
    store([look(host, snapshot(card(1)), 0)])
    huge = card(0, memory_total_mib=10**30)
    for at in (5, 10):
        seen = store([look(host, snapshot(huge), at), look(other, snapshot(card(5)), at)])
        assert seen == [other.pk]
    assert (fresh(other).state, gpu_row(5).host) == (Host.State.OK, other)
    row = fresh(host)
    assert (row.state, row.failures_in_a_row) == (Host.State.PARTIAL, 2)
    assert "could not be stored" in row.reason
    assert not Gpu.objects.filter(uuid=uuid(0)).exists()
    assert HostSnapshot.objects.get(host=host).taken_at == after(0)


def test_trouble_of_the_database_is_not_blamed_on_hosts(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_args: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(storing, "_write_hosts", locked)
    with pytest.raises(OperationalError):
        store([look(host, snapshot(card()))])
    assert fresh(host).failures_in_a_row == 0


def test_broken_answers_are_no_answers(host: Host) -> None:
    store([look(host, snapshot(card()), 0)])
    for at in (5, 10):
        assert store([look(host, BrokenAnswer("It was cut off."), at)]) == []
    assert (fresh(host).state, fresh(host).reason) == (Host.State.PARTIAL, "It was cut off.")
    assert fresh(host).last_good_at == after(0)
    assert gpu_row().state == Gpu.State.OK


def test_the_number_of_statements_does_not_grow_with_the_hosts() -> None:
    def statements(count: int, start: float) -> int:
        some = hosts[:count]
        with CaptureQueriesContext(
            connection,
        ) as asked:
            store(
                [
                    look(one, snapshot(*(card(8 * place + n) for n in range(8))), start)
                    for place, one in enumerate(some)
                ]
            )
        return len(asked)

    hosts = [make.host() for _ in range(30)]
    statements(30, 0)
    assert statements(3, 70) == statements(30, 140)


def test_moments_are_kept_apart_by_host(host: Host, other: Host) -> None:
    store([look(host, snapshot(), 0), look(other, snapshot(), 0)])
    store([replace(look(host, snapshot(), 0))])  # the same look again changes nothing
    assert HostSample.objects.count() == 2
    assert fresh(host).last_good_at == after(0)
    assert fresh(host).age(after(7)) == dt.timedelta(seconds=7)
