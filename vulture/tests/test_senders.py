# SPDX-License-Identifier: GPL-2.0
"""Senders of several stacks and a right edge that moves to the left: the models of senders.py do what their sources do,
and the kernel's receiver with vulture serves each of them (guest_senders.py)."""

from __future__ import annotations

import functools
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from testbed.backends.machine import Machine
from testbed.backends.uml import HOST_ROOT
from testbed.base.places import REPO
from testbed.kernels.build import ensure_kernel
from testbed.kernels.modules import ensure_modules
from testbed.kernels.series import KernelSpec
from vulture.tests import senders, test_control
from vulture.tests.senders import CASES, CONTROLLERS, STACKS, Ack, Sender

FOLDER = Path(__file__).resolve().parent
SCRIPTS = re.findall(r"^def script_(\w+)\(", (FOLDER / "guest_senders.py").read_text(encoding="utf-8"), re.MULTILINE)
KERNELS = [f"kernel-{controller}" for controller in CONTROLLERS]
MSS, RTT = 1000, 0.1


# ---- the models -------------------------------------------------------------------------------


def flying(stack: str, total: int = 100_000) -> Sender:
    """A sender with ten segments in flight of which two are acknowledged, in a window of 20; six for lwIP."""
    sender = STACKS[stack](total, MSS, 20 * MSS)
    sender.output(0.0)
    sender.on_ack(RTT, Ack(2 * MSS, 20 * MSS, (), RTT))
    assert sender.high >= 6 * MSS and sender.una == 2 * MSS
    sender.out.clear()
    return sender


def run_until(sender: Sender, end: float, now: float = RTT) -> list[tuple[float, tuple[int, int]]]:
    """Return what the sender's timers send until then."""
    seen = []
    while sender.timers and (now := min(sender.timers.values())) <= end:
        sender.on_timer(now)
        seen += [(round(now, 2), span) for span in sender.out]
        sender.out.clear()
    return seen


@pytest.mark.parametrize("stack", STACKS)
def test_a_smaller_window_stops_new_data_and_nothing_in_flight_is_forgotten(stack: str) -> None:
    sender = flying(stack)
    high = sender.high
    sender.on_ack(2 * RTT, Ack(3 * MSS, 2 * MSS, (), RTT))
    assert sender.out == [] and sender.high == high and sender.beyond == high - 5 * MSS
    for ack in range(4 * MSS, high + 1, MSS):
        sender.on_ack(3 * RTT, Ack(ack, 2 * MSS, (), RTT))
    assert sender.una == high and sender.out, "the edge has passed what was in flight: new data"
    assert not sender.fault


@pytest.mark.parametrize("stack", STACKS)
def test_an_old_acknowledgment_does_not_bring_the_old_window_back(stack: str) -> None:
    sender = flying(stack)
    sender.on_ack(2 * RTT, Ack(4 * MSS, 2 * MSS))
    sender.on_ack(2 * RTT, Ack(3 * MSS, 20 * MSS))
    assert sender.wnd == 2 * MSS


def test_only_rack_takes_a_smaller_window_from_an_acknowledgment_that_is_not_new() -> None:
    for stack in STACKS:
        sender = flying(stack)
        sender.on_ack(2 * RTT, Ack(2 * MSS, 5 * MSS))
        assert sender.wnd == (5 * MSS if stack == "rack" else 20 * MSS), stack


def test_linux_sends_nothing_again_beyond_the_edge() -> None:
    sender = flying("linux")
    sender.on_ack(2 * RTT, Ack(3 * MSS, 2 * MSS))
    sender.cwnd = 20 * MSS
    sender.timed_out(1.0)
    sender.cwnd = 20 * MSS
    sender.output(1.0)
    assert sender.out == [(3 * MSS, 4 * MSS), (4 * MSS, 5 * MSS)]


def test_linux_sends_the_first_segment_again_into_a_window_of_zero() -> None:
    sender = flying("linux")
    sender.on_ack(2 * RTT, Ack(3 * MSS, 0))
    assert {span for _, span in run_until(sender, 5.0)} == {(3 * MSS, 4 * MSS)}


def test_bsd_sends_again_from_the_start_and_a_part_of_a_segment_too() -> None:
    sender = flying("bsd")
    sender.on_ack(2 * RTT, Ack(3 * MSS, 500))
    assert run_until(sender, 1.0)[0][1] == (3 * MSS, 3 * MSS + 500)


def test_bsd_pulls_back_from_a_window_of_zero_and_probes_with_one_octet() -> None:
    sender = flying("bsd")
    sender.on_ack(2 * RTT, Ack(3 * MSS, 0))
    assert sender.nxt == 3 * MSS and "retransmit" not in sender.timers
    probes = run_until(sender, 20.0)
    assert len(probes) >= 2 and {span for _, span in probes} == {(3 * MSS, 3 * MSS + 1)} and probes[0][0] >= 5.0
    sender.on_ack(21.0, Ack(3 * MSS + 1, 4 * MSS))
    assert sender.out[0] == (3 * MSS + 1, 4 * MSS + 1)


def test_bsd_sends_what_was_selected_as_missing_wherever_it_lies() -> None:
    sender = flying("bsd")
    high, cut = sender.high, sender.high - 2 * MSS
    sender.on_ack(2 * RTT, Ack(3 * MSS, 3 * MSS))
    for last in (cut - MSS, cut, high):
        selected = ((4 * MSS, min(last, cut)), *([(cut + MSS, high)] if last == high else []))
        sender.on_ack(2 * RTT, Ack(3 * MSS, 3 * MSS, selected))
    assert sender.edge < cut and sender.out == [(3 * MSS, 4 * MSS), (cut, cut + MSS)]


def test_rack_sends_again_what_lay_beyond_the_edge_when_the_window_grows() -> None:
    sender = flying("rack")
    high = sender.high
    sender.on_ack(2 * RTT, Ack(3 * MSS, 2 * MSS))
    assert sender.out == []
    sender.on_ack(2 * RTT, Ack(3 * MSS, 20 * MSS))
    assert sender.out[: (high - 5 * MSS) // MSS] == [(at, at + MSS) for at in range(5 * MSS, high, MSS)]


def test_lwip_waits_for_its_persist_timer_to_divide_a_segment() -> None:
    sender = flying("lwip")
    high = sender.high
    for ack in range(3 * MSS, high + 1, MSS):
        sender.on_ack(2 * RTT, Ack(ack, 600))
    assert sender.out == [] and "persist" in sender.timers
    assert run_until(sender, 2.0) == [(2 * RTT + 1.5, (high, high + 600))]


def test_lwip_probes_a_window_of_zero_with_one_octet() -> None:
    sender = flying("lwip")
    high = sender.high
    for ack in range(3 * MSS, high + 1, MSS):
        sender.on_ack(2 * RTT, Ack(ack, 0))
    probes = run_until(sender, 12.0)
    assert len(probes) == 3 and {span for _, span in probes} == {(high, high + 1)}


def test_an_acknowledgment_of_what_was_not_sent_is_a_fault() -> None:
    sender = flying("bsd")
    sender.on_ack(2 * RTT, Ack(90 * MSS, 2 * MSS))
    assert "90000 was acknowledged" in sender.fault


def test_spans() -> None:
    assert senders.merged([(5, 9), (0, 2), (2, 3), (8, 12)]) == [(0, 3), (5, 12)]
    assert senders.without([(0, 10), (20, 30)], [(3, 5), (8, 22)]) == [(0, 3), (5, 8), (22, 30)]
    assert senders.octets([(0, 3), (5, 12)]) == 10


# ---- against the kernel and vulture -------------------------------------------------------------


JOB = """
cp -r bin /tmp/bin
insmod {module} || exit 1
/usr/bin/python3 /tmp/bin/guest_senders.py /tmp/bin "$LBE_OUT/senders.json"
"""


@functools.cache
def said() -> dict[str, dict[str, Any]]:
    """Case -> what was seen."""
    build = ensure_kernel(KernelSpec())
    module = ensure_modules(build, REPO, ["vulture"]).paths["vulture"]
    with tempfile.TemporaryDirectory(prefix="lbe-senders.") as work:
        job, out = Path(work) / "job", Path(work) / "out"
        test_control.build_tools(job / "bin")
        for path in (
            FOLDER / "senders.py",
            FOLDER / "guest_senders.py",
            REPO / "testbed" / "robustness" / "guest" / "wire.py",
        ):
            shutil.copy(path, job / "bin")
        (job / "job.sh").write_text(JOB.format(module=f"{HOST_ROOT}{module}"))
        Machine(build, mem_mb=768).run(job, out, wall_limit_s=1200, virtual_limit_s=3600)
        told: dict[str, dict[str, Any]] = json.loads((out / "senders.json").read_text(encoding="utf-8"))
        return told


#: longest time without a new octet for the application, s: lwIP's time-out has ticks of half a second, and credit in
#: FLOOR hands out a packet now and then; the application itself pauses for 7 s
LIMITS_S = {"lwip": 1.25, "pause": 7.1}
LIMIT_S = 0.85


def complaints(case: tuple[str, str, str], seen: dict[str, Any]) -> list[str]:
    """What is wrong with the connection of a model."""
    stack, trouble, controller = case
    found = list(seen["faults"])
    limit_s = LIMITS_S.get(trouble, LIMITS_S.get(stack, LIMIT_S))
    if seen["silence_s"] > limit_s:
        found.append(f"nothing new arrived for {seen['silence_s']} s, limit {limit_s} s")
    own = seen["acks"] - seen["updates"]  # TCP's
    if own > seen["sent"] or seen["updates"] > seen["sent"] / 2:
        found.append(f"{own} ACKs of TCP and {seen['updates']} of the module for {seen['sent']} segments")
    if controller != "retract" and seen["lefts"]:
        found.append(f"the edge moved to the left {seen['lefts']} times")
    # a probe of a closed window is an octet beyond the edge; rack takes smaller windows from ACKs that are not new
    if controller != "retract" and stack != "rack" and seen["beyond"] > 1:
        found.append(f"{seen['beyond']} octets were in flight beyond the edge")
    return found


@pytest.mark.scenario
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_no_byte_is_lost_and_nobody_stalls(case: tuple[str, str, str]) -> None:
    seen = said()["-".join(case)]
    assert not complaints(case, seen), seen


@pytest.mark.scenario
@pytest.mark.parametrize("stack", STACKS)
def test_the_edge_moves_into_what_was_sent(stack: str) -> None:
    """If it did not, the cases of retraction would test nothing."""
    seen = [said()["-".join(case)] for case in CASES if case[0] == stack and case[2] == "retract"]
    assert sum(one["lefts"] > 0 and one["beyond"] > 10 * MSS for one in seen) >= 2, seen


@pytest.mark.scenario
@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script: str) -> None:
    assert said()[script]["faults"] == []


@pytest.mark.scenario
@pytest.mark.parametrize("case", KERNELS)
def test_the_kernels_own_sender(case: str) -> None:
    seen = said()[case]
    moves = case == "kernel-retract"
    assert seen["faults"] == [] and seen["timeouts"] == 0 and seen["acks"] < seen["sent"], seen
    assert (seen["lefts"] > 0, seen["beyond"] > 5 * MSS) == (moves, moves), seen


# ---- can it fail? -----------------------------------------------------------------------------


@pytest.mark.scenario
def test_a_segment_that_the_kernel_does_not_get_is_seen() -> None:
    assert "arrived within an edge that was offered" in " ".join(said()["fault"]["faults"])


GOOD = {"faults": [], "silence_s": 0.2, "sent": 400, "acks": 250, "updates": 3, "lefts": 0, "beyond": 0}


@pytest.mark.parametrize(
    ("case", "change", "text"),
    [
        (("linux", "hole", "stay"), {}, ""),
        (("linux", "hole", "retract"), {"lefts": 2, "beyond": 30_000}, ""),
        (("linux", "hole", "stay"), {"faults": ["other bytes: 5 of 6"]}, "other bytes"),
        (("bsd", "hole", "retract"), {"silence_s": 5.0}, "nothing new arrived for 5.0 s"),
        (("lwip", "hole", "retract"), {"silence_s": 1.2}, ""),
        (("bsd", "pause", "retract"), {"silence_s": 7.05}, ""),
        (("bsd", "hole", "retract"), {"acks": 900}, "897 ACKs of TCP"),
        (("bsd", "hole", "credit"), {"acks": 500, "updates": 300}, "300 of the module"),
        (("bsd", "hole", "credit"), {"lefts": 1}, "moved to the left 1 times"),
        (("bsd", "hole", "stay"), {"beyond": 2000}, "2000 octets were in flight"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_what_is_wrong_is_said(case: tuple[str, str, str], change: dict[str, Any], text: str) -> None:
    found = complaints(case, {**GOOD, **change})
    assert bool(found) is bool(text) and text in " ".join(found)
