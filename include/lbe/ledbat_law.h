/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of LEDBAT and LEDBAT++: pure functions on integers, for the sender
 * (tcp_ledbat) and for the receiver (vulture's rledbat).
 *
 * LEDBAT (RFC 6817, section 2.4.2), W in packets, q the queueing delay:
 *
 *	q	= min(latest delays) - min(delays of 10 minutes)
 *	dW/RTT	= GAIN (T - q) / T				q <= T
 *	dW/RTT	= - min(W / 2, max(GAIN (q - T) / T, D W (q - T) / RTT))   q > T
 *	W	= max(min(W, flight + ALLOWED_INCREASE), MIN_CWND)
 *
 * "Latest delays" is the delay of one ACK if that covers two packets or more. It is the lesser of
 * two if an ACK covers one packet, since the peer may have delayed it (path_delay.h). The RFC takes
 * the delays of a round trip.
 *
 * D W (q - T) / RTT is D times the packets this flow keeps in the queue beyond
 * the target: with D = 0 the decrease is the RFC's own, with D = 1 (default)
 * the excess is removed within one round trip at any rate. The RFC permits a higher
 * gain for the decrease. Abu and Gordon write G (T - q) / W for each ACK, with G = 40
 * per second: G T = 40 * 0.025 = 1 is GAIN.
 *
 * LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus, sections 4.1 to 4.4):
 *
 *	GAIN	= 1 / min(16, ceil(2 T / base))
 *	dW/RTT	= GAIN						q <= T
 *	dW/RTT	= max(GAIN - C W (q / T - 1), -W / 2)		q > T
 *
 * Changes of W are 32.32 fixed point, in units of 2^-32 packet an ACK. The part below a
 * packet is kept, so that nothing is lost to rounding.
 */
#ifndef LBE_LEDBAT_LAW_H
#define LBE_LEDBAT_LAW_H

#include <lbe/arith.h>

/* Q16 stands for 1. */
#define LEDBAT_ONE_Q16		(1U << 16)

/* Longest delay with which the arithmetic calculates, us: 67 s, more than any sensible
 * RTO. Longer delays are limited to it; 2^26 keeps all products below 2^63.
 */
#define LEDBAT_DELAY_MAX_US	(1U << 26)

/* Largest window with which the arithmetic calculates, packets; larger ones are limited to it. */
#define LEDBAT_WINDOW_MAX_PKTS	(1U << 20)

/* RFC 6817 section 2.5: TARGET MUST NOT exceed 100 ms. */
#define LEDBAT_TARGET_MAX_US	100000U

/* Slow start ends when the queue is above 3/4 of the target (LEDBAT++ 4.1; the RFC
 * does not specify this). With a higher value, more packets are in the queue when the
 * flow notices it; with a lower one, noise ends slow start.
 */
#define LEDBAT_EXIT_NUM		3U
#define LEDBAT_EXIT_DEN		4U

/* LEDBAT++ 4.2: GAIN is at least 1/16. */
#define LEDBATPP_DIVISOR_MAX	16U

/**
 * struct ledbat_window - congestion window with the part below a packet
 * @cwnd: packets
 * @part_q32: 2^-32 packets on top of them
 */
struct ledbat_window {
	u32 cwnd;
	u32 part_q32;
};

/* Queueing delay, us, limited to LEDBAT_DELAY_MAX_US */
static inline u32 ledbat_queue_us(u32 delay_us, u32 base_us)
{
	if (delay_us <= base_us)
		return 0;
	return min(delay_us - base_us, LEDBAT_DELAY_MAX_US);
}

/* W in Q16, from one packet to LEDBAT_WINDOW_MAX_PKTS */
static inline u64 ledbat_window_q16(const struct ledbat_window *w)
{
	u64 w_q16 = ((u64)w->cwnd << 16) | (w->part_q32 >> 16);

	return clamp_t(u64, w_q16, LEDBAT_ONE_Q16,
		       (u64)LEDBAT_WINDOW_MAX_PKTS << 16);
}

/**
 * ledbat_rate_q32() - change of the window over one round trip, RFC 6817
 * @w: window
 * @queue_us: queueing delay q, us
 * @target_us: target T, us, 1 to LEDBAT_TARGET_MAX_US
 * @rtt_us: round-trip time, us; 0 is taken for 1
 * @gain_q16: GAIN, at most LEDBAT_ONE_Q16
 * @decrease_q16: D, at most LEDBAT_ONE_Q16; 0 = the RFC's own decrease
 *
 * Return: packets in Q32, between minus half the window and one packet.
 */
static inline s64 ledbat_rate_q32(const struct ledbat_window *w, u32 queue_us,
				  u32 target_us, u32 rtt_us, u32 gain_q16,
				  u32 decrease_q16)
{
	u64 w_q16 = ledbat_window_q16(w);
	u64 linear_q32, share_q16, excess_q32;
	u32 over_us;

	queue_us = min(queue_us, LEDBAT_DELAY_MAX_US);
	if (queue_us <= target_us)	/* 2^16 * 2^17 * 2^16 */
		return div_u64((u64)gain_q16 * (target_us - queue_us) << 16,
			       target_us);

	over_us = queue_us - target_us;
	/* 2^16 * 2^26 * 2^16 */
	linear_q32 = div_u64((u64)gain_q16 * over_us << 16, target_us);
	/* q - T above a round trip is the false delay of a stalled ACK */
	share_q16 = div_u64((u64)over_us << 16, max(rtt_us, 1U));
	share_q16 = min_t(u64, share_q16, LEDBAT_ONE_Q16);
	/* 2^36 * 2^16, then D */
	excess_q32 = (w_q16 * share_q16 >> 16) * decrease_q16;

	return -(s64)min_t(u64, max_t(u64, linear_q32, excess_q32),
			   w_q16 << 15);
}

/**
 * ledbatpp_divisor() - 1 / GAIN of LEDBAT++
 * @target_us: target, us
 * @base_us: base round-trip time, us; 0 = not known
 *
 * A flow on a short path can double its window many times before a flow on a long path
 * sees the queue; GAIN removes that advantage. Return: 1 to LEDBATPP_DIVISOR_MAX.
 */
static inline u32 ledbatpp_divisor(u32 target_us, u32 base_us)
{
	u64 twice_us = 2ULL * target_us;

	if (!base_us)
		return LEDBATPP_DIVISOR_MAX;
	return clamp_t(u64, div_u64(twice_us + base_us - 1, base_us),
		       1, LEDBATPP_DIVISOR_MAX);
}

/**
 * ledbatpp_rate_q32() - change of the window over one round trip, LEDBAT++ 4.3
 * @w: window
 * @queue_us: queueing delay q, us
 * @target_us: target T, us, not 0
 * @divisor: 1 / GAIN
 * @constant_q16: C, at most LEDBAT_ONE_Q16 (recommended)
 *
 * Return: packets in Q32, between minus half the window and GAIN.
 */
static inline s64 ledbatpp_rate_q32(const struct ledbat_window *w, u32 queue_us,
				    u32 target_us, u32 divisor, u32 constant_q16)
{
	u64 w_q16 = ledbat_window_q16(w);
	s64 gain_q32 = div_u64(1ULL << 32, divisor);
	u64 over_q16, less_q32;

	queue_us = min(queue_us, LEDBAT_DELAY_MAX_US);
	if (queue_us <= target_us)
		return gain_q32;

	/* With C = 1 half of the window is reached below twice the target. The limit keeps
	 * the product in range.
	 */
	over_q16 = div_u64((u64)(queue_us - target_us) << 16, target_us);
	over_q16 = min_t(u64, over_q16, 4 * LEDBAT_ONE_Q16);
	less_q32 = (w_q16 * over_q16 >> 16) * constant_q16;	/* < 2^54 */

	return max_t(s64, gain_q32 - (s64)less_q32, -(s64)(w_q16 << 15));
}

/**
 * ledbat_per_ack_q32() - the part of a round trip's change that one ACK causes
 * @rate_q32: change over one round trip, packets in Q32
 * @acked: packets newly acknowledged
 * @w: window
 *
 * A round trip acknowledges a window of packets; no ACK counts for more than that.
 */
static inline s64 ledbat_per_ack_q32(s64 rate_q32, u32 acked,
				     const struct ledbat_window *w)
{
	u32 cwnd = max(w->cwnd, 1U);
	u64 size_q32 = rate_q32 < 0 ? -rate_q32 : rate_q32;

	/* rounded up, so that W ACKs of one packet each make the whole change */
	size_q32 = div_u64(size_q32 + cwnd - 1, cwnd) * min(acked, cwnd);

	return rate_q32 < 0 ? -(s64)size_q32 : (s64)size_q32;
}

/**
 * ledbat_reverse_q32() - change of the window that keeps the rate as the reverse delay changes
 * @w: window
 * @change_us: how much longer the ACKs' delay is than at the last call, us
 * @rtt_us: round-trip time, us; 0 is taken for 1
 * @acked: packets newly acknowledged
 *
 * A queue on the reverse path makes the round trip longer, so that the same window is a
 * lower rate. When that queue drains, the packets of the window move into the forward
 * queue at once. A window that changes by one packet a round trip cannot follow that. With
 * dW / W = d(reverse) / RTT the rate, and so the forward queue, remains the same.
 *
 * Return: packets in Q32. An increase is at most one packet for each packet
 * acknowledged (as in slow start), a decrease at most half the window.
 */
static inline s64 ledbat_reverse_q32(const struct ledbat_window *w, s32 change_us,
				     u32 rtt_us, u32 acked)
{
	u64 w_q16 = ledbat_window_q16(w);
	u64 size_us = change_us < 0 ? -(s64)change_us : change_us;
	u64 share_q16 = div_u64(min_t(u64, size_us, LEDBAT_DELAY_MAX_US) << 16,
				max(rtt_us, 1U));
	u64 size_q32 = w_q16 * min_t(u64, share_q16, LEDBAT_ONE_Q16 / 2);

	if (change_us < 0)
		return -(s64)size_q32;
	return min_t(u64, size_q32, (u64)acked << 32);
}

/**
 * ledbat_window_add() - change the window, keeping the part below a packet
 * @w: window
 * @delta_q32: packets in Q32, less than 2^31 packets
 * @floor: least window, packets; a window below it is not lowered further
 */
static inline void ledbat_window_add(struct ledbat_window *w, s64 delta_q32,
				     u32 floor)
{
	u64 now_q32 = ((u64)w->cwnd << 32) | w->part_q32;
	u64 least_q32 = (u64)min(floor, w->cwnd) << 32;

	if (delta_q32 < 0 && (now_q32 < least_q32 - delta_q32))
		now_q32 = least_q32;
	else
		now_q32 += delta_q32;
	w->cwnd = now_q32 >> 32;
	w->part_q32 = (u32)now_q32;
}

/* A loss halves, and never raises, the window (RFC 6817 section 2.4.2). */
static inline u32 ledbat_loss_pkts(u32 cwnd, u32 floor)
{
	return min(cwnd, max(cwnd / 2, floor));
}

/* Is the queue long enough to end slow start (LEDBAT_EXIT_NUM)? */
static inline bool ledbat_leaves_slow_start(u32 queue_us, u32 target_us)
{
	return (u64)queue_us * LEDBAT_EXIT_DEN > (u64)target_us * LEDBAT_EXIT_NUM;
}

/* HyStart++ (RFC 9406 section 4.2): if the queue that ended slow start is gone
 * within this many round trips, it was a burst or noise, and slow start is resumed.
 */
#define LEDBAT_RESUME_ROUNDS	5U
/* A queue of at most this part of the target counts as gone, and as empty elsewhere. */
#define LEDBAT_EMPTY_SHIFT	3

/* A departure from the RFC. Where the buffer is about as deep as the target, LEDBAT keeps
 * the queue just below full: its own packets replace those that leave, while the additional
 * packets of a TCP flow are dropped all the time. So the target is at most this percentage of
 * the delay at which packets are lost (path_delay.h): a full buffer is then 1.7 times the target.
 */
#define LEDBAT_DEPTH_PERCENT	60U

/* Is the queue empty, but for some delay from jitter? */
static inline bool ledbat_queue_empty(u32 queue_us, u32 target_us)
{
	return queue_us <= target_us >> LEDBAT_EMPTY_SHIFT;
}

/**
 * ledbat_aim_us() - target, limited by the depth of the buffer
 * @target_us: target as set, us
 * @range_us: queue of a full buffer, us; 0 = not known
 * @noise_us: queue that is no more than noise, us
 *
 * Return: us, at most @target_us.
 */
static inline u32 ledbat_aim_us(u32 target_us, u32 range_us, u32 noise_us)
{
	u64 part_us = div_u64((u64)range_us * LEDBAT_DEPTH_PERCENT, 100);

	if (!range_us)
		return target_us;
	return min_t(u64, max_t(u64, part_us, 2 * noise_us), target_us);
}

/**
 * ledbat_exit_pkts() - window with which slow start ends on delay
 * @cwnd: window now, packets
 * @sent: in flight when the packet just ACKed was sent, packets; 0 = not known
 * @base_us: base delay, us
 * @queue_us: queue, us
 * @target_us: target, us
 * @floor: least window, packets
 *
 * While there is a queue, the flow is served at the rate C = sent / (base + q), so
 * C (base + T) is the window that the target allows. What slow start has added beyond
 * that since the packet was sent has not reached the queue yet; it is removed at once. If the
 * queue was that of a burst, too much is removed, and slow start is resumed.
 *
 * Return: packets, at most @cwnd.
 */
static inline u32 ledbat_exit_pkts(u32 cwnd, u32 sent, u32 base_us, u32 queue_us,
				   u32 target_us, u32 floor)
{
	u64 fits;

	if (!sent)
		return cwnd;
	fits = div64_u64(sent * ((u64)base_us + target_us),
			 max_t(u64, (u64)base_us + queue_us, 1));
	return min_t(u64, cwnd, max_t(u64, fits, floor));
}

/*
 * Rest (a departure from the RFC): the least window over more than one round trip.
 *
 * Two packets a round trip may be a large rate on a narrow path: 5 % of it where path and
 * buffer hold 40 packets. While the law asks for less than the least window, the rest before
 * each window is twice as long as the one before, and a delay at which the law asks for more
 * halves it again. With R, the rest in round trips:
 *
 *	R = 0, 1, 2, 4 ... most		rate = W_min / ((1 + R) RTT)
 *
 * So the window itself remains that of RFC 6817, 2 packets, which are acknowledged at once.
 *
 * Many flows see the same minimum of a TCP flow's queue at the same time. If each of them
 * halved its rest then, together they would fill the queue up to the target again, and the TCP
 * flow would starve. So a rest is halved only if there is no queue (ledbat_queue_empty(), an
 * eighth of the target); otherwise it becomes shorter by one round trip with each window.
 */
static inline u32 ledbat_rest_rtts(u32 rest, bool less, bool empty, u32 most)
{
	if (less)
		return min(max(2 * rest, 1U), most);
	return empty ? rest / 2 : rest - min(rest, 1U);
}

/* A rest is no longer than this, us, since sch_fq drops packets that are due in 10 s or later. */
#define LEDBAT_REST_MAX_US	4000000U

/**
 * ledbat_rest_us() - length of the rest before the next window
 * @rest: R
 * @rtt_us: round-trip time, us
 * @noise: a random number
 *
 * Up to a half is subtracted at random: with a fixed interval a flow can synchronise
 * with the halvings of a TCP flow's window and meet the same queue each time.
 *
 * Return: us, from half of R round trips to all of them.
 */
static inline u32 ledbat_rest_us(u32 rest, u32 rtt_us, u32 noise)
{
	u32 most_us = min_t(u64, (u64)rest * rtt_us, LEDBAT_REST_MAX_US);

	return most_us - ((u64)(most_us / 2) * noise >> 32);
}

/* Receivers delay the ACK of a single packet for 40 ms and more, until a second one comes;
 * that looks like a queue. So packets that pacing would send further apart than this, half
 * of that time, are sent together, us.
 */
#define LEDBAT_PACE_GAP_US	20000U

/* Are the packets of a window close enough for pacing? */
static inline bool ledbat_paces(u32 cwnd, u32 rtt_us)
{
	return (u64)cwnd * LEDBAT_PACE_GAP_US >= rtt_us;
}

/*
 * Slowdowns (LEDBAT++ 4.4): the window is two packets for two round trips, so that the
 * queue drains and every flow through it measures its base delay again; then slow start
 * back to the window before.
 */
#define LEDBAT_SLOWDOWN_PKTS	2U	/* window meanwhile */
#define LEDBAT_SLOWDOWN_RTTS	2U	/* duration of it */
#define LEDBAT_SLOWDOWN_SKIP	4U	/* no slowdown at or below: it would change nothing */
#define LEDBAT_SLOWDOWN_PAUSE	9U	/* next after this many times its duration: 10 % of time */
/* Least time between two slowdowns, us. On a LAN nine times the duration is some
 * milliseconds, and base delays do not change that fast.
 */
#define LEDBAT_SLOWDOWN_LEAST_US	1000000U

enum ledbat_mode {
	LEDBAT_SLOW_START,	/* first slow start: delay may end it */
	LEDBAT_AVOID,		/* the law above */
	LEDBAT_FREEZE,		/* slowdown: window of two packets */
	LEDBAT_RAMP,		/* slowdown: slow start back to ssthresh */
};

/* Time from the end of a slowdown of @duration_us to the next one, us. */
static inline u64 ledbat_slowdown_pause_us(u64 duration_us, u32 rtt_us)
{
	u64 freeze_us = (u64)LEDBAT_SLOWDOWN_RTTS * rtt_us;

	return max_t(u64, LEDBAT_SLOWDOWN_PAUSE * max(duration_us, freeze_us),
		     LEDBAT_SLOWDOWN_LEAST_US);
}

/*
 * Dynamic minimum window (proposed in Abu and Gordon's conclusion).
 *
 *	MIN_CWND = max(fixed, S C RTT / (N P))
 *
 * C is the bottleneck's capacity as this host has measured it: the largest rate
 * at which all its LEDBAT flows together were served, over the last minutes.
 * S is the share of it that the host keeps beside TCP, N the number of its LEDBAT flows, P
 * the size of a packet. The window amounts to the rate S C / N, which is the same for
 * all flows of the host and grows with the link. For any N, TCP gets at least 1 - S of
 * the link (less if N fixed windows take more than S).
 */

/**
 * ledbat_floor_pkts() - minimum window for a rate
 * @fixed: least window, packets
 * @most: largest window that may result, packets, at least @fixed
 * @capacity_bytes: C, bytes a second
 * @share_permille: S, 0 to 1000
 * @flows: N, not 0
 * @rtt_us: round-trip time, us
 * @packet_bytes: P, not 0
 *
 * Return: packets, rounded down, @fixed to @most.
 */
static inline u32 ledbat_floor_pkts(u32 fixed, u32 most, u64 capacity_bytes,
				    u32 share_permille, u32 flows, u32 rtt_us,
				    u32 packet_bytes)
{
	/* 2^40 bytes a second times 2^23 us at most: 2^63 */
	u64 rate = div_u64(min_t(u64, capacity_bytes, 1ULL << 40) * share_permille,
			   1000);
	u64 bytes = div_u64(div_u64(rate, max(flows, 1U)) *
			    min(rtt_us, 1U << 23), 1000000);

	return clamp_t(u64, div_u64(bytes, packet_bytes), fixed, most);
}

#endif /* LBE_LEDBAT_LAW_H */
