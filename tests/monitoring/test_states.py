"""What one look at a host means for its state, and when the next one comes."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring import owners, states
from monitoring.models import Gpu, Host
from monitoring.probe import BrokenAnswer
from monitoring.snapshot import (
    GpuReading,
    LostGpu,
    ProcessReading,
    Section,
    SectionState,
    Snapshot,
)
from monitoring.ssh import Result, Status

OK = Result(Status.OK)
SECTIONS = ("gpus", "processes", "owners", "cpu", "memory", "load", "disks", "logins")
CARD = GpuReading(uuid="GPU-1", index=0, bus_id="00000000:01:00.0")


def answer(*gpus: GpuReading, lost: tuple[LostGpu, ...] = (), **sections: Section) -> Snapshot:
    known = {name: Section() for name in SECTIONS}
    return Snapshot(gpus=gpus, lost_gpus=lost, sections={**known, **sections})


def fault(state: SectionState, reason: str | None = "Why.", kind: str = "timeout") -> Section:
    return Section(state, kind, reason)


@pytest.mark.parametrize(
    "status",
    [
        Status.REFUSED,
        Status.UNREACHABLE,
        Status.DNS,
        Status.BANNER,
        Status.CHANNEL,
        Status.TIMEOUT,
        Status.CLOSED,
    ],
)
def test_the_second_failure_in_a_row_makes_a_host_unreachable(status: Status) -> None:
    failed = Result(status, reason="Silence.")
    first = states.judge(failed, None, earlier_failures=0)
    assert (first.state, first.failures, first.is_good) == (None, 1, False)
    second = states.judge(failed, None, earlier_failures=first.failures)
    assert (second.state, second.failures) == (Host.State.UNREACHABLE, 2)
    assert second.reason == "Silence."


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (Status.HOSTKEY_UNKNOWN, Host.State.KEY_UNKNOWN),
        (Status.HOSTKEY_CHANGED, Host.State.KEY_CHANGED),
        (Status.AUTH, Host.State.AUTH_FAILED),
    ],
)
def test_keys_and_login_are_said_at_once(status: Status, state: Host.State) -> None:
    verdict = states.judge(Result(status, reason="Look here."), None, earlier_failures=0)
    assert (verdict.state, verdict.reason, verdict.is_good) == (state, "Look here.", False)


def test_every_status_of_the_door_means_something() -> None:
    known = {Host.State.UNREACHABLE, Host.State.PARTIAL, *states._AT_ONCE.values()}
    for status in set(Status) - {Status.OK}:
        assert states.judge(Result(status), None, earlier_failures=1).state in known


def test_answers_of_which_nothing_can_be_used_are_partial_the_second_time() -> None:
    broken = BrokenAnswer("It was cut off.")
    assert states.judge(OK, broken, earlier_failures=0).state is None
    second = states.judge(OK, broken, earlier_failures=1)
    assert (second.state, second.reason) == (Host.State.PARTIAL, "It was cut off.")
    assert not second.is_good
    flood = states.judge(Result(Status.TOO_BIG, reason="Too big."), None, earlier_failures=1)
    assert (flood.state, flood.is_good) == (Host.State.PARTIAL, False)


def test_a_good_answer_forgives_all_failures() -> None:
    verdict = states.judge(OK, answer(CARD), earlier_failures=9)
    assert verdict == states.Verdict(Host.State.OK, "", 0, is_good=True)


@pytest.mark.parametrize("token", ["no_driver", "driver_mismatch", "no_gpus"])
def test_a_fault_of_the_whole_host_is_its_state(token: str) -> None:
    found = Snapshot(sections={}, host_fault=token, reason="No driver is loaded.")
    verdict = states.judge(OK, found, earlier_failures=1)
    assert verdict == states.Verdict(Host.State(token), "No driver is loaded.", 0, is_good=True)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (answer(CARD, processes=fault(SectionState.ERROR)), "Why."),
        (answer(CARD, gpus=fault(SectionState.PARTIAL)), "Why."),
        (answer(CARD, gpus=fault(SectionState.ERROR, None)), "No gpus."),
        (answer(CARD, owners=fault(SectionState.UNAVAILABLE)), "Why."),
        (answer(CARD, lost=(LostGpu(1, "00:02.0", "GPU is lost"),)), "GPU 1 cannot be reached"),
        (answer(CARD, lost=(LostGpu(None, "00:02.0", "GPU is lost"),)), "00:02.0 cannot be"),
        (
            answer(CARD, GpuReading(uuid="GPU-2", index=1, absent={"power_watts": "needs-reset"})),
            "GPU 1: It needs a reset",
        ),
        (
            answer(GpuReading(uuid="GPU-1", index=0, absent={"power_watts": "unknown-error"})),
            "GPU 0: The driver cannot read: power_watts.",
        ),
    ],
)
def test_a_part_that_failed_makes_the_host_partial(found: Snapshot, sentence: str) -> None:
    verdict = states.judge(OK, found, earlier_failures=0)
    assert (verdict.state, verdict.is_good) == (Host.State.PARTIAL, True)
    assert verdict.reason.startswith(sentence)


def test_what_a_host_simply_does_not_have_is_no_fault() -> None:
    found = answer(
        CARD, logins=fault(SectionState.UNAVAILABLE), load=fault(SectionState.UNAVAILABLE)
    )
    assert states.judge(OK, found, earlier_failures=0).state == Host.State.OK


def test_fields_that_a_card_does_not_support_are_no_fault() -> None:
    reading = GpuReading(uuid="GPU-1", index=0, absent={"fan_percent": "na", "x": "not-supported"})
    assert states.judge_gpu(reading) == states.GpuVerdict(Gpu.State.OK)


def missing(found: Snapshot, bus_id: str = "00000000:02:00.0") -> states.GpuVerdict:
    return states.judge_missing_gpu(bus_id=bus_id, answer=found, lost=found.lost_gpus)


def test_a_known_gpu_that_a_complete_answer_leaves_out_is_lost() -> None:
    assert missing(answer(CARD)).state == Gpu.State.LOST


@pytest.mark.parametrize("slot", ["0000:02:00.0", "00000000:02:00.0", "00000000:02:00.0".upper()])
def test_a_gpu_that_the_driver_names_but_cannot_reach_is_lost_with_its_words(slot: str) -> None:
    verdict = missing(answer(CARD, lost=(LostGpu(1, slot, "GPU is lost"),)))
    assert verdict.state == Gpu.State.LOST
    assert "GPU is lost" in verdict.reason


@pytest.mark.parametrize(
    "found",
    [
        answer(gpus=fault(SectionState.ERROR)),
        answer(gpus=fault(SectionState.UNAVAILABLE)),
        Snapshot(),
    ],
)
def test_nothing_is_lost_when_the_host_said_nothing_of_its_gpus(found: Snapshot) -> None:
    verdict = missing(found)
    assert verdict.state == Gpu.State.UNKNOWN
    assert verdict.reason


@given(st.floats(0, 0.999))
def test_reconnects_back_off_from_five_seconds_to_a_minute(chance: float) -> None:
    delays = [
        states.connection_delay(failures, interval=5, chance=chance) for failures in range(1, 40)
    ]
    assert 4 <= delays[0] <= 6
    assert all(earlier <= later for earlier, later in itertools.pairwise(delays))
    assert 50 <= delays[-1] <= 70


def test_jitter_spreads_hosts_that_failed_together() -> None:
    delays = [states.connection_delay(5, interval=5, chance=number / 50) for number in range(50)]
    assert max(delays) - min(delays) > 10


def test_a_healthy_host_keeps_its_interval_whatever_chance_says() -> None:
    assert {states.connection_delay(0, interval=7, chance=c / 9) for c in range(9)} == {7}


@given(st.floats(0, 0.999))
def test_a_hanging_nvidia_smi_is_left_alone_for_one_to_fifteen_minutes(chance: float) -> None:
    minutes = [states.stuck_delay(times, chance=chance) / 60 for times in range(1, 30)]
    for found, expected in zip(minutes, [1, 2, 4, 8, 15, 15, 15], strict=False):
        assert 0.9 * expected <= found <= 1.1 * expected
    assert max(minutes) * 60 < states.LONGEST_STUCK_DELAY.total_seconds()


def test_only_a_host_whose_every_look_is_slow_is_asked_less_often() -> None:
    assert states.interval_for([0.1, 9.0, 9.0], normal=5) is None
    assert states.interval_for([2.0, 2.0, 2.0], normal=5) is None
    assert states.interval_for([], normal=5) is None
    assert states.interval_for([3.0, 4.0, 5.0], normal=5) == 30
    assert states.interval_for([14.0, 14.0, 14.0], normal=5) == 60


@pytest.mark.parametrize("kind", ["timeout", "still-running"])
def test_a_timeout_means_stuck_and_other_faults_do_not(kind: str) -> None:
    assert states.is_stuck(answer(gpus=fault(SectionState.ERROR, kind=kind)).sections)
    assert not states.is_stuck(answer(gpus=fault(SectionState.ERROR, kind="no-driver")).sections)
    assert not states.is_stuck({})


def test_a_dispute_names_both_hosts() -> None:
    verdict = states.disputed("gpu01", "gpu02")
    assert verdict.state == Gpu.State.PARTIAL
    assert re.search("gpu01.*gpu02", verdict.reason)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, owners.CERTAIN),
        ({"container_id": "4f" * 32}, owners.UNKNOWN),
        ({"uid": None, "login": None}, owners.UNKNOWN),
        ({"login": None}, owners.UNKNOWN),
        ({"start_ticks": None}, owners.UNKNOWN),
    ],
)
def test_an_owner_is_certain_only_outside_containers(
    change: dict[str, object], expected: str
) -> None:
    seen = {"gpu_uuid": "GPU-1", "pid": 42, "uid": 1001, "login": "bob", "start_ticks": 7}
    assert owners.confidence(ProcessReading(**{**seen, **change})) == expected  # type: ignore[arg-type]
