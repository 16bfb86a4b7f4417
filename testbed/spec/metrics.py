# SPDX-License-Identifier: GPL-2.0
"""The metrics that an experiment may ask for: name, unit, what each needs, and what it means.

This is their only list. An experiment file is checked against it, measure/ computes each kind, reports take the units
from it, and the table in Documentation/testbed.md is made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from .tables import OneOf


@dataclass(frozen=True)
class Kind:
    """A kind of metric.

    unit: of its values; "" for a count or an index. text: its meaning, as a sentence of the documentation.
    needs: keys that [metric.NAME] must give. flows: the metric has no value for a group without flows.
    """

    unit: str
    text: str
    needs: tuple[str, ...] = ()
    flows: bool = False


#: the group's rate is averaged over this time, seconds (yield_s, reap_s)
CROSSING_WINDOW_S = 1.0
#: a flow pauses if nothing of it arrives for PAUSE_STEPS steps (0.3 s, longer than any round trip of the experiments)
PAUSE_STEP_S = 0.1
PAUSE_STEPS = 3

_BEGAN = "Of what began in the window and was completed, from connect() to the last byte"
_PAGE = f"{_BEGAN} of the page's last object"
_WHOLE_RUN = "over the whole run"

KINDS: dict[str, Kind] = {
    "goodput": Kind("Mbit/s", "Payload that the group's receivers got.", flows=True),
    "min_flow": Kind("Mbit/s", "Payload of the group's slowest flow.", flows=True),
    "max_flow": Kind("Mbit/s", "Payload of the group's fastest flow.", flows=True),
    "kbytes_s": Kind("kB/s", "Payload in thousands of bytes a second.", flows=True),
    "kibytes_s": Kind("KiB/s", "Payload in units of 1024 bytes a second.", flows=True),
    "share": Kind("%", "Payload, of what TCP can carry over the bottleneck.", flows=True),
    "spare_use": Kind("%", "Payload, of what the other flows in its direction left.", flows=True),
    "idle_use": Kind("%", "Payload, of what the link of `queue` would not have carried without the group.", flows=True),
    "active_share": Kind(
        "%",
        "For a group that pauses: its share of all flows in its direction while it sends. "
        f"A pause is at least {PAUSE_STEP_S * PAUSE_STEPS:g} s long.",
        flows=True,
    ),
    "gap_use": Kind("%", "For a group that pauses: the part of the link that others use in its pauses.", flows=True),
    "jain": Kind("", "Jain's fairness index of the group's flows, from 1/n to 1.", flows=True),
    "sharing": Kind("", "Equation (1) of the LowPri paper: deviation of the flows over their sum.", flows=True),
    "variation": Kind("", "Coefficient of variation of the group's flows: deviation over mean.", flows=True),
    "retransmits": Kind("packets", "Packets that the group's senders sent again.", flows=True),
    "rtt_mean": Kind("ms", "Mean of the senders' smoothed round-trip time."),
    "rtt_p95": Kind("ms", "95th percentile of the senders' smoothed round-trip time."),
    "cwnd_mean": Kind("packets", "Mean of the senders' congestion windows."),
    "cwnd_max": Kind("packets", "Largest of the senders' congestion windows."),
    "queue_mean": Kind("ms", "Mean backlog of `queue` (1 forward, 2 backward) at the link's rate."),
    "queue_p95": Kind("ms", "95th percentile of the backlog of `queue`."),
    "queue_min": Kind("ms", "Least backlog of `queue`."),
    "drops": Kind("packets", "Packets that `queue` dropped in the window."),
    "marks": Kind("packets", "Packets that `queue` marked with CE in the window."),
    "link_use": Kind("%", "Bits that left `queue`, of what the link can carry."),
    "yield_s": Kind(
        "s", "Time from `at_s` until the group's rate over 1 s is below `threshold` Mbit/s.", needs=("threshold",)
    ),
    "reap_s": Kind(
        "s", "Time from `at_s` until the group's rate over 1 s reaches `threshold` Mbit/s.", needs=("threshold",)
    ),
    "longest_stall": Kind("s", "Longest time without a byte, of the group's worst flow."),
    "completion_s": Kind("s", 'Mean time from start to end of flows of kind "bytes".'),
    "event_count": Kind("", "How often the agents reported `event`; with `flow`, of this group.", needs=("event",)),
    "udp_lost": Kind("packets", f"UDP packets that did not arrive, {_WHOLE_RUN}."),
    "udp_delay_mean": Kind("ms", f"Mean one-way delay of UDP packets, from their stamps, {_WHOLE_RUN}."),
    "udp_delay_p50": Kind("ms", "Median one-way delay of UDP packets; of several flows, the worst one's."),
    "udp_delay_p95": Kind("ms", "95th percentile of the one-way delay of UDP packets, of the worst flow."),
    "udp_delay_p99": Kind("ms", "99th percentile of the one-way delay of UDP packets, of the worst flow."),
    "udp_delay_max": Kind("ms", "Longest one-way delay of a UDP packet."),
    "object_s": Kind("s", f"Mean time of a web object. {_BEGAN}."),
    "object_p50_s": Kind("s", "Median time of a web object."),
    "object_p95_s": Kind("s", "95th percentile of the time of a web object."),
    "object_within": Kind("%", "Objects, also failed ones, that took at most `threshold` s.", needs=("threshold",)),
    "page_s": Kind("s", f"Mean time of a web page. {_PAGE}."),
    "page_p50_s": Kind("s", "Median time of a web page."),
    "page_p95_s": Kind("s", "95th percentile of the time of a web page."),
    "objects": Kind("", "Web objects that began in the window and were completed."),
    "pages": Kind("", "Web pages that began in the window and were completed."),
    "web_failed": Kind("objects", "Web objects that were refused or cut short."),
    "web_unfinished": Kind("objects", "Web objects that were under way when the run ended."),
    "syn_lost": Kind("objects", "Web objects whose SYN or SYN/ACK was lost."),
    "family_lost": Kind(
        "%",
        "IPv4 packets from the group's source that did not arrive, over the whole run: "
        "the losses of one group when all others have `family = 6`.",
    ),
    "kernel_count": Kind("", f"`counter` of the kernel of the group's source, {_WHOLE_RUN}.", needs=("counter",)),
    "hint_packets": Kind(
        "packets",
        'Packets with a window of `hint` ("1", "2-3", ... "128-255") at a shred queue, over the whole run.',
        needs=("hint",),
    ),
    "hint_drops": Kind("packets", "The same, of those that the queue dropped.", needs=("hint",)),
}

#: kinds that have a file of their own in measure/, which adds them to KINDS: results of other kinds do not depend on it
OWN_FILE_KINDS: dict[str, Kind] = {
    "object_area": Kind(
        "s",
        "Area under the distribution of the times of web objects, from 0 to `threshold` s; failed and unfinished "
        "objects count as such that take longer. It grows as objects take less time.",
        needs=("threshold",),
    ),
}


@dataclass(frozen=True)
class Metric:
    """One number per run. ``flow``: the groups measured (joined by +); from_s, to_s: a window of its own;
    bytes_from, bytes_to: web objects of at least and below this size; ``counter``: a counter of the kernel of the
    flow's source, such as TcpExt.TCPSACKReorder."""

    kind: Annotated[str, OneOf(*KINDS, *OWN_FILE_KINDS)]
    flow: str = ""
    label: str = ""
    queue: int = 1
    event: str = ""
    from_s: float | None = None
    to_s: float | None = None
    at_s: float | None = None
    threshold: float | None = None
    hint: str = ""
    counter: str = ""
    bytes_from: int = 0
    bytes_to: int | None = None


def kind_of(metric: Metric) -> Kind:
    """The metric's kind."""
    return (KINDS | OWN_FILE_KINDS)[metric.kind]


def lacks(metric: Metric) -> list[str]:
    """Keys that the metric's kind needs and the metric lacks."""
    return [key for key in kind_of(metric).needs if getattr(metric, key) in (None, "")]


def table() -> list[tuple[str, str, str, str]]:
    """Rows of the table in the documentation: kind, unit, required keys, meaning."""
    return [(name, kind.unit, ", ".join(kind.needs), kind.text) for name, kind in (KINDS | OWN_FILE_KINDS).items()]
