"""The only door to the hosts: everything that is done there goes through `run` or a `Shell`.

Host keys are pinned, nothing of the account's own SSH configuration is obeyed, every phase is
limited, output is capped, and whatever a host does comes back as a `Result` with a status and one
sentence, never as an exception.
"""

from monitoring.ssh.keys import check_key_file, fingerprint, generate_key, public_line
from monitoring.ssh.running import fetch_host_keys, run
from monitoring.ssh.shell import Shell
from monitoring.ssh.values import Address, Result, Status, Target

__all__ = [
    "Address",
    "Result",
    "Shell",
    "Status",
    "Target",
    "check_key_file",
    "fetch_host_keys",
    "fingerprint",
    "generate_key",
    "public_line",
    "run",
]
