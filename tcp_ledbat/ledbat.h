/* SPDX-License-Identifier: GPL-2.0 */
/* The state of a flow of LEDBAT or LEDBAT++. */
#ifndef _LEDBAT_H
#define _LEDBAT_H

#include <linux/types.h>
#include <net/tcp.h>

#include <lbe/ledbat_law.h>
#include <lbe/path_delay.h>

/**
 * struct ledbat - state of a flow, in the socket
 * @path: base delay, buffer depth, detection of a longer path
 * @part_q32: fraction of a packet by which the window exceeds snd_cwnd, Q32
 * @round_end: the present round trip ends when this is acknowledged (sequence number;
 *	updated each round trip)
 * @queue_us: queueing delay q of the latest ACK, us
 * @began_ms: start of the slowdown, ms; read only in FREEZE and RAMP, which end, by
 *	themselves or by an idle time, long before it wraps (49 days)
 * @next_ms: AVOID: time of the earliest next slowdown; FREEZE: its end, ms. Wraps in 49
 *	days; updated by each ACK that finds no slowdown due, and after idle times
 * @reverse_q3: smoothed delay of the reverse path above its least, us << 3
 * @reverse_felt_us: the part of it to which the window has been adjusted, us
 * @rest_rtts: R, rest before the next window, round trips
 * @mark: parts of the LE mark that this flow has set (LBE_MARK_*)
 * @mode: enum ledbat_mode
 * @resume_rounds: round trips within which slow start may be resumed
 * @on: init has run (with Fast Open the first ACK precedes it)
 * @pp: LEDBAT++
 * @paper: use the law of the document without the departures
 * @has_sample: @queue_us is that of the latest ACK
 * @holds: the window has just been set, and delays are those of packets sent before
 * @new_round: @rest_rtts has not been updated in this round trip yet
 * @asked: a slowdown is due, whatever @next_ms
 * @short_seen: a packet of this round trip met a queue of at most the target
 * @long_seen: a packet of this round trip met a queue
 *
 * Written only under the socket lock.
 */
struct ledbat {
	struct lbe_path_delay path;
	u32 part_q32;
	u32 round_end;
	u32 queue_us;
	u32 began_ms;
	u32 next_ms;
	u32 reverse_q3;
	u32 reverse_felt_us;
	u8 rest_rtts;
	u8 mark;
	u8 mode:2,
	   resume_rounds:3,
	   on:1,
	   pp:1,
	   paper:1;
	u8 has_sample:1,
	   holds:1,
	   new_round:1,
	   asked:1,
	   short_seen:1,
	   long_seen:1;
};

enum ledbat_event {
	LEDBAT_ENTERS,		/* the flow enters a mode */
	LEDBAT_RESTS,		/* rests between round trips begin */
	LEDBAT_SENDS,		/* rests end */
	LEDBAT_LEARNT,		/* a loss has changed the known buffer depth */
	LEDBAT_LONGER_PATH,	/* a constant delay has become the base */
};

/* The configured target of this flow's control, us. */
u32 ledbat_target_us(const struct ledbat *f);

/* The target, limited by the buffer's depth, us. */
static inline u32 ledbat_flow_aim_us(const struct ledbat *f, u32 target_us)
{
	if (f->paper)
		return target_us;
	return ledbat_aim_us(target_us, lbe_delay_range_us(&f->path),
			     lbe_delay_noise_us(&f->path));
}

#endif /* _LEDBAT_H */
