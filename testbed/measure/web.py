# SPDX-License-Identifier: GPL-2.0
"""Numbers out of web records, and out of what the machine says at the end of a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..spec.records import FAILED, PAGE, SYN_RETRANS, UNFINISHED


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
