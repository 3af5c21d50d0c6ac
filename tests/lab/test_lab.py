"""The lab keeps what it promises, as seen through the OpenSSH client."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import Lab, LabError, accounts
from tests.lab.processes import is_alive, pids_in_mount_namespace, read_link, wait_until

pytestmark = pytest.mark.lab


@pytest.fixture(autouse=True)
def _needs_root() -> None:
    if os.geteuid() != 0:
        pytest.fail("the tests of the lab need root")


def test_observer_logs_in_with_the_observing_key_and_people_with_the_acting_key(lab: Lab) -> None:
    for host in lab:
        assert host.ssh(lab.observer, "id -un", key=lab.observing_key).stdout == "thobserver\n"
        for user in ("alice", "bob", "carol"):
            assert host.ssh(user, "id -un; pwd", key=lab.acting_key).stdout == (
                f"{user}\n/home/{user}\n"
            )


def test_a_key_does_not_open_an_account_it_is_not_for(lab: Lab) -> None:
    host = lab["gpu01"]
    assert host.ssh("bob", "true", key=lab.observing_key).returncode == 255
    assert host.ssh(lab.observer, "true", key=lab.acting_key).returncode == 255
    assert host.ssh("bob", "true", key=lab.personal_keys["alice"]).returncode == 255


def test_revoked_key_is_refused_on_that_host_alone(lab: Lab) -> None:
    lab["gpu01"].revoke_key("bob")
    assert lab["gpu01"].ssh("bob", "true", key=lab.acting_key).returncode == 255
    assert lab["gpu01"].ssh("bob", "true").returncode == 0
    assert lab["gpu02"].ssh("bob", "true", key=lab.acting_key).returncode == 0
    lab["gpu01"].restore_keys()
    assert lab["gpu01"].ssh("bob", "true", key=lab.acting_key).returncode == 0


def test_authorized_key_is_let_in(lab: Lab) -> None:
    host = lab["gpu01"]
    alices = lab.personal_keys["alice"]
    host.authorize("bob", alices.with_name(alices.name + ".pub").read_text())
    assert host.ssh("bob", "id -un", key=alices).stdout == "bob\n"
    assert host.ssh("bob", "id -un", key=lab.acting_key).stdout == "bob\n"


def test_hosts_differ_in_all_that_tells_machines_apart(lab: Lab) -> None:
    script = "hostname; cat /etc/machine-id /proc/sys/kernel/random/boot_id"
    said = [host.ssh("alice", script).stdout.split() for host in lab]
    assert said == [[host.name, host.machine_id, host.boot_id] for host in lab]
    keys = [host.public_keys for host in lab]
    for first, second in zip(*said, strict=True):
        assert first != second
    assert keys[0] != keys[1]


def test_hosts_have_their_own_homes_tmp_and_run(lab: Lab) -> None:
    places = "~/mark /tmp/mark /var/tmp/mark /dev/shm/mark /run/lock/mark"
    assert lab["gpu01"].ssh("bob", f"touch {places}").returncode == 0
    assert lab["gpu01"].ssh("bob", f"ls {places} | wc -l").stdout == "5\n"
    assert lab["gpu02"].ssh("bob", f"ls {places} 2>/dev/null | wc -l").stdout == "0\n"


def test_shared_homes_are_seen_by_all_hosts(fresh_lab: Callable[..., Lab]) -> None:
    lab = fresh_lab(own_homes=False)
    lab["gpu01"].ssh("bob", "echo here > ~/mark")
    assert lab["gpu02"].ssh("bob", "cat ~/mark").stdout == "here\n"


def test_several_kinds_of_host_keys_and_a_given_port(fresh_lab: Callable[..., Lab]) -> None:
    first = fresh_lab(hosts=1, host_key_kinds=("ed25519", "ecdsa"))
    kinds = [key.split()[0] for key in first["gpu01"].public_keys]
    assert kinds == ["ssh-ed25519", "ecdsa-sha2-nistp256"]
    with pytest.raises(LabError, match="Address already in use"):
        fresh_lab(hosts=1, port=first.port)


def test_observer_belongs_to_group_tty_where_wanted(lab: Lab) -> None:
    lab["gpu02"].set_observer_in_tty(False)
    groups = [host.ssh(lab.observer, "id -Gn").stdout.split() for host in lab]
    assert ["tty" in names for names in groups] == [True, False]
    assert (
        lab.observer
        not in subprocess.run(
            ["getent", "group", "tty"], capture_output=True, text=True, check=True
        ).stdout
    )


def test_process_is_real_and_shown_until_somebody_ends_it(lab: Lab) -> None:
    host = lab["gpu01"]
    process = host.start_process(
        user="bob",
        gpu=1,
        memory_mib=1234,
        command=["python", "train.py", "--note", "a b"],
        environment={"TENSORS": "many"},
    )
    query = "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv"
    shown = host.ssh("alice", query).stdout.splitlines()
    assert shown[1:] == [f"{host.gpu_uuid(1)}, {process.pid}, 1234 MiB, python"]
    assert lab["gpu02"].ssh("alice", query).stdout.count("\n") == 1
    directory = Path(f"/proc/{process.pid}")
    assert (directory / "cmdline").read_bytes() == b"python\0train.py\0--note\0a b\0"
    assert (directory / "environ").read_bytes() == b"TENSORS=many\0"
    assert (directory / "comm").read_text() == "python\n"
    assert directory.owner() == "bob"
    assert host.ssh("bob", f"kill {process.pid}", key=lab.acting_key).returncode == 0
    assert process.wait()
    assert process.ended_by == signal.SIGTERM
    assert not directory.exists()
    assert host.ssh("alice", query).stdout.count("\n") == 1


def test_process_that_ignores_term_ends_by_kill_alone(lab: Lab) -> None:
    process = lab["gpu01"].start_process(user="bob", gpu=0, ignore_term=True)
    os.kill(process.pid, signal.SIGTERM)
    assert not process.wait(0.3)
    process.end()
    assert process.ended_by == signal.SIGKILL


def test_stuck_call_holds_the_channel_open_after_its_end(lab: Lab) -> None:
    host = lab["gpu01"]
    host.smi.hang(stuck=True)
    command = [*host.ssh_command("bob"), "timeout -k 1 0.2 nvidia-smi -L; echo status $?"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "status 124\n"
        with pytest.raises(subprocess.TimeoutExpired):
            client.wait(1)
        host.end_sessions()
    assert len(host.pids()) == 1


def test_a_host_can_be_the_way_to_another(lab: Lab) -> None:
    first, second = lab
    way = " ".join([*first.ssh_command("alice"), "-W", "%h:%p"])
    command = second.ssh_command("bob", options=["-o", f"ProxyCommand={way}"])
    done = subprocess.run([*command, "hostname"], capture_output=True, text=True, check=False)
    assert done.stdout == "gpu02\n", done.stderr
    assert "for alice" in first.log_text()


def test_terminal_shows_what_others_write_to_it(lab: Lab) -> None:
    host = lab["gpu01"]
    bob, alice = host.open_terminal(user="bob"), host.open_terminal(user="alice")
    bob.wait_for("$ ")
    alice.wait_for("$ ")
    assert host.run(["stat", "-c", "%U %G %a", f"/dev/{bob.terminal}"]).stdout == "bob tty 620\n"
    write = f"echo beware > /dev/{bob.terminal}"
    assert host.ssh(lab.observer, write, key=lab.observing_key).returncode == 0
    assert "beware" in bob.read_output(5)
    assert alice.read_output(0.2) == ""
    bob.mesg(False)
    assert host.ssh(lab.observer, write, key=lab.observing_key).returncode == 1
    assert bob.read_output(0.2) == ""


def test_terminal_is_typed_into_and_stands_in_utmp(lab: Lab) -> None:
    host = lab["gpu01"]
    bob = host.open_terminal(user="bob")
    bob.type("echo $((6 * 7))\r")
    bob.wait_for("\r42\r\n")
    assert re.search(rf"^bob +{bob.terminal} ", host.ssh("alice", "who").stdout)
    assert lab["gpu02"].ssh("alice", "who").stdout == ""
    bob.close()
    wait_until(lambda: host.ssh("alice", "who").stdout == "", "bob is logged out")


def test_without_utmp_nobody_is_seen(fresh_lab: Callable[..., Lab]) -> None:
    host = fresh_lab(hosts=1, utmp=False)["gpu01"]
    host.open_terminal(user="bob")
    said = host.ssh("alice", "who; ls /run/utmp")
    assert said.stdout == ""
    assert "No such file" in said.stderr


def test_screen_sessions_live_on_the_host_they_were_started_on(lab: Lab) -> None:
    assert lab["gpu01"].ssh("bob", "screen -dmS training sleep 60").returncode == 0
    assert ".training" in lab["gpu01"].ssh("bob", "screen -ls").stdout
    assert "No Sockets" in lab["gpu02"].ssh("bob", "screen -ls").stdout


def test_reset_leaves_nothing_behind(lab: Lab) -> None:
    host = lab["gpu01"]
    host.ssh("bob", "screen -dmS training sleep 60; touch /tmp/mark ~/mark")
    bob = host.open_terminal(user="bob")
    process = host.start_process(user="bob", gpu=0)
    host.smi.no_driver()
    host.smi.uninstall()
    host.revoke_key("bob")
    host.stall()
    host.stop()
    lab.reset()
    assert not bob.is_open
    assert not process.is_running
    assert host.pids() == set()
    assert host.log_text() == ""
    said = host.ssh("bob", "ls; ls /tmp/mark; who; nvidia-smi -L | wc -l", key=lab.acting_key)
    assert said.stdout == "4\n"


def test_closed_lab_leaves_no_process_no_mount_and_no_file() -> None:
    mounts = Path("/proc/self/mounts").read_text()
    with Lab(hosts=2) as lab:
        directory = lab.directory
        namespaces = [_namespace_of(lab, host.name) for host in lab]
        lab["gpu01"].ssh("bob", "screen -dmS training sleep 60")
        lab["gpu01"].start_process(user="bob", gpu=0, ignore_term=True)
        lab["gpu01"].open_terminal(user="bob")
        lab["gpu01"].stall()
        assert Path("/proc/self/mounts").read_text() == mounts
    assert not directory.exists()
    for namespace in namespaces:
        assert pids_in_mount_namespace(namespace) == set()
    assert Path("/proc/self/mounts").read_text() == mounts


def test_lab_is_cleaned_up_after_an_exception() -> None:
    with contextlib.suppress(RuntimeError), Lab(hosts=1) as lab:
        directory, namespace = lab.directory, _namespace_of(lab, "gpu01")
        raise RuntimeError
    assert not directory.exists()
    assert pids_in_mount_namespace(namespace) == set()


def test_hosts_end_even_when_their_lab_is_killed() -> None:
    script = (
        "import time; from tests.lab import Lab\n"
        "with Lab(hosts=1) as lab:\n"
        "    lab['gpu01'].start_process(user='bob', gpu=0)\n"
        "    print(lab.directory, *lab['gpu01'].pids(), flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        directory, pid = lab.stdout.readline().split()
        namespace = read_link(int(pid), "ns/mnt")
        assert namespace is not None
        assert is_alive(int(pid))
        lab.kill()
    wait_until(lambda: not pids_in_mount_namespace(namespace), "the host has ended")
    subprocess.run(["rm", "-r", directory], check=True)


def test_many_hosts_answer(fresh_lab: Callable[..., Lab]) -> None:
    lab = fresh_lab(hosts=16, gpus=1)
    assert len({host.machine_id for host in lab}) == 16
    assert lab["gpu16"].address == "127.0.1.16"
    assert lab["gpu16"].ssh("bob", "hostname; nvidia-smi -L | wc -l").stdout == "gpu16\n1\n"


def test_accounts_are_made_marked_and_removed_but_others_left_alone() -> None:
    accounts.ensure(["thlabtest"])
    accounts.ensure(["thlabtest"])
    assert "thlabtest" in accounts.made_by_the_lab()
    assert accounts.remove(["thlabtest", "nobody"]) == ["thlabtest"]
    assert "thlabtest" not in accounts.made_by_the_lab()
    with pytest.raises(LabError, match="nobody exists and was not made by the lab"):
        accounts.ensure(["nobody"])


def test_lab_without_root_has_the_present_account_and_says_what_needs_root() -> None:
    accounts.ensure(["alice"])
    script = Path(__file__).with_name("without_root.py")
    path = f"PATH={os.environ['PATH']}:/usr/sbin"
    become = ["setpriv", "--reuid=alice", "--regid=alice", "--clear-groups"]
    plain = ["env", "-i", path, f"PYTHONPATH={script.parents[2]}", "HOME=/tmp"]
    done = subprocess.run(
        [*become, *plain, "/usr/bin/python3", "-B", str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd="/",
    )
    assert done.stdout == "all is well\n", done.stderr


def _namespace_of(lab: Lab, name: str) -> str:
    process = lab[name].start_process(user="bob")
    namespace = read_link(process.pid, "ns/mnt")
    process.end()
    assert namespace is not None
    assert namespace != read_link(os.getpid(), "ns/mnt")
    return namespace


def test_console_prints_where_the_hosts_are_and_ends_on_interrupt() -> None:
    command = [sys.executable, "-m", "tests.lab", "up", "--hosts", "1", "--gpus", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        lines = [lab.stdout.readline() for _ in range(4)]
        state = Path(lines[3].split()[-1])
        changed = state.read_text().replace("A100", "B200")
        time.sleep(0.02)
        state.write_text(changed)
        lab.stdout.readline()
        assert lab.stdout.readline() == "gpu01: state taken\n"
        assert "B200" in (state.parent / "list").read_text()
        lab.send_signal(signal.SIGINT)
        assert lab.wait(20) == 0
    assert re.match(r"gpu01 +127\.0\.1\.1 +port \d+ +SHA256:", lines[2])
    assert not state.exists()
