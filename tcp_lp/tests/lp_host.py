# SPDX-License-Identifier: GPL-2.0
"""lp.h and owd.h compiled for this machine, and a path to send ACKs over."""

from __future__ import annotations

import ctypes
import math
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from testbed.support import hostc

FOLDER = pathlib.Path(__file__).resolve().parent.parent

WRAPPER = """
#include <stdlib.h>
#include "lp.h"

struct flow { struct lp lp; u32 cwnd, indications; u32 delay_us; };

struct flow *flow_new(u32 delta, u32 learnt_base_us, u32 learnt_full_us, bool paper)
{
	struct flow *f = calloc(1, sizeof(*f));

	lp_init(&f->lp, delta, paper, false, 0);
	f->cwnd = 10;
	if (learnt_full_us) {
		f->lp.path.slot[0] = learnt_base_us;
		f->lp.path.full_us = learnt_full_us;
	}
	return f;
}

void flow_free(struct flow *f) { free(f); }

/* The steps of tcp_lp_pkts_acked() in Open. */
u32 flow_ack(struct flow *f, u64 now_us, u32 tsval, bool has_ts, u32 rtt_us, u32 min_rtt_us,
	     u32 pkts, bool lone, u32 acked_seq, u32 snd_nxt)
{
	struct lbe_delay_ack ack = { .pkts = pkts, .owd = {
		.now_us = now_us, .tsval = tsval, .rtt_us = rtt_us,
		.min_rtt_us = min_rtt_us, .has_tsval = has_ts } };
	struct lp_ack sample = { .snd_una = acked_seq, .snd_nxt = snd_nxt,
				 .now_ms = now_us / 1000, .lone = lone };

	lp_inference_over(&f->lp, sample.now_ms);
	if (!lbe_delay_ack(&f->lp.path, &ack, &sample.path))
		return f->cwnd;
	f->delay_us = f->lp.path.last_us;
	if (lp_sample(&f->lp, &sample) == LP_DELAY) {
		f->cwnd = lp_react(&f->lp, LP_DELAY, f->cwnd, snd_nxt, rtt_us, sample.now_ms);
		f->indications++;
	}
	return f->cwnd;
}

u32 flow_delay(struct flow *f) { return f->delay_us; }
u32 flow_indications(struct flow *f) { return f->indications; }
u32 flow_tick(struct flow *f) { return lbe_owd_tick_us(&f->lp.path.owd); }
u32 flow_source(struct flow *f) { return lbe_owd_source(&f->lp.path.owd); }
u32 flow_margin(struct flow *f) { return lp_margin_us(&f->lp); }
u32 flow_base(struct flow *f) { return lbe_delay_base_us(&f->lp.path); }
u32 flow_full(struct flow *f) { return f->lp.path.full_us; }
u32 flow_sd(struct flow *f) { return lp_sd_us(&f->lp); }
u32 flow_sd_q(struct flow *f) { return f->lp.sd_q; }
bool flow_grows(struct flow *f) { return lp_may_grow(&f->lp); }
u32 flow_itt_end(struct flow *f) { return f->lp.itt_end_ms; }
bool flow_over(struct flow *f, u32 now_ms) { return lp_inference_over(&f->lp, now_ms); }
u32 flow_react(struct flow *f, u32 seq, u32 rtt_us, u32 now_ms)
{ return lp_react(&f->lp, LP_DELAY, f->cwnd, seq, rtt_us, now_ms); }
u32 flow_react_to(struct flow *f, u32 event, u32 pkts, u32 rtt_us, u32 now_ms)
{ return lp_react(&f->lp, event, pkts, 1, rtt_us, now_ms); }
u32 flow_rest(struct flow *f) { return f->lp.rest_rtts; }
void flow_above(struct flow *f, bool above) { f->lp.above = above; }
void flow_mark(struct flow *f, u32 snd_nxt) { lp_mark(&f->lp, snd_nxt); }
bool flow_stale(struct flow *f, u32 snd_una)
{
	struct lp_ack ack = { .snd_una = snd_una, .snd_nxt = snd_una + 10, .path = { .delay_us = 50000 } };

	lp_sample(&f->lp, &ack);
	return f->lp.stale;
}
bool flow_repaired(struct flow *f, u32 before_pkts) { return lp_repaired(&f->lp, before_pkts, 1); }
/* ACKs are held up on their way back, on a link that takes so long for a packet. */
void flow_held(struct flow *f, u32 pkt_us) { f->lp.held = 1; f->lp.path.pkt_us = pkt_us; }
u32 event_delay(void) { return LP_DELAY; }
u32 event_ece(void) { return LP_ECE; }
u32 event_loss(void) { return LP_LOSS; }
void flow_smooth(struct flow *f, u32 d_us) { lp_smooth(&f->lp, d_us); }
void flow_loss(struct flow *f) { lbe_delay_lost(&f->lp.path, lp_sd_us(&f->lp)); lbe_delay_repaired(&f->lp.path); }
u32 snap(u64 span_us, u32 ticks)
{
	struct lbe_owd owd = { .tick = lbe_tick_snap(span_us, ticks) };

	return lbe_owd_tick_us(&owd);
}
"""

_BOOLS = ("flow_grows", "flow_over", "flow_stale", "flow_repaired")
_types = {"flow_new": ctypes.c_void_p, **dict.fromkeys(_BOOLS, ctypes.c_bool)}


def library(folder: pathlib.Path) -> ctypes.CDLL:
    """The headers as a shared library, compiled into ``folder``."""
    lib = hostc.load(WRAPPER, folder, FOLDER, "lp")
    for name in (
        "flow_new",
        "flow_free",
        "flow_ack",
        "flow_delay",
        "flow_indications",
        "flow_tick",
        "flow_source",
        "flow_margin",
        "flow_base",
        "flow_full",
        "flow_sd",
        "flow_sd_q",
        "flow_grows",
        "flow_itt_end",
        "flow_over",
        "flow_react",
        "flow_react_to",
        "flow_rest",
        "flow_above",
        "flow_mark",
        "flow_stale",
        "flow_repaired",
        "event_delay",
        "event_ece",
        "event_loss",
        "flow_smooth",
        "flow_loss",
        "snap",
    ):
        getattr(lib, name).restype = _types.get(name, ctypes.c_uint32)
    lib.flow_ack.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.c_uint32,
        ctypes.c_bool,
        ctypes.c_uint32,
        ctypes.c_uint32,
        ctypes.c_uint32,
        ctypes.c_bool,
        ctypes.c_uint32,
        ctypes.c_uint32,
    ]
    lib.snap.argtypes = [ctypes.c_uint64, ctypes.c_uint32]
    return lib


#: (base, full) of a path in us, as after a first loss
LEARNT = (50000, 150000)


@dataclass
class Ack:
    """One ACK as the sender sees it. Ticks of TSecr and now_ms are 1 ms."""

    now_us: int
    tsval: int
    tsecr: int
    now_ms: int
    rtt_us: int
    forward_us: int
    seq: int


@dataclass
class Path:
    """A path with queues that are functions of time in seconds, in us.

    tick_us, offset, ppm: the receiver's clock; ours counts ms from start_ms. hold_us: how long the
    receiver sits on an ACK (delayed ACK). gap_us: time between packets.
    """

    forward: Callable[[float], float] = lambda t: 0.0
    reverse: Callable[[float], float] = lambda t: 0.0
    base_us: int = 50000
    tick_us: int = 1000
    offset: int = 0
    ppm: float = 0.0
    hold_us: int = 0
    gap_us: int = 10007
    start_ms: int = 100000

    def acks(self, seconds: float) -> Iterator[Ack]:
        """ACKs in the order of sending (queues that shrink slower than time never reorder)."""
        for number in range(int(seconds * 1e6 / self.gap_us)):
            sent = number * self.gap_us
            forward = int(self.forward(sent / 1e6))
            stamped = sent + self.base_us // 2 + forward + self.hold_us
            now = stamped + self.base_us // 2 + int(self.reverse(stamped / 1e6))
            peer = math.floor((stamped * (1 + self.ppm / 1e6) + self.start_ms * 1000) / self.tick_us)
            yield Ack(
                now_us=now + self.start_ms * 1000,
                tsval=(peer + self.offset) & 0xFFFFFFFF,
                tsecr=(self.start_ms + sent // 1000) & 0xFFFFFFFF,
                now_ms=(self.start_ms + now // 1000) & 0xFFFFFFFF,
                rtt_us=now - sent,
                forward_us=forward,
                seq=number + 1,
            )


class Ours:
    """One flow on the headers. learnt: (base, full); None: neither is known yet."""

    def __init__(
        self, lib: ctypes.CDLL, learnt: tuple[int, int] | None = LEARNT, delta: int = 150, paper: bool = False
    ):
        self.lib = lib
        self.flow = ctypes.c_void_p(lib.flow_new(delta, *(learnt or (0, 0)), paper))
        self.min_rtt, self.cwnd = 0xFFFFFFFF, 10

    def __del__(self) -> None:
        self.lib.flow_free(self.flow)

    def ack(self, ack: Ack, timestamps: bool = True, pkts: int = 1, lone: bool = False, in_flight: int = 10) -> int:
        """One ACK; in_flight packets are sent but not ACKed. Returns the window after it."""
        self.min_rtt = min(self.min_rtt, ack.rtt_us)
        self.cwnd = self.lib.flow_ack(
            self.flow,
            ack.now_us,
            ack.tsval,
            timestamps,
            ack.rtt_us,
            self.min_rtt,
            pkts,
            lone,
            ack.seq,
            ack.seq + in_flight,
        )
        return self.cwnd

    def cwnd_is(self, packets: int) -> bool:
        return self.cwnd == packets

    def __getattr__(self, name: str) -> int:
        return int(getattr(self.lib, f"flow_{name}")(self.flow))
