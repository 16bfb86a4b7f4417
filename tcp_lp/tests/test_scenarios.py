# SPDX-License-Identifier: GPL-2.0
"""tcp_lp inside the kernel: loading, parameters, what it shows, the shape of the law's sawtooth.

The kernel's own module and its faults are beside it in test_intree.py. How lp shares a link is
shown by the experiments (testbed/experiments/lp_*.toml).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcp_lp.tests.lp_guest import PACING_GAIN, SENDING, guest, prepared, seen, text
from testbed.backends.uml import Uml
from testbed.base.errors import LbeError
from testbed.run import runner
from testbed.spec.experiment import parse
from testbed.support import guests, yielding

pytestmark = pytest.mark.scenario


@pytest.fixture(scope="module")
def backend() -> Uml:
    return prepared()


@pytest.mark.parametrize("packets", [43, 86, 215, 600])
def test_alone_the_second_indication_never_comes(backend: Uml, packets: int) -> None:
    """Once settled a flow alone halves and never goes to the floor: its own queue is no evidence."""
    rows = seen(backend, "lp", 60, packets=packets).rows
    rows = rows[rows["t_ns"] > 15e9]
    assert (rows["cc"][:, PACING_GAIN] == SENDING).all()
    assert rows["cwnd_pkts"].min() > 20


PARAMETERS = """
p=/sys/module/tcp_lp/parameters
exec >"$LBE_OUT/said" 2>&1
insmod "$tcp_lp" delta_permille=901 && exit 1
insmod "$tcp_lp" delta_permille=300 paper=1 || exit 1
for setting in delta_permille=9 delta_permille=901 delta_permille=x delta_permille=-1 delta_permille= paper=2 mark=x; do
	echo "${setting#*=}" 2>/dev/null >"$p/${setting%=*}" && { echo "taken $setting"; exit 1; }
done
for name in delta_permille paper mark; do
	echo "$name=$(cat "$p/$name")"
done
echo 200 >"$p/delta_permille" || exit 1
echo "delta_permille=$(cat "$p/delta_permille")"
dmesg | grep -c "refused: a number from 10 to 900 is wanted"
rmmod tcp_lp || exit 1
"""


def test_parameters_are_checked_and_a_refusal_changes_nothing(backend: Uml, tmp_path: Path) -> None:
    said = guest(backend, tmp_path, PARAMETERS)
    for line in ("delta_permille=300", "paper=Y", "mark=Y", "delta_permille=200"):
        assert f"\n{line}\n" in said, said
    assert said.rstrip().endswith("6"), said  # each number's refusal said why


BOTH = """
exec >"$LBE_OUT/said" 2>&1
insmod "$tcp_lp_intree" || exit 1
insmod "$tcp_lp" && exit 1
dmesg | grep "the name lp is taken"
rmmod tcp_lp || exit 1
insmod "$tcp_lp" || exit 1
cat /proc/sys/net/ipv4/tcp_available_congestion_control
cat /proc/sys/net/ipv4/tcp_allowed_congestion_control
rmmod tcp_lp || exit 1
cat /proc/sys/net/ipv4/tcp_available_congestion_control
"""


def test_it_replaces_the_kernels_own_module(backend: Uml, tmp_path: Path) -> None:
    """Both at once cannot be; the refusal says what to remove. Unprivileged sockets may use it."""
    said = guest(backend, tmp_path, BOTH)
    assert "rmmod tcp_lp" in said or "File exists" in said, said
    available, allowed, after = said.splitlines()[-3:]
    assert {"lp", "lp_ecn"} <= set(available.split())
    assert {"lp", "lp_ecn"} <= set(allowed.split())
    assert not {"lp", "lp_ecn"} & set(after.split())


PAGE = Path(__file__).resolve().parents[2] / "Documentation" / "tcp_lp.md"


def test_the_commands_for_the_senders_own_device_are_accepted(tmp_path: Path) -> None:
    """The page's commands, in its order, in a guest. What each queue gives is shown by senders_mark."""
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## At the sender's own device") : text.index("## The law")]
    commands = re.findall(r"^    (tc qdisc [^#\n]*?) *(?:#.*)?$", section, re.MULTILINE)
    assert len(commands) == 7
    script = ["ip link add DEV type veth peer name far", "ip link set DEV up", "ip link set far up"]
    for command in commands:
        script += [f"{command} && echo 'accepted {command}'", "tc qdisc show dev DEV"]
    said = guests.run("tcp_lp", tmp_path, "\n".join(script))
    assert re.findall("^accepted (.*)$", said, re.MULTILINE) == commands, said
    for line in ("prio 10: root", "fq_codel 12: parent 10:2", "fq ", "cake ", "prio 10: parent 1:1"):
        assert f"qdisc {line}" in said, said


SS = re.compile(r"\blp\b.* bbr:\(bw:\d+bps,mrtt:([\d.]+),pacing_gain:([\d.]+),cwnd_gain:([\d.]+)\)")


def test_each_change_of_state_has_a_trace_event_and_ss_shows_the_path(backend: Uml) -> None:
    """The socket by its cookie and both addresses; `ss` in the words of BBR; the counters of the namespace."""
    ours = seen(backend, "lp", 30)
    assert len(ours.indications()) >= 4
    for name in ("cookie", "src", "dst", "signal", "cwnd", "sd_us", "base_us", "full_us", "margin_us", "rest_rtts"):
        assert all(name in event for event in ours.events), ours.events[0]
    assert len({(event["cookie"], event["src"], event["dst"]) for event in ours.events}) == 1
    assert re.fullmatch(r"10\.0\.\d+\.\d+:\d+", ours.events[0]["dst"])
    ((mrtt, pacing_gain, cwnd_gain),) = (map(float, found) for found in SS.findall(ours.ss))
    assert abs(mrtt - 101.5) < 2.5 and pacing_gain == 1 and 0.3 < cwnd_gain < 1.6
    counters = dict(line.split() for line in ours.counters.splitlines())
    assert counters["flows"] == "1"
    assert int(counters["yields"]) == [event["event"] for event in ours.events].count("over") + int(
        counters["yielding"]
    )
    assert int(counters["yielded_bytes"]) > 100_000


def test_a_flow_is_counted_in_its_namespace_until_a_switch_and_ss_has_the_fields_of_the_page(tmp_path: Path) -> None:
    shown = yielding.shown("tcp_lp", "lp", tmp_path)
    yielding.expect_counted(shown)
    yielding.expect_fields(shown, "lp", "tcp_lp.md")


def test_two_modules_of_one_name_in_one_run_are_refused() -> None:
    both = parse(text("lp", 5, more='[flow.be]\ncc = "lp_intree"\n'), Path("tcp_lp_guest.toml"))
    with pytest.raises(LbeError, match="both are named"):
        runner.plan(both, runner.Options(runs=1))
