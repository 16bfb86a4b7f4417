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
 * @path: base delay, buffer, longer path
 * @part_q32: part of a packet that the window is larger than snd_cwnd
 * @round_end: the present round trip ends when this is acknowledged (sequence;
 *	refreshed each round trip)
 * @queue_us: queueing delay q of the latest ACK, us
 * @began_ms: when the slowdown began, ms; read in FREEZE and RAMP alone, which end or are
 *	left after an idle time long before it wraps (49 days)
 * @next_ms: AVOID: no slowdown before then; FREEZE: it ends then, ms. Both wrap in
 *	49 days; refreshed by each ACK that finds no slowdown due, and after idle times
 * @reverse_q3: smoothed delay of the reverse path above its least, us << 3
 * @reverse_felt_us: what of it the window has followed, us
 * @rest_rtts: R, rest before the next window, round trips
 * @mark: what of the LE mark is ours (LBE_MARK_*)
 * @mode: enum ledbat_mode
 * @resume_rounds: round trips for which slow start may yet go on
 * @on: init has run (with Fast Open the first ACK comes before it)
 * @pp: LEDBAT++
 * @paper: use the law as its document has it
 * @has_sample: @queue_us is that of the latest ACK
 * @holds: delays are of packets sent before the window was set anew
 * @new_round: @rest_rtts has not changed in this round trip yet
 * @asked: a slowdown is asked for, whatever @next_ms
 * @short_seen: a packet of this round trip met less than the target
 * @long_seen: one met a queue
 *
 * Written under the socket lock alone.
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
	LEDBAT_ENTERS,		/* the mode */
	LEDBAT_RESTS,		/* a rest begins */
	LEDBAT_SENDS,		/* and ends */
	LEDBAT_LEARNT,		/* a loss told the buffer's depth */
	LEDBAT_LONGER_PATH,
};

/* The target as set for this flow's control, us. */
u32 ledbat_target_us(const struct ledbat *f);

/* The target in view of the buffer's depth, us. */
static inline u32 ledbat_flow_aim_us(const struct ledbat *f, u32 target_us)
{
	if (f->paper)
		return target_us;
	return ledbat_aim_us(target_us, lbe_delay_range_us(&f->path),
			     lbe_delay_noise_us(&f->path));
}

#endif /* _LEDBAT_H */
