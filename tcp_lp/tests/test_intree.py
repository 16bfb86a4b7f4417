# SPDX-License-Identifier: GPL-2.0
"""The kernel's own tcp_lp and ours in the same kernel on the same paths: its faults, seen from outside.

Numbers are the rows of the list of 21 faults (test_faults.py has the arithmetic of all). Faults 4, 8,
11, 14 and 15 change numbers inside the module whose effect cannot be told from that of faults 1 to 3
in what a sender does; they are shown in arithmetic alone.

The peer shows a clock of a fixed offset (lbe_tick): the in-tree module takes that offset for delay, so
what it does hangs on it, and each fault has an offset at which it is seen best. Two scenes:

    greedy   beside a greedy cubic flow: what it takes of the link, %
    little   1 Mbit/s alone on 10 Mbit/s: no queue ever, so no reason for any cut beyond what TCP itself
             does to a window that is not used (Reno beside it)
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tcp_lp.tests.lp_guest import MIN_RTT, PACING_GAIN, RECOVERY, SENDING, Seen, prepared, seen
from testbed.backends.uml import Uml

pytestmark = pytest.mark.scenario

#: of the link beside cubic, %: Reno takes 34 to 43; tcp_lp's own bound is 4, and three times that gives way no more
TAKES, YIELDS = 12.0, 4.0
#: ticks of 1 ms; raw delays from 2^29 on are beyond what its smoothed delay can hold
SHARED, HOURS, DAYS, BEYOND = 0, 50_000_000, 300_000_000, 0xA0000000


@pytest.fixture(scope="module")
def backend() -> Uml:
    return prepared()


def offset(ticks: int) -> str:
    return f"tick = {{ rcv = {{ offset_ticks = {ticks} }} }}"


@functools.cache
def greedy(backend: Uml, cc: str, clock: str, first: str = "bg") -> Seen:
    start = {"bg": "", "be": "start_s = 5"}
    more = f'[flow.be]\ncc = "cubic"\n{"start_s = 5" if first == "bg" else ""}\n'
    return seen(backend, cc, 30, measure_s=15, topology=clock, flow=start[first], more=more)


@functools.cache
def little(backend: Uml, cc: str, clock: str, sink: str = "") -> Seen:
    flow = f'kind = "cbr"\nrate_mbit = {0.1 if sink else 1}\n{sink}'
    return seen(backend, cc, 20, sample_ms=20, topology=clock, flow=flow)


NO_TIMESTAMPS = "timestamps = false"
MICROSECONDS = "tick = { rcv = { tick_us = 1, per_flow = true } }"


def test_fault_01_what_it_does_hangs_on_the_clocks_offset(backend: Uml) -> None:
    """One path, one seed, three offsets: ours does the same to the packet."""
    clocks = [offset(ticks) for ticks in (SHARED, HOURS, BEYOND)]
    theirs = [greedy(backend, "lp_intree", clock).metrics["bg"] for clock in clocks]
    assert max(theirs) - min(theirs) > TAKES
    ours = [greedy(backend, "lp", clock) for clock in clocks]
    for other in ours[1:]:
        assert np.array_equal(other.rows, ours[0].rows)
    assert ours[0].metrics["bg"] < YIELDS


@pytest.mark.parametrize(
    ("fault", "clock"),
    [
        ("02: offsets above 2^29 switch the signal off", offset(BEYOND)),
        ("03: after an indication the threshold is hours away", offset(HOURS)),
        ("17: without timestamps there is no signal", NO_TIMESTAMPS),
        ("21: a peer that counts microseconds", MICROSECONDS),
    ],
    ids=lambda value: value[:2],
)
def test_it_does_not_yield(backend: Uml, fault: str, clock: str) -> None:
    assert greedy(backend, "lp_intree", clock).metrics["bg"] > TAKES, fault
    assert greedy(backend, "lp", clock).metrics["bg"] < YIELDS, fault


def test_fault_05_and_10_the_first_samples_are_indications(backend: Uml) -> None:
    """Before any loss, on an empty path, the first window is cut within the first second."""
    theirs, ours, reno = (little(backend, cc, offset(DAYS)) for cc in ("lp_intree", "lp", "reno"))
    early = theirs.rows["t_ns"] < 1e9
    assert theirs.rows["retrans_pkts"][early].max() == 0
    assert theirs.cwnd[early].min() < 10 == reno.cwnd[early].min() == ours.cwnd[early].min()
    assert not [at for at in ours.indications() if at < 1e9]


def test_fault_06_07_09_and_13_noise_cuts_it_to_one_packet(backend: Uml) -> None:
    """Its guess of the peer's rate wanders about 1000 and flips the delay; each ACK then cuts, on an empty path."""
    theirs, ours, reno = (little(backend, cc, offset(SHARED)) for cc in ("lp_intree", "lp", "reno"))
    assert theirs.cwnd.min() == 1 < reno.cwnd.min()
    assert not ours.indications()
    assert ours.metrics["bg"] == pytest.approx(10.6, abs=0.1)  # 1 of 9.41 Mbit/s: all that it wants


def test_fault_12_growth_after_an_indication_is_additive(backend: Uml) -> None:
    """The kernel's own lp leaves ssthresh where it was, infinite before a loss: back to slow start.

    Its first sample is an indication if the peer's clock reads low enough; a fixed one does.
    """
    theirs = little(backend, "lp_intree", offset(SHARED))
    cut = int(np.argmax(np.diff(theirs.cwnd) < -2)) + 1
    assert theirs.rows["retrans_pkts"][cut] == 0
    assert theirs.rows["ssthresh_pkts"][cut] >= 2**31 - 1 and theirs.cwnd[cut] < 10
    ours = seen(backend, "lp", 30, topology=offset(SHARED))
    settled = ours.rows["t_ns"] > 5e9
    steps = np.diff(ours.cwnd[settled])
    assert steps.max() <= 2  # +1 a round trip of 100 ms and more, two ACKs may fall into a sample
    assert (steps < -20).sum() >= 2  # and it did cut
    assert (ours.rows["ssthresh_pkts"][settled] <= ours.cwnd[settled]).all()


def test_fault_16_indications_leave_recovery_alone(backend: Uml) -> None:
    """2 % loss under a queue that others fill: who is cut to 1 packet while a loss is repaired?

    Recovery ends with the window at ssthresh, whatever was done to it in between: the kernel's own cuts
    there are lost. Ours acts on no indication there.
    """
    crowd = '[flow.be]\ncc = "cubic"\ncount = 2\n'
    path = f"loss_pct = 2.0\n{offset(SHARED)}"
    theirs, ours = (seen(backend, cc, 20, sample_ms=5, topology=path, more=crowd) for cc in ("lp_intree", "lp"))
    assert ((theirs.rows["ca_state"] == RECOVERY) & (theirs.cwnd == 1)).sum() > 10
    cut = (ours.rows["ca_state"] == RECOVERY) & (ours.cwnd == 1)
    assert (ours.rows["cc"][cut, PACING_GAIN] < SENDING).all()  # it was at its floor when the loss came
    state, times = ours.rows["ca_state"], ours.rows["t_ns"]
    assert ((state[1:] == RECOVERY) & (state[:-1] == RECOVERY)).sum() > 20
    for at in ours.indications():
        after = int(np.searchsorted(times, at))
        assert RECOVERY not in state[after - 1 : after + 1] or state[after] != state[after - 1], at


def test_fault_18_state_is_visible_and_means_what_is_written(backend: Uml) -> None:
    assert not seen(backend, "lp_intree", 5).rows["cc"].any()
    ours = seen(backend, "lp", 20)
    rows = ours.rows[ours.rows["t_ns"] > 6e9]
    assert (rows["cc"][:, PACING_GAIN] == SENDING).all()
    # 86 packets of 1538 octets and the base, in us; the smoothed delay moves between them
    assert np.all(abs(rows["cc"][:, MIN_RTT].astype(int) - 101500) < 2500)
    late = [event for event in ours.events if float(event["at_ns"]) > 6e9]
    assert [event["event"] for event in ours.events].index("learnt") >= 0
    assert {event["event"] for event in late} == {"delay", "over"}
    assert {event["signal"] for event in late} == {"owd"}
    assert all(abs(int(event["margin_us"]) - 0.15 * 86 * 1230) < 1500 for event in late)
    assert all(int(event["sd_us"]) < 101500 + 0.15 * 86 * 1230 + 6000 for event in late)


def test_fault_19_a_latecomer_yields_too(backend: Uml) -> None:
    """The queue of cubic stands when it starts: no empty path was ever seen."""
    theirs, ours = (greedy(backend, cc, offset(HOURS), first="be") for cc in ("lp_intree", "lp"))
    assert theirs.metrics["bg"] > TAKES
    assert ours.metrics["bg"] < YIELDS


def test_fault_20_a_held_ack_is_no_queue(backend: Uml) -> None:
    """A reader that wakes up every 100 ms holds ACKs; the path is empty."""
    held = "read_ms = 100\nsink_options = { lowat = 1 }"
    theirs, ours, reno = (little(backend, cc, offset(SHARED), held) for cc in ("lp_intree", "lp", "reno"))
    assert theirs.cwnd.min() < reno.cwnd.min()
    assert not ours.indications()
