# SPDX-License-Identifier: GPL-2.0
"""Records of one run, and numbers computed from them: bytes, rates, stalls, crossings."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, field

import numpy as np

from ..spec.records import WEB


@dataclass
class Series:
    """Records of one run; events are (t_s, flow, event, detail)."""

    send: np.ndarray
    recv: np.ndarray
    queue: np.ndarray
    events: list[tuple[float, int, str, str]] = field(default_factory=list)
    web: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=WEB))

    def received(self, flow: int) -> tuple[np.ndarray, np.ndarray]:
        """(seconds, total bytes) of a flow at its receiver."""
        rows = self.recv[self.recv["flow"] == flow]
        return rows["t_ns"] / 1e9, rows["bytes"].astype(float)

    def sent(self, flow: int) -> np.ndarray:
        """Sender's samples of a flow."""
        return self.send[self.send["flow"] == flow]  # type: ignore[no-any-return]

    def event_sum(self, flows: list[int], event: str, key: str) -> float:
        """Sum of ``key=NUMBER`` in the details of the flows' events; NaN if no event has it."""
        found = [
            re.search(rf"\b{key}=(\d+)", detail)
            for _, flow, name, detail in self.events
            if name == event and flow in flows
        ]
        return float(sum(int(one[1]) for one in found if one)) if any(found) else math.nan


def bytes_between(series: Series, flow: int, from_s: float, to_s: float) -> float:
    """Payload received in a window, bytes; linear between samples."""
    t, total = series.received(flow)
    if len(t) == 0:
        return 0.0
    low, high = np.interp([from_s, to_s], t, total, left=0.0)
    return float(high - low)


def goodput_mbit(series: Series, flows: list[int], from_s: float, to_s: float) -> float:
    """Total payload rate of flows, Mbit/s."""
    return sum(bytes_between(series, flow, from_s, to_s) for flow in flows) * 8 / (to_s - from_s) / 1e6


def growth(rows: np.ndarray, column: str, key: str, ids: list[int], from_s: float, to_s: float) -> float:
    """Increase of a counter in the window, summed over all ``ids``, the values of ``key``."""
    total = 0.0
    for one in ids:
        mine = rows[rows[key] == one]
        if len(mine):
            low, high = np.interp([from_s, to_s], mine["t_ns"] / 1e9, mine[column].astype(float), left=0.0)
            total += high - low
    return float(total)


def rates(series: Series, flow: int, step_s: float, duration_s: float) -> tuple[np.ndarray, np.ndarray]:
    """(middle of step, Mbit/s) of a flow in steps of ``step_s``."""
    edges = np.arange(0, duration_s + step_s / 2, step_s)
    t, total = series.received(flow)
    if len(t) == 0:
        return edges[:-1] + step_s / 2, np.zeros(len(edges) - 1)
    return edges[:-1] + step_s / 2, np.diff(np.interp(edges, t, total, left=0.0)) * 8 / step_s / 1e6


def arrived(series: Series, flows: list[int], t: np.ndarray) -> np.ndarray:
    """Total payload of flows in each step of ``t``, bytes."""
    total = np.zeros(len(t))
    for flow in flows:
        seconds, received = series.received(flow)
        if len(seconds):
            total += np.interp(t, seconds, received, left=0.0)
    return np.diff(total)


def longest_stall_s(series: Series, flow: int, from_s: float, to_s: float) -> float:
    """The longest time in the window in which a flow's receiver got no data, seconds."""
    t, total = series.received(flow)
    inside = (t >= from_s) & (t <= to_s)
    t, total = t[inside], total[inside]
    if len(t) == 0:
        return to_s - from_s
    grew = t[1:][np.diff(total) > 0]
    return float(np.max(np.diff(np.concatenate([[from_s], grew, [to_s]]))))


def first_time(t: np.ndarray, at_s: float, reached: np.ndarray) -> float:
    """Seconds after ``at_s`` until ``reached`` first holds; NaN if it never does."""
    after = (t >= at_s) & reached
    return float(t[after][0] - at_s) if after.any() else math.nan


def bridged(active: np.ndarray, steps: int) -> np.ndarray:
    """``active``, with gaps of fewer than ``steps`` steps set to active."""
    out = active.copy()
    for first, then in itertools.pairwise(np.flatnonzero(active)):
        if then - first <= steps:
            out[first:then] = True
    return out
