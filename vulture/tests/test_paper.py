# SPDX-License-Identifier: GPL-2.0
"""The state machine of the controller paper (paper.c): each phase with each event, and the begin of a round trip."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest

from vulture.tests.machines import (
    HOLE,
    MSS,
    NEXT,
    REORDERED,
    RTT_US,
    Edge,
    Machine,
    Sets,
    compiled,
    drawing,
    more,
    step,
    undrawn,
)

pytestmark = pytest.mark.host

PAPER = """
u32 rounds_traced;
void vulture_trace_round(const void *p, const struct rwnd_round *round) { rounds_traced++; }

void seen(s64 *to)
{
	const struct paper *p = &state;

	*to++ = p->phase;
	*to++ = p->rwnd.bytes;
	*to++ = p->rwnd.thresh_bytes;
	*to++ = p->rwnd.policy;
	*to++ = p->queue.len;
	*to++ = p->set.n;
	*to++ = !!p->mark_us;
	*to++ = p->round_bytes;
	*to++ = p->losses;
	*to++ = p->rounds;
	*to++ = p->mode;
	*to++ = p->tick.tick_us;
}

u32 rtt_us(void) { return state.rtt_us; }
u32 estimated(void) { return cwnd_est_bytes(&state.cwnd); }
/* The sender used so much in the round before. */
void used(u32 bytes) { state.may_grow = rwnd_may_grow(bytes, state.rwnd.bytes, state.mss_bytes); }
"""

FIX, INCREASE, DOUBLE, HALVE = range(4)
CONSERVATIVE, AGGRESSIVE = range(2)
LEAVE, WINDOW = range(2)
MOST = 65535 << 14


class Paper(Machine):
    NAME = "paper"
    STATES = ("OBSERVE", "START", "WAIT", "COLLECT")
    FIELDS = (
        "phase",
        "bytes",
        "thresh",
        "policy",
        "queued",
        "pairs",
        "marked",
        "round",
        "losses",
        "rounds",
        "mode",
        "tick_us",
    )

    def __init__(self, library: ctypes.CDLL, fresh: bool = False, **chosen: int) -> None:
        super().__init__(library, **chosen)
        library.begin(self.now_us, 0, fresh, 20 * MSS)

    def known_tick(self) -> Paper:
        """Thirty segments, 12 ms apart, from which the peer's tick is learnt."""
        for _ in range(30):
            self.data()
            self.now_us += 12_000
        return self

    def arrive(self, growth_us: int, count: int = 10) -> Paper:
        """Segments that were sent 20 ms apart. The delay grows by so much from one to the next."""
        for _ in range(count):
            self.now_us += 20_000 + growth_us
            self.peer_origin_us += growth_us
            self.data()
        return self

    def marked(self) -> Paper:
        """A segment of ours has begun a round trip."""
        self.ack()
        assert self.seen()["marked"]
        return self

    def answered(self) -> Paper:
        """The round trip ends with data that echoes its mark."""
        self.echo = self.own
        return self.arrive(0, 1)

    def waits(self) -> Paper:
        return self.known_tick().marked().answered()

    def collects(self, growth_us: int | None) -> Paper:
        """A round trip of which there are variations: all of one size, or none."""
        self.waits().marked().answered().marked()
        return self if growth_us is None else self.arrive(growth_us)


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled("paper", PAPER, tmp_path_factory.mktemp("paper"))


#: how a phase is reached; each begins a round trip, but for "unmarked". A download of which nothing is known has no
#: threshold yet (fresh)
PAPER_GIVEN: dict[tuple[str, str], Callable[[ctypes.CDLL], Paper]] = {
    ("OBSERVE", ""): lambda c: Paper(c, observe=1).known_tick().marked().arrive(0),
    ("OBSERVE", "no pair"): lambda c: Paper(c, observe=1).known_tick().marked().answered().marked(),
    ("START", ""): lambda c: Paper(c).known_tick().marked(),
    ("WAIT", "unmarked"): lambda c: Paper(c).waits(),
    ("WAIT", ""): lambda c: Paper(c).waits().marked(),
    ("WAIT", "halve"): lambda c: halved(Paper(c).waits().marked()).marked(),
    ("COLLECT", "unmarked"): lambda c: Paper(c).waits().marked().answered(),
    ("COLLECT", "no pair"): lambda c: Paper(c, psi_us=1_000_000).collects(None),
    ("COLLECT", ""): lambda c: Paper(c).collects(0),
    ("COLLECT", "below the threshold"): lambda c: doubling(Paper(c, fresh=True)),
    ("COLLECT", "middle"): lambda c: Paper(c).collects(4_000),
    ("COLLECT", "high"): lambda c: Paper(c).collects(24_000),
}


def halved(machine: Paper) -> Paper:
    machine.data(arrival=HOLE)
    assert machine.seen()["policy"] == HALVE
    return machine


def doubling(machine: Paper) -> Paper:
    return machine.known_tick().marked().answered().marked().arrive(0)


def paper_data(machine: Paper) -> None:
    machine.arrive(0, 1)


def paper_lost(machine: Paper) -> None:
    machine.now_us += 20_000
    machine.data(arrival=HOLE)


def paper_marked_by_ecn(machine: Paper) -> None:
    machine.now_us += 20_000
    machine.data(ce=1)


def paper_other_tick(machine: Paper) -> None:
    """A segment after which the peer's tick looks like 2 ms over a longer time."""
    machine.now_us = 12_400_000
    machine.c.data(machine.now_us, 77 + 2_400_000 // 2000, machine.echo, machine.seq % 2**32, MSS, NEXT, 0)


def paper_changed(machine: Paper) -> None:
    machine.c.change(machine.now_us)


def paper_observes(machine: Paper, value: int) -> None:
    machine.c.set(machine.by_name["observe"], value)
    machine.c.change(machine.now_us)


def estimate(_: dict[str, int], machine: Paper) -> int:
    """The sender's window by Algorithm 6."""
    return int(machine.c.estimated())


PAPER_EVENTS: dict[str, Callable[[Paper], object]] = {
    "segment goes out": lambda machine: machine.ack(acked=MSS),
    "data": paper_data,
    "data echoes the mark": Paper.answered,
    "loss": paper_lost,
    "ECN": paper_marked_by_ecn,
    "another tick": paper_other_tick,
    "options change": paper_changed,
    "only observe": lambda machine: paper_observes(machine, 1),
    "control": lambda machine: paper_observes(machine, 0),
}


def used(before: dict[str, int], machine: Paper) -> int:
    """A reduction begins from what the sender uses plus two segments, if that is less than the window."""
    return int(min(before["bytes"], max(machine.c.estimated(), before["round"] + MSS) + 2 * MSS))


DATA: Sets = {"round": more("round", MSS)}
PAIR: Sets = DATA | {"pairs": more("pairs", 1)}
NEW_ROUND: Sets = {"round": 0, "marked": 0}
NOTHING_COLLECTED: Sets = {"queued": 0, "pairs": 0}
REDUCED: Sets = NEW_ROUND | {"policy": HALVE, "bytes": used, "thresh": used}
ON_LOSS: Sets = REDUCED | {"losses": more("losses", 1)}
AFRESH: Sets = NEW_ROUND | NOTHING_COLLECTED | {"mode": CONSERVATIVE}
CONTROL: Sets = NEW_ROUND | {"bytes": estimate, "thresh": estimate, "policy": FIX}
DECIDED: Sets = NEW_ROUND | {"pairs": more("pairs", 1), "rounds": more("rounds", 1)}
OUT, ECHO = "segment goes out", "data echoes the mark"
GOES_OUT, ECHOES, AGAIN = ("ACK that carries", "the policy goes out"), ("data that", "echoes it"), ("echoes that",)

PAPER_EDGES = [
    Edge("OBSERVE", "", OUT, "OBSERVE", {}),
    Edge("OBSERVE", "", "data", "OBSERVE", PAIR),
    Edge("OBSERVE", "", ECHO, "OBSERVE", NEW_ROUND | NOTHING_COLLECTED | {"rounds": 1, "mode": AGGRESSIVE}),
    Edge("OBSERVE", "no pair", ECHO, "OBSERVE", NEW_ROUND),
    Edge("OBSERVE", "", "loss", "OBSERVE", PAIR),
    Edge("OBSERVE", "", "ECN", "OBSERVE", PAIR),
    Edge("OBSERVE", "", "another tick", "OBSERVE", NEW_ROUND | {"tick_us": 2000, "queued": 1, "pairs": 0}),
    Edge("OBSERVE", "", "options change", "OBSERVE", AFRESH),
    Edge("OBSERVE", "", "only observe", "OBSERVE", AFRESH),
    # the round trip before control is not needed if one was measured already
    Edge("OBSERVE", "", "control", "START", NEW_ROUND),
    Edge("OBSERVE", "no pair", "control", "WAIT", CONTROL | {"mode": CONSERVATIVE}),
    Edge("START", "", OUT, "START", {}),
    Edge("START", "", "data", "START", DATA),
    Edge("START", "", ECHO, "WAIT", CONTROL),
    Edge("START", "", "loss", "START", DATA),
    Edge("START", "", "ECN", "START", DATA),
    Edge("START", "", "another tick", "START", DATA | {"tick_us": 2000}),
    Edge("START", "", "options change", "START", NEW_ROUND),
    Edge("START", "", "only observe", "OBSERVE", NEW_ROUND),
    Edge("START", "", "control", "START", NEW_ROUND),
    Edge("WAIT", "unmarked", OUT, "WAIT", {"marked": 1}, GOES_OUT),
    Edge("WAIT", "", OUT, "WAIT", {}),
    Edge("WAIT", "halve", OUT, "WAIT", {"bytes": more("bytes", -MSS)}),
    Edge("WAIT", "", "data", "WAIT", DATA),
    Edge("WAIT", "unmarked", ECHO, "WAIT", DATA),
    Edge("WAIT", "", ECHO, "COLLECT", NEW_ROUND | {"queued": 1, "pairs": 0}, ("collect", *ECHOES)),
    Edge("WAIT", "", "loss", "WAIT", ON_LOSS),
    Edge("WAIT", "", "ECN", "WAIT", ON_LOSS),
    Edge("WAIT", "halve", "loss", "WAIT", DATA),
    Edge("WAIT", "halve", "ECN", "WAIT", DATA),
    Edge("WAIT", "", "another tick", "WAIT", DATA | {"tick_us": 2000}),
    Edge("WAIT", "", "options change", "COLLECT", AFRESH),
    Edge("WAIT", "", "only observe", "OBSERVE", AFRESH),
    Edge("WAIT", "", "control", "COLLECT", AFRESH),
    Edge("COLLECT", "unmarked", OUT, "COLLECT", {"marked": 1}),
    Edge("COLLECT", "", OUT, "COLLECT", {}),
    Edge("COLLECT", "", "data", "COLLECT", PAIR),
    Edge("COLLECT", "unmarked", ECHO, "COLLECT", PAIR),
    Edge("COLLECT", "no pair", ECHO, "COLLECT", NEW_ROUND | NOTHING_COLLECTED),
    Edge("COLLECT", "", ECHO, "WAIT", DECIDED | {"policy": INCREASE, "mode": AGGRESSIVE}, ("decide", *AGAIN)),
    Edge("COLLECT", "below the threshold", ECHO, "WAIT", DECIDED | {"policy": DOUBLE, "mode": AGGRESSIVE}),
    Edge("COLLECT", "middle", ECHO, "WAIT", DECIDED | {"policy": FIX}),
    Edge("COLLECT", "high", ECHO, "WAIT", DECIDED | REDUCED),
    Edge("COLLECT", "", "loss", "WAIT", ON_LOSS),
    Edge("COLLECT", "", "ECN", "WAIT", ON_LOSS),
    Edge("COLLECT", "", "another tick", "COLLECT", NEW_ROUND | {"tick_us": 2000, "queued": 1, "pairs": 0}),
    Edge("COLLECT", "", "options change", "COLLECT", AFRESH),
    Edge("COLLECT", "", "only observe", "OBSERVE", AFRESH),
    Edge("COLLECT", "", "control", "COLLECT", AFRESH),
]


@pytest.mark.parametrize("edge", PAPER_EDGES, ids=str)
def test_an_edge_of_the_papers_controller(paper: ctypes.CDLL, edge: Edge) -> None:
    step(PAPER_GIVEN[edge.state, edge.given](paper), edge, PAPER_EVENTS[edge.event])


def test_every_state_of_the_papers_controller_meets_every_event() -> None:
    assert {(one.state, one.event) for one in PAPER_EDGES} == {(s, e) for s in Paper.STATES for e in PAPER_EVENTS}
    assert {(one.state, one.given) for one in PAPER_EDGES} == set(PAPER_GIVEN)


def test_the_papers_drawing_shows_the_table() -> None:
    """The drawing shows the one cycle of the table, and nothing else. The text below the drawing has the rest."""
    lengths = ("WAIT (1 round trip)", "COLLECT (1 round trip)")
    assert undrawn(drawing("paper"), PAPER_EDGES, (), lengths) == ""


@pytest.mark.parametrize("retract", [0, 1])
def test_what_each_phase_asks_for(paper: ctypes.CDLL, retract: int) -> None:
    """The phases ask for no window while they observe, for no further edge in the round trip before control, and then
    for the policy's window."""
    asked = [paper.asks(i) for i in range(3) if Paper(paper, observe=1, retract=retract)]
    assert (asked[0], asked[2]) == (LEAVE, 0)
    machine = Paper(paper, retract=retract)
    assert [paper.asks(i) for i in range(3)] == [WINDOW, 2 * MSS, 0]
    machine.waits().marked()
    assert [paper.asks(i) for i in range(3)] == [WINDOW, machine.seen()["bytes"], retract]
    machine.answered().marked()
    assert [paper.asks(i) for i in range(3)] == [WINDOW, machine.seen()["bytes"], retract]


def test_a_timestamp_that_went_out_before_begins_no_round_trip(paper: ctypes.CDLL) -> None:
    """Data that echoes such a timestamp may answer the earlier segment, which had another window."""
    machine = Paper(paper).waits()
    machine.own -= 1
    machine.ack()
    assert not machine.seen()["marked"]
    machine.now_us += 20_000
    machine.marked()
    machine.now_us += RTT_US - 20_000
    machine.answered()
    assert machine.state == "COLLECT" and paper.rtt_us() == RTT_US


def test_a_round_trip_waits_for_an_edge_that_is_not_retracted(paper: ctypes.CDLL) -> None:
    machine = Paper(paper, retract=0).waits()
    window = machine.seen()["bytes"]
    machine.ack(ahead=window + MSS + 1)
    assert not machine.seen()["marked"]
    machine.ack(ahead=window + MSS)
    assert machine.seen()["marked"]


def test_a_doubling_is_judged_when_it_is_complete(paper: ctypes.CDLL) -> None:
    """With settle=1 the round trip begins when the window is at its goal; as printed it begins at once."""
    for settle, goals in ((0, 1), (1, 1)):
        machine = doubling(Paper(paper, fresh=True, settle=settle, goals=goals)).answered()
        window = machine.seen()["bytes"]
        assert (machine.state, machine.seen()["policy"]) == ("WAIT", DOUBLE)
        machine.c.used(window)
        machine.ack(acked=window - 1)
        assert machine.seen()["marked"] == (not settle)
        machine.ack(acked=1)
        assert machine.seen()["marked"] and machine.seen()["bytes"] == 2 * window


def test_one_reduction_covers_what_was_in_flight(paper: ctypes.CDLL) -> None:
    """A hole below the data that had arrived when the window was reduced is the same loss. A hole beyond it is another
    loss."""
    machine = Paper(paper).waits().marked()
    halved(machine).marked().answered()
    first = machine.seq
    assert (machine.state, machine.seen()["losses"]) == ("COLLECT", 1)
    machine.data(arrival=REORDERED)
    assert machine.seen()["losses"] == 1 and machine.seq == first
    machine.data(arrival=HOLE)
    assert machine.seen()["losses"] == 2


def test_a_coarse_tick_gives_no_variations(paper: ctypes.CDLL) -> None:
    """With a coarse tick only a loss changes the window."""
    machine = Paper(paper)
    for i in range(600):
        machine.now_us += 10_000
        machine.c.data(machine.now_us, i * 10_000 // 16_000, 0, machine.seq % 2**32, MSS, NEXT, 0)
        machine.seq += MSS
    assert machine.seen()["tick_us"] > 10_000
    machine.marked().answered().marked().answered()
    window = machine.seen()["bytes"]
    for _ in range(3):
        machine.marked().arrive(24_000).answered()
        assert machine.state == "COLLECT" and machine.seen()["bytes"] == window
    machine.data(arrival=HOLE)
    assert machine.seen()["policy"] == HALVE
