# SPDX-License-Identifier: GPL-2.0
"""What runs inside the guest for test_run.py: run leaves its caller's descriptors, signals and settings as they are.

Called and answered as guest_run.py is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from guest_run import CTL, Server, Who, background, cgroups, ctl, line_of, main, rules, until

USER = Who(user=65534, group=65534, extra_groups=[])


def guards() -> list[int]:
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/comm")
        if path.exists() and path.read_text().strip() == "vulture-guard"
    ]


def nothing_left() -> bool:
    return not cgroups() and not rules() and not guards()


def ticks(pid: int) -> int:
    """CPU time of a process, 1/100 s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_the_command_has_the_descriptors_of_the_caller_and_no_other() -> None:
    there, gone = os.pipe()
    os.set_inheritable(gone, True)
    for user in (Who(), USER):
        more: Who = {"pass_fds": [gone], **user}
        done = ctl("run", "--", "ls", "-l", "/proc/self/fd", **more)
        numbers = {int(line.split()[8]) for line in done.stdout.splitlines() if "->" in line}
        opened = {int(line.split()[8]) for line in done.stdout.splitlines() if "/proc/" in line}
        assert numbers - opened == {0, 1, 2, gone}, done
    os.close(there)
    os.close(gone)


def test_the_guard_holds_no_descriptor_and_no_folder_of_the_caller() -> None:
    there, gone = os.pipe()
    folder = Path("/tmp/mounted")
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    script = f"cd / && setsid sleep 2 {gone}>&- >/dev/null 2>&1 & sleep 0.2"
    ctl("run", "--", "sh", "-c", script, pass_fds=[gone], cwd=folder)
    os.close(gone)
    began = time.monotonic()
    assert guards(), "the child lives"
    assert os.read(there, 1) == b"" and time.monotonic() - began < 1, "the guard held the pipe"
    subprocess.run(["umount", folder], check=True)
    os.close(there)
    until(nothing_left)


def test_cgroups_that_the_command_leaves_go_too() -> None:
    script = """
mkdir -p /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/one/two
mkdir /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/three
"""
    done = ctl("run", "--", "sh", "-c", script)
    assert done.returncode == 0 and done.stderr == "", done
    until(nothing_left)


def test_a_guard_that_cannot_remove_its_cgroup_does_not_burn_time() -> None:
    """A process comes back into a cgroup that was empty: it is waited for asleep."""
    run = subprocess.Popen([CTL, "run", "--", "sleep", "0.5"], stderr=-1, text=True)
    until(lambda: cgroups() and guards())
    (cgroup,) = (Path("/sys/fs/cgroup") / name for name in cgroups())
    (cgroup / "sub").mkdir()
    stays = subprocess.Popen(["sleep", "2.5"])
    (cgroup / "sub" / "cgroup.procs").write_text(str(stays.pid))
    run.wait()
    (guard,) = guards()
    before = ticks(guard)
    time.sleep(1)
    assert ticks(guard) - before < 20, "it spins"
    stays.wait()
    until(nothing_left)


def test_a_killed_guard_leaves_nothing_once_the_command_has_ended() -> None:
    run = subprocess.Popen([CTL, "run", "--", "sleep", "1"])
    until(lambda: cgroups() and guards())
    (guard,) = guards()
    time.sleep(0.2)
    os.kill(guard, signal.SIGKILL)
    assert run.wait() == 0
    until(nothing_left, 15)


def test_a_run_killed_at_any_moment_leaves_nothing() -> None:
    for step in range(40):
        run = subprocess.Popen([CTL, "run", "--", "true"], stdout=-3, stderr=-3)
        time.sleep(step * 0.002)
        run.kill()
        run.wait()
    until(nothing_left, 15)


def test_a_run_killed_while_its_guard_begins_leaves_nothing() -> None:
    """The guard has its rule, and nobody reads its answer any more."""
    for _ in range(20):
        run = subprocess.Popen([CTL, "run", "--", "true"], stdout=-3, stderr=-3)
        while not cgroups():
            time.sleep(0.0002)
        run.kill()
        run.wait()
    until(nothing_left, 15)


def test_signals_that_the_caller_ignores_stay_ignored() -> None:
    show = "import signal; print([int(signal.getsignal(s) == signal.SIG_IGN) for s in (2, 3, 1, 15, 13)])"
    for ignored in ("INT QUIT", "HUP", "TERM", "PIPE", ""):
        trap = f"trap '' {ignored};" if ignored else ""
        plain, run = (
            subprocess.check_output(["sh", "-c", f"{trap} exec {how} {sys.executable} -c '{show}'"], text=True)
            for how in ("", f"{CTL} run --")
        )
        assert plain == run, (ignored, plain, run)


def test_a_signal_sent_to_run_reaches_the_command() -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        run = subprocess.Popen([CTL, "run", "--", "sleep", "60"])
        until(cgroups)
        time.sleep(0.3)
        run.send_signal(number)
        assert run.wait(timeout=10) == 128 + number, number
        until(nothing_left)


def test_the_keys_of_a_terminal() -> None:
    """Ctrl-C once, not twice; Ctrl-Z stops run and command, and both go on."""
    told = "import signal,time\nn=[]\nsignal.signal(2,lambda *a: n.append(1))\nprint('ready',flush=True)\n"
    told += "end=time.time()+1.5\nwhile time.time()<end: time.sleep(0.05)\nprint('got',len(n),flush=True)\n"
    Path("/tmp/told.py").write_text(told)
    pid, master = os.forkpty()
    if pid == 0:
        os.execv(CTL, [CTL, "run", "--", sys.executable, "/tmp/told.py"])
    text = b""
    while b"ready" not in text:
        text += os.read(master, 1000)
    os.write(master, b"\x03")
    try:
        while b"got" not in text:
            text += os.read(master, 1000)
    except OSError:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 and b"got 1" in text, text
    os.close(master)

    def stopped(one: int) -> bool:
        return Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    pid, master = os.forkpty()
    if pid == 0:
        # a job as of a shell: a group of its own, with the terminal
        shell = os.fork()
        if shell:
            os.waitpid(shell, 0)
            os._exit(0)
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(CTL, [CTL, "run", "--", "sleep", "3"])
    until(cgroups)
    (cgroup,) = cgroups()
    procs = Path("/sys/fs/cgroup") / cgroup / "cgroup.procs"
    until(lambda: procs.read_text().split())
    (command,) = map(int, procs.read_text().split())
    run = int(Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[1])
    os.write(master, b"\x1a")
    until(lambda: stopped(command) and stopped(run))
    os.kill(run, signal.SIGCONT)
    os.kill(command, signal.SIGCONT)
    until(lambda: not stopped(command) and not stopped(run))
    os.kill(command, signal.SIGTERM)
    os.close(master)
    until(nothing_left)


def test_the_exit_status_is_the_commands() -> None:
    for user in (Who(), USER):
        for script, status in {"exit 0": 0, "exit 7": 7, "kill -9 $$": 137, "kill -15 $$": 143}.items():
            assert ctl("run", "--", "sh", "-c", script, **user).returncode == status, (script, user)
        assert ctl("run", "--", "/nonexistent", **user).returncode == 127
        assert ctl("run", "--", "/etc", **user).returncode == 126


def test_environment_limits_and_settings_stay() -> None:
    show = "env | grep -v ^_ | sort; ulimit -a; umask; nice; pwd; id; cat /proc/self/oom_score_adj"
    for user in (Who(), USER):
        environment = {"PATH": os.environ["PATH"], "A": "b c", "EMPTY": ""}
        more: Who = {"env": environment, "cwd": "/usr", "umask": 0o057, **user}
        words = ["sh", "-c", f"ulimit -n 77; ulimit -c 0; exec nice -n 3 $0 sh -c '{show}'"]
        plain = subprocess.check_output([*words, "env"], text=True, **more)
        script = words[2].replace("$0", f"{CTL} run --")
        assert subprocess.check_output(["sh", "-c", script], text=True, stderr=-3, **more) == plain, plain


def test_few_descriptors_and_processes() -> None:
    """The command runs as it would, or one line says why it does not; nothing is left, nothing hangs."""
    for user in (Who(), USER):
        words = ("", "setpriv --reuid 65534 --regid 65534 --clear-groups")[bool(user)]
        for limit in (*(f"-n {number}" for number in range(3, 24)), *(f"-u {number}" for number in range(5))):
            script = f"ulimit {limit} && exec {words} {CTL} run -- sh -c 'exit 9'"
            done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=20)
            if done.returncode != 9:
                assert done.returncode in (1, 126, 127) and done.stderr.count("\n") >= 1, (limit, user, done)
            until(nothing_left, 10)


def test_a_caller_of_sudo_that_nobody_knows_is_no_root() -> None:
    env = {**os.environ, "SUDO_UID": "54321", "SUDO_GID": "54321"}
    done = ctl("run", "--", "id", "-u", env=env)
    assert done.returncode != 0 and done.stdout == "" and "54321" in done.stderr, done
    done = ctl("run", "-u", "nobody", "--", "id", "-u", env=env)
    assert (done.returncode, done.stdout) == (0, "65534\n"), done
    for uid in ("", "x", "-1", "4294967295"):
        done = ctl("run", "--", "id", "-u", env={**env, "SUDO_UID": uid})
        assert done.returncode == 2 and done.stdout == "" and "SUDO_UID" in done.stderr, done
    until(nothing_left)


def test_a_dscp_of_the_applications_own_survives_the_foreground() -> None:
    server = Server()
    script = f"""
import json, socket, time
s = socket.socket()
s.setsockopt(0, 1, 0x48)
s.connect(("127.0.0.1", {server.port}))
print(flush=True)
time.sleep(2.5)
print(json.dumps([s.getsockopt(6, 13, 16).split(b"\\0")[0].decode(), s.getsockopt(0, 1)]))
"""
    client = subprocess.Popen([sys.executable, "-c", script], stdout=-1, text=True)
    line_of(client)
    assert ctl("bg", str(client.pid)).returncode == 0
    assert ctl("fg", str(client.pid)).returncode == 0
    assert json.loads(client.communicate()[0]) == ["cubic", 0x48]
    done = ctl("run", "--deadline", "1s", "--", sys.executable, "-c", script)
    assert json.loads(done.stdout) == ["cubic", 0x48], done


def test_two_runs_at_once_and_one_within_another() -> None:
    server = Server()
    runs = [subprocess.Popen([CTL, "run", "--", *server.client(0.5)], stdout=-1, text=True) for _ in range(6)]
    assert all(background(json.loads(run.communicate(timeout=30)[0])) for run in runs)
    until(nothing_left)
    done = ctl("run", "--", CTL, "run", "--", *server.client())
    assert done.returncode == 0 and background(json.loads(done.stdout)) and done.stderr == "", done
    until(nothing_left)


def test_where_there_is_no_cgroup2_each_socket_is_looked_at() -> None:
    server = Server()
    words = " ".join(server.client(0.5))
    for who in ("", "setpriv --reuid 65534 --regid 65534 --clear-groups"):
        script = f"umount /sys/fs/cgroup && exec {who} {CTL} run -- {words}"
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and background(json.loads(done.stdout)), done
    assert nothing_left()


def test_what_cannot_be_written_is_said() -> None:
    for text in ("list", "--json list", "--json rule list", "metrics", "top -c 1", "show", "--help"):
        words = text.split()
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([CTL, *words], stdout=full, stderr=-1, text=True, check=False)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, (words, done)
        script = f"{CTL} {text} >&-"
        done = subprocess.run(["sh", "-c", script], stderr=-1, text=True, check=False)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, (words, done)


if __name__ == "__main__":
    main(dict(globals()))
