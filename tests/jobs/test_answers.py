"""Parsing what the scripts say, whatever stands around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import answers

BOOT = "8b0a1c52-1111-4222-8333-444455556666"
STARTED = (
    f"Welcome!\nstarted\n1001\n321 9876 {BOOT}\n/home/a b/.t/jobs/x\n/home/a b/.t/logs/x.log\n"
    "screen:/home/a b/.t/screen/gpu01\n"
)


def test_a_start_is_read_behind_what_start_up_files_print() -> None:
    said = answers.parse_launch(STARTED.encode())

    assert said == answers.Launched(
        uid=1001,
        pid=321,
        start_ticks=9876,
        boot_id=BOOT,
        directory="/home/a b/.t/jobs/x",
        log="/home/a b/.t/logs/x.log",
        has_screen=True,
        screen_directory="/home/a b/.t/screen/gpu01",
    )


@pytest.mark.parametrize(
    "output",
    [
        "",
        "started\n",
        STARTED.replace("321", "12345678901"),
        STARTED.replace("1001", "-1"),
        STARTED.replace("screen:", "tmux:"),
        STARTED.replace("/home/a b/.t/jobs", "relative"),
    ],
)
def test_a_start_that_is_not_told_completely_is_not_known(output: str) -> None:
    assert answers.parse_launch(output.encode()) is None


def test_a_refusal_is_certain_and_printable() -> None:
    said = answers.parse_launch(b"hello\nfailed No \x1b[31mspace.\n")

    assert said == answers.NotLaunched("No �[31mspace.", is_certain=True)


def test_a_look_needs_boot_and_end() -> None:
    whole = f"boot {BOOT}\n7 alive\n7 has 7 1\n7 has 8 2\n9 gone\ndone\n"

    assert answers.parse_look(whole.encode()) == answers.Look(
        BOOT, frozenset({7}), is_blind=False, sessions={7: [[7, 1], [8, 2]]}
    )
    assert answers.parse_look(whole.replace("done\n", "").encode()) is None
    assert answers.parse_look(whole.replace("boot", "boat").encode()) is None


def test_results_tell_the_living_from_those_that_said_nothing() -> None:
    said = answers.parse_results(b"noise\n1 alive\n2 said rc=7   \n3 said \n4 said\ndone\n")

    assert said == {1: None, 2: "rc=7", 3: "", 4: ""}
    assert answers.parse_results(b"1 alive\n") is None


def test_a_piece_of_log_keeps_its_bytes() -> None:
    output = b"noise without end" + b"abc 10 4\n" + b"x\nabc 1 2\n\xff"

    assert answers.parse_log(output, mark="abc") == (10, 4, b"x\nabc 1 2\n\xff")
    assert answers.parse_log(b"abc missing\n", mark="abc") is None
    with pytest.raises(ValueError, match="no answer"):
        answers.parse_log(b"", mark="abc")


@given(st.text(min_size=1, max_size=20), st.integers(min_value=0, max_value=80))
def test_a_log_cut_anywhere_is_put_together_again(text: str, cut: int) -> None:
    whole = text.encode(errors="replace")
    first = answers.whole_characters(whole[:cut])

    assert first.decode() + whole[len(first) :].decode() == whole.decode()


@given(st.binary(max_size=300))
def test_no_bytes_from_a_host_raise(output: bytes) -> None:
    for body in (output, b"started\n" + output, b"boot 12345678\n" + output + b"\ndone\n"):
        answers.parse_launch(body)
        answers.parse_look(body)
        answers.parse_results(body)
        answers.parse_stop(body)
