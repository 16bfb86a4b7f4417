# SPDX-License-Identifier: GPL-2.0
"""Web traffic: the lines of the agents' plans for it, and the numbers out of its records.

A group of kind "web" is the open loop of Claypool, Kinicki and Hartling (a fixed offered load), one of
kind "session" the closed loop that TCP-LP's authors use. The data's sender (``source``) is the server,
its receiver (``to``) asks for the objects.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .traffic import Flow

#: kind of a flow group -> kind in the agent's plan
KINDS = {"web": "open", "session": "session"}

RECORD = np.dtype(
    [
        ("t_ns", "<u8"),
        ("dur_us", "<u4"),
        ("bytes", "<u4"),
        ("page", "<u4"),
        ("objects", "<u4"),
        ("flow", "<u4"),
        ("flags", "<u4"),
    ]
)
SYN_RETRANS, FAILED, PAGE, UNFINISHED = 1, 2, 4, 8  # bits of flags, as in agent/records.h

#: limits of the machine as a whole, which a namespace cannot set
HOST_SYSCTLS = {
    # pages: 200 MB before TCP presses its sockets, the kernel's own choice for 512 MB is 22
    "net.ipv4.tcp_mem": "51200 65536 98304",
    # closed by the program, not yet by the peer
    "net.ipv4.tcp_max_orphans": "32768",
}

METRIC_KINDS = (
    "object_s",
    "object_p50_s",
    "object_p95_s",
    "object_within",
    "page_s",
    "page_p50_s",
    "page_p95_s",
    "objects",
    "pages",
    "web_failed",
    "web_unfinished",
    "syn_lost",
)
#: from what the machine says at the end of a run
COUNTER_KINDS = ("family_lost", "kernel_count", "hint_packets", "hint_drops")


def server_words(flow: Flow) -> dict[str, Any]:
    """The server's line at the source, as words."""
    spec = flow.spec
    words: dict[str, Any] = {"port": flow.port, "flow": flow.id}
    if spec.dscp is not None:
        words["dscp"] = spec.dscp
    if flow.mark:
        words["mark"] = flow.mark
    return words | spec.server_options


def client_words(flow: Flow, server: str) -> dict[str, Any]:
    """The clients' line at the receiver, as words."""
    spec = flow.spec
    words: dict[str, Any] = {"id": flow.id, "kind": KINDS[spec.kind], "to": server, "port": flow.port}
    if spec.objects is not None:
        words["objects"] = spec.objects
    if spec.sessions is not None:
        words["sessions"] = spec.sessions
    return words | {"seed": flow.seed} | spec.options


def _began(rows: np.ndarray, ids: list[int], from_s: float, to_s: float) -> np.ndarray:
    t = rows["t_ns"] / 1e9
    return rows[np.isin(rows["flow"], ids) & (t >= from_s) & (t < to_s)]


def sized(rows: np.ndarray, bytes_from: int, bytes_to: int | None) -> np.ndarray:
    """Records of at least ``bytes_from`` and fewer than ``bytes_to`` bytes."""
    if bytes_to is not None:
        rows = rows[rows["bytes"] < bytes_to]
    return rows[rows["bytes"] >= bytes_from]


def complete(rows: np.ndarray, ids: list[int], from_s: float, to_s: float) -> np.ndarray:
    """Objects that began in the window and came through whole."""
    rows = _began(rows, ids, from_s, to_s)
    return rows[rows["flags"] & (PAGE | FAILED | UNFINISHED) == 0]


def value(rows: np.ndarray, kind: str, ids: list[int], from_s: float, to_s: float, threshold_s: float) -> float:
    """One of METRIC_KINDS over objects or pages that began in the window; NaN if there is none.

    Times are of what is complete; what failed or was cut off by the run's end is counted apart.
    object_within: percent of all objects, also those, that took at most ``threshold_s``.
    """
    rows = _began(rows, ids, from_s, to_s)
    page = (rows["flags"] & PAGE) != 0
    rows = rows[page] if kind.startswith("page") else rows[~page]
    good = rows[rows["flags"] & (FAILED | UNFINISHED) == 0]
    if kind in ("objects", "pages"):
        return float(len(good))
    if kind == "web_failed":
        return float(np.count_nonzero(rows["flags"] & FAILED))
    if kind == "web_unfinished":
        return float(np.count_nonzero(rows["flags"] & UNFINISHED))
    if kind == "syn_lost":
        return float(np.count_nonzero(rows["flags"] & SYN_RETRANS))
    if len(good) == 0:
        return math.nan
    seconds = good["dur_us"] / 1e6
    if kind == "object_within":
        return 100.0 * float(np.count_nonzero(seconds <= threshold_s)) / len(rows)
    if kind.endswith(("_p50_s", "_p95_s")):
        return float(np.percentile(seconds, int(kind[-4:-2])))
    return float(seconds.mean())


def family_lost_pct(counters: dict[str, dict[str, int]], source: str, to: str) -> float:
    """Percent of the IPv4 packets of one host that did not reach the other, over the whole run.

    Right for a group that is alone in IPv4 between the two (give the others ``family = 6``): then the
    hosts' own IP counters tell its losses from theirs, under any queue. NaN without counters.
    """
    sent = counters.get(source, {}).get("Ip.OutRequests", 0)
    if not sent:
        return math.nan
    return 100.0 * (sent - counters.get(to, {}).get("Ip.InReceives", 0)) / sent


def hint_class(qdiscs: dict[str, list[dict[str, Any]]], hint: str, key: str) -> float:
    """``key`` ("packets", "drops") of a class of hints, from tc's last dump of the shred queue, or NaN."""
    for qdisc in qdiscs.get("rtr", []):
        for one in qdisc.get("classes", []) if qdisc.get("kind") == "shred" else []:
            if one.get("hint") == hint:
                return float(one[key])
    return math.nan
