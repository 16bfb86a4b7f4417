# SPDX-License-Identifier: GPL-2.0
"""What a background flow may take beside pages, if bursts and its packets share a first-in-first-out queue.

Bursts of B packets come at random with load rho; the background flow is paced and takes the share u of what they leave,
u (1 - rho) of the link. The backlog falls at 1 - u (1 - rho) between bursts, so that a burst waits, in the mean,

    W(u) = rho S / (2 (1 - rho) (1 - u)) = W(0) / (1 - u)        S = B p, the time of a burst

python3 -m tcp_lbe.tests.web_limit      a Markdown table, beside a simulation packet by packet
"""

from __future__ import annotations

import heapq
import random

#: the row "web sessions": 10 Mbit/s, 100 ms, initial windows of ten packets; the load is what its eight sessions take
PACKET_MS, RTT_MS, BURST_PKTS, LOAD = 1514 * 8 / 10e3, 100.0, 10, 0.42


def wait_ms(use: float) -> float:
    """Mean wait of a burst where the flow uses so much of the spare."""
    return LOAD * BURST_PKTS * PACKET_MS / (2 * (1 - LOAD) * (1 - use))


def longer_pct(use: float, wait: float | None = None) -> float:
    """By how much a round of a page is longer: a round trip, the wait and the burst itself."""
    more_ms = (wait_ms(use) if wait is None else wait) - wait_ms(0)
    return 100 * more_ms / (RTT_MS + wait_ms(0) + BURST_PKTS * PACKET_MS)


def most_use(limit_pct: float) -> float:
    """The most of the spare that keeps pages within the limit: longer_pct() solved for the use."""
    more = limit_pct / 100 * (RTT_MS + wait_ms(0) + BURST_PKTS * PACKET_MS) / wait_ms(0)
    return more / (1 + more)


def simulated_ms(use: float, seed: int = 1, seconds: int = 2000) -> float:
    """The same wait, from a queue that serves packet by packet."""
    draw = random.Random(seed)
    gap_ms = BURST_PKTS * PACKET_MS / LOAD
    events = [(draw.expovariate(1 / gap_ms), BURST_PKTS)]
    if use:
        events.append((0.0, 1))
    heapq.heapify(events)
    free_ms, waits, bursts, now_ms = 0.0, 0.0, 0, 0.0
    while now_ms < seconds * 1e3:
        now_ms, pkts = heapq.heappop(events)
        if pkts > 1:
            waits += max(free_ms - now_ms, 0.0)
            bursts += 1
        free_ms = max(free_ms, now_ms) + pkts * PACKET_MS
        wait = draw.expovariate(1 / gap_ms) if pkts > 1 else PACKET_MS / (use * (1 - LOAD))
        heapq.heappush(events, (now_ms + wait, pkts))
    return waits / bursts


def main() -> None:
    """Print the table."""
    limit = most_use(2)
    print(f"Idle, a burst waits {wait_ms(0):.1f} ms; pages at most 2 % longer allow {100 * limit:.0f} % of the spare.")
    print()
    print("| of the spare | wait by the equation, ms | simulated, ms | a round of a page is longer by, % |")
    print("|---|---|---|---|")
    for use in (0.0, 0.2, limit, 0.6, 0.8):
        print(f"| {100 * use:.0f} % | {wait_ms(use):.1f} | {simulated_ms(use):.1f} | {longer_pct(use):.1f} |")


if __name__ == "__main__":
    main()
