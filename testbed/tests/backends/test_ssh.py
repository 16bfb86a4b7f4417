# SPDX-License-Identifier: GPL-2.0
"""Backends in real time, without booting: the flows given to iperf3, reading ss, a machine's part, refusals."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from testbed.backends import iperf, ssh
from testbed.backends import netns as host_module
from testbed.backends.backend import BackendError
from testbed.backends.netns import Host
from testbed.backends.qemu import Qemu
from testbed.commands.choose import make_backend
from testbed.run import job as jobs
from testbed.spec import experiment
from testbed.spec.records import RECV, SEND

HERE = Path(__file__).resolve().parent
EXPERIMENT = """
[experiment]
claim = "one of each"
source = "the test"
duration_s = 20
measure_s = [5, 20]
[flow.be]
start_s = 1
[flow.bg]
cc = "lp"
stop_s = 15
dscp = 1
[flow.steady]
kind = "cbr"
rate_mbit = 2
[flow.file]
kind = "bytes"
bytes = 100000
[flow.udp]
kind = "cbr"
proto = "udp"
rate_mbit = 1
[flow.marked]
extra_delay_ms = 5
[metric.be]
kind = "goodput"
flow = "be"
[[event]]
at_s = 5
set = { "topology.rate_mbit" = 5 }
[[event]]
at_s = 6
node = "rcv"
run = "true"
"""
MACHINES = """
speed_mbit = 10
[snd]
host = "root@192.0.2.11"
eth0 = "enp3s0"
[rtr]
host = "root@192.0.2.12"
west = "enp3s0"
east = "enp4s0"
[rcv]
host = "root@192.0.2.13"
eth0 = "enp3s0"
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Write a job folder that has flows for iperf3 and flows for the agent."""
    file = tmp_path / "one.toml"
    file.write_text(EXPERIMENT)
    one = experiment.load(str(file))
    folder = tmp_path / "job"
    folder.mkdir()
    jobs.make(one.name, {}, 1, one.setting({})).write(folder)
    return folder


def test_iperf_takes_what_it_can_express(job: Path) -> None:
    taken = iperf.divide(job)
    assert taken.flows == {1: ("snd", "rcv", 5001), 2: ("snd", "rcv", 5002), 3: ("snd", "rcv", 5003)}
    plan = (job / "snd.plan").read_text()
    assert sorted(re.findall(r"^flow id=(\d)", plan, re.MULTILINE)) == ["4", "5", "6"], "sizes, UDP, marks: the agent"
    fragment = (job / "snd.iperf").read_text().splitlines()
    assert fragment == [
        "zero_cs=1000 end_s=20 sample_s=0.5",
        "agent=1",
        "send 5001 10.0.2.2 cubic 0 0 1 20",
        "send 5002 10.0.2.2 lp 0 4 0 15",
        "send 5003 10.0.2.2 cubic 2000000 0 0 20",
    ]
    assert (job / "rcv.iperf").read_text().splitlines()[1:] == ["agent=1", "serve 5001", "serve 5002", "serve 5003"]
    assert not (job / "rtr.iperf").exists()
    assert "queue id=1" in (job / "rtr.plan").read_text()


def uptime_s() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def test_traffic_begins_when_the_set_up_is_done(job: Path) -> None:
    """now.sh shifts every time in plans, iperf3 lists and events to the machine's clock."""
    iperf.divide(job)
    iperf.start_when_ready(job)
    assert "\n. ./now.sh\npids=\n" in (job / "job.sh").read_text()
    before_s, before_ns = uptime_s(), time.monotonic_ns()
    subprocess.run(["sh", "-euc", "OUT=.; . ./now.sh"], cwd=job, check=True)
    after_s, after_ns = uptime_s(), time.monotonic_ns()
    # the script read the clock between our two readings; the clock's resolution is 10 ms
    zero_cs = int((job / "zero_cs").read_text())
    assert before_s - 0.01 <= zero_cs / 100 - 5 <= after_s + 0.01
    (zero,) = re.findall(r"^zero_ns (\d+)$", (job / "rtr.plan").read_text(), re.MULTILINE)
    zero_ns = int(zero)
    # zero_ns combines readings of two clocks, which are apart by at most the time that the script took
    assert before_ns - (after_ns - before_ns) - 10**7 <= zero_ns - 5 * 10**9 <= after_ns
    assert (job / "snd.iperf").read_text().startswith(f"zero_cs={zero_cs} end_s=20")
    events = (job / "events.sh").read_text()
    assert f"until_cs $((1500 + {zero_cs - 1000}))" in events and f"until_cs $((1600 + {zero_cs - 1000}))" in events
    (job / "job.sh").write_text("true\n")
    with pytest.raises(iperf.BadJob):
        iperf.start_when_ready(job)


SS_SND = """\
t 10.00
t 11.00
ESTAB 0 0 10.0.1.2:40000 10.0.2.2:5001 cubic wscale:7,7 rto:304 rtt:100.5/2.25 mss:1448 cwnd:10 bytes_sent:300 bytes_acked:300 bytes_received:250 minrtt:100.1
ESTAB 0 90000 10.0.1.2:40002 10.0.2.2:5001 lp wscale:7,7 rto:304 rtt:104.125/1.5 mss:1448 cwnd:86 ssthresh:60 bytes_sent:1000000 bytes_retrans:1448 bytes_acked:900000 unacked:60 retrans:0/1 lost:2 delivered:621 minrtt:100.2
t 12.50
ESTAB 0 0 10.0.1.2:40002 10.0.2.2:5001 lp wscale:7,7 rto:304 rtt:105/1.5 mss:1448 cwnd:87 bytes_sent:2000000 bytes_acked:1900000 unacked:60 delivered:1300 minrtt:100.2
t 13.00
TIME-WAIT 0 0 10.0.1.2:40002 10.0.2.2:5001
"""  # noqa: E501 - as ss prints it
SS_RCV = """\
t 10.50
ESTAB 0 0 10.0.2.2:5001 10.0.1.2:40000 cubic rto:304 rtt:100/2 mss:1448 cwnd:10 bytes_received:300
ESTAB 0 0 10.0.2.2:5001 10.0.1.2:40002 cubic rto:304 rtt:100/2 mss:1448 cwnd:10 bytes_received:400000
t 11.50
ESTAB 0 0 10.0.2.2:5001 10.0.1.2:40002 cubic rto:304 rtt:100/2 mss:1448 cwnd:10 bytes_received:1500000
t 12.50
FIN-WAIT-2 0 0 10.0.2.2:5001 10.0.1.2:40002
"""


def test_samples_of_ss_become_records(tmp_path: Path) -> None:
    (tmp_path / "zero_cs").write_text("1000\n")
    for node, text in (("snd", SS_SND), ("rcv", SS_RCV)):
        (tmp_path / f"{node}.ss").write_text(text)
    iperf.collect(iperf.Taken({7: ("snd", "rcv", 5001)}), tmp_path)
    sent = np.fromfile(tmp_path / "snd.send", dtype=SEND)
    assert sent["t_ns"].tolist() == [1_000_000_000, 2_500_000_000], "the control connection is not the flow"
    assert set(sent["flow"].tolist()) == {7}
    first = sent[0]
    assert (first["cwnd_pkts"], first["ssthresh_pkts"], first["srtt_us"], first["rttvar_us"]) == (86, 60, 104125, 1500)
    assert (first["retrans_pkts"], first["lost_pkts"], first["unacked_pkts"]) == (1, 2, 60)
    assert (first["minrtt_us"], first["bytes_acked"], first["bytes_sent"]) == (100200, 900000, 1000000)
    received = np.fromfile(tmp_path / "rcv.recv", dtype=RECV)
    assert received["t_ns"].tolist() == [500_000_000, 1_500_000_000, 2_500_000_000]
    assert received["bytes"].tolist() == [400000, 1500000, 1500000], "a closed connection keeps its count"


def test_unreadable_samples_are_no_result(tmp_path: Path) -> None:
    with pytest.raises(iperf.BadSamples, match="unreadable sample of ss: 'ESTAB 0'"):
        list(iperf.samples("t 1.0\nESTAB 0\n"))


# -- three machines --------------------------------------------------------------------------------


def test_a_machines_part_is_its_own(job: Path) -> None:
    iperf.divide(job)
    part = ssh.part(job, "rtr", 500.125)
    script = part["rtr.sh"]
    assert "netns exec snd" not in script and "-n rcv" not in script and "links.ip" not in script
    assert "ip -n rtr link set dev east address 02:00:00:00:02:01 mtu 1500" in script
    assert "ip netns add" not in script, "machine.sh has made it, with the cards in it"
    assert re.search(r"^zero_ns 500125000000$", part["rtr.plan"], re.MULTILINE)
    assert re.search(r"^out out$", part["rtr.plan"], re.MULTILINE)
    events = part["events.sh"]
    assert "until_cs 50512" in events and "until_cs 50612" in events, "events at 5 and 6 s, on this machine's clock"
    assert "netns exec rtr" in events and "netns exec rcv" not in events
    assert "netns exec rcv" in ssh.part(job, "rcv", 0)["events.sh"]
    assert "zero_cs=50012" in ssh.part(job, "snd", 500.125)["snd.iperf"]
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)


def test_an_experiment_with_more_nodes_is_refused(job: Path) -> None:
    text = (job / "job.sh").read_text()
    (job / "job.sh").write_text(text.replace("ip netns add rcv\n", "ip netns add rcv\nip netns add rtr2\n"))
    with pytest.raises(ssh.BadMachines, match="rcv, rtr, rtr2, snd; three machines are snd, rtr, rcv"):
        ssh.part(job, "snd", 0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("speed_mbit = 10", "speed_mbit = 1000", r"speed_mbit = 1000: allowed are 0 \(leave it\), 10, 100"),
        ("speed_mbit = 10", "sped = 10", "sped: allowed are ssh, speed_mbit, folder, set_up_s, snd, rtr, rcv"),
        ('west = "enp3s0"', "", r"\[rtr\] needs host, west, east and nothing else"),
        ('east = "enp4s0"', 'east = "enp4s0; reboot"', "rtr.east = 'enp4s0; reboot'"),
        ("speed_mbit = 10", 'folder = "here"', "folder = 'here': an absolute path without blanks"),
        ("speed_mbit = 10", "set_up_s = 1", "set_up_s = 1: allowed are 5 to 600"),
        ("[snd]", "[snd", "Expected"),
    ],
)
def test_bad_machines_are_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    file = tmp_path / "machines.toml"
    file.write_text(MACHINES.replace(old, new))
    with pytest.raises(ssh.BadMachines, match=words):
        ssh.read_machines(file)


def test_what_a_machine_lacks_is_named(tmp_path: Path) -> None:
    """A shell stands for ssh; all machines are this one, which does not have the network cards."""
    file = tmp_path / "machines.toml"
    fake = tmp_path / "fake-ssh"
    fake.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    fake.chmod(0o755)
    file.write_text(f'ssh = "{fake}"\n' + MACHINES.replace("enp3s0", "no-such-card"))
    with pytest.raises(ssh.BadMachines, match=r"snd \(root@192.0.2.11\): .*has no card no-such-card"):
        ssh.Ssh(file).prepare([])
    fake.write_text("#!/bin/sh\necho no route to host >&2\nexit 255\n")
    with pytest.raises(ssh.BadMachines, match=r"snd \(root@192.0.2.11\): .*returned 255: no route to host"):
        ssh.Ssh(file).prepare([])


def test_clocks_are_set_from_what_ssh_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three answers the quickest is used, as of the middle of its round trip. Our clock is simulated here."""
    file = tmp_path / "machines.toml"
    fake = tmp_path / "fake-ssh"
    fake.write_text('#!/bin/sh\necho "1234.50 0"\n')
    fake.chmod(0o755)
    file.write_text(f'ssh = "{fake}"\n' + MACHINES)
    ticks = iter([100.0, 104.0, 200.0, 201.0, 300.0, 302.0])
    monkeypatch.setattr(ssh, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    assert ssh.clock_offset_s(ssh.read_machines(file), "snd") == 1234.5 - 200.5


# -- refusals ---------------------------------------------------------------------------------------


def test_host_refuses_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(BackendError, match="needs root: say sudo"):
        Host().prepare(["tcp_lp"])


def test_host_refuses_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(host_module, "PROGRAMS", ("sh",))
    monkeypatch.setattr(host_module, "module_file", lambda name: None)
    with pytest.raises(BackendError, match=r"has no module tcp_lp: `sudo make dkms` or"):
        Host().prepare(["tcp_lp"])
    with pytest.raises(BackendError, match="cannot run lp_intree"):
        Host().prepare(["tcp_lp_intree"])
    monkeypatch.setattr(host_module, "PROGRAMS", ("no-such-program",))
    with pytest.raises(BackendError, match="needs no-such-program; `scripts/deps host` installs"):
        Host().prepare([])


def test_host_refuses_a_kernel_that_takes_no_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(host_module, "PROGRAMS", ("sh",))
    monkeypatch.setattr(host_module, "module_file", lambda name: Path(__file__))
    monkeypatch.setattr(host_module, "read_text", lambda path: "1\n")
    with pytest.raises(BackendError, match=r"takes no modules any more .*, and tcp_lp is not loaded"):
        Host().prepare(["tcp_lp"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backend", "host", "--flavour", "sanitizer"], "takes the kernel as it is"),
        (["--flavour", "race"], "--flavour race: a kernel for QEMU alone; user mode has plain and sanitizer"),
        (["--backend", "moon"], "no backend 'moon': there are uml, qemu, host, ssh"),
        (["--backend", "ssh"], "--backend ssh and --machines FILE belong together"),
        (["--machines", "x.toml"], "--backend ssh and --machines FILE belong together"),
    ],
)
def test_refusals_of_the_command(words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "run", "demo", "--short", *words],
        check=False, capture_output=True, text=True, cwd=HERE.parents[2],
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_backend_is_made_by_name() -> None:
    made = make_backend("qemu")
    assert isinstance(made, Qemu) and made.series == "6.12"
    assert make_backend("uml").name == "uml"
