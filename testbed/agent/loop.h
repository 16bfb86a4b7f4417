/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The event loop of the process: absolute timers and ready descriptors.
 *
 * The process has one thread; there are no locks.  Times are absolute, of
 * CLOCK_MONOTONIC, in nanoseconds: a late wake-up delays one action and no
 * later one.  The loop sleeps on a timerfd, because an epoll time-out may be
 * late by a thousandth of its length.
 *
 * Timers due at the same nanosecond fire by rank, then in the order in which
 * they were armed, so that a run does not depend on the layout of the heap.
 */
#ifndef LBE_AGENT_LOOP_H
#define LBE_AGENT_LOOP_H

#include "types.h"

enum timer_rank {
	RANK_DRAIN,	/* sinks read before samples are taken */
	RANK_SAMPLE,
	RANK_SEND,
	RANK_END,
};

struct timer {
	void (*fire)(struct timer *t, u64 now_ns);
	u64 at_ns;	/* due time; written by loop.c */
	u64 order;	/* rank, then sequence number of arming */
	size_t slot;	/* index in the heap + 1; 0 = not armed */
	u8 rank;	/* enum timer_rank; set by the owner before arming */
};

struct watch {
	void (*ready)(struct watch *w, u32 events);
	int fd;		/* -1 = closed: events still queued are dropped */
};

int loop_init(void);
u64 loop_clock(void);		/* reads CLOCK_MONOTONIC */
u64 loop_now(void);		/* the clock, read once after each wake-up */
void loop_stop(void);		/* makes loop_run() return soon; signal safe */
int loop_run(void);

void timer_arm(struct timer *t, u64 at_ns);
void timer_cancel(struct timer *t);
int sleep_until(u64 at_ns);

int watch_add(struct watch *w, u32 events);
void watch_close(struct watch *w);	/* closes the descriptor too */
void loop_free(void *memory);		/* free() when no queued event refers to it */

#endif
