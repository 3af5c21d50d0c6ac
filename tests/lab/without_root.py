"""A lab without root, run by test_lab as a plain account with a plain Python."""

import os
import pwd
import subprocess
import sys

from tests.lab import Lab, LabNeedsRoot
from tests.lab.processes import command_name, is_alive
from tests.lab.terminals import terminals_belong_to_group_tty


def refuses(act: object) -> bool:
    try:
        act()  # type: ignore[operator]
    except LabNeedsRoot:
        return True
    return False


def main() -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert refuses(lambda: Lab(users=["bob"]))
    with Lab(hosts=2, gpus=2) as lab:
        host = lab["gpu01"]
        assert (lab.users, lab.observer) == ((), me)
        assert refuses(lambda: host.start_process(user="bob"))
        assert refuses(host.reboot)
        process = host.start_process(user=me, gpu=0, command="python x.py")
        shown = host.ssh(me, "nvidia-smi pmon -c 1", key=lab.observing_key).stdout
        assert str(process.pid) in shown, shown
        if terminals_belong_to_group_tty():
            terminal = host.open_terminal(user=me)
            terminal.type("echo $((6 * 7))\r")
            terminal.wait_for("42\r\n")
        else:
            assert refuses(lambda: host.open_terminal(user=me))
        command = [*host.ssh_command(me), "echo; exec sleep 60"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as session:
            assert session.stdout is not None
            session.stdout.readline()
            host.change_key()
            assert session.poll() is None
            host.stall()
            host.end_sessions()
            assert session.wait(10) == 255
            assert not host.sessions()
        host.resume()
        host.ssh(me, "setsid sleep 60 >/dev/null 2>&1 </dev/null &")
        assert any(command_name(pid) == "sleep" for pid in host.pids())
        lab.reset()
        assert not is_alive(process.pid)
        assert not host.pids()
        assert host.ssh(me, "true").returncode == 0
        last = host.start_process(user=me)
    assert not is_alive(last.pid)
    sys.stdout.write("all is well\n")


if __name__ == "__main__":
    main()
