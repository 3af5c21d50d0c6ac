"""Jobs on real hosts: sshd, accounts, screen, terminals and signals are real."""

from __future__ import annotations

import dataclasses
import datetime as dt
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import User
from jobs import answers
from jobs.models import Attempt, Task, TaskState
from jobs.services import following, launching, logs, stopping
from monitoring import ssh
from monitoring.models import HostRequest
from monitoring.services.targets import target_of
from tests import make
from tests.jobs import making
from tests.jobs.site import Site, age_request, last
from tests.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.django_db(transaction=True)]

MINUTE = dt.timedelta(minutes=1)
FINISHED, STOPPED, FAILED = TaskState.FINISHED, TaskState.STOPPED, TaskState.FAILED
LOST, RUNNING, UNKNOWN = TaskState.LOST, TaskState.RUNNING, TaskState.UNKNOWN


@pytest.fixture
def site(lab: Lab, settings: Any) -> Site:
    return Site(lab, settings)


def test_a_job_runs_on_two_hosts_as_its_owner_until_its_exit_code(site: Site, alice: User) -> None:
    command = 'id -un; echo "<$CUDA_VISIBLE_DEVICES>"; pwd; umask; echo "a b"; sleep 3; exit 7'
    tasks = []
    for name in ("gpu01", "gpu02"):
        gpus = list(site.hosts[name].gpus.order_by("index"))
        tasks.append(site.run(alice, command, host=name, gpus=gpus))

    for task in tasks:
        assert task.state == RUNNING
        attempt = last(task)
        person = site.lab[task.host.name].open_terminal(user="alice")
        person.type(f"screen -r {attempt.session}\r")
        assert "a b" in person.wait_for("a b")
        person.type("\x01d")
        person.wait_for("detached")
        person.close()
    for task in tasks:
        site.until(task, FINISHED)
        uuids = ",".join(site.lab[task.host.name].gpu_uuid(index) for index in (0, 1))
        assert site.output(task) == f"alice\n<{uuids}>\n/home/alice\n0022\na b\n"
        assert (task.exit_code, task.reason) == (7, "Ended with exit code 7.")


def test_the_log_is_read_piece_by_piece_to_its_end(site: Site, alice: User) -> None:
    task = site.run(alice, "printf 'zażółć\\n'; sleep 2; echo end")
    site.wait_for_output(task, "\n")

    def read(offset: int, limit: int) -> dict[str, Any]:
        asked: Any = {"offset": offset, "limit": limit, "requested_by": alice}
        assert logs.read(task, **asked, seconds=0) is None
        site.work()
        piece = logs.read(task, **asked, seconds=0)
        assert piece is not None
        return piece

    first = read(0, 16)
    assert (first["text"], first["complete"]) == ("zażółć\n", False)
    site.until(task, FINISHED)
    second = read(first["next_offset"], 1000)
    assert (second["text"], second["complete"], second["size"]) == ("end\n", True, 15)
    tail = read(-4, 1000)
    assert (tail["offset"], tail["text"]) == (11, "end\n")
    assert read(500, 16) | {"complete": True} == {
        "offset": 500,
        "next_offset": 500,
        "size": 15,
        "text": "",
        "complete": True,
    }


@pytest.mark.parametrize(
    ("command", "env", "expected"),
    [
        ("""echo "it's" 'a "b"' $((1+1)) `echo c` \\\\""", {}, 'it\'s a "b" 2 c \\\n'),
        ("cat <<'EOF'\n$HOME \"x\"\nEOF\necho after", {}, '$HOME "x"\nafter\n'),
        ("a=1\nif true\nthen\n  echo $a\nfi # done", {}, "1\n"),
        ("echo {1..3} ${BASH_VERSION:+bash}", {}, "1 2 3 bash\n"),
        (
            "#!/usr/bin/env python3\nimport os\nprint(repr(os.environ['V']))",
            {"V": "a'b\n$c"},
            repr("a'b\n$c") + "\n",
        ),
        ('echo "$V" "$TENSORHIVE_JOB"', {"V": "'; rm -rf /tmp/x #"}, None),
        ('echo "$1$#"; printf \'%s\' "${0##*/}"', {}, "0\ncommand"),
        ("exec sh -c 'echo zażółć; exit 0'", {"PATH": "/usr/bin:/bin"}, "zażółć\n"),
    ],
    ids=["quotes", "here-document", "lines", "bash", "python", "env", "arguments", "exec"],
)
def test_commands_arrive_as_they_were_written(
    site: Site, alice: User, command: str, env: dict[str, str], expected: str | None
) -> None:
    task = site.until(site.run(alice, command, env=env), FINISHED, FAILED)

    output = f"'; rm -rf /tmp/x # {task.job_id}\n" if expected is None else expected
    assert (site.output(task), task.exit_code) == (output, 0)


def test_parameters_and_stdin(site: Site, alice: User) -> None:
    command = "cat; printf '<%s>' "
    parameters = [{"name": "--a=", "value": "x y"}, {"name": "--b", "value": "'"}]
    task = site.until(site.run(alice, command, parameters=parameters), FINISHED)

    assert site.output(task) == "<--a=x y><--b><'>"


def test_a_start_whose_answer_is_lost_happens_once(
    site: Site, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ssh.run

    def lossy(*args: Any, **kwargs: Any) -> ssh.Result:
        answer = real(*args, **kwargs)
        return dataclasses.replace(
            answer, status=ssh.Status.TIMEOUT, stdout=b"", reason="Too slow.", exit_code=None
        )

    with monkeypatch.context() as patch:
        patch.setattr(ssh, "run", lossy)
        task = site.run(alice, "echo once >> ran; sleep 60")
    assert (task.state, task.reason) == (
        UNKNOWN,
        "Whether it started is not known yet: Too slow.",
    )
    launching.relaunch_overdue(timezone.now())
    assert not HostRequest.objects.filter(state="waiting").exists()

    for _ in range(2):
        launching.relaunch_overdue(timezone.now() + MINUTE)
    assert HostRequest.objects.filter(state="waiting").count() == 1
    site.work()

    task.refresh_from_db()
    assert (task.state, task.reason) == (RUNNING, "")
    assert site.lab["gpu01"].run(["cat", "/home/alice/ran"]).stdout == "once\n"


@pytest.mark.parametrize(
    "function",
    ["jobs.services.launching.target_of", "jobs.services.recording.started"],
    ids=["before the remote start", "after the remote start"],
)
def test_a_start_whose_worker_was_killed_happens_once(
    site: Site, alice: User, function: str
) -> None:
    job = making.job(alice, host=site.hosts["gpu01"], command="echo once >> ran; sleep 60")
    launching.execute(job, actor=alice)
    request = HostRequest.objects.get()
    keys = [str(site.lab.observing_key), str(site.lab.acting_key)]
    database = str(connection.settings_dict["NAME"])
    died = subprocess.run(
        [sys.executable, "-m", "tests.jobs.faults", database, *keys, str(request.pk), function],
        timeout=60,
    )
    assert died.returncode == -signal.SIGKILL
    task = job.tasks.get()
    assert task.state == TaskState.STARTING

    HostRequest.objects.filter(pk=request.pk).update(state="failed")
    launching.relaunch_overdue(timezone.now() + MINUTE)
    site.work()

    task.refresh_from_db()
    assert task.state == RUNNING
    assert site.wait_for_output(task, "") == ""
    assert site.lab["gpu01"].run(["cat", "/home/alice/ran"]).stdout == "once\n"


def test_starts_sent_at_the_same_time_start_once(site: Site, alice: User) -> None:
    job = making.job(alice, host=site.hosts["gpu01"], command="echo once >> ran; sleep 60")
    launching.execute(job, actor=alice)
    attempt = Attempt.objects.select_related("task__job__owner", "task__host").get()
    arguments = launching._arguments(attempt)
    target = target_of(attempt.task.host, key="acting", user="alice")
    script = (launching.REMOTE / "launch.sh").read_text()

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: ssh.run(target, script, arguments=arguments), range(4)))

    said = [answers.parse_launch(result.stdout) for result in results]
    assert len(set(said)) == 1
    assert isinstance(said[0], answers.Launched)
    assert sum(b"\nstarted\n" in result.stdout for result in results) == 1
    assert site.lab["gpu01"].run(["cat", "/home/alice/ran"]).stdout == "once\n"


def test_a_start_that_was_interrupted_on_the_host_runs_nothing(site: Site, alice: User) -> None:
    job = making.job(alice, host=site.hosts["gpu01"], command="echo ran")
    launching.execute(job, actor=alice)
    mark = launching.mark_of(Attempt.objects.get())
    site.lab["gpu01"].run(["mkdir", "-p", f"/home/alice/.tensorhive/jobs/{mark}"], user="alice")

    site.work()

    task = job.tasks.get()
    assert (task.state, task.reason) == (
        FAILED,
        "An earlier start was interrupted before anything ran.",
    )


def test_ctrl_c_comes_first_and_once_and_the_code_is_kept(site: Site, alice: User) -> None:
    command = "trap 'echo caught' INT; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3; done; exit 3"
    task = site.run(alice, "echo ready; " + command)
    site.wait_for_output(task, "ready")

    stopping.stop(task.job, actor=alice)
    site.until(task, STOPPED)

    assert (task.exit_code, task.reason) == (3, "Stopped on request.")
    assert site.output(task) == "ready\ncaught\n"
    assert last(task).stop_signal == "INT"


def test_a_program_that_knows_ctrl_c_from_its_runtime_gets_it(site: Site, alice: User) -> None:
    script = "#!/usr/bin/env python3\nimport time\nprint('ready', flush=True)\ntime.sleep(60)"
    task = site.run(alice, script)
    site.wait_for_output(task, "ready")

    stopping.stop(task.job, actor=alice)
    site.until(task, STOPPED)

    assert "KeyboardInterrupt" in site.output(task)


def test_what_ignores_ctrl_c_is_told_harder_and_its_lost_children_too(
    site: Site, alice: User
) -> None:
    command = "trap '' INT TERM; setsid sleep 987 & echo ready; while :; do sleep 0.2; done"
    task = site.run(alice, command)
    site.wait_for_output(task, "ready")
    stopping.stop(task.job, actor=alice)
    signals = []
    for age in (0, 11, 26):
        age_request(task, age)
        site.look()
        signals.append(last(task).stop_signal)
        if age < 26:
            site.look()
            assert Task.objects.get(pk=task.pk).state == RUNNING

    site.until(task, STOPPED)

    assert signals == ["INT", "TERM", "KILL"]
    assert task.exit_code is None
    assert sleepers(site, "987") == ""


def test_a_child_that_outlives_its_task_is_found_by_its_mark(site: Site, alice: User) -> None:
    task = site.run(alice, "setsid sleep 986 & echo ready; sleep 985")
    other = site.run(alice, "echo ready; sleep 984")
    site.wait_for_output(task, "ready")
    stopping.stop(task.job, actor=alice)
    site.work()
    site.wait(lambda: sleepers(site, "985") == "", task)
    site.look()
    assert sleepers(site, "986") != ""
    assert Task.objects.get(pk=task.pk).state == RUNNING

    age_request(task, 11)
    site.until(task, STOPPED)

    assert sleepers(site, "986") == ""
    assert sleepers(site, "984") != ""
    other.refresh_from_db()
    assert other.state == RUNNING


def sleepers(site: Site, seconds: str) -> str:
    pids = [str(pid) for pid in site.lab["gpu01"].pids()]
    listed = subprocess.run(
        ["ps", "-o", "args=", "-p", ",".join(pids or ["1"])], capture_output=True, text=True
    ).stdout
    return "\n".join(line for line in listed.splitlines() if line == f"sleep {seconds}")


def test_stopping_task_1_leaves_task_10_alone(site: Site, alice: User) -> None:
    tasks = []
    for pk in (70_001, 700_010, 700_011):
        job = making.job(alice, host=site.hosts["gpu01"], command="trap '' INT; sleep 50; sleep 50")
        job.tasks.update(id=pk)
        tasks.append(site.start(job))
    stopping.stop(tasks[0].job, actor=alice)
    age_request(tasks[0], 30)

    site.until(tasks[0], STOPPED)
    site.look()

    for task in tasks[1:]:
        task.refresh_from_db()
        assert (task.state, last(task).stop_signal) == (RUNNING, "")


def test_a_stop_before_the_start_was_sent_starts_nothing(site: Site, alice: User) -> None:
    job = making.job(alice, host=site.hosts["gpu01"], command="echo ran > ran")
    launching.execute(job, actor=alice)
    stopping.stop(job, actor=alice)

    site.work()

    task = job.tasks.get()
    assert (task.state, task.reason) == (STOPPED, "Stopped before it was started.")
    assert site.lab["gpu01"].run(["cat", "/home/alice/ran"]).returncode == 1


def test_what_a_task_starts_counts_as_the_products_own(site: Site, alice: User) -> None:
    task = site.run(alice, "echo $$; sleep 60")
    pid = int(site.wait_for_output(task, "\n"))
    site.look()

    own = following.own_processes([task.host_id], timezone.now())

    attempt = last(task)
    assert {boot for boot, *_ in own} == {site.lab["gpu01"].boot_id}
    assert {attempt.pid, pid} <= {found for _, found, _, _ in own}
    assert {uid for *_, uid in own} == {attempt.uid}
    assert following.own_processes([site.hosts["gpu02"].pk], timezone.now()) == set()


def test_a_reboot_loses_what_ran(site: Site, alice: User) -> None:
    task = site.run(alice, "sleep 60")

    site.lab["gpu01"].reboot()
    site.until(task, LOST)

    assert task.reason == "The host was rebooted while it ran."
    assert task.exit_code is None


def test_a_killed_task_is_no_success(site: Site, alice: User) -> None:
    task = site.run(alice, "sleep 60")
    pid = last(task).pid
    site.lab["gpu01"].run(["kill", "-KILL", "--", f"-{pid}"])

    site.until(task, FAILED)

    assert task.exit_code is None
    assert "disappeared" in task.reason


def test_without_the_key_a_task_is_still_followed(site: Site, alice: User) -> None:
    task = site.run(alice, "sleep 3; exit 5")
    site.lab["gpu01"].revoke_key("alice")
    site.look()
    task.refresh_from_db()
    assert task.state == RUNNING

    site.until(task, FINISHED)

    assert task.exit_code is None
    assert "acting key" in task.reason
    again = site.start(task.job)
    assert again.state == FAILED
    assert again.reason.startswith("Not started: ")


def test_a_silent_host_makes_a_task_unknown_until_it_speaks(site: Site, alice: User) -> None:
    task = site.run(alice, "sleep 100")
    host = site.lab["gpu01"]
    host.stall()
    site.look()
    task.refresh_from_db()
    assert task.state == UNKNOWN
    assert task.reason

    host.resume()
    site.until(task, RUNNING)

    assert task.reason == ""


def test_a_host_that_the_watch_calls_unreachable_is_not_asked(site: Site, alice: User) -> None:
    task = site.run(alice, "sleep 100")
    host = site.hosts["gpu01"]
    host.state, host.reason = host.State.UNREACHABLE, "It refuses connections."
    host.save()
    asked = HostRequest.objects.count()

    following.after_probe([host.pk], timezone.now())

    task.refresh_from_db()
    assert (task.state, task.reason) == (UNKNOWN, "It refuses connections.")
    assert HostRequest.objects.count() == asked


def test_start_up_files_that_talk_do_not_confuse(site: Site, alice: User) -> None:
    noise = "echo started; echo 1; printf 'done'"
    site.lab["gpu01"].run(["sh", "-c", f'echo "{noise}" > /home/alice/.bashrc'], user="alice")

    task = site.until(site.run(alice, "exit 4"), FINISHED)

    assert task.exit_code == 4


class TestHomes:
    """Homes that cannot take a job: nothing is half started, and the sentence says why."""

    @pytest.fixture
    def site(self, fresh_lab: Callable[..., Lab], settings: Any) -> Site:
        return Site(fresh_lab(hosts=1, users=["alice"]), settings)

    def small_home(self, site: Site, kib: int) -> None:
        uid = site.lab["gpu01"].run(["id", "-u", "alice"]).stdout.strip()
        options = f"size={kib}k,mode=700,uid={uid},gid={uid}"
        mounted = site.lab["gpu01"].run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", "/home/alice"]
        )
        assert mounted.returncode == 0, mounted.stderr

    @pytest.mark.parametrize(
        "spoil", [["chmod", "500", "/home/alice"], ["rmdir", "/home/alice"]], ids=["ro", "none"]
    )
    def test_a_home_that_is_not_writable_or_not_there(
        self, site: Site, alice: User, spoil: list[str]
    ) -> None:
        assert site.lab["gpu01"].run(spoil).returncode == 0

        task = site.run(alice, "echo ran")

        sentence = "The home directory of alice is missing or not writable."
        assert (task.state, task.reason) == (FAILED, sentence)

    def test_a_full_disk_at_the_start(self, site: Site, alice: User) -> None:
        self.small_home(site, 64)
        fill = "head -c 60k /dev/zero > /home/alice/full; cat /dev/zero >> /home/alice/full"
        site.lab["gpu01"].run(["sh", "-c", fill], user="alice")

        task = site.run(alice, "echo ran")

        assert task.state == FAILED
        assert task.reason == "Cannot write in /home/alice/.tensorhive: is the disk full?"
        left = site.lab["gpu01"].run(["find", "/home/alice/.tensorhive", "-type", "f"]).stdout
        assert left == ""

    def test_a_disk_that_fills_up_keeps_the_exit_code(self, site: Site, alice: User) -> None:
        self.small_home(site, 256)

        task = site.run(alice, "cat /dev/zero > full; exit 3")

        site.until(task, FINISHED)
        assert task.exit_code == 3

    def test_without_screen_it_runs_detached_and_says_so(self, site: Site, alice: User) -> None:
        host = site.lab["gpu01"]
        host.run(["mount", "--bind", "/dev/null", "/usr/bin/screen"])

        task = site.run(alice, "echo ran; trap 'exit 9' INT; sleep 30 & wait")

        assert (task.state, last(task).session) == (RUNNING, "")
        assert task.reason == "It runs without screen, so it cannot be attached to."
        site.wait_for_output(task, "ran")
        stopping.stop(task.job, actor=alice)
        site.until(task, STOPPED)
        assert task.exit_code == 9

    def test_without_the_systems_socket_directory_it_has_its_own(
        self, site: Site, alice: User
    ) -> None:
        host = site.lab["gpu01"]
        assert host.run(["rmdir", "/run/screen"]).returncode == 0
        task = site.run(alice, "echo 'a b'; sleep 30")
        attempt = last(task)
        assert attempt.screen_directory == "/home/alice/.tensorhive/screen/gpu01"

        person = host.open_terminal(user="alice")
        person.type(f"SCREENDIR={attempt.screen_directory} screen -r {attempt.session}\r")

        assert "a b" in person.wait_for("a b")


def test_two_hosts_that_share_homes_keep_their_tasks_apart(
    fresh_lab: Callable[..., Lab], settings: Any, alice: User
) -> None:
    site = Site(fresh_lab(hosts=2, users=["alice"], own_homes=False), settings)

    tasks = [site.run(alice, "uname -n; sleep 1; exit 2", host=name) for name in site.hosts]

    for task in tasks:
        site.until(task, FINISHED)
        assert (site.output(task), task.exit_code) == (f"{task.host.name}\n", 2)


def test_the_start_script_refuses_root_and_accounts_of_the_system() -> None:
    script = (launching.REMOTE / "launch.sh").read_text()

    def as_user(*prefix: str) -> str:
        done = subprocess.run([*prefix, "sh", "-s"], input=script, capture_output=True, text=True)
        return done.stdout.strip()

    assert as_user() == "failed Jobs never run as root."
    system = as_user("setpriv", "--reuid=2", "--clear-groups")
    assert system == "failed Jobs do not run in accounts of the system."


def test_a_gpu_that_was_reserved_meanwhile_starts_nothing(
    site: Site, alice: User, bob: User
) -> None:
    gpu = site.hosts["gpu01"].gpus.get(index=0)
    job = making.job(bob, gpus=[gpu], command="echo ran > ran")
    launching.execute(job, actor=bob)
    make.reservation(gpu, owner=alice)

    site.work()

    task = job.tasks.get()
    assert task.state == FAILED
    assert task.reason.startswith("gpu01:0 is reserved by alice until ")
    assert site.lab["gpu01"].authentication_attempts() == []


def test_requests_of_tasks_are_answered_even_when_their_job_is_gone(
    site: Site, alice: User
) -> None:
    job = making.job(alice, host=site.hosts["gpu01"])
    launching.execute(job, actor=alice)
    job.delete()

    site.work()

    assert HostRequest.objects.get().state == HostRequest.State.DONE
