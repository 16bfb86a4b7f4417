# SPDX-License-Identifier: GPL-2.0
"""The state machine of rledbat (rledbat.c): each state with each event, and what counts as a round trip."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest

from vulture.tests.machines import (
    HOLE,
    MSS,
    REORDERED,
    RETRANSMITTED,
    RTT_US,
    Edge,
    Machine,
    Sets,
    compiled,
    drawing,
    more,
    same_as,
    step,
    undrawn,
)

pytestmark = pytest.mark.host

OUT = "segment goes out"
RLEDBAT = """
void seen(s64 *to)
{
	const struct rledbat *r = &state;

	*to++ = r->state;
	*to++ = r->w.cwnd;
	*to++ = r->w.part_q32;
	*to++ = r->ssthresh_pkts;
	*to++ = r->next_down_us;
	*to++ = r->down_us;
	*to++ = r->cut_us;
	*to++ = r->losses;
	*to++ = r->slowdowns;
	*to++ = r->samples;
}

u32 queue_us(void) { return rledbat_queue_us(&state); }
u32 srtt_us(void) { return state.srtt_us; }
u32 base_us(void) { return rledbat_base_us(&state); }
u32 draining(void) { return state.draining; }
void next_down(u64 at_us) { state.next_down_us = at_us; }

void uses(u32 bytes, u64 now_us)
{
	state.last_round_bytes = bytes;
	state.round_bytes = 0;
	state.round_us = now_us;
}

/* A window that was reached before; the sender has used as much in the round before, or nothing. */
void window(u32 pkts, u64 now_us)
{
	rledbat_set_pkts(&state, pkts);
	uses(rledbat_window_bytes(&state), now_us);
}

void unused(u64 now_us) { uses(0, now_us); }
"""

BASE_US, TARGET_US = RTT_US, 60_000
WINDOW = 1
EMPTY, BELOW, SHORT, LONG = 0, 45_000, 46_000, 90_000  # 3/4 of the target is 45 ms
DIVISOR = 2  # 1 / GAIN: twice the target over the base delay, rounded up


class Rledbat(Machine):
    NAME = "rledbat"
    STATES = ("START", "STEADY", "DOWN", "RAMP")
    FIELDS = (
        "state",
        "cwnd",
        "part",
        "ssthresh",
        "next_down_us",
        "down_us",
        "cut_us",
        "losses",
        "slowdowns",
        "samples",
    )

    def __init__(self, library: ctypes.CDLL, base_us: int = RTT_US, **chosen: int) -> None:
        super().__init__(library, **chosen)
        library.begin(self.now_us, base_us, 0, 1 << 20)

    def about_to_see(self, queue_us: int) -> Rledbat:
        """The next segment will show a round trip with this queue. Earlier data keeps the sender busy."""
        self.ack()
        end_us = self.now_us + BASE_US + queue_us
        while end_us - self.now_us > 50_000:
            self.now_us += 50_000
            self.data(arrival=REORDERED)
        self.now_us = end_us
        return self

    def trips(self, queue_us: int, count: int) -> Rledbat:
        """This many round trips pass, in which the window stays as it is."""
        window = self.seen()["cwnd"]
        for _ in range(count):
            self.about_to_see(queue_us)
            rledbat_data(self)
            self.window(window)
        return self

    def window(self, pkts: int) -> Rledbat:
        """The window was reached before, and the sender uses it."""
        self.c.window(pkts, self.now_us)
        return self

    def sees(self, queue_us: int) -> Rledbat:
        """The latest four round trips have this queue, if the next segment counts."""
        return self.trips(queue_us, 3).about_to_see(queue_us).used()

    def used(self) -> Rledbat:
        return self.window(self.seen()["cwnd"])

    def steady(self, pkts: int = 20) -> Rledbat:
        self.trips(LONG, 4)
        assert self.state == "STEADY"
        self.c.next_down(1 << 40)
        self.trips(EMPTY, 4)
        self.c.next_down(self.now_us + 30 * RTT_US)
        return self.window(pkts)

    def due(self) -> Rledbat:
        """The time of the slowdown has come."""
        self.now_us = max(self.now_us, self.seen()["next_down_us"])
        return self

    def down(self) -> Rledbat:
        self.steady().due().data(arrival=REORDERED)
        assert self.state == "DOWN"
        return self

    def ramp(self, pkts: int) -> Rledbat:
        self.down().passes(2).data(arrival=REORDERED)
        assert self.state == "RAMP"
        return self.window(pkts)

    def tick(self, us: int) -> Rledbat:
        self.now_us += us
        return self

    def passes(self, trips: int) -> Rledbat:
        self.now_us += trips * self.c.srtt_us()
        return self

    def reduced(self) -> Rledbat:
        """A loss has reduced the window to 20 packets."""
        self.window(40).data(arrival=RETRANSMITTED)
        assert self.seen()["cwnd"] == 20
        self.now_us += RTT_US
        return self


@pytest.fixture(scope="module")
def rledbat(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = compiled("rledbat", RLEDBAT, tmp_path_factory.mktemp("rledbat"))
    library.window.argtypes = library.uses.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
    library.next_down.argtypes = library.unused.argtypes = [ctypes.c_uint64]
    return library


def rledbat_data(machine: Rledbat) -> None:
    machine.echo = machine.own
    machine.data()


def rledbat_hole(machine: Rledbat) -> None:
    machine.echo = machine.own
    machine.data(arrival=HOLE)


RLEDBAT_GIVEN: dict[tuple[str, str], Callable[[ctypes.CDLL], Rledbat]] = {
    ("START", ""): lambda c: Rledbat(c).window(20).trips(EMPTY, 4).sees(BELOW),
    ("START", "above 3/4 of the target"): lambda c: Rledbat(c).window(20).trips(EMPTY, 4).sees(SHORT),
    ("START", "the window is not used"): lambda c: idle(Rledbat(c).window(20).trips(EMPTY, 4).sees(EMPTY)),
    ("STEADY", ""): lambda c: Rledbat(c).steady().sees(TARGET_US),
    ("STEADY", "above the target"): lambda c: Rledbat(c).steady().sees(LONG),
    ("STEADY", "far above the target"): lambda c: Rledbat(c).steady().sees(10 * TARGET_US),
    ("STEADY", "the edge is beyond the window"): lambda c: draining(Rledbat(c).steady().sees(LONG)),
    ("STEADY", "the window is not used"): lambda c: idle(Rledbat(c).steady().sees(EMPTY)),
    ("STEADY", "due"): lambda c: Rledbat(c).steady().due(),
    ("STEADY", "due, but without slowdowns"): lambda c: Rledbat(c, slowdown=0).steady().due(),
    ("STEADY", "just reduced"): lambda c: Rledbat(c).steady().reduced(),
    ("DOWN", ""): lambda c: Rledbat(c).down(),
    ("DOWN", "nearly two round trips"): lambda c: earlier(Rledbat(c).down().passes(2)),
    ("DOWN", "two round trips"): lambda c: Rledbat(c).down().passes(2),
    ("DOWN", "just reduced"): lambda c: down_after_loss(Rledbat(c).steady()),
    ("RAMP", ""): lambda c: Rledbat(c).ramp(10).sees(TARGET_US),
    ("RAMP", "a packet below ssthresh"): lambda c: Rledbat(c).ramp(19).used(),
    ("RAMP", "at ssthresh"): lambda c: Rledbat(c).ramp(20).used(),
    ("RAMP", "above the target"): lambda c: Rledbat(c).ramp(10).sees(TARGET_US + 1),
}


def idle(machine: Rledbat) -> Rledbat:
    machine.c.unused(machine.now_us)
    return machine


def earlier(machine: Rledbat) -> Rledbat:
    machine.now_us -= 1
    return machine


def draining(machine: Rledbat) -> Rledbat:
    machine.own -= 1
    machine.ack(ahead=21 * MSS + 1)
    assert machine.c.draining()
    return machine


def down_after_loss(machine: Rledbat) -> Rledbat:
    machine.c.next_down(machine.now_us + RTT_US)
    machine.reduced().due().data(arrival=REORDERED)
    assert machine.state == "DOWN"
    return machine


RLEDBAT_EVENTS: dict[str, Callable[[Rledbat], None]] = {
    "data": rledbat_data,
    "data behind a hole": rledbat_hole,
    "data out of order": lambda machine: machine.data(arrival=REORDERED),
    "loss": lambda machine: machine.data(arrival=RETRANSMITTED),
    "ECN": lambda machine: machine.data(ce=1),
    OUT: lambda machine: machine.ack(),
    "options change": lambda machine: machine.c.change(machine.now_us),
}

def grown(by_q32: int) -> Sets:
    """Return the window, and its part below a packet, after a change by this many 2^-32 packets."""
    return {
        "cwnd": lambda before, _: (before["cwnd"] * 2**32 + before["part"] + by_q32) >> 32,
        "part": lambda before, _: (before["cwnd"] * 2**32 + before["part"] + by_q32) % 2**32,
    }


def halved_pkts(before: dict[str, int], _: Rledbat) -> int:
    return max(before["cwnd"] // 2, 2)


def now(_: dict[str, int], machine: Rledbat) -> int:
    return machine.now_us


def first_slowdown(_: dict[str, int], machine: Rledbat) -> int:
    """LEDBAT++ 4.4: two round trips after the first slow start."""
    return int(machine.now_us + 2 * machine.c.srtt_us())


def next_slowdown(before: dict[str, int], machine: Rledbat) -> int:
    """LEDBAT++ 4.4: the next slowdown comes after nine times the length of the last one, but not within a second."""
    took_us = max(machine.now_us - before["down_us"], 2 * machine.c.srtt_us())
    return int(machine.now_us + max(9 * took_us, 1_000_000))


SAMPLE: Sets = {"samples": more("samples", 1)}
CUT: Sets = {"cwnd": halved_pkts, "part": 0, "ssthresh": halved_pkts, "cut_us": now, "losses": more("losses", 1)}
START_ENDS: Sets = {"next_down_us": first_slowdown}
DOWN_ENDS: Sets = {"next_down_us": next_slowdown, "down_us": 0}
SLOW_DOWN: Sets = {"cwnd": 2, "part": 0, "ssthresh": same_as("cwnd"), "down_us": now, "slowdowns": more("slowdowns", 1)}
PKT = 2**32
SLOW_START = grown(PKT // DIVISOR)
GAIN = grown(-(-(PKT // DIVISOR) // 20))  # one of 20 segments of a round trip, rounded up
RAMP_ENDS = ("W >= ssthresh, q > T, loss",)
DOUBLES = ("W doubles; the next DOWN comes 9 D later,", "D from the begin of DOWN to the end of RAMP")

RLEDBAT_EDGES = [
    Edge("START", "", "data", "START", SLOW_START | SAMPLE, ("W doubles per 1/GAIN",)),
    Edge("START", "above 3/4 of the target", "data", "STEADY", SLOW_START | SAMPLE | START_ENDS, ("q > 3/4 T, loss",)),
    Edge("START", "the window is not used", "data", "START", SAMPLE),
    Edge("START", "", "data behind a hole", "START", SLOW_START),
    Edge("START", "", "data out of order", "START", {}),
    Edge("START", "", "loss", "STEADY", CUT | START_ENDS, ("q > 3/4 T, loss",)),
    Edge("START", "", "ECN", "STEADY", CUT | START_ENDS),
    Edge("START", "", OUT, "START", {}),
    Edge("START", "", "options change", "START", {}),
    Edge("STEADY", "", "data", "STEADY", GAIN | SAMPLE),
    Edge("STEADY", "above the target", "data", "STEADY", grown(-(19 * PKT // 2) // 20) | SAMPLE),
    Edge("STEADY", "far above the target", "data", "STEADY", grown(-PKT // 2) | SAMPLE),
    Edge("STEADY", "the edge is beyond the window", "data", "STEADY", SAMPLE),
    Edge("STEADY", "the window is not used", "data", "STEADY", SAMPLE),
    Edge("STEADY", "due", "data", "DOWN", SLOW_DOWN, ("2 round trips later",)),
    Edge("STEADY", "due", "data out of order", "DOWN", SLOW_DOWN),
    Edge("STEADY", "due, but without slowdowns", "data out of order", "STEADY", {}),
    Edge("STEADY", "", "data behind a hole", "STEADY", GAIN),
    Edge("STEADY", "", "data out of order", "STEADY", {}),
    Edge("STEADY", "", "loss", "STEADY", CUT),
    Edge("STEADY", "", "ECN", "STEADY", CUT),
    Edge("STEADY", "just reduced", "loss", "STEADY", {}),
    Edge("STEADY", "", OUT, "STEADY", {}),
    Edge("STEADY", "", "options change", "STEADY", {}),
    Edge("DOWN", "", "data", "DOWN", {}),
    Edge("DOWN", "nearly two round trips", "data", "DOWN", {}),
    Edge("DOWN", "two round trips", "data", "RAMP", grown(PKT), ("W = 2, for 2 round trips",)),
    Edge("DOWN", "two round trips", "data out of order", "RAMP", {}),
    Edge("DOWN", "", "data behind a hole", "DOWN", {}),
    Edge("DOWN", "", "data out of order", "DOWN", {}),
    Edge("DOWN", "", "loss", "STEADY", CUT | DOWN_ENDS, ("loss",)),
    Edge("DOWN", "", "ECN", "STEADY", CUT | DOWN_ENDS),
    Edge("DOWN", "just reduced", "loss", "DOWN", {}),
    Edge("DOWN", "", OUT, "DOWN", {}),
    Edge("DOWN", "", "options change", "DOWN", {}),
    Edge("RAMP", "", "data", "RAMP", grown(PKT) | SAMPLE, DOUBLES),
    Edge("RAMP", "a packet below ssthresh", "data", "RAMP", grown(PKT)),
    Edge("RAMP", "at ssthresh", "data", "STEADY", grown(PKT) | DOWN_ENDS, RAMP_ENDS),
    Edge("RAMP", "above the target", "data", "STEADY", grown(PKT) | SAMPLE | DOWN_ENDS, RAMP_ENDS),
    Edge("RAMP", "", "data behind a hole", "RAMP", grown(PKT)),
    Edge("RAMP", "", "data out of order", "RAMP", {}),
    Edge("RAMP", "", "loss", "STEADY", CUT | DOWN_ENDS, RAMP_ENDS),
    Edge("RAMP", "", "ECN", "STEADY", CUT | DOWN_ENDS),
    Edge("RAMP", "", OUT, "RAMP", {}),
    Edge("RAMP", "", "options change", "RAMP", {}),
]


@pytest.mark.parametrize("edge", RLEDBAT_EDGES, ids=str)
def test_an_edge_of_rledbat(rledbat: ctypes.CDLL, edge: Edge) -> None:
    step(RLEDBAT_GIVEN[edge.state, edge.given](rledbat), edge, RLEDBAT_EVENTS[edge.event])


def test_every_state_of_rledbat_meets_every_event() -> None:
    assert {(one.state, one.event) for one in RLEDBAT_EDGES} == {(s, e) for s in Rledbat.STATES for e in RLEDBAT_EVENTS}
    assert {(one.state, one.given) for one in RLEDBAT_EDGES} == set(RLEDBAT_GIVEN)


def test_rledbats_drawing_shows_the_table() -> None:
    """The drawing has each edge of the table to another state, and no other edge."""
    drawn = {(one.state, one.to) for one in RLEDBAT_EDGES if one.drawn}
    assert drawn >= {(one.state, one.to) for one in RLEDBAT_EDGES if one.state != one.to}
    assert undrawn(drawing("rledbat"), RLEDBAT_EDGES, Rledbat.STATES) == ""


#: what is done to a machine
Act = Callable[[Rledbat], object]


def in_turn(*acts: Act) -> Act:
    return lambda machine: [act(machine) for act in acts]


def counts(library: ctypes.CDLL, event: Act, before: Act) -> int:
    """The round trips that the event adds, after a connection had some."""
    machine = Rledbat(library).trips(EMPTY, 2)
    before(machine)
    had = machine.seen()["samples"]
    event(machine)
    return machine.seen()["samples"] - had


@pytest.mark.parametrize(
    ("before", "event", "expected"),
    [
        (lambda m: m.about_to_see(EMPTY), rledbat_data, 1),
        (lambda m: m.about_to_see(EMPTY), in_turn(rledbat_data, Rledbat.data), 1),  # the first echo alone
        (lambda m: m.about_to_see(EMPTY), rledbat_hole, 0),
        (lambda m: m.about_to_see(EMPTY), in_turn(rledbat_hole, Rledbat.data), 0),  # an echo that was seen
        (lambda m: m.about_to_see(EMPTY), lambda m: m.data(echo=m.own + 1), 0),  # no timestamp of ours
        (lambda m: (m.ack(), m.passes(1)), rledbat_data, 1),
        (lambda m: (m.ack(), m.passes(1), m.tick(1)), rledbat_data, 0),  # no data for more than a round trip
    ],
    ids=["new", "twice", "behind a hole", "after one behind a hole", "unknown", "a pause of a trip", "a longer pause"],
)
def test_what_counts_as_a_round_trip(rledbat: ctypes.CDLL, before: Act, event: Act, expected: int) -> None:
    """RFC 9840 section 4.2: data in order that is the first to echo a timestamp, from a sender that was not idle."""
    assert counts(rledbat, event, before) == expected


def test_a_pause_of_ten_milliseconds_is_none(rledbat: ctypes.CDLL) -> None:
    """On a path of some microseconds every wait for a timer is longer than a round trip, so that a short pause does not
    count as one."""
    for pause_us, counted in ((50, 1), (10_000, 1), (10_001, 0)):
        machine = Rledbat(rledbat, base_us=50)
        for _ in range(10):
            machine.ack()
            machine.tick(50)
            rledbat_data(machine)
        assert rledbat.srtt_us() <= 50
        had = machine.seen()["samples"]
        machine.ack()
        machine.tick(pause_us)
        rledbat_data(machine)
        assert machine.seen()["samples"] == had + counted, pause_us


def test_a_round_trip_begins_with_the_first_segment_of_a_timestamp(rledbat: ctypes.CDLL) -> None:
    machine = Rledbat(rledbat)
    for _ in range(40):  # more than there are times of sending
        machine.about_to_see(EMPTY)
        machine.own -= 1
        machine.ack()  # the same timestamp again, as TCP sends within one tick
        rledbat_data(machine)
        machine.window(2)
    assert machine.seen()["samples"] == 40 and rledbat.srtt_us() == BASE_US


def test_segments_close_together_share_a_time(rledbat: ctypes.CDLL) -> None:
    """32 times of sending, a sixteenth of a round trip apart, cover two round trips, however many segments go out."""
    machine = Rledbat(rledbat).trips(EMPTY, 2)
    had = machine.seen()["samples"]
    machine.ack()
    first = machine.own
    for _ in range(200):
        machine.tick(1000)
        machine.ack()
        machine.data(arrival=REORDERED, echo=first - 1)
    machine.data(echo=first)
    assert machine.seen()["samples"] == had + 1
    assert rledbat.srtt_us() == BASE_US + (2 * BASE_US - BASE_US) // 8


def test_the_queue_is_the_least_of_four_round_trips(rledbat: ctypes.CDLL) -> None:
    machine = Rledbat(rledbat).trips(EMPTY, 4)
    for queue_us, expected in ((30_000, 0), (50_000, 0), (40_000, 0), (60_000, 30_000), (60_000, 40_000)):
        machine.trips(queue_us, 1)
        assert rledbat.queue_us() == expected
    machine.trips(EMPTY, 1)
    assert rledbat.queue_us() == 0


def test_the_base_is_the_least_of_ten_minutes(rledbat: ctypes.CDLL) -> None:
    """After ten minutes the delay of a longer path is the base, and not a queue."""
    machine = Rledbat(rledbat, slowdown=0).trips(EMPTY, 4)
    for minute in range(11):
        machine.tick(60_000_000)
        machine.trips(LONG, 4)
        assert rledbat.base_us() == (BASE_US if minute < 9 else BASE_US + LONG), minute
    assert rledbat.queue_us() == 0


def test_the_window_that_it_asks_for(rledbat: ctypes.CDLL) -> None:
    """The window consists of whole packets and the part below one. The edge does not move to the left."""
    machine = Rledbat(rledbat)
    assert [rledbat.asks(i) for i in range(3)] == [WINDOW, 2 * MSS, 0]
    machine.trips(EMPTY, 4).about_to_see(EMPTY).window(20)
    rledbat_data(machine)
    assert [rledbat.asks(i) for i in range(3)] == [WINDOW, 20 * MSS + MSS // DIVISOR, 0]


@pytest.mark.parametrize(("ahead", "drains"), [(0, 0), (21 * MSS, 0), (21 * MSS + 1, 1)])
def test_an_edge_beyond_the_window_is_noticed(rledbat: ctypes.CDLL, ahead: int, drains: int) -> None:
    machine = Rledbat(rledbat).window(20)
    machine.ack(ahead=ahead)
    assert rledbat.draining() == drains


@pytest.mark.parametrize(("used", "grows"), [(15_500, True), (15_499, False)])
def test_an_eighth_and_two_segments_need_not_be_used(rledbat: ctypes.CDLL, used: int, grows: bool) -> None:
    machine = Rledbat(rledbat).trips(EMPTY, 4).window(20)
    rledbat.uses(used, machine.now_us)
    machine.data(bytes_=1)
    assert (machine.seen()["part"] > 0) == grows


def test_the_second_of_two_losses_counts_after_two_round_trips(rledbat: ctypes.CDLL) -> None:
    machine = Rledbat(rledbat).steady(80)
    machine.data(arrival=RETRANSMITTED)
    machine.passes(2).tick(-1)
    machine.data(arrival=RETRANSMITTED)
    assert machine.seen()["cwnd"] == 40
    machine.tick(1)
    machine.data(arrival=RETRANSMITTED)
    assert machine.seen()["cwnd"] == 20


def test_the_gain_follows_the_base_delay(rledbat: ctypes.CDLL) -> None:
    """LEDBAT++ 4.2: 1 / min(16, ceil(2 T / base)), here with the option's target."""
    for target_us, divisor in ((1000, 1), (50_000, 1), (50_001, 2), (100_000, 2)):
        machine = Rledbat(rledbat, target_us=target_us).trips(EMPTY, 4).window(20)
        machine.data()
        seen = machine.seen()
        assert (seen["cwnd"] * PKT + seen["part"] - 20 * PKT) == PKT // divisor
