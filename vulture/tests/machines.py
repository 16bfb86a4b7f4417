# SPDX-License-Identifier: GPL-2.0
"""A controller of vulture on the host, driven event by event through its own interface (controller.h).

A table has a row for each state and event: the next state, and what changes. Everything in the controller's state that
a row does not name has to stay as it was. The drawing at the head of the file may show nothing that the table does not
have.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent
NEXT, HOLE, RETRANSMITTED, REORDERED = range(4)
MSS = 1000
RTT_US = 100_000

CALM = "".join(f'#pragma GCC diagnostic ignored "-W{word}"\n' for word in ("unused-parameter", "unused-function"))
DRIVER = """
static const struct rwnd_controller *const law = &rwnd_%(name)s;
static u32 values[RWND_OPTIONS_MAX];
static struct %(name)s state;
static struct rwnd_want want;

void begin(u64 now_us, u32 min_rtt_us, u32 fresh, u32 edge_bytes)
{
	struct rwnd_start start = {
		.now_us = now_us,
		.options = values,
		.mss_bytes = 1000,
		.min_rtt_us = min_rtt_us,
		.edge_seq = edge_bytes,
		.unit_bytes = 1,
		.fresh = fresh,
	};

	memset(&state, 0, sizeof(state));
	memset(&want, 0, sizeof(want));
	law->init(&state, &start, &want);
}

void defaults(void)
{
	u32 i;

	for (i = 1; i < law->n_options; i++)
		values[i] = law->initial[i];
}

void set(u32 option, u32 value) { values[option] = value; }
void change(u64 now_us) { law->change(&state, now_us, &want); }

void data(u64 now_us, u32 tsval, u32 tsecr, u32 seq, u32 bytes, u32 arrival, u32 ce)
{
	struct rwnd_data d = {
		.now_us = now_us,
		.tsval = tsval,
		.tsecr = tsecr,
		.seq = seq,
		.bytes = bytes,
		.segs = (bytes + 999) / 1000,
		.seg_bytes = bytes < 1000 ? bytes : 1000,
		.ack_seq = seq,
		.arrival = arrival,
		.ce = ce,
	};

	law->on_data(&state, &d, &want);
}

void ack(u64 now_us, u32 tsval, u32 ack_seq, u32 acked, u32 ahead)
{
	struct rwnd_ack a = {
		.now_us = now_us,
		.tsval = tsval,
		.ack_seq = ack_seq,
		.acked_bytes = acked,
		.own_bytes = 1 << 30,
		.edge_seq = ack_seq + ahead,
	};

	law->on_ack(&state, &a, &want);
}

u32 asks(u32 what) { return what == 0 ? want.kind : what == 1 ? want.bytes : want.retract; }
"""
def compiled(name: str, world: str, folder: Path) -> ctypes.CDLL:
    """A controller as a library. The only header of the kernel that it includes is in arith.h already."""
    text = (FOLDER / f"{name}.c").read_text(encoding="utf-8").replace("#include <linux/kernel.h>\n", "")
    library = hostc.load(CALM + text + DRIVER % {"name": name} + world, folder, FOLDER, name)
    library.begin.argtypes = [ctypes.c_uint64] + [ctypes.c_uint32] * 3
    library.change.argtypes = [ctypes.c_uint64]
    library.data.argtypes = [ctypes.c_uint64] + [ctypes.c_uint32] * 6
    library.ack.argtypes = [ctypes.c_uint64] + [ctypes.c_uint32] * 4
    library.asks.restype = ctypes.c_uint32
    return library


def options(name: str) -> dict[str, int]:
    """Names of a controller's options, and their attributes: the order of the enum in the uapi header."""
    text = (FOLDER / "uapi" / "vulture_gen.h").read_text(encoding="utf-8")
    found = re.findall(rf"^\tVULTURE_{name.upper()}_O_(\w+)(?: = 1)?,$", text, re.MULTILINE)
    assert found
    return {one.lower().replace("_", "-"): index for index, one in enumerate(found, 1)}


def drawing(name: str) -> str:
    """The first block of the head comment that is indented by a tab or more and has an arrow."""
    head = (FOLDER / f"{name}.c").read_text(encoding="utf-8").split("*/")[0]
    blocks: list[str] = re.findall(r"(?:^ \*\t.*\n)+", head, re.MULTILINE)
    return next(one for one in blocks if "-->" in one)


class Machine:
    """One connection under a controller. Time, sequence numbers and both clocks of timestamps go on by themselves."""

    FIELDS: tuple[str, ...] = ()
    STATES: tuple[str, ...] = ()
    NAME = ""

    def __init__(self, library: ctypes.CDLL, **chosen: int) -> None:
        self.c = library
        self.now_us = 10_000_000
        self.seq, self.own, self.echo, self.peer_origin_us = 0, 1000, 999, self.now_us
        self.by_name = options(self.NAME)
        library.defaults()
        for option, value in chosen.items():
            library.set(self.by_name[option.replace("_", "-")], value)

    def peer(self) -> int:
        """The peer's timestamp: its tick is 1 ms."""
        return (self.now_us - self.peer_origin_us) // 1000 + 77

    def data(self, bytes_: int = MSS, arrival: int = NEXT, ce: int = 0, echo: int | None = None) -> None:
        if arrival == HOLE:
            self.seq += MSS
        seq = self.seq - 3 * MSS if arrival in (RETRANSMITTED, REORDERED) else self.seq
        echo = self.echo if echo is None else echo
        self.c.data(self.now_us, self.peer(), echo, seq % 2**32, bytes_, arrival, ce)
        self.seq = max(self.seq, seq + bytes_)

    def ack(self, acked: int = 0, ahead: int = 0) -> None:
        """A segment of ours, with a timestamp that no segment before it had."""
        self.own += 1
        self.c.ack(self.now_us, self.own, self.seq % 2**32, acked, ahead)

    def seen(self) -> dict[str, int]:
        to = (ctypes.c_int64 * len(self.FIELDS))()
        self.c.seen(to)
        return dict(zip(self.FIELDS, to, strict=True))

    @property
    def state(self) -> str:
        return self.STATES[self.seen()[self.FIELDS[0]]]


#: a field's value after an event, or a function of what was seen before it and of the machine after it
Sets = dict[str, int | Callable[[dict[str, int], Any], int]]


class Edge(NamedTuple):
    """In ``state``, reached as ``given`` has it, the event leads to ``to``, and changes the fields of ``sets`` alone.
    drawn: the drawing's words for it."""

    state: str
    given: str
    event: str
    to: str
    sets: Sets
    drawn: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.state}{f', {self.given}' if self.given else ''}: {self.event}"


def step(machine: Any, edge: Edge, event: Callable[[Any], object]) -> None:
    before = machine.seen()
    assert machine.state == edge.state
    event(machine)
    after = machine.seen()
    assert machine.state == edge.to
    expected = dict(before)
    for name, value in edge.sets.items():
        expected[name] = value(before, machine) if callable(value) else value
    expected[machine.FIELDS[0]] = machine.STATES.index(edge.to)
    assert after == expected


def undrawn(text: str, edges: list[Edge], states: tuple[str, ...], also: tuple[str, ...] = ()) -> str:
    """What a drawing says beyond the words of the edges, the names of the states and ``also``."""
    words = sorted({one for edge in edges for one in edge.drawn} | {*states, *also}, key=len, reverse=True)
    for one in words:
        assert one in text, f"the drawing does not say {one!r}"
    for one in words:
        text = text.replace(one, "")
    return re.sub(r"[\s*|<>^+-]", "", text)


def more(name: str, by: int) -> Callable[[dict[str, int], Any], int]:
    return lambda before, _: before[name] + by


def same_as(name: str) -> Callable[[dict[str, int], Any], int]:
    return lambda before, _: before[name]
