/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tick of the clock behind a peer's TSval (RFC 7323). Systems use only a few lengths of
 * tick, so a measured tick is rounded to the nearest known one.
 *
 * Sources: RFC 7323 section 5.4 (between 1 ms and 1 s); the comment at the table has the
 * ticks of present systems.
 *
 * Pure functions: no clock, no socket.
 */
#ifndef LBE_TICK_H
#define LBE_TICK_H

#include <lbe/arith.h>

/* A baseline matches a known tick if within 1/8 of it (neighbours are a factor
 * of 2 apart or more).
 */
#define LBE_TICK_SNAP_SHIFT	3

/* Ticks in use, us: Linux with TCP_USEC_TS 1 us; Linux, BSD, Windows 1 ms; BSD 2 ms;
 * old versions of Linux 4 and 10 ms; others 100 ms, 500 ms (BSD slow timer), 1 s.
 */
static const u32 lbe_ticks_us[] = {
	1, 1000, 2000, 4000, 10000, 100000, 500000, 1000000
};

/**
 * lbe_tick_snap() - the known tick nearest to a measured one
 * @span_us: length of the baseline on the sender's clock, us, below 2^44
 * @ticks: ticks of the peer in it, above 0
 *
 * Return: its index in lbe_ticks_us plus 1, or 0 if none is within 1/8.
 */
static inline u8 lbe_tick_snap(u64 span_us, u32 ticks)
{
	u64 tick_ns = div_u64(span_us * 1000, ticks);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lbe_ticks_us); i++) {
		u64 known_ns = lbe_ticks_us[i] * 1000ULL;
		u64 slack_ns = known_ns >> LBE_TICK_SNAP_SHIFT;

		if (tick_ns + slack_ns >= known_ns &&
		    tick_ns <= known_ns + slack_ns)
			return i + 1;
	}
	return 0;
}

#endif /* LBE_TICK_H */
