# SPDX-License-Identifier: GPL-2.0
"""paper and rledbat when 32-bit counters wrap: in mid-transfer, nothing of the wrap shows."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from vulture.tests.machines import HOLE, MSS, RETRANSMITTED, Machine, compiled

pytestmark = pytest.mark.host

#: what a controller is compiled with, and how it tells its state
WORLDS = {
    "paper": """
void vulture_trace_round(const void *p, const struct rwnd_round *round) { }
void seen(s64 *to)
{
	to[0] = state.phase;
	to[1] = cwnd_est_bytes(&state.cwnd);
	to[2] = state.rtt_us;
	to[3] = state.tick.tick_us;
	to[4] = state.losses;
	to[5] = state.tick.sent_us;
}
""",
    "rledbat": """
void seen(s64 *to)
{
	to[0] = state.state;
	to[1] = rledbat_queue_us(&state);
	to[2] = state.srtt_us;
	to[3] = rledbat_base_us(&state);
	to[4] = state.losses;
	to[5] = state.samples;
}
""",
}
WORD = 1 << 32
#: the transfer: segments, time between two of them, the delay's period and its size; a segment in so many is lost
SEGMENTS, APART_US, PERIOD, QUEUE_US, LOST_EACH = 6000, 2000, 1000, 120_000, 700
#: segments from one of ours to the data that echoes it. paper: more than Algorithm 6 keeps, which then joins them;
#: rledbat: within the two round trips of which it knows when a timestamp went out
ECHO_AFTER = {"paper": 160, "rledbat": 24}
#: what a counter counts in the transfer
COUNTED = {"peer": SEGMENTS * APART_US // 1000, "own": SEGMENTS // 2, "seq": SEGMENTS * MSS}


class Transfer(Machine):
    """A download over a path whose queue grows and empties. Our timestamps go on with each segment of ours."""

    FIELDS = ("state", "window or queue", "round trip", "tick or base", "losses", "sent or samples")

    def __init__(self, name: str, library: ctypes.CDLL, first: dict[str, int]):
        self.NAME = name
        super().__init__(library)
        self.first = {"peer": 77, "own": 1000, "seq": 0} | first
        self.own = self.first["own"]
        library.begin(self.now_us, 0, 1, 20 * MSS)

    def run(self) -> Iterator[tuple[int, ...]]:
        """The wanted window, and the state, after each event."""
        began_us, echoes = self.now_us, [self.own] * 2 * ECHO_AFTER[self.NAME]
        for number in range(SEGMENTS):
            # a triangle: the queue fills, and empties again
            part = number % PERIOD / PERIOD
            delay_us = int(QUEUE_US * min(part, 1 - part) * 2)
            sent_us = began_us + number * APART_US
            self.now_us = max(self.now_us, sent_us + delay_us)
            stamp = (sent_us - began_us) // 1000 + self.first["peer"]
            arrival = {0: HOLE, 3: RETRANSMITTED}.get(number % LOST_EACH, 0) if number else 0
            at = number * MSS + self.first["seq"] - (3 * MSS if arrival == RETRANSMITTED else 0)
            # now and then the sender sends more than was acknowledged: this echoes once more what was answered
            echo = echoes[-ECHO_AFTER[self.NAME] - 5 * (number % 7 == 0)]
            self.c.data(self.now_us, stamp % WORD, echo % WORD, at % WORD, MSS, arrival, 0)
            yield self.asked()
            if number % 2:
                self.own += 1
                ahead = max(self.c.asks(1), 2 * MSS)
                self.c.ack(self.now_us, self.own % WORD, (at + MSS) % WORD, 2 * MSS, ahead)
                yield self.asked()
            echoes.append(self.own)

    def asked(self) -> tuple[int, ...]:
        """What is asked for (kind, octets, retract), and the state behind it."""
        return (*(self.c.asks(what) for what in range(3)), *self.seen().values())


@pytest.fixture(scope="module", params=WORLDS)
def law(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ctypes.CDLL]:
    name: str = request.param
    return name, compiled(name, WORLDS[name], tmp_path_factory.mktemp(name))


@pytest.mark.parametrize("part", [0.01, 0.5])
@pytest.mark.parametrize("counter", COUNTED)
def test_nothing_shows_when_a_counter_wraps(law: tuple[str, ctypes.CDLL], counter: str, part: float) -> None:
    """Early, while the peer's tick is learnt, and in the middle."""
    name, library = law
    first = {counter: WORD - int(part * COUNTED[counter])}
    plain = list(Transfer(name, library, {}).run())
    assert list(Transfer(name, library, first).run()) == plain
