r"""The lab: real sshd hosts on loopback, with real accounts, processes and terminals.

Only the GPUs are played: a small nvidia-smi on the hosts' PATH answers from a state file. Each
address 127.0.1.x is a host with its own host key; all share one port. As root the hosts are
isolated from each other and from the machine (see `LabHost`); without root they are not, and
what needs root raises `LabNeedsRoot`.

By hand, until Ctrl-C:

    python -m tests.lab up --hosts 2 --gpus 4
    python -m tests.lab remove-accounts

In tests (fixtures `lab` and `fresh_lab` of tests.lab.fixtures) and benchmarks:

    from tests.lab import Lab

    with Lab(hosts=2, gpus=4) as lab:            # gpu01 on 127.0.1.1, gpu02 on 127.0.1.2
        host = lab["gpu01"]
        host.address, host.port, host.fingerprint, host.known_hosts, host.public_keys
        lab.observer, lab.observing_key          # the account that watches, and its private key
        lab.users, lab.acting_key                # alice, bob, carol; this key lets in as each
        host.authorize("bob", "ssh-ed25519 …")   # let in another key: a line, or a private key file
        host.revoke_key("bob")

        training = host.start_process(user="bob", gpu=0, memory_mib=1000, command="python train.py")
        training.pid, training.is_running, training.ended_by
        training.end()

        person = host.open_terminal(user="bob")  # a real login with a real terminal
        person.terminal, person.mesg(False)      # "pts/0"; as mesg(1)
        person.type("ls\r"); person.read_output(2); person.wait_for("text"); person.close()

        host.stall(); host.resume()              # listener and sessions fall silent
        host.stop(); host.start()                # the listener: new connections are refused
        host.end_sessions(); host.change_key(); host.reboot(); lab.reset()
        host.pids(), host.authentication_attempts()
        host.log_text(); host.forget_log()       # sshd's own log: who tried to log in

        host.smi.set_gpu(1, utilization_percent=80, cells={"fan.speed": "[N/A]"})
        host.smi.hang(stuck=True); host.smi.delay(1, only="pmon")
        host.smi.no_driver(); host.smi.heal()
        host.smi.starts()                        # the arguments of every call so far

        host.ssh("bob", "nvidia-smi -L").stdout  # through the OpenSSH client
        host.run(["hostname"]).stdout            # without SSH
"""

from tests.lab.errors import LabError, LabNeedsRoot
from tests.lab.host import LabHost
from tests.lab.lab import Lab
from tests.lab.processes import LabProcess
from tests.lab.smi import App, Gpu, NvidiaSmi
from tests.lab.terminals import Terminal

__all__ = [
    "App",
    "Gpu",
    "Lab",
    "LabError",
    "LabHost",
    "LabNeedsRoot",
    "LabProcess",
    "NvidiaSmi",
    "Terminal",
]
