"""The lab by hand: `python -m tests.lab up`, `python -m tests.lab remove-accounts`."""

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lab import accounts
from tests.lab.errors import LabError
from tests.lab.host import LabHost
from tests.lab.lab import Lab


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.command == "remove-accounts":
            removed = accounts.remove()
            _print(f"removed: {', '.join(removed) or 'none'}")
        else:
            _up(options)
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a lab that lasts until Ctrl-C")
    up.add_argument("--hosts", type=int, default=2)
    up.add_argument("--gpus", type=int, default=4, help="per host")
    up.add_argument("--port", type=int, help="a free one by default")
    up.add_argument("--users", nargs="+", metavar="NAME", help="accounts besides the observer")
    up.add_argument("--shared-homes", action="store_true", help="one /home for all, as over NFS")
    up.add_argument(
        "--authorize",
        nargs=2,
        action="append",
        default=[],
        metavar=("USER", "FILE"),
        help="let in this public key too, on every host",
    )
    commands.add_parser("remove-accounts", help="remove the Unix accounts that labs have made")
    return parser


def _up(options: argparse.Namespace) -> None:
    # Both, since a shell starts what runs beside it with SIGINT ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    with (
        Lab(
            hosts=options.hosts,
            gpus=options.gpus,
            users=options.users,
            port=options.port,
            own_homes=not options.shared_homes,
        ) as lab,
        contextlib.suppress(KeyboardInterrupt),
    ):
        for user, file in options.authorize:
            for host in lab:
                host.authorize(user, Path(file).read_text())
        _describe(lab)
        _follow_states(lab.hosts)


def _describe(lab: Lab) -> None:
    _print(f"observer {lab.observer}, key {lab.observing_key}")
    _print(f"people {', '.join(lab.users) or 'none (needs root)'}, acting key {lab.acting_key}")
    for host in lab:
        _print(f"{host.name}  {host.address}  port {host.port}  {host.fingerprint}")
        _print(f"       GPUs: {host.smi.state_path}")
    _print("Edit a state file and nvidia-smi follows. Ctrl-C ends the lab.")


def _follow_states(hosts: Sequence[LabHost]) -> None:
    seen = {host.name: host.smi.state_path.stat().st_mtime_ns for host in hosts}
    while True:
        time.sleep(0.5)
        for host in hosts:
            changed = host.smi.state_path.stat().st_mtime_ns
            if changed != seen[host.name]:
                seen[host.name] = changed
                _load(host)


def _load(host: LabHost) -> None:
    try:
        host.smi.load()
    except (ValueError, TypeError, KeyError) as error:
        _print(f"{host.name}: the state file was not taken: {error}")
    else:
        _print(f"{host.name}: state taken")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
