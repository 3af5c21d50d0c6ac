"""One round of looking at all hosts: ours, and the commands of TensorHive 1.1 beside it.

The old round, over all hosts: a CPU line that takes 1 s, one GPU query, one UUID query, pmon once
per GPU one after another (these on all hosts at the same time), then `ps` once per process, one
after another.
"""

from __future__ import annotations

import resource
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from bench.fleet import fleet, observing
from monitoring import probe, ssh
from monitoring.snapshot import Snapshot

THREADS = 32
ROUNDS = 7

_CPU = "head -n1 /proc/stat </dev/null; sleep 1 </dev/null; head -n1 /proc/stat </dev/null"
_GPU = (
    "nvidia-smi --query-gpu=name,uuid,fan.speed,memory.free,memory.used,memory.total,"
    "utilization.gpu,utilization.memory,temperature.gpu,power.draw --format=csv,nounits </dev/null"
)
_UUIDS = "nvidia-smi --query-gpu=uuid --format=csv,noheader </dev/null"
_PMON = (
    "for id in $(nvidia-smi --query-gpu=uuid --format=csv,noheader </dev/null);"
    ' do echo "UUID=$id"; nvidia-smi pmon --count 1 --id "$id" </dev/null; done'
)
_PS = "ps --no-headers -o user -p $1 </dev/null"


def measure(sizes: Sequence[int], *, with_old: Sequence[int]) -> list[dict[str, float | int]]:
    """Rows {hosts, round_s, cpu_ms_per_host, first_round_s, old_round_s, ratio}."""
    return [_measured(size, with_old=size in with_old) for size in sizes]


def _measured(size: int, *, with_old: bool) -> dict[str, float | int]:
    with fleet(size) as lab:
        targets = [observing(lab, host) for host in lab]
        row: dict[str, float | int] = {"hosts": size, **_ours(targets)}
        if with_old:
            row["old_round_s"] = round(_timed(lambda: _old(targets)), 3)
            row["ratio"] = round(row["old_round_s"] / row["round_s"], 1)
        return row


def _ours(targets: Sequence[ssh.Target]) -> dict[str, float]:
    shells = [ssh.Shell(target, preamble=probe.function_text()) for target in targets]
    with ThreadPoolExecutor(THREADS) as pool:
        first = _timed(lambda: list(pool.map(_look, shells)))
        used = _cpu_seconds()
        rounds = [_timed(lambda: list(pool.map(_look, shells))) for _ in range(ROUNDS)]
        used = _cpu_seconds() - used
        list(pool.map(ssh.Shell.close, shells))
    return {
        "round_s": round(statistics.median(rounds), 3),
        "first_round_s": round(first, 3),
        "cpu_ms_per_host": round(1000 * used / ROUNDS / len(targets), 2),
    }


def _look(shell: ssh.Shell) -> None:
    nonce = secrets.token_hex(8)
    answer = shell.ask(probe.request_line(nonce), end_marker=probe.end_marker(nonce), deadline=30)
    if not answer.ok:
        raise RuntimeError(f"{shell.target.address}: {answer.reason}")
    snapshot = probe.read_snapshot(answer.stdout, nonce)
    if not isinstance(snapshot, Snapshot) or not snapshot.gpus or not snapshot.processes:
        raise RuntimeError(f"{shell.target.address}: {snapshot}")


def _old(targets: Sequence[ssh.Target]) -> None:
    with ThreadPoolExecutor(len(targets)) as pool:
        for command in (_CPU, _GPU, _UUIDS):
            list(pool.map(lambda target, text=command: _said(target, text), targets))
        answers = list(pool.map(lambda target: _said(target, _PMON), targets))
    for target, answer in zip(targets, answers, strict=True):
        for line in answer.splitlines():
            cells = line.split()
            if len(cells) > 1 and cells[0].isdigit() and cells[1].isdigit():
                _said(target, _PS, cells[1])


def _said(target: ssh.Target, text: str, *arguments: str) -> str:
    answer = ssh.run(target, text, arguments=arguments, deadline=120)
    if not answer.ok:
        raise RuntimeError(f"{target.address}: {answer.reason}")
    return answer.stdout.decode()


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
