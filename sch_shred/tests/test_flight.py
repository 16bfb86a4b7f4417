# SPDX-License-Identifier: GPL-2.0
"""The edge's window estimate beside a simulated sender, wherever the router stands.

A sender keeps `window` packets in flight over a path whose two halves (sender to router
and back, router to receiver and back) take given times; packets and ACKs pass the router
in the order of their arrival there. The estimate is compared with the window.
"""

from __future__ import annotations

import ctypes
import heapq
from pathlib import Path

import numpy as np
import pytest

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent
MSS = 1448

WRAPPER = """
#include <stdlib.h>
#include "flight.h"

void *flight_new(void) { return calloc(1, sizeof(struct shred_flight)); }
void flight_free(void *f) { free(f); }
void sent(void *f, u32 seq, u32 tsecr) { shred_flight_sent(f, seq, 1448, 1448, tsecr); }
void syn(void *f, u32 seq) { shred_flight_syn(f, seq); shred_flight_sent(f, seq, 1, 0, 0); }
void acked(void *f, u32 ack, u32 tsval) { shred_flight_acked(f, ack, tsval); }
u32 pkts(void *f) { return shred_flight_pkts(f); }
"""


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = hostc.load(WRAPPER, tmp_path_factory.mktemp("flight"), FOLDER)
    library.flight_new.restype = ctypes.c_void_p
    for name in ("flight_free", "sent", "syn", "acked", "pkts"):
        getattr(library, name).argtypes = [ctypes.c_void_p, *[ctypes.c_uint32] * 2][
            : {"flight_free": 1, "pkts": 1, "syn": 2}.get(name, 3)
        ]
    library.pkts.restype = ctypes.c_uint32
    return library


def estimates(c, window: int, upstream_ms: float, downstream_ms: float, tick_ms: int, seed: int = 1) -> np.ndarray:
    """Estimates at the router for the packets of the second half of a 4 s transfer."""
    rng = np.random.default_rng(seed)
    flow = c.flight_new()
    events: list[tuple[float, int, str, int, int]] = []
    order = 0
    found = []
    tick = lambda ms: int(ms / tick_ms) + 0xFFFFFF00 & 0xFFFFFFFF  # noqa: E731  wraps on the way

    def push(at: float, kind: str, seq: int, ts: int) -> None:
        nonlocal order
        order += 1
        heapq.heappush(events, (at, order, kind, seq, ts))

    # the window leaves as a train, so that it is spread over the round trip as behind a bottleneck
    rtt = upstream_ms + downstream_ms
    for i in range(window):
        push(i * rtt / window, "send", i * MSS, 0)
    while events and events[0][0] < 4000:
        now, _, kind, seq, ts = heapq.heappop(events)
        if kind == "send":
            push(now + upstream_ms / 2, "data", seq, ts)
        elif kind == "data":
            c.sent(flow, seq, ts)
            if now > 2000:
                found.append(c.pkts(flow))
            push(now + downstream_ms / 2, "receive", seq, 0)
        elif kind == "receive":
            push(now + downstream_ms / 2, "ack", seq + MSS, tick(now))
        elif kind == "ack":
            c.acked(flow, seq & 0xFFFFFFFF, ts)
            push(now + upstream_ms / 2 + rng.uniform(0, 0.01), "arrive", seq, ts)
        else:
            push(now, "send", (seq - MSS) + window * MSS, ts)
    c.flight_free(flow)
    return np.array(found)


@pytest.mark.parametrize("tick_ms", [1, 4, 10])
@pytest.mark.parametrize(("upstream_ms", "downstream_ms"), [(2, 98), (50, 50), (98, 2), (290, 10)])
@pytest.mark.parametrize("window", [4, 20, 120])
def test_estimate_is_the_senders_window(c, window, upstream_ms, downstream_ms, tick_ms) -> None:
    found = estimates(c, window, upstream_ms, downstream_ms, tick_ms)
    assert len(found) > window
    # uncertain by what one tick, or one gap of the log (1/8 of the way), acknowledges; one for rounding
    rtt = upstream_ms + downstream_ms
    slack = 1 + window * max(2 * tick_ms, upstream_ms / 4) / rtt
    assert abs(np.median(found) - window) <= slack
    assert found.max() <= window + slack + 1


@pytest.mark.parametrize("seq", [1, 1 << 20, (1 << 31) + 5, 0xFFFFFF00])
def test_a_port_used_again_begins_a_new_flow(c: ctypes.CDLL, seq: int) -> None:
    """The old connection stood at 14480 of its own numbers; the new SYN/ACK is one packet in flight."""
    flow = c.flight_new()
    c.syn(flow, 0)
    for packet in range(10):
        c.sent(flow, 1 + packet * MSS, 0)
    assert c.pkts(flow) == 11  # the SYN's number, too
    c.acked(flow, 14481, 7)
    c.syn(flow, seq)
    assert c.pkts(flow) == 1
    c.syn(flow, seq)  # sent again
    c.sent(flow, seq + 1, 0)
    assert c.pkts(flow) == 2
    c.flight_free(flow)
