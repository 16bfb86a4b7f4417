# SPDX-License-Identifier: GPL-2.0
"""The law of lbe (path.h, train.h, path_send.h), compiled for this machine."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent

#: fields of struct lbe_path that a test may read and set
FIELDS = (
    "state", "reason", "now_us", "since_us", "heard_us", "timed_out", "mss", "flows", "waiting", "next_ns",
    "turn_us", "turn_pkts", "turn_weight", "line_weight",
    "base_us", "rtt_us", "noise_us", "deep_us", "mu", "policed_us", "rate", "fails", "prompt", "n", "ticks", "pulsed",
    "pulse_us", "local", "in_flight", "idle_us", "isolated", "raises", "unlost", "few",
)  # fmt: skip
#: and of its train
TRAIN = ("from_us", "until_us", "rate", "bytes", "lost_bytes", "throttled", "on")

WRAPPER = (
    """
#include <stdlib.h>
#include <lbe/path_send.h>

typedef struct lbe_path path;

#define FIELD(name, field)						\\
	u64 get_##name(const path *p) { return (u64)p->field; }		\\
	void set_##name(path *p, u64 value) { p->field = value; }
"""
    + "\n".join(f"FIELD({name}, {name})" for name in FIELDS)
    + "\n".join(f"\nFIELD(train_{name}, train.{name})" for name in TRAIN)
    + """

path *path_new(u64 now_us, u32 mss, u32 rtt_us)
{
	path *p = malloc(sizeof(*p));

	if (!p)
		abort();
	lbe_path_init(p, now_us, mss, rtt_us);
	p->flows = 1;
	return p;
}

void path_free(path *p) { free(p); }

u64 pkt_us(path *p) { return lbe_path_pkt_us(p); }
u64 target_us(path *p) { return lbe_path_target_us(p); }
u64 jump_us(path *p) { return lbe_path_jump_us(p); }
u64 tick_len_us(path *p) { return lbe_path_tick_len_us(p); }
u64 train_len_us(path *p) { return lbe_path_train_us(p); }
u64 pair_us(path *p) { return lbe_path_pair_us(p); }
u64 slow_start_rtts(path *p) { return lbe_path_slow_start_rtts(p); }
u64 strict(path *p) { return lbe_path_strict(p); }
u64 burst_pkts(path *p) { return lbe_path_burst_pkts(p); }
u64 send_rate(path *p) { return lbe_path_send_rate(p); }
u64 cap(path *p, u64 burst_bytes) { return lbe_path_cap(p, burst_bytes); }
u64 slot_ns(path *p, u64 bytes, u64 dither) { return lbe_path_slot_ns(p, bytes, dither); }
u64 late_ns(u64 now_ns, u64 slot_ns) { return lbe_path_late_ns(now_ns, slot_ns); }
u64 due_ns(path *p) { return lbe_path_due_ns(p); }
void rest(path *p, u64 now_ns) { lbe_path_rest(p, now_ns); }
void sent(path *p, u64 now_ns, u64 slot_ns, u64 bytes) { lbe_path_sent(p, now_ns, slot_ns, 2, bytes); }
u64 turn_len_us(path *p) { return lbe_path_turn_len_us(p); }
u64 turn_over(path *p) { return lbe_path_turn_over(p); }
void learn_mu(path *p, u64 now_us, u64 mu) { lbe_path_learn_mu(p, now_us, mu); }
void know_mu(path *p, u64 mu) { lbe_path_set_mu(p, mu); }
void cruise(path *p, u64 now_us, u64 rate) { lbe_path_cruise(p, now_us, rate, LBE_TRAIN_PASSED); }
void floor_at(path *p, u64 now_us) { lbe_path_yield(p, now_us, LBE_QUEUE_JUMPED, 0); }
void give_way(path *p, u64 now_us) { lbe_path_give_way(p, now_us, LBE_QUEUE_JUMPED); }
u64 silent_us(const path *p) { return p->blind_us; }
void probe(path *p, u64 now_us) { lbe_path_probe(p, now_us); }
void start_train(path *p, u64 now_us, u64 rate, u64 len_us)
{ lbe_train_start(&p->train, now_us, rate, len_us); }
void add(path *p, u64 sent_us, u64 delay_us) { lbe_train_add(&p->train, sent_us, delay_us, false); }
void add_last(path *p, u64 sent_us, u64 delay_us) { lbe_train_add(&p->train, sent_us, delay_us, true); }
u64 limited(path *p) { return lbe_train_limited(&p->train); }
void verdict(path *p, u64 now_us) { lbe_path_verdict(p, now_us); }
void law(path *p, u64 q_us, u64 dt_us) { lbe_path_cruise_law(p, q_us, dt_us); }
void ring(path *p, u64 i, u64 q_us, u64 rate) { p->q_us[i % LBE_PATH_TICKS] = q_us; p->r[i % LBE_PATH_TICKS] = rate; }

s64 growth(path *p)
{
	s32 g;

	return lbe_train_growth(&p->train, &g) ? g : S32_MIN;
}

void ack(path *p, u64 now_us, u64 delay_us, u64 rtt_us, u64 pkts, u64 lost_pkts, u64 marked)
{
	struct lbe_path_ack a = {
		.now_us = now_us, .delay_us = delay_us, .rtt_us = rtt_us, .acked_pkts = pkts,
		.acked_bytes = pkts * p->mss, .lost_bytes = lost_pkts * p->mss, .marked = marked,
	};

	lbe_path_ack(p, &a);
}

struct lbe_view *view_new(void)
{
	struct lbe_view *v = malloc(sizeof(*v));

	if (!v)
		abort();
	lbe_view_init(v);
	return v;
}

u64 weight_each(u64 given, u64 flows) { return lbe_weight_each((u32)given, (u32)flows); }
void wait_weighing(path *p, u64 weight) { lbe_path_wait(p, &(struct lbe_view){ .weight = (u32)weight }); }
void wait_end_weighing(path *p, u64 weight) { lbe_path_wait_end(p, &(struct lbe_view){ .weight = (u32)weight }); }
void turn_weighing(path *p, u64 weight) { lbe_path_turn_begin(p, &(struct lbe_view){ .weight = (u32)weight }); }
u64 part_us(path *p, u64 weight) { return lbe_path_part_us(p, (u32)weight); }

void view_free(struct lbe_view *v) { free(v); }

u64 contradicts(path *p, struct lbe_view *v, u64 now_us, u64 delay_us)
{
	struct lbe_path_ack a = { .now_us = now_us, .delay_us = delay_us, .rtt_us = delay_us };

	return lbe_path_contradicts(p, v, &a);
}
"""
)
#: what a caller gets back; all others return nothing
VALUES = (
    "pkt_us", "target_us", "jump_us", "tick_len_us", "train_len_us", "pair_us", "slow_start_rtts", "strict",
    "burst_pkts", "send_rate", "cap", "slot_ns", "due_ns", "turn_len_us", "part_us", "turn_over", "silent_us",
    "contradicts", "growth", "limited",
)  # fmt: skip
#: of an ordinary flow
WEIGHT = 10**6
STATES = {name: number for number, name in enumerate(("start", "cruise", "floor", "probe"))}
#: growth() where the samples do not tell
NO_GROWTH = -(2**31)


class _Call:
    """A function of the library, whose arguments are all of 64 bits."""

    def __init__(self, function: Any, result: type | None, first: list[Any]):
        self.function, self.first = function, first
        function.restype = result

    def __call__(self, *numbers: int) -> Any:
        # a number above 2^64 would be cut off without a word
        assert all(0 <= number < 2**64 for number in numbers), numbers
        return self.function(*self.first, *(ctypes.c_uint64(number) for number in numbers))


class Law:
    """The compiled law."""

    def __init__(self, folder: Path):
        self.library = hostc.load(WRAPPER, folder, FOLDER, "law")
        self.library.path_new.restype = ctypes.c_void_p
        self.library.view_new.restype = ctypes.c_void_p
        self.late_ns = _Call(self.library.late_ns, ctypes.c_uint64, [])
        self.weight_each = _Call(self.library.weight_each, ctypes.c_uint64, [])


class OnePath:
    """One path: its fields are attributes, and the functions of the law that take it are methods."""

    def __init__(self, law: Law, mss: int = 1448, rtt_us: int = 100_000, now_us: int = 0):
        made = law.library.path_new(ctypes.c_uint64(now_us), ctypes.c_uint32(mss), ctypes.c_uint32(rtt_us))
        self.__dict__.update(lib=law.library, at=ctypes.c_void_p(made), views=[])
        self.rtt_us = rtt_us

    def __del__(self) -> None:
        for view in self.views:
            self.lib.view_free(view)
        self.lib.path_free(self.at)

    def let_wait(self, flows: int) -> None:
        """So many ordinary flows wait for their turn."""
        self.waiting, self.line_weight = flows, flows * WEIGHT

    def view(self) -> ctypes.c_void_p:
        """How the delays of another flow compare with those of the rest."""
        view = ctypes.c_void_p(self.lib.view_new())
        self.views.append(view)
        return view

    def contradicts(self, view: ctypes.c_void_p, now_us: int, delay_us: int) -> bool:
        return bool(_Call(self.lib.contradicts, ctypes.c_uint64, [self.at, view])(now_us, delay_us))

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS or name.removeprefix("train_") in TRAIN:
            return _Call(getattr(self.lib, f"get_{name}"), ctypes.c_uint64, [self.at])()
        result = ctypes.c_int64 if name == "growth" else ctypes.c_uint64 if name in VALUES else None
        return _Call(getattr(self.lib, name), result, [self.at])

    def __setattr__(self, name: str, value: int) -> None:
        _Call(getattr(self.lib, f"set_{name}"), None, [self.at])(value)

    def is_in(self, state: str) -> bool:
        return bool(self.state == STATES[state])
